//! all_reduce of floats in host memory, in place, by ranks of this machine.

use super::options::Options;
use super::peers::{Kind, Peer};
use super::{machine, probe, table, timed};
use crate::{paths, sh};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;

const SIZES: [u64; 6] = [8, 1 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20];

pub(super) fn run(arguments: &[String]) -> Result<(), String> {
    let defaults = Options {
        rounds: 5,
        ranks: 2,
        sizes: SIZES.to_vec(),
    };
    let options = defaults.parse(arguments)?;
    eprintln!("x bench: building");
    sh::run(&mut sh::cargo(["build"]))?;
    let peers = [Peer::ensure(Kind::OpenMpi)?, Peer::ensure(Kind::Mpich)?];
    let programs = [peers[0].all_reduce()?, peers[1].all_reduce()?];
    let ours = Ours::find(options.ranks);

    let mut flags_ns = Vec::new();
    // By size, then ours and the peers: one time for each round.
    let mut times = vec![[const { Vec::new() }; 3]; options.sizes.len()];
    for round in 1..=options.rounds {
        for (&bytes, times) in options.sizes.iter().zip(&mut times) {
            eprintln!(
                "x bench: round {round} of {}, {}",
                options.rounds,
                table::size_text(bytes)
            );
            flags_ns.extend(probe::flag_latency_ns());
            let (iterations, warmups) = iterations(bytes);
            times[0].push(ours.time_us(options.ranks, bytes, iterations, warmups)?);
            for (index, peer) in peers.iter().enumerate() {
                let program = &programs[index];
                // A peer that fails leaves a gap: on a busy machine spinning takes minutes.
                match peer.time_us(program, options.ranks, bytes, iterations, warmups) {
                    Ok(time) => times[index + 1].push(time),
                    Err(error) => eprintln!("x bench: {error}"),
                }
            }
        }
    }
    print_results(&options, &peers, &ours, &flags_ns, &times);
    Ok(())
}

fn print_results(
    options: &Options,
    peers: &[Peer; 2],
    ours: &Ours,
    flags_ns: &[f64],
    times: &[[Vec<f64>; 3]],
) {
    let mut head = vec!["bytes".to_owned(), "rlaunch µs".to_owned()];
    for peer in peers {
        head.push(format!("{} {} µs", peer.name(), peer.version));
    }
    head.extend(peers.iter().map(|peer| format!("{} / ours", peer.name())));
    let rows = options.sizes.iter().zip(times).map(|(&bytes, times)| {
        let best = times.each_ref().map(|values| table::best(values));
        let mut row = vec![table::size_text(bytes)];
        row.extend(best.map(table::digits));
        row.extend(
            best[1..]
                .iter()
                .map(|theirs| table::ratio(theirs / best[0])),
        );
        row
    });
    println!(
        "all_reduce of float, sum, in place, {} ranks on one machine{}; the best of {} runs, in \
         turns.\n{}",
        options.ranks,
        ours.note(),
        options.rounds,
        machine::describe()
    );
    if !flags_ns.is_empty() {
        let worst = flags_ns.iter().copied().fold(0.0, f64::max);
        println!(
            "A flag written by one core was seen by the other after {:.2} to {:.2} µs.",
            table::best(flags_ns) / 1e3,
            worst / 1e3
        );
    }
    print!("\n{}", table::markdown(&head, &rows.collect::<Vec<_>>()));
}

/// Timed calls and warm-ups: some milliseconds for each size. Short runs slip between disturbances,
/// and the best of several rounds counts.
fn iterations(bytes: u64) -> (u64, u64) {
    match bytes {
        0..=4096 => (5_000, 1_000),
        4097..=262_144 => (500, 100),
        262_145..=4_194_304 => (50, 10),
        _ => (5, 2),
    }
}

/// How rperf's ranks are started.
enum Ours {
    Launcher {
        rlaunch: PathBuf,
    },
    /// Where the launcher does not work: ranks by hand, with MASTER_ADDR.
    ByHand {
        reason: String,
    },
}

impl Ours {
    fn find(ranks: usize) -> Self {
        let rlaunch = paths::built("rlaunch");
        let mut command = launcher(&rlaunch, ranks);
        match timed::output(command.arg("true")) {
            Ok(_) => Self::Launcher { rlaunch },
            Err(reason) => {
                eprintln!(
                    "x bench: rlaunch does not start ranks here, so they start by hand: {reason}"
                );
                Self::ByHand { reason }
            }
        }
    }

    fn note(&self) -> &'static str {
        match self {
            Self::Launcher { .. } => "",
            Self::ByHand { .. } => " (ours started by hand)",
        }
    }

    fn time_us(
        &self,
        ranks: usize,
        bytes: u64,
        iterations: u64,
        warmups: u64,
    ) -> Result<f64, String> {
        let size = bytes.to_string();
        let (iterations, warmups) = (iterations.to_string(), warmups.to_string());
        let words = [
            "all_reduce",
            "-b",
            &size,
            "-e",
            &size,
            "-n",
            &iterations,
            "-w",
            &warmups,
            "--json",
        ];
        let text = match self {
            Self::Launcher { rlaunch } => {
                let mut command = launcher(rlaunch, ranks);
                command.arg(paths::built("rperf")).args(words);
                timed::output(&mut command)?
            }
            Self::ByHand { reason } => timed::outputs(&mut by_hand(ranks, &words)?)
                .map_err(|error| format!("{error}\nand with rlaunch: {reason}"))?,
        };
        number_after(&text, "\"time_us\":").ok_or_else(|| format!("rperf printed no time:\n{text}"))
    }
}

fn launcher(rlaunch: &PathBuf, ranks: usize) -> Command {
    let mut command = Command::new(rlaunch);
    command.args(["-np", &ranks.to_string(), "--oversubscribe"]);
    command
}

fn by_hand(ranks: usize, words: &[&str]) -> Result<Vec<Command>, String> {
    // Free a moment ago, and no port of the system's own range is handed out twice in a row.
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .map_err(|error| format!("no free port on 127.0.0.1: {error}"))?
        .port();
    let world = ranks.to_string();
    let rank = |rank: usize| {
        let rank = rank.to_string();
        let mut command = Command::new(paths::built("rperf"));
        command
            .args(words)
            .env("MASTER_ADDR", "127.0.0.1")
            .env("MASTER_PORT", port.to_string())
            .env("WORLD_SIZE", &world)
            .env("LOCAL_WORLD_SIZE", &world)
            .env("RANK", &rank)
            .env("LOCAL_RANK", &rank);
        command
    };
    Ok((0..ranks).map(rank).collect())
}

/// The number that follows a key in JSON; the standard library reads no JSON.
fn number_after(text: &str, key: &str) -> Option<f64> {
    let rest = &text[text.find(key)? + key.len()..];
    let end = rest.find([',', '\n', '}'])?;
    rest[..end].trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_number_of_rperf() {
        let text = "{ \"results\": [ {\n \"time_us\": 12.5,\n \"wrong\": 0 } ] }";
        assert_eq!(number_after(text, "\"time_us\":"), Some(12.5));
        assert_eq!(number_after(text, "\"wrong\":"), Some(0.0));
        assert_eq!(number_after(text, "\"busbw\":"), None);
    }
}
