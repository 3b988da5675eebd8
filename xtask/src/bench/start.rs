//! How long a job takes that does nothing: from the command to its end. A run that fails or hangs is
//! told and counted, and has no time.

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
    let names = [
        "rlaunch".to_owned(),
        format!("mpirun (Open MPI {})", peers[0].version),
        format!("mpiexec (MPICH {})", peers[1].version),
    ];
    let mut times = [const { Vec::new() }; 3];
    let mut failed = [0; 3];
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
        for (index, mut launcher) in launchers.into_iter().enumerate() {
            let start = Instant::now();
            match timed::output(launcher.arg("true")) {
                Ok(_) if round == 0 => {}
                Ok(_) => times[index].push(start.elapsed().as_secs_f64() * 1e3),
                Err(error) => {
                    eprintln!("x bench: round {round}: {}: {error}", names[index]);
                    failed[index] += 1;
                }
            }
        }
    }

    println!(
        "`-np {} true` on this machine, {} runs in turns.\n{}\n",
        options.ranks,
        options.rounds,
        machine::describe()
    );
    print!("{}", report(names, &times, &failed));
    match failed[0] {
        0 => Ok(()),
        ours => Err(format!("{ours} runs of rlaunch itself failed, told above")),
    }
}

fn report(names: [String; 3], times: &[Vec<f64>; 3], failed: &[usize; 3]) -> String {
    let head = [
        "launcher",
        "median ms",
        "best ms",
        "median / ours",
        "failed",
    ]
    .map(str::to_owned);
    // Where no run of a launcher came to its end, nothing was measured.
    let median = |times: &[f64]| match times {
        [] => f64::NAN,
        times => table::median(times),
    };
    let median_ours = median(&times[0]);
    let rows = names
        .into_iter()
        .zip(times)
        .zip(failed)
        .map(|((name, times), failed)| {
            vec![
                name,
                table::digits(median(times)),
                table::digits(table::best(times)),
                table::ratio(median(times) / median_ours),
                failed.to_string(),
            ]
        });
    table::markdown(&head, &rows.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_that_failed_are_counted_and_not_measured() {
        let names = ["rlaunch", "a", "b"].map(str::to_owned);
        let text = report(
            names,
            &[vec![20.0, 30.0], vec![90.0], Vec::new()],
            &[0, 1, 2],
        );
        let rows: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split('|').map(str::trim).collect())
            .collect();
        assert_eq!(rows[2][1..6], ["rlaunch", "30.0", "20.0", "1.00", "0"]);
        assert_eq!(rows[3][1..6], ["a", "90.0", "90.0", "3.00", "1"]);
        assert_eq!(rows[4][1..6], ["b", "–", "–", "–", "2"]);
    }
}
