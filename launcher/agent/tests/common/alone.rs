//! The agent as a program of its own, for this crate's tests.

fn main() -> std::process::ExitCode {
    rlaunch_agent::main(std::env::args_os().skip(1))
}
