//! `rperf all_reduce -b 8 -e 1G -f 2`: times the runtime's collectives with the flags, columns and
//! formulas of nccl-tests, on host memory.
//!
//! It is started like any rank (`rlaunch -np 2 rperf …`, torchrun, or by hand with MASTER_ADDR, RANK
//! and WORLD_SIZE). Rank 0 prints. Where a launcher speaks of several ranks but they did not find
//! each other, nothing is printed but the reason: numbers of a world of one would look splendid.
//!
//! Exit codes as nccl-tests': 0, 1 for errors, 2 for a bad command line, 7 for wrong results.

mod arguments;
mod measure;
mod report;
mod sample;
mod sizes;
mod started;

use arguments::Arguments;
use clap::Parser;
use measure::Bench;
use report::{Report, Row};
use rlaunch_runtime::{Error, World};
use std::process::ExitCode;

const EXIT_WRONG_RESULTS: u8 = 7;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(EXIT_WRONG_RESULTS),
        Err(error) => {
            eprintln!("rperf: {error}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Runtime(#[from] Error),
    #[error(transparent)]
    Started(#[from] started::Lonely),
    #[error("root {root} is outside a world of {world}; hint: -r takes 0 to {}", world - 1)]
    Root { root: u32, world: u32 },
    #[error("can't write the results: {0}")]
    Write(#[from] std::io::Error),
}

/// The number of wrong elements.
fn run(arguments: &Arguments) -> Result<u64, Failure> {
    let world = rlaunch_runtime::init()?;
    started::check(world.size(), |name| std::env::var(name).ok())?;
    if arguments.root >= world.size() {
        return Err(Failure::Root {
            root: arguments.root,
            world: world.size(),
        });
    }
    let mut report = Report::begin(&world, arguments)?;
    for dtype in arguments.dtypes() {
        measure_type(&world, arguments, dtype, |row| report.row(row))?;
    }
    let wrong = report.end()?;
    world.finalize()?;
    Ok(wrong)
}

fn measure_type(
    world: &World,
    arguments: &Arguments,
    dtype: rlaunch_wire::DType,
    mut row: impl FnMut(Row) -> std::io::Result<()>,
) -> Result<(), Failure> {
    use rlaunch_wire::DType;
    match dtype {
        DType::I32 => Bench::<i32>::new(world, arguments).rows(&mut row),
        DType::I64 => Bench::<i64>::new(world, arguments).rows(&mut row),
        DType::F32 => Bench::<f32>::new(world, arguments).rows(&mut row),
        DType::F64 => Bench::<f64>::new(world, arguments).rows(&mut row),
        _ => unreachable!("refused on the command line"),
    }
}
