//! `cargo x …`: every habit of the project in one command.
//!
//! Standard library only, so that the first command on a fresh machine starts in seconds.

#![allow(
    unreachable_pub,
    reason = "a program: `pub` says what a module offers the others"
)]

mod bench;
mod check;
mod demo;
mod paths;
mod python_env;
mod sh;
mod stage;
mod system;
mod test;
mod torch;

use std::process::{Command, ExitCode};

const HELP: &str = "\
cargo x <command>

  demo              sets up what is missing, builds, and trains examples/train.py on 4 ranks here
  test [FILTER]     sets up what the tests need and runs them all
  stage             builds; puts the Python module and the C library where programs find them
  check             format, clippy, layers, tidy, generated files
  check --deep [PART]
                    instead: models, algorithms at 1,024 ranks, garbage, fuzzer, Miri, ThreadSanitizer
  gen [--check]     code made from runtime/control/proto, rlaunch.h from bindings/c/src
  bench cpu|start|hosts|link
                    ours against Open MPI and MPICH, side by side
  hosts up N | exec HOST -- COMMAND | list | fault … | down
                    real hosts on this machine, made of namespaces
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match arguments.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", &[][..]),
    };
    let result = match command {
        "demo" => demo::run(rest),
        "test" => test::run(rest),
        "bench" => bench::run(rest),
        "check" => check::run(rest),
        "stage" => stage::run(rest),
        "hosts" => hosts(rest),
        "gen" => check::generated::run(rest),
        "help" | "-h" | "--help" => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(format!("no command `{other}`\n\n{HELP}")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("x {command}: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Builds the launcher and the harness's program, and hands over to it.
fn hosts(arguments: &[String]) -> Result<(), String> {
    sh::run(hosts_program()?.args(arguments))
}

/// The harness's program, built, with the launcher and its module beside it.
fn hosts_program() -> Result<Command, String> {
    system::ensure_build()?;
    system::ensure_hosts()?;
    eprintln!("x hosts: building");
    let harness = ["--package", "rlaunch-harness", "--bin", "hosts"];
    sh::run(sh::cargo(["build", "--quiet"]).args(harness))?;
    sh::run(&mut sh::cargo(["build", "--quiet"]))?;
    stage::stage(&paths::target())?;
    Ok(Command::new(paths::built("hosts")))
}
