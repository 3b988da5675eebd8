//! What one call is tried with.

use rlaunch_runtime::{Collective, DType, Op};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Case {
    pub(crate) collective: Collective,
    pub(crate) dtype: DType,
    /// For those that reduce.
    pub(crate) op: Op,
    pub(crate) count: usize,
    pub(crate) root: u32,
    pub(crate) is_in_place: bool,
    /// Buffers one element off a cache line.
    pub(crate) is_shifted: bool,
    /// Through `start` and `wait`.
    pub(crate) is_non_blocking: bool,
    pub(crate) memory: Memory,
}

/// What the buffers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Memory {
    Own,
    /// From the runtime, all of them.
    Shared,
    /// From the runtime on some ranks; on some only the input, or the output.
    Mixed,
}

impl Memory {
    pub(crate) const ALL: [Self; 3] = [Self::Own, Self::Shared, Self::Mixed];

    /// Whether buffer number `which` of a rank is from the runtime.
    pub(crate) fn is_shared(self, rank: u32, which: u32) -> bool {
        match self {
            Self::Own => false,
            Self::Shared => true,
            Self::Mixed => (rank + 2 * which) % 3 != 1,
        }
    }
}

pub(crate) const COLLECTIVES: [Collective; 16] = [
    Collective::Barrier,
    Collective::Broadcast,
    Collective::Reduce,
    Collective::AllReduce,
    Collective::ReduceScatter,
    Collective::AllGather,
    Collective::Gather,
    Collective::Scatter,
    Collective::AllToAll,
    Collective::Scan,
    Collective::Exscan,
    Collective::AllGatherV,
    Collective::ReduceScatterV,
    Collective::GatherV,
    Collective::ScatterV,
    Collective::AllToAllV,
];

/// Every type with every operation that has a meaning for it. The user-defined one of the tests
/// works on pairs of 64-bit integers.
pub(crate) fn reductions() -> Vec<(DType, Op)> {
    let all = DType::ALL
        .iter()
        .flat_map(|dtype| Op::ALL.iter().map(move |op| (*dtype, *op)));
    all.filter(|(dtype, op)| match op {
        Op::User => *dtype == DType::I64I64,
        _ => op.serves(*dtype),
    })
    .collect()
}

impl Case {
    /// Elements that `from` has for `to` in all_to_all_v, or contributes to or receives in the
    /// other v-variants; a third of them none.
    pub(crate) fn part(&self, from: u32, to: u32) -> usize {
        let (from, to) = (from as usize, to as usize);
        match self.collective {
            Collective::AllToAllV if (from + to) % 3 == 2 => 0,
            Collective::AllToAllV => self.count / 4 + from + 2 * to,
            _ if to % 3 == 1 => 0,
            _ => self.count + to % 4,
        }
    }
}
