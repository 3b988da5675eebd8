//! The command line: nccl-tests' flags as far as they have a meaning on host memory.

use crate::sizes::{Sizes, parse_size};
use crate::split::Split;
use crate::test::Test;
use crate::types::{COMMON, Choice, operations, parse_dtypes, parse_ops};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{CommandFactory, FromArgMatches, Parser, ValueEnum};
use rlaunch_wire::{DType, Op};
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

const AFTER_HELP: &str = "\
Start it as ranks: `rlaunch -np 2 rperf all_reduce -b 8 -e 64M -f 4`; mpirun, mpiexec, srun and \
torchrun do as well.
Sizes take K, M and G, of 1024. -t, -g, -p, -y, -G, -x, -D and -V are taken with nccl-tests' \
defaults only.
Environment: NCCL_TESTS_SPLIT, NCCL_TESTS_SPLIT_MASK (as --split), NCCL_TESTS_MIN_BW.
Exit code: 0, 1 an error, 2 a wrong command line, 4 a timeout, 7 wrong results or too little \
bandwidth.
`rperf plot A.json B.json -o OUT.svg` draws saved runs; `rperf plot --help`.";

#[derive(Debug, Clone, Parser)]
#[command(
    name = "rperf",
    version,
    about = "Times the collectives of rlaunch's runtime, as nccl-tests does",
    override_usage = "rperf TEST [OPTIONS]\n       rperf plot [LABEL=]FILE.json… -o OUT.svg|png",
    after_help = AFTER_HELP
)]
pub(crate) struct Arguments {
    /// What to time (also NAME_perf)
    #[arg(
        value_name = "TEST",
        ignore_case = true,
        required_unless_present = "tune"
    )]
    named_test: Option<Test>,
    /// The named one; of a calibration, which goes through all, without meaning.
    #[arg(skip = Test::AllReduce)]
    pub(crate) test: Test,
    /// -i was given.
    #[arg(skip)]
    has_step: bool,
    /// Smallest size in bytes [default: 32M; of latency 8]
    #[arg(short = 'b', long = "minbytes", value_name = "SIZE", value_parser = parse_size)]
    bytes_min: Option<u64>,
    /// Largest size in bytes [default: 32M; of latency 4M]
    #[arg(short = 'e', long = "maxbytes", value_name = "SIZE", value_parser = parse_size)]
    bytes_max: Option<u64>,
    /// Step between sizes, where no factor is given
    #[arg(short = 'i', long = "stepbytes", value_name = "SIZE", default_value = "1M", value_parser = parse_size)]
    pub(crate) step_bytes: u64,
    /// Each size is the one before times this [of latency 2, without -i]
    #[arg(short = 'f', long = "stepfactor", value_name = "N", value_parser = at_least::<u64, 2>)]
    step_factor: Option<u64>,
    /// Timed calls of each size [default: what fits in 20 ms, 20 to 5000]
    #[arg(short = 'n', long = "iters", value_name = "N", value_parser = at_least::<u32, 1>)]
    pub(crate) iterations: Option<u32>,
    /// Calls of each size before the clock starts
    #[arg(
        short = 'w',
        long = "warmup_iters",
        value_name = "N",
        default_value_t = 5
    )]
    pub(crate) warmups: u32,
    /// Calls that are started together and then waited for, in each timed call
    #[arg(short = 'm', long = "agg_iters", value_name = "N", default_value_t = 1, value_parser = at_least::<u32, 1>)]
    pub(crate) aggregated: u32,
    /// Times the whole table is repeated; 0 repeats until it is stopped
    #[arg(
        short = 'N',
        long = "run_cycles",
        value_name = "N",
        default_value_t = 1
    )]
    pub(crate) cycles: u32,
    /// Checked calls of each size; 0 checks nothing
    #[arg(short = 'c', long = "check", value_name = "N", default_value_t = 1)]
    pub(crate) checks: u32,
    /// sum, prod, min, max, avg, mulsum, … or all
    #[arg(short = 'o', long = "op", value_name = "OP", default_value = "sum", value_parser = parse_ops)]
    ops: Choice<Op>,
    /// int8, uint8, int32, …, half, float, double, bfloat16, f8e4m3, f8e5m2, … or all
    #[arg(short = 'd', long = "datatype", value_name = "TYPE", default_value = "float", value_parser = parse_dtypes)]
    dtypes: Choice<DType>,
    /// Root rank, or all in turn
    #[arg(short = 'r', long = "root", value_name = "RANK|all", default_value = "0", value_parser = parse_root)]
    root: Choice<u32>,
    /// 0: call after call; 1: a barrier after each, timed with it; 2: as 0; 3: a barrier after each,
    /// not timed
    #[arg(short = 'z', long = "blocking", value_name = "0..3", default_value_t = 0, value_parser = clap::value_parser!(u8).range(..=3))]
    pub(crate) blocking: u8,
    /// Which time is shown: 0 rank 0's, 1 the average, 2 the smallest, 3 the largest over ranks
    #[arg(short = 'a', long = "average", value_name = "0..3", default_value_t = 1, value_parser = clap::value_parser!(u8).range(..=3))]
    pub(crate) average: u8,
    /// Shows the processor's time instead of the clock's
    #[arg(short = 'C', long = "report_cputime", value_name = "0|1", default_value_t = 0, num_args = 0..=1, default_missing_value = "1", value_parser = clap::value_parser!(u8).range(..=1))]
    pub(crate) processor_time: u8,
    /// Adds the time of day to each row
    #[arg(short = 'S', long = "report_timestamps", value_name = "0|1", default_value_t = 0, num_args = 0..=1, default_missing_value = "1", value_parser = clap::value_parser!(u8).range(..=1))]
    pub(crate) timestamps: u8,
    /// Writes the results as JSON; an older file stays, and the new name gets a number
    #[arg(short = 'J', long = "output_file", value_name = "FILE.json")]
    pub(crate) output_file: Option<PathBuf>,
    /// Seconds that a call may take
    #[arg(short = 'T', long = "timeout", value_name = "SECONDS", value_parser = at_least::<u32, 1>)]
    pub(crate) timeout_s: Option<u32>,
    /// Reports the memory that each rank has used at most
    #[arg(short = 'M', long = "memory", value_name = "0|1", default_value_t = 0, num_args = 0..=1, default_missing_value = "1", value_parser = clap::value_parser!(u8).range(..=1))]
    pub(crate) memory: u8,
    /// Buffers begin this many elements after an aligned address
    #[arg(short = 'u', long = "unalign", value_name = "N", default_value_t = 0)]
    pub(crate) unaligned: u32,
    /// Times each call by itself and adds its spread: the slowest rank's
    #[arg(short = 'I', long = "per_iter_timing", value_name = "0|1", default_value_t = 0, num_args = 0..=1, default_missing_value = "1", value_parser = clap::value_parser!(u8).range(..=1))]
    pub(crate) per_iteration: u8,
    /// The first N of those don't count
    #[arg(
        short = 'K',
        long = "per_iter_skip",
        value_name = "N",
        default_value_t = 0
    )]
    pub(crate) per_iteration_skip: u32,
    /// 1 or 2: as --buffers shared
    #[arg(short = 'R', long = "local_register", value_name = "0..2", default_value_t = 0, value_parser = clap::value_parser!(u8).range(..=2))]
    register: u8,
    /// Memory that calls work on: the process's own, or from the runtime, which peers map
    #[arg(long, value_enum, default_value_t = Buffers::Private)]
    buffers: Buffers,
    /// Each call takes the next place of large buffers, as nccl-tests does, so that caches are cold
    #[arg(long)]
    pub(crate) rotate: bool,
    /// Several groups at once: "MOD N", "DIV N", "AND MASK" or "OR MASK" of the rank
    #[arg(long, value_name = "HOW")]
    pub(crate) split: Option<Split>,
    /// Prints one JSON document instead of the table
    #[arg(long)]
    pub(crate) json: bool,
    /// Draws time and bandwidth; rank 0 writes the picture
    #[arg(long, value_name = "OUT.svg|png")]
    pub(crate) plot: Option<PathBuf>,
    /// After each row: what the model of costs said, and of the other algorithms
    #[arg(long)]
    pub(crate) explain: bool,
    /// Measures every algorithm of every collective between these ranks and writes the table that
    /// RLAUNCH_TUNE_FILE names; -b, -e and -f choose sizes [default: 64 to 16M, times 8]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["explain", "split", "json", "plot", "output_file"])]
    pub(crate) tune: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) defaults_only: DefaultsOnly,
}

/// Words of nccl-tests that speak of GPUs. Pasted command lines with the defaults work.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct DefaultsOnly {
    #[arg(short = 't', long = "nthreads", default_value_t = 1, hide = true)]
    threads: u32,
    #[arg(short = 'g', long = "ngpus", default_value_t = 1, hide = true)]
    gpus: u32,
    #[arg(short = 'p', long = "parallel_init", default_value_t = 0, hide = true)]
    _parallel_init: u32,
    #[arg(short = 'y', long = "stream_null", default_value_t = 0, hide = true)]
    _stream_null: u32,
    #[arg(short = 'G', long = "cudagraph", default_value_t = 0, hide = true)]
    graph: u32,
    #[arg(short = 'x', long = "cta_policy", hide = true)]
    cta_policy: Option<u32>,
    #[arg(
        short = 'D',
        long = "device_implementation",
        default_value_t = 0,
        hide = true
    )]
    device_kernel: u32,
    #[arg(
        short = 'V',
        long = "device_cta_count",
        default_value_t = 16,
        hide = true
    )]
    _device_ctas: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Buffers {
    Private,
    Shared,
}

impl Buffers {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Shared => "shared",
        }
    }
}

impl Arguments {
    /// As typed, or the reason against it.
    pub(crate) fn read<W: Into<OsString> + Clone>(
        words: impl IntoIterator<Item = W>,
    ) -> Result<Self, clap::Error> {
        // Whatever looks like a number is a value: of a flag, it is then told what is wrong with it.
        let command = Self::command().mut_args(|argument| match argument.is_positional() {
            true => argument,
            false => argument.allow_negative_numbers(true),
        });
        let matches = command.try_get_matches_from(words).map_err(without_noise)?;
        let mut arguments = Self::from_arg_matches(&matches)?;
        arguments.has_step = matches.value_source("step_bytes") == Some(ValueSource::CommandLine);
        arguments.test = arguments.named_test.unwrap_or(arguments.test);
        arguments
            .check()
            .map_err(|message| Self::command().error(ErrorKind::ValueValidation, message))?;
        Ok(arguments)
    }

    /// What no single flag can know: contradictions, and words without a meaning here.
    fn check(&self) -> Result<(), String> {
        let only = &self.defaults_only;
        if only.threads > 1 || only.gpus > 1 {
            return Err(
                "-t and -g above 1: a rank is one process with one buffer; hint: start more ranks \
                 (rlaunch -np N rperf …)"
                    .into(),
            );
        }
        for (flag, given) in [
            ("-G", only.graph > 0),
            ("-x", only.cta_policy.is_some()),
            ("-D", only.device_kernel > 0),
        ] {
            if given {
                return Err(format!(
                    "{flag} speaks of GPU kernels; rperf times host memory"
                ));
            }
        }
        if let (Some(min), Some(max)) = (self.bytes_min, self.bytes_max)
            && max < min
        {
            return Err(format!("-e {max} is below -b {min}"));
        }
        if let Some(file) = &self.output_file
            && file.extension().is_none_or(|ending| ending != "json")
        {
            return Err(format!("-J {}: the name must end in .json", file.display()));
        }
        if let Some(picture) = &self.plot {
            crate::plot::check_name(picture)?;
        }
        if self.aggregated > 1 && self.test.is_point_to_point() {
            return Err(format!("-m: {} is no single call", self.test.name()));
        }
        if let (true, Choice::One(op)) = (self.test.reduces(), self.ops)
            && let Choice::One(dtype) = self.dtypes
            && let Some(reason) = op.refusal(dtype)
        {
            return Err(format!("-o {op} -d {dtype}: {reason}"));
        }
        Ok(())
    }

    pub(crate) fn sizes(&self) -> Sizes {
        if self.test == Test::Barrier {
            return Sizes::one(0);
        }
        let (min, max) = self.bytes();
        Sizes::new(min, max, self.factor(), self.step_bytes)
    }

    /// The smallest and the largest size: as given, else nccl-tests' and, where times of small messages
    /// are asked for, those of the MPI benchmarks.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        let (min, max) = match self.test {
            Test::Latency => (8, 4 << 20),
            _ => (32 << 20, 32 << 20),
        };
        match (self.bytes_min, self.bytes_max) {
            (Some(min), None) => (min, max.max(min)),
            (None, Some(max)) => (min.min(max), max),
            (None, None) => (min, max),
            (Some(min), Some(max)) => (min, max),
        }
    }

    pub(crate) fn factor(&self) -> Option<u64> {
        let doubles = self.test == Test::Latency && !self.has_step;
        self.step_factor.or(doubles.then_some(2))
    }

    /// Of a calibration: as given, else over what programs use.
    pub(crate) fn tuned_sizes(&self) -> Sizes {
        let (min, max) = self.bytes();
        if min == max {
            return Sizes::new(64, 16 << 20, Some(8), 0);
        }
        Sizes::new(min, max, Some(self.step_factor.unwrap_or(8)), 0)
    }

    pub(crate) fn dtypes(&self) -> Vec<DType> {
        match self.dtypes {
            Choice::All if self.test == Test::Barrier => vec![DType::I8],
            Choice::All => COMMON.to_vec(),
            Choice::One(dtype) => vec![dtype],
        }
    }

    /// One entry, without meaning, where nothing is reduced.
    pub(crate) fn ops(&self, dtype: DType) -> Vec<Op> {
        match self.ops {
            _ if !self.test.reduces() => vec![Op::Sum],
            Choice::All => operations().filter(|op| op.serves(dtype)).collect(),
            Choice::One(op) if op.serves(dtype) => vec![op],
            Choice::One(_) => Vec::new(), // of all types those are left out
        }
    }

    /// One entry, without meaning, where there is no root.
    pub(crate) fn roots(&self, world: u32) -> Vec<u32> {
        match self.root {
            _ if !self.test.has_root() => vec![0],
            Choice::All => (0..world).collect(),
            Choice::One(root) => vec![root],
        }
    }

    pub(crate) fn buffers(&self) -> Buffers {
        if self.register > 0 {
            Buffers::Shared
        } else {
            self.buffers
        }
    }

    /// Calls timed one by one.
    pub(crate) fn times_each(&self) -> bool {
        self.per_iteration > 0 || self.test == Test::Latency
    }
}

/// Without tips that lead nowhere: a flag that is taken for pasted command lines only, or a value where
/// none can stand.
fn without_noise(mut error: clap::Error) -> clap::Error {
    if error.kind() == ErrorKind::UnknownArgument {
        error.remove(ContextKind::Suggested);
        let command = Arguments::command();
        let is_hidden = |name: &str| {
            let mut hidden = command.get_arguments().filter(|one| one.is_hide_set());
            hidden.any(|one| {
                one.get_long()
                    .is_some_and(|long| name == format!("--{long}"))
            })
        };
        let suggested = error.get(ContextKind::SuggestedArg);
        if let Some(ContextValue::String(name)) = suggested
            && is_hidden(name)
        {
            error.remove(ContextKind::SuggestedArg);
        }
    }
    error
}

/// clap's own range of a number would tell of an end that nobody means.
fn at_least<T: FromStr + PartialOrd + From<u8>, const LEAST: u8>(text: &str) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| *number >= T::from(LEAST));
    number.ok_or_else(|| format!("expected a whole number, at least {LEAST}"))
}

fn parse_root(text: &str) -> Result<Choice<u32>, String> {
    match text {
        "all" | "-1" => Ok(Choice::All),
        _ => text
            .parse()
            .map(Choice::One)
            .map_err(|_| format!("`{text}` is no rank; write a number, or all")),
    }
}

#[cfg(test)]
mod tests;
