//! What ranks move between two hosts over links of a known speed: rperf against iperf3, in turns.
//!
//! An all_gather of 16 MiB by two ranks sends half of it each way at once; iperf3 sends one way, then
//! both. One stream of it uses one link, so over two links the measure is what we reach over one.

use rlaunch_harness::{Cluster, Finished, HarnessError, Nic, Options, Running};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);
const BUILD: &str = "/opt/build";
const BYTES: u64 = 16 << 20;
const HOSTS: [&str; 2] = ["node1", "node2"];
/// Beside MASTER_PORT, which is never bound.
const MASTER_PORT: &str = "29500";
/// Links to measure over, in Mbit/s; `None`: as fast as this machine.
const CASES: [(&str, &[Nic], Option<u32>); 5] = [
    ("eth0, 1 Gb/s", &[Nic::Eth0], Some(1000)),
    ("eth0 and ib0, 1 Gb/s each", &Nic::ALL, Some(1000)),
    ("eth0, 5 Gb/s", &[Nic::Eth0], Some(5000)),
    ("eth0 and ib0, 5 Gb/s each", &Nic::ALL, Some(5000)),
    ("eth0, not shaped", &[Nic::Eth0], None),
];

pub(crate) struct Link {
    rounds: u32,
    /// The folder with rperf.
    build: PathBuf,
    /// For rperf's ranks.
    variables: Vec<(String, String)>,
}

impl Link {
    /// `[--rounds R] [--set NAME=VALUE]…`
    pub(crate) fn parse(words: &[&str]) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
        let build = program.parent().map(PathBuf::from).unwrap_or_default();
        if !build.join("rperf").exists() {
            let build = build.display();
            return Err(format!("no rperf in {build}\nhint: cargo build"));
        }
        let mut link = Self {
            rounds: 3,
            build,
            variables: Vec::new(),
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let value = words.next();
            let value = *value.ok_or_else(|| format!("{word} needs a value"))?;
            match *word {
                "--rounds" => {
                    let rounds = value.parse();
                    link.rounds = rounds.map_err(|_| format!("`{value}` is no number"))?;
                }
                "--set" => {
                    let (name, value) = value.split_once('=').unwrap_or((value, ""));
                    link.variables.push((name.to_owned(), value.to_owned()));
                }
                other => return Err(format!("no option `{other}`")),
            }
        }
        Ok(link)
    }

    pub(crate) fn run(&self) -> Result<ExitCode, String> {
        let options = Options::new(2).share(&self.build, BUILD);
        let cluster = Cluster::up(&options).map_err(|error| error.to_string())?;
        let found = cluster.exec("node1", &["iperf3", "--version"]);
        let has_peer = found.is_ok_and(|finished| finished.success());
        if !has_peer {
            eprintln!("hosts: no iperf3 here, so the link's nominal speed is the measure");
        }
        println!(
            "all_gather of 16 MiB by two ranks, best of {} rounds.\n",
            self.rounds
        );
        println!(
            "| link | rlaunch, Mbit/s each way | iperf3 one way | both ways, each | ours / one way | \
             ours / over one link |"
        );
        println!("|---|---:|---:|---:|---:|---:|");
        let mut over_one = 0.0;
        for (name, nics, megabits) in CASES {
            let failed = |error: HarnessError| format!("{name}: {error}");
            shape(&cluster, nics, megabits).map_err(failed)?;
            let (mut ours, mut one_way, mut both_ways) = (0.0_f64, 0.0_f64, 0.0_f64);
            for _ in 0..self.rounds {
                ours = ours.max(self.ours(&cluster, nics).map_err(failed)??);
                if has_peer {
                    one_way = one_way.max(iperf3(&cluster, false).map_err(failed)??);
                    both_ways = both_ways.max(iperf3(&cluster, true).map_err(failed)??);
                } else {
                    one_way = f64::from(megabits.unwrap_or(0));
                }
            }
            let times = match nics.len() {
                1 => "–".to_owned(),
                _ => format!("{:.2}", ours / over_one),
            };
            let part = ours / one_way;
            println!(
                "| {name} | {ours:.0} | {one_way:.0} | {both_ways:.0} | {part:.2} | {times} |"
            );
            over_one = ours;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// What each rank sends in a second.
    fn ours(&self, cluster: &Cluster, nics: &[Nic]) -> Result<Result<f64, String>, HarnessError> {
        let names: Vec<String> = nics.iter().map(|nic| format!("={nic}")).collect();
        let names = names.join(",");
        let mut ranks = Vec::new();
        for (rank, host) in HOSTS.iter().enumerate() {
            let mut command = cluster.command(host, "/tmp", format!("{BUILD}/rperf"))?;
            let size = BYTES.to_string();
            command.args([
                "all_gather",
                "-b",
                &size,
                "-e",
                &size,
                "-n",
                "10",
                "-w",
                "3",
            ]);
            command.args(["-c", "0"]);
            command.env("RANK", rank.to_string()).env("WORLD_SIZE", "2");
            command.env("MASTER_ADDR", cluster.address(HOSTS[0])?);
            command.env("MASTER_PORT", MASTER_PORT);
            command.env("RLAUNCH_SOCKET_IFNAME", &names);
            command.envs(self.variables.iter().cloned());
            ranks.push(Running::start(command)?);
        }
        let mut ended = Vec::new();
        for rank in ranks {
            ended.push(rank.wait(LIMIT)?);
        }
        Ok(ended
            .first()
            .and_then(microseconds)
            .map(|time| (BYTES / 2 * 8) as f64 / time)
            .ok_or_else(|| ended.iter().map(Finished::report).collect()))
    }
}

/// The time column of rperf's only line of numbers.
fn microseconds(finished: &Finished) -> Option<f64> {
    let mut lines = finished.stdout.lines().map(str::split_whitespace);
    let line = lines.find(|words| words.clone().next() == Some(&BYTES.to_string()))?;
    line.clone().nth(5)?.parse().ok()
}

/// A stream over the first network, as received; of two that cross, the slower.
fn iperf3(cluster: &Cluster, both_ways: bool) -> Result<Result<f64, String>, HarnessError> {
    let server = cluster.spawn("node2", &["iperf3", "-s", "-1", "--forceflush"])?;
    server.await_stdout(LIMIT, |text| text.contains("listening"))?;
    let address = cluster.address("node2")?;
    let mut client = vec!["iperf3", "-c", &address, "-t", "2", "-O", "1", "-f", "m"];
    if both_ways {
        client.push("--bidir");
    }
    let finished = cluster.exec("node1", &client)?;
    server.wait(LIMIT)?;
    let lines = finished.stdout.lines();
    let rates = lines
        .filter(|line| line.contains("receiver"))
        .filter_map(rate);
    let slower = rates.reduce(f64::min);
    Ok(slower.ok_or_else(|| finished.report()))
}

/// The number before `Mbits/sec`.
fn rate(line: &str) -> Option<f64> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "Mbits/sec")?;
    words[at.checked_sub(1)?].parse().ok()
}

fn shape(cluster: &Cluster, nics: &[Nic], megabits: Option<u32>) -> Result<(), HarnessError> {
    for host in HOSTS {
        for nic in nics {
            match megabits {
                Some(megabits) => cluster.shape(host, *nic, megabits)?,
                None => cluster.unshape(host, *nic)?,
            }
        }
    }
    Ok(())
}
