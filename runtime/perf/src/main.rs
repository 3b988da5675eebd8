//! `rperf all_reduce -b 8 -e 1G -f 2`: times the runtime's collectives with the flags, columns and
//! formulas of nccl-tests, on host memory. `rperf plot` draws saved runs.
//!
//! It is started like any rank: by rlaunch, mpirun, mpiexec, srun, torchrun, or by hand with
//! MASTER_ADDR, RANK and WORLD_SIZE. Rank 0 prints. Where a launcher speaks of several ranks but
//! they did not find each other, nothing is printed but the reason: numbers of a world of one would
//! look splendid.
//!
//! Exit codes as nccl-tests': 0, 1 for errors, 2 for a wrong command line, 4 for a timeout, 7 for
//! wrong results or less bandwidth than NCCL_TESTS_MIN_BW.

#![deny(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where nobody reads"
)]

mod arguments;
mod buffers;
mod calls;
mod check;
mod clock;
mod data;
mod measure;
mod plot;
mod report;
mod sizes;
mod split;
mod started;
mod statistics;
mod test;
mod tune;
mod types;

use arguments::Arguments;
use measure::Bench;
use report::{Report, Verdict};
use rlaunch_runtime::{Config, Error, World};
use rlaunch_transport::say;
use split::Split;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tune::Explainer;

const EXIT_TIMEOUT: u8 = 4;
const EXIT_BAD: u8 = 7;

fn main() -> ExitCode {
    // A word of its own, since it has options of its own and no ranks.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|word| word == "plot")
    {
        return match plot::run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&error),
        };
    }
    let arguments = match Arguments::read(std::env::args_os()) {
        Ok(arguments) => arguments,
        // Once is enough.
        Err(error) if is_further_rank() => return ExitCode::from(error.exit_code() as u8),
        Err(error) => error.exit(),
    };
    match run(&arguments) {
        Ok(Verdict::Good) => ExitCode::SUCCESS,
        Ok(Verdict::Bad) => ExitCode::from(EXIT_BAD),
        Err(error) => fail(&error),
    }
}

/// By whatever launcher: another rank says the same.
fn is_further_rank() -> bool {
    Config::from_environment().is_ok_and(|config| config.rank > 0)
}

fn fail(error: &Failure) -> ExitCode {
    if !matches!(error, Failure::SaidByRank0) {
        say(format_args!("rperf: {error}"));
    }
    match error {
        Failure::Runtime(Error::Timeout { .. }) => ExitCode::from(EXIT_TIMEOUT),
        _ => ExitCode::FAILURE,
    }
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Runtime(#[from] Error),
    #[error(transparent)]
    Started(#[from] started::Lonely),
    #[error("{0}")]
    Argument(String),
    #[error("can't write the results: {0}")]
    Write(#[from] std::io::Error),
    #[error("{}: {source}", .path.display())]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(transparent)]
    Plot(#[from] plot::PlotError),
    #[error("see rank 0")]
    SaidByRank0,
}

/// What a rank alone and all ranks can find wrong before the first call.
fn run(arguments: &Arguments) -> Result<Verdict, Failure> {
    let read = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let split = Split::choose(arguments.split, read).map_err(Failure::Argument)?;
    let wanted_gbps = wanted_bandwidth(read)?;
    let world = rlaunch_runtime::init()?;
    started::check(world.size(), read)?;
    if let Some(seconds) = arguments.timeout_s {
        world.set_timeout(Some(Duration::from_secs(seconds.into())))?;
    }
    let color = split.map_or(0, |split| split.group(world.rank()));
    let group = match split {
        None => (*world).clone(),
        Some(_) => world
            .split(Some(color), i64::from(world.rank()))?
            .ok_or_else(|| Failure::Argument("a split left this rank out".into()))?,
    };
    if let Some(seconds) = arguments.timeout_s {
        group.set_timeout(Some(Duration::from_secs(seconds.into())))?;
    }
    check_world(arguments, group.size())?;
    check_files(&world, arguments)?;
    if let Some(file) = &arguments.tune {
        let mut bench = Bench::new(&world, group.clone(), arguments)?;
        tune::tune(&group, arguments, &mut bench, file)?;
        drop((bench, group));
        world.finalize()?;
        return Ok(Verdict::Good);
    }
    let mut report = Report::begin(&world, (&group, color), arguments, wanted_gbps)?;
    if arguments.explain {
        report.explain_with(Explainer::new(group.clone(), arguments.test)?);
    }
    measure(&world, group, arguments, &mut report)?;
    let verdict = report.end(&world)?;
    world.finalize()?;
    Ok(verdict)
}

fn measure(
    world: &World,
    group: rlaunch_runtime::Communicator,
    arguments: &Arguments,
    report: &mut Report<'_>,
) -> Result<(), Failure> {
    let mut bench = Bench::new(world, group, arguments)?;
    let mut cycle = 0_u32;
    while arguments.cycles == 0 || cycle < arguments.cycles {
        if cycle > 0 {
            report.cycle(cycle)?;
        }
        bench.rows(|row| report.row(row))?;
        cycle = cycle.wrapping_add(1);
    }
    Ok(())
}

fn check_world(arguments: &Arguments, size: u32) -> Result<(), Failure> {
    if let Some(root) = arguments.roots(size).into_iter().find(|root| *root >= size) {
        return Err(Failure::Argument(format!(
            "root {root} is outside {size} ranks; hint: -r takes 0 to {}, or all",
            size - 1
        )));
    }
    if arguments.test == test::Test::Hypercube && !size.is_power_of_two() {
        return Err(Failure::Argument(format!(
            "hypercube exchanges with ranks that differ in one bit: {size} ranks are no power of two"
        )));
    }
    Ok(())
}

/// What rank 0 will write it can write: better known now than after the run. Called by all ranks.
fn check_files(world: &World, arguments: &Arguments) -> Result<(), Failure> {
    let files = [&arguments.output_file, &arguments.plot];
    let mut refusal = None;
    if world.rank() == 0 {
        refusal = files.into_iter().flatten().find_map(|file| {
            let source = try_to_create_beside(file).err()?;
            let path = file.clone();
            Some(Failure::File { path, source })
        });
    }
    if files.iter().all(|file| file.is_none()) {
        return Ok(());
    }
    let mut is_refused = [u8::from(refusal.is_some())];
    world.broadcast(&mut is_refused, 0)?;
    match (is_refused, refusal) {
        ([0], _) => Ok(()),
        (_, refusal) => Err(refusal.unwrap_or(Failure::SaidByRank0)),
    }
}

fn try_to_create_beside(file: &Path) -> std::io::Result<()> {
    let probe = file.with_file_name(format!(".rperf-{}", std::process::id()));
    std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&probe)?;
    std::fs::remove_file(probe)
}

fn wanted_bandwidth(read: impl Fn(&str) -> Option<String>) -> Result<Option<f64>, Failure> {
    const NAME: &str = "NCCL_TESTS_MIN_BW";
    let parse = |text: String| {
        text.trim().parse::<f64>().map_err(|_| {
            Failure::Argument(format!(
                "{NAME}={text} is no number of GB/s; unset it or correct it"
            ))
        })
    };
    read(NAME).map(parse).transpose()
}
