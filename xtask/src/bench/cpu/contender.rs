//! Who races: each starts ranks, and gives the time of one call.

use super::cases::Transport;
use crate::bench::peers::{Kind, Peer};
use crate::bench::timed;
use crate::paths;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;

/// One measurement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) test: &'a str,
    pub(super) ranks: usize,
    pub(super) bytes: u64,
    pub(super) transport: Transport,
    pub(super) is_shared: bool,
    pub(super) iterations: u64,
    pub(super) warmups: u64,
    /// Whether results are checked besides.
    pub(super) is_checked: bool,
}

#[derive(Debug)]
pub(super) enum Contender {
    Ours,
    Mpi {
        peer: Peer,
        program: PathBuf,
    },
    /// torch.distributed with its gloo backend.
    Gloo {
        python: PathBuf,
    },
    /// The runtime's Python module.
    Python {
        python: PathBuf,
        module: PathBuf,
    },
}

impl Contender {
    pub(super) fn mpi(kind: Kind) -> Result<Self, String> {
        let peer = Peer::ensure(kind)?;
        let program = peer.compile("collectives")?;
        Ok(Self::Mpi { peer, program })
    }

    pub(super) fn name(&self) -> String {
        match self {
            Self::Ours => "rlaunch".to_owned(),
            Self::Mpi { peer, .. } => format!("{} {}", peer.name(), peer.version),
            Self::Gloo { .. } => "Gloo".to_owned(),
            Self::Python { .. } => "rlaunch from Python".to_owned(),
        }
    }

    /// Spins where it waits, whatever else wants the core.
    pub(super) fn spins(&self) -> bool {
        matches!(self, Self::Mpi { peer, .. } if peer.kind == Kind::Mpich)
    }

    pub(super) fn time_us(&self, run: &Run<'_>) -> Result<f64, String> {
        match self {
            Self::Ours => ours(run),
            Self::Mpi { peer, program } => {
                let mut command = peer.launch(run.ranks, run.transport == Transport::Tcp);
                command.arg(program).args(words(run));
                number(&timed::output(&mut command)?)
            }
            Self::Gloo { python } => {
                let script = paths::root().join("runtime/perf/peers/gloo.py");
                let mut ranks = by_hand(run.ranks, python)?;
                for rank in &mut ranks {
                    rank.arg(&script).args(words(run));
                }
                number(&timed::outputs(&mut ranks)?)
            }
            Self::Python { python, module } => {
                let script = paths::root().join("runtime/perf/peers/python.py");
                let mut command = launcher(run.ranks);
                command.args(["-x", "PYTHONPATH"]).env("PYTHONPATH", module);
                command.arg(python).arg(script).args(words(run));
                number(&timed::output(&mut command)?)
            }
        }
    }
}

fn words(run: &Run<'_>) -> [String; 4] {
    let [bytes, iterations, warmups] =
        [run.bytes, run.iterations, run.warmups].map(|number| number.to_string());
    [run.test.to_owned(), bytes, iterations, warmups]
}

/// What the last line is.
fn number(text: &str) -> Result<f64, String> {
    let line = text.lines().last().unwrap_or_default().trim();
    line.parse()
        .map_err(|_| format!("no time was printed, but `{line}`"))
}

/// Ranks without a launcher, as torch's env:// start wants them.
fn by_hand(ranks: usize, program: &PathBuf) -> Result<Vec<Command>, String> {
    // Free a moment ago, and no port of the system's own range is handed out twice in a row.
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .map_err(|error| format!("no free port on 127.0.0.1: {error}"))?
        .port();
    let rank = |rank: usize| {
        let mut command = Command::new(program);
        command
            .env("MASTER_ADDR", "127.0.0.1")
            .env("MASTER_PORT", port.to_string())
            .env("WORLD_SIZE", ranks.to_string())
            .env("RANK", rank.to_string());
        command
    };
    Ok((0..ranks).map(rank).collect())
}

fn ours(run: &Run<'_>) -> Result<f64, String> {
    let mut command = launcher(run.ranks);
    if run.transport == Transport::Tcp {
        command.env("RLAUNCH_TRANSPORT", "tcp");
        command.args(["-x", "RLAUNCH_TRANSPORT"]);
    }
    let size = run.bytes.to_string();
    command
        .arg(paths::built("rperf"))
        .args([run.test, "-b", &size, "-e", &size, "--json"])
        .args(["-n", &run.iterations.to_string()])
        .args(["-w", &run.warmups.to_string()])
        .args(["-c", if run.is_checked { "1" } else { "0" }]);
    if run.is_shared {
        command.args(["--buffers", "shared"]);
    }
    let text = timed::output(&mut command)?;
    // As the peers' program: these two in place, the others from buffer to buffer.
    let placement = match run.test {
        "all_reduce" | "broadcast" => "\"in_place\":",
        _ => "\"out_of_place\":",
    };
    let time = text
        .find(placement)
        .and_then(|at| number_after(&text[at..], "\"time_us\":"));
    time.ok_or_else(|| format!("rperf printed no time:\n{text}"))
}

/// The launcher's command line up to the program.
pub(super) fn launcher(ranks: usize) -> Command {
    let mut command = Command::new(paths::built("rlaunch"));
    command.args(["-np", &ranks.to_string(), "--oversubscribe"]);
    command
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
