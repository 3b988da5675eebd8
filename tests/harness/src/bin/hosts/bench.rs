//! How long it takes until a program has spoken on every host: ours against `mpirun`, in turns.
//!
//! Both reach the hosts by ssh and find themselves there: rlaunch in its cache, mpirun under the
//! same path. Open MPI 5 sometimes stays after the last rank has ended, so the time of the last
//! line is what counts; the time to the end stands beside it, where there is one.

use rlaunch_harness::{Cluster, Options, Running};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
/// mpirun either ends soon after its last rank or not at all.
const END_LIMIT: Duration = Duration::from_secs(3);

pub(crate) struct Bench {
    hosts: u32,
    rounds: u32,
    /// The folder with rlaunch.
    build: PathBuf,
    mpirun: Option<PathBuf>,
}

struct Times {
    name: String,
    spoken: Vec<f64>,
    ended: Vec<f64>,
}

impl Bench {
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
        let mut bench = Self {
            hosts: 8,
            rounds: 10,
            build,
            mpirun: None,
        };
        let number = |text: &str| text.parse().map_err(|_| format!("`{text}` is no number"));
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match *word {
                "--rounds" => bench.rounds = number(value()?)?,
                "--mpirun" => bench.mpirun = Some(PathBuf::from(value()?)),
                hosts => bench.hosts = number(hosts)?,
            }
        }
        Ok(bench)
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
        let mut all = vec![Times::new("rlaunch")];
        all.extend(
            self.mpirun
                .as_deref()
                .map(|path| Times::new(&path.to_string_lossy())),
        );
        // One round more: the first brings rlaunch to the hosts and is not counted.
        for round in 0..=self.rounds {
            for times in &mut all {
                let (spoken, ended) = self.once(&cluster, &times.name)?;
                if round > 0 {
                    times.spoken.push(spoken);
                    times.ended.extend(ended);
                }
            }
        }
        self.report(&all);
        Ok(ExitCode::SUCCESS)
    }

    /// Milliseconds until the last rank's line, and until the end if it came.
    fn once(&self, cluster: &Cluster, name: &str) -> Result<(f64, Option<f64>), String> {
        let failed = |error: rlaunch_harness::HarnessError| format!("{name}: {error}");
        let ours = name == "rlaunch";
        let program = if ours {
            Path::new("/usr/local/bin/rlaunch")
        } else {
            Path::new(name)
        };
        let mut command = cluster.command("head", "/tmp", program).map_err(failed)?;
        command.args(["-np", &self.hosts.to_string(), "--hostfile", "/tmp/hosts"]);
        if !ours {
            command.args(["--allow-run-as-root", "--bind-to", "none"]);
        }
        let mut job = Running::start({
            command.args(["echo", "here"]);
            command
        })
        .map_err(failed)?;
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

    fn report(&self, all: &[Times]) {
        println!(
            "`echo` on {} hosts, one rank each, {} rounds in turns.\n",
            self.hosts, self.rounds
        );
        println!("| launcher | last line, median ms | best ms | end, median ms | did not end |");
        println!("|---|---|---|---|---|");
        for times in all {
            println!(
                "| {} | {} | {} | {} | {} of {} |",
                times.name,
                shown(middle(&times.spoken)),
                shown(times.spoken.iter().copied().reduce(f64::min)),
                shown(middle(&times.ended)),
                times.spoken.len() - times.ended.len(),
                times.spoken.len()
            );
        }
    }
}

impl Times {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            spoken: Vec::new(),
            ended: Vec::new(),
        }
    }
}

fn middle(times: &[f64]) -> Option<f64> {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

fn shown(time: Option<f64>) -> String {
    time.map_or_else(|| "–".to_owned(), |time| format!("{time:.0}"))
}
