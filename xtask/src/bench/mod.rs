//! `cargo x bench …`: ours against the peers, on this machine, in the same minutes.
//!
//! Ours and theirs take turns inside each round, so that a machine that slows down slows all of them
//! down. Results are Markdown, fit for docs/benchmarks.md; talk goes to stderr.

mod cpu;
mod limits;
mod machine;
mod options;
mod peers;
mod start;
mod table;
mod timed;

use crate::sh;

const HELP: &str = "\
cargo x bench cpu [--only CASE,…] [--tests NAME,…] [--sizes 8,64K,…] [--rounds N] [--json FILE]
                    collectives on host memory: ours against Open MPI, MPICH and Gloo, and what
                    the machine allows; `cargo x bench cpu --help` lists the cases
cargo x bench start [--rounds N] [--ranks N]
                    `rlaunch -np 2 true` against mpirun and mpiexec
cargo x bench launch [N] [--rounds R]
                    a program on N hosts made of namespaces (64), against mpirun and ssh; needs
                    root
cargo x bench link [--rounds R]
                    rperf between two such hosts over shaped links, against iperf3; needs root
";

pub fn run(arguments: &[String]) -> Result<(), String> {
    let (kind, rest) = match arguments.split_first() {
        Some((kind, rest)) => (kind.as_str(), rest),
        None => ("help", &[][..]),
    };
    match kind {
        "cpu" => cpu::run(rest),
        "start" => start::run(rest),
        "launch" => launch(rest),
        "link" => link(rest),
        "help" | "-h" | "--help" => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(format!("no benchmark `{other}`\n\n{HELP}")),
    }
}

/// The harness's program measures; it needs to know where the peer is.
fn launch(arguments: &[String]) -> Result<(), String> {
    sh::run(&mut sh::cargo(["build"]))?;
    let mpirun = peers::Peer::ensure(peers::Kind::OpenMpi)?.launcher();
    let mut program = crate::hosts_program()?;
    sh::run(
        program
            .arg("launch")
            .args(arguments)
            .arg("--mpirun")
            .arg(mpirun),
    )
}

/// rperf and the harness's program stand in one folder.
fn link(arguments: &[String]) -> Result<(), String> {
    sh::run(&mut sh::cargo(["build"]))?;
    let mut program = crate::hosts_program()?;
    sh::run(program.arg("link").args(arguments))
}
