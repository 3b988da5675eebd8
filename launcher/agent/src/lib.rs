//! What runs on each host.

use std::ffi::OsString;
use std::process::ExitCode;

/// `rlaunch agent`.
pub fn main(_args: impl Iterator<Item = OsString>) -> ExitCode {
    ExitCode::FAILURE
}
