//! Words for people, on a rank's stderr.

use std::fmt::Arguments;
use std::io::Write;

/// One line. That stderr has no reader or no room any more must not end a program that would go on.
pub fn say(line: Arguments<'_>) {
    std::io::stderr()
        .write_all(format!("{line}\n").as_bytes())
        .ok();
}
