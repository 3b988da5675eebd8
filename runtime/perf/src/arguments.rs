//! The command line.

use crate::sizes::{Sizes, parse_size};
use clap::{Parser, ValueEnum};
use rlaunch_wire::{DType, Op};

#[derive(Debug, Clone, Parser)]
#[command(
    name = "rperf",
    version,
    about = "Times the collectives of rlaunch's runtime, as nccl-tests does",
    after_help = "Sizes take K, M and G, of 1024. Start it as a rank: `rlaunch -np 2 rperf all_reduce -b 8 -e 64M -f 4`."
)]
pub(crate) struct Arguments {
    /// What to time.
    pub(crate) test: Test,
    /// Smallest size in bytes.
    #[arg(short = 'b', long = "minbytes", value_name = "SIZE", default_value = "32M", value_parser = parse_size)]
    pub(crate) bytes_min: u64,
    /// Largest size in bytes.
    #[arg(short = 'e', long = "maxbytes", value_name = "SIZE", default_value = "32M", value_parser = parse_size)]
    pub(crate) bytes_max: u64,
    /// Step between sizes, where no factor is given.
    #[arg(short = 'i', long = "stepbytes", value_name = "SIZE", default_value = "1M", value_parser = parse_size)]
    pub(crate) step_bytes: u64,
    /// Each size is the one before times this.
    #[arg(short = 'f', long = "stepfactor", value_name = "N", value_parser = clap::value_parser!(u64).range(2..))]
    pub(crate) step_factor: Option<u64>,
    /// Timed calls of each size.
    #[arg(short = 'n', long = "iters", value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) iterations: u32,
    /// Calls of each size before the clock starts.
    #[arg(
        short = 'w',
        long = "warmup_iters",
        value_name = "N",
        default_value_t = 5
    )]
    pub(crate) warmups: u32,
    /// int32, int64, float, double or all.
    #[arg(short = 'd', long = "datatype", value_name = "TYPE", default_value = "float", value_parser = parse_dtypes)]
    dtypes: Choice<DType>,
    /// sum, prod, min, max or all.
    #[arg(short = 'o', long = "op", value_name = "OP", default_value = "sum", value_parser = parse_ops)]
    ops: Choice<Op>,
    /// Root rank of a broadcast.
    #[arg(short = 'r', long = "root", value_name = "RANK", default_value_t = 0)]
    pub(crate) root: u32,
    /// Checked calls of each size; 0 checks nothing.
    #[arg(short = 'c', long = "check", value_name = "N", default_value_t = 1)]
    pub(crate) checks: u32,
    /// Prints one JSON document instead of the table.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Test {
    AllReduce,
    AllGather,
    ReduceScatter,
    Broadcast,
    /// To the next rank and from the one before, one call after the other
    #[value(name = "sendrecv")]
    SendRecv,
    Barrier,
}

impl Test {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all_reduce",
            Self::AllGather => "all_gather",
            Self::ReduceScatter => "reduce_scatter",
            Self::Broadcast => "broadcast",
            Self::SendRecv => "sendrecv",
            Self::Barrier => "barrier",
        }
    }

    pub(crate) fn reduces(self) -> bool {
        matches!(self, Self::AllReduce | Self::ReduceScatter)
    }

    /// Whether `size` counts all ranks' parts together, each of `count` elements.
    pub(crate) fn has_parts(self) -> bool {
        matches!(self, Self::AllGather | Self::ReduceScatter)
    }

    /// Bus bandwidth over algorithm bandwidth: what a link carries for each byte of the size.
    pub(crate) fn bus_factor(self, world: u32) -> f64 {
        let world = f64::from(world);
        match self {
            Self::AllReduce => 2.0 * (world - 1.0) / world,
            Self::AllGather | Self::ReduceScatter => (world - 1.0) / world,
            Self::Broadcast | Self::SendRecv | Self::Barrier => 1.0,
        }
    }
}

impl Arguments {
    pub(crate) fn sizes(&self) -> Sizes {
        if self.test == Test::Barrier {
            return Sizes::one(0);
        }
        Sizes::new(
            self.bytes_min,
            self.bytes_max,
            self.step_factor,
            self.step_bytes,
        )
    }

    pub(crate) fn dtypes(&self) -> Vec<DType> {
        match self.dtypes {
            Choice::All => DType::ALL[..4].to_vec(),
            Choice::One(dtype) => vec![dtype],
        }
    }

    /// One entry, without meaning, where nothing is reduced.
    pub(crate) fn ops(&self) -> Vec<Op> {
        match self.ops {
            _ if !self.test.reduces() => vec![Op::Sum],
            Choice::All => Op::ALL[..4].to_vec(),
            Choice::One(op) => vec![op],
        }
    }
}

/// One of the values, or each in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice<T> {
    One(T),
    All,
}

/// As nccl-tests calls it.
pub(crate) fn dtype_name(dtype: DType) -> &'static str {
    match dtype {
        DType::I32 => "int32",
        DType::I64 => "int64",
        DType::F32 => "float",
        DType::F64 => "double",
        other => other.name(),
    }
}

fn parse_dtypes(text: &str) -> Result<Choice<DType>, String> {
    if text == "all" {
        return Ok(Choice::All);
    }
    let found = DType::ALL[..4]
        .iter()
        .find(|dtype| dtype_name(**dtype) == text || dtype.name() == text);
    found.map(|dtype| Choice::One(*dtype)).ok_or_else(|| {
        format!("`{text}` is no type; there are int32, int64, float, double and all")
    })
}

fn parse_ops(text: &str) -> Result<Choice<Op>, String> {
    if text == "all" {
        return Ok(Choice::All);
    }
    let found = Op::ALL[..4].iter().find(|op| op.name() == text);
    found
        .map(|op| Choice::One(*op))
        .ok_or_else(|| format!("`{text}` is no reduction; there are sum, prod, min, max and all"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(line.split(' '))
    }

    #[test]
    fn takes_the_flags_of_nccl_tests() {
        let line = "rperf all_reduce -b 8 -e 1G -f 2 -n 7 -w 3 -d all -o max -c 0 -r 1";
        let arguments = parse(line).unwrap();
        assert_eq!(arguments.sizes().count(), 28);
        assert_eq!(
            (arguments.iterations, arguments.warmups, arguments.checks),
            (7, 3, 0)
        );
        assert_eq!(arguments.dtypes(), DType::ALL[..4]);
        assert_eq!(arguments.ops(), [Op::Max]);
        assert!(parse("rperf sendrecv --minbytes 64K --maxbytes 128K -i 64K").is_ok());
    }

    #[test]
    fn says_what_there_is() {
        for (line, word) in [
            ("rperf all_reduce -d half", "double"),
            ("rperf all_reduce -o avg", "prod"),
            ("rperf all_reduce -b 8X", "K, M or G"),
            ("rperf all_to_all", "all_gather"),
            ("rperf all_reduce -f 1", "2"),
        ] {
            let error = parse(line).unwrap_err().to_string();
            assert!(error.contains(word), "{line}: {error}");
        }
    }

    #[test]
    fn bus_factors_are_those_of_nccl_tests() {
        assert_eq!(Test::AllReduce.bus_factor(4), 1.5);
        assert_eq!(Test::AllGather.bus_factor(4), 0.75);
        assert_eq!(Test::Broadcast.bus_factor(4), 1.0);
    }
}
