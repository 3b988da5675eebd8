//! The executable: the launcher, and on each host its agent.

#![deny(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where nobody reads"
)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).peekable();
    if let Err(error) = rlaunch_agent::limits::begin() {
        return launcher::refuse_to_begin(&error);
    }
    // Before anything else: the agent forks its keeper while it is a single small thread.
    if arguments.peek().is_some_and(|word| word == "agent") {
        return rlaunch_agent::main(arguments.skip(1));
    }
    let code = launcher::run(arguments);
    // Threads may still wait for a terminal or a host; they must not hold the exit up.
    std::process::exit(i32::from(code))
}
