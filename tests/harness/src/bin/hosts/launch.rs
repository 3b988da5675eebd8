//! How long it takes until a program has spoken on every host: ours against `mpirun` and against
//! `ssh` alone, in turns.
//!
//! All reach the hosts by ssh; rlaunch and mpirun find themselves there, rlaunch in its cache, mpirun
//! under the same path. Open MPI 5 sometimes stays after the last rank has ended, so the time of the
//! last line is what counts; the time to the end stands beside it, where there is one. The first of
//! our jobs brings rlaunch to the hosts, and is told of on its own.

use rlaunch_harness::{Cluster, Options, Running};
use rlaunch_wire::limits::CONNECTS_MAX;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);
/// mpirun either ends soon after its last rank or not at all.
const END_LIMIT: Duration = Duration::from_secs(3);
/// Ours in parts of the other's time, at most.
const GOAL_MPIRUN: f64 = 0.6;
const GOAL_SSH: f64 = 1.3;

pub(crate) struct Launch {
    hosts: u32,
    rounds: u32,
    /// The folder with rlaunch.
    build: PathBuf,
    mpirun: Option<PathBuf>,
}

/// Who starts something on the hosts.
enum Starter {
    Rlaunch,
    /// As many at a time as rlaunch reaches.
    Ssh,
    Mpirun(PathBuf),
}

struct Times {
    starter: Starter,
    spoken: Vec<f64>,
    ended: Vec<f64>,
}

impl Launch {
    /// `[N] [--rounds R] [--mpirun PATH]`
    pub(crate) fn parse(words: &[&str]) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
        let build = program.parent().map(PathBuf::from).unwrap_or_default();
        if !build.join("rlaunch").exists() {
            return Err(format!(
                "no rlaunch in {}\nhint: cargo build",
                build.display()
            ));
        }
        let mut launch = Self {
            hosts: 64,
            rounds: 5,
            build,
            mpirun: None,
        };
        let number = |text: &str| match text.parse() {
            Ok(0) | Err(_) => Err(format!("`{text}` is no number above 0")),
            Ok(number) => Ok(number),
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match *word {
                "--rounds" => launch.rounds = number(value()?)?,
                "--mpirun" => launch.mpirun = Some(PathBuf::from(value()?)),
                hosts => launch.hosts = number(hosts)?,
            }
        }
        Ok(launch)
    }

    pub(crate) fn run(&self) -> Result<ExitCode, String> {
        let options = Options::new(self.hosts).rlaunch_on_head(&self.build);
        let cluster = Cluster::up(&options).map_err(|error| error.to_string())?;
        let lines: String = (1..=self.hosts)
            .map(|host| format!("node{host} slots=1\n"))
            .collect();
        let file = cluster
            .path_on("head", "/tmp/hosts")
            .map_err(|error| error.to_string())?;
        std::fs::write(&file, lines).map_err(|error| format!("{}: {error}", file.display()))?;
        let mut all = vec![Times::new(Starter::Rlaunch), Times::new(Starter::Ssh)];
        all.extend(
            self.mpirun
                .clone()
                .map(|path| Times::new(Starter::Mpirun(path))),
        );
        let mut first_ms = 0.0;
        for round in 0..=self.rounds {
            for times in &mut all {
                let (spoken, ended) = self.once(&cluster, &times.starter)?;
                if round > 0 {
                    times.spoken.push(spoken);
                    times.ended.extend(ended);
                } else if matches!(times.starter, Starter::Rlaunch) {
                    first_ms = spoken;
                }
            }
        }
        self.report(&all, first_ms);
        Ok(ExitCode::SUCCESS)
    }

    /// Milliseconds until the last host's line, and until the end if it came.
    fn once(&self, cluster: &Cluster, starter: &Starter) -> Result<(f64, Option<f64>), String> {
        let failed = |error: rlaunch_harness::HarnessError| format!("{starter}: {error}");
        let program = match starter {
            Starter::Rlaunch => Path::new("/usr/local/bin/rlaunch"),
            Starter::Ssh => Path::new("/usr/bin/xargs"),
            Starter::Mpirun(path) => path,
        };
        let mut command = cluster.command("head", "/tmp", program).map_err(failed)?;
        self.add_words(&mut command, starter);
        let mut job = Running::start(command).map_err(failed)?;
        let all = self.hosts as usize;
        job.await_stdout(LIMIT, |text| text.matches("here\n").count() == all)
            .map_err(failed)?;
        let spoken = job.elapsed().as_secs_f64() * 1e3;
        let ended = job
            .ends_within(END_LIMIT)
            .map(|_| job.elapsed().as_secs_f64() * 1e3);
        drop(job);
        cluster.await_idle(LIMIT).map_err(failed)?;
        Ok((spoken, ended))
    }

    fn add_words(&self, command: &mut Command, starter: &Starter) {
        if matches!(starter, Starter::Ssh) {
            let width = CONNECTS_MAX.to_string();
            let one = "exec ssh -o BatchMode=yes $0 echo here";
            command.args(["-P", &width, "-a", "/tmp/hosts", "-L", "1"]);
            command.args(["sh", "-c", one]);
            return;
        }
        command.args(["-np", &self.hosts.to_string(), "--hostfile", "/tmp/hosts"]);
        if let Starter::Mpirun(_) = starter {
            command.args(["--allow-run-as-root", "--bind-to", "none"]);
        }
        command.args(["echo", "here"]);
    }

    fn report(&self, all: &[Times], first_ms: f64) {
        println!(
            "`echo` on {} hosts, one rank each, {} rounds in turns, at most {CONNECTS_MAX} hosts \
             being connected to at a time. Our first job, which brings rlaunch to the hosts: \
             {first_ms:.0} ms.\n",
            self.hosts, self.rounds
        );
        println!(
            "| launcher | last line, median ms | best ms | end, median ms | did not end | \
             ours / its median | goal | |"
        );
        println!("|---|---|---|---|---|---|---|---|");
        let ours = middle(&all[0].spoken);
        for times in all {
            let median = middle(&times.spoken);
            let ratio = ours / median;
            let verdict = times.starter.goal().map_or_else(
                || "– | – |".to_owned(),
                |goal| {
                    let met = if ratio <= goal { "met" } else { "missed" };
                    format!("{goal} | {met} |")
                },
            );
            let ended = match times.ended.as_slice() {
                [] => "–".to_owned(),
                ended => format!("{:.0}", middle(ended)),
            };
            println!(
                "| {} | {median:.0} | {:.0} | {ended} | {} of {} | {ratio:.2} | {verdict}",
                times.starter,
                times.spoken.iter().copied().fold(f64::INFINITY, f64::min),
                times.spoken.len() - times.ended.len(),
                times.spoken.len()
            );
        }
    }
}

impl Starter {
    fn goal(&self) -> Option<f64> {
        match self {
            Self::Rlaunch => None,
            Self::Ssh => Some(GOAL_SSH),
            Self::Mpirun(_) => Some(GOAL_MPIRUN),
        }
    }
}

impl fmt::Display for Starter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rlaunch => "rlaunch",
            Self::Ssh => "ssh",
            Self::Mpirun(_) => "mpirun",
        })
    }
}

impl Times {
    fn new(starter: Starter) -> Self {
        Self {
            starter,
            spoken: Vec::new(),
            ended: Vec::new(),
        }
    }
}

fn middle(times: &[f64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}
