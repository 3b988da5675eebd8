//! How long a job takes that does nothing: from the command to its end.

use super::options::Options;
use super::peers::{Kind, Peer};
use super::{machine, table, timed};
use crate::{paths, sh};
use std::process::Command;
use std::time::Instant;

pub(super) fn run(arguments: &[String]) -> Result<(), String> {
    let options = Options {
        rounds: 20,
        ranks: 2,
    }
    .parse(arguments)?;
    eprintln!("x bench: building");
    sh::run(&mut sh::cargo(["build"]))?;
    let peers = [Peer::ensure(Kind::OpenMpi)?, Peer::ensure(Kind::Mpich)?];
    let mut times = [const { Vec::new() }; 3];
    // One round more: the first brings programs into memory and is not counted.
    for round in 0..=options.rounds {
        let ours = {
            let mut command = Command::new(paths::built("rlaunch"));
            command.args(["-np", &options.ranks.to_string(), "--oversubscribe"]);
            command
        };
        let launchers = [
            ours,
            peers[0].launch(options.ranks, false),
            peers[1].launch(options.ranks, false),
        ];
        for (mut launcher, times) in launchers.into_iter().zip(&mut times) {
            let start = Instant::now();
            timed::output(launcher.arg("true"))?;
            if round > 0 {
                times.push(start.elapsed().as_secs_f64() * 1e3);
            }
        }
    }

    let head = ["launcher", "median ms", "best ms", "median / ours"].map(str::to_owned);
    let median_ours = table::median(&times[0]);
    let names = [
        "rlaunch".to_owned(),
        format!("mpirun (Open MPI {})", peers[0].version),
        format!("mpiexec (MPICH {})", peers[1].version),
    ];
    let rows = names.into_iter().zip(&times).map(|(name, times)| {
        let median = table::median(times);
        let ratio = format!("{:.2}", median / median_ours);
        vec![
            name,
            table::digits(median),
            table::digits(table::best(times)),
            ratio,
        ]
    });
    println!(
        "`-np {} true` on this machine, {} runs in turns.\n{}\n",
        options.ranks,
        options.rounds,
        machine::describe()
    );
    print!("{}", table::markdown(&head, &rows.collect::<Vec<_>>()));
    Ok(())
}
