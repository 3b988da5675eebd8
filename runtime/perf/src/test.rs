//! The tests by name, and what each one's sizes mean: nccl-tests' rules.

use clap::ValueEnum;
use rlaunch_wire::Collective;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Test {
    #[value(alias = "all_reduce_perf")]
    AllReduce,
    #[value(alias = "all_gather_perf")]
    AllGather,
    #[value(alias = "reduce_scatter_perf")]
    ReduceScatter,
    #[value(alias = "broadcast_perf")]
    Broadcast,
    #[value(alias = "reduce_perf")]
    Reduce,
    #[value(name = "alltoall", aliases = ["alltoall_perf", "all_to_all"])]
    AllToAll,
    /// As alltoall, with counts that differ: half, once and one and a half times the size's
    #[value(name = "alltoallv", aliases = ["alltoallv_perf", "all_to_all_v"])]
    AllToAllV,
    #[value(alias = "gather_perf")]
    Gather,
    #[value(alias = "scatter_perf")]
    Scatter,
    /// To the next rank and from the one before at once
    #[value(name = "sendrecv", aliases = ["sendrecv_perf", "send_recv"])]
    SendRecv,
    /// all_gather by exchanges with one rank after the other; needs 2, 4, 8, … ranks
    #[value(alias = "hypercube_perf")]
    Hypercube,
    #[value(alias = "barrier_perf")]
    Barrier,
    /// Half a round trip between the first rank and the last
    #[value(alias = "latency_perf")]
    Latency,
}

/// Elements that a call reads and writes on one rank, and where they lie in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// What the call takes as its count.
    pub(crate) count: usize,
    pub(crate) input: usize,
    pub(crate) output: usize,
    /// Offsets of input and output in one buffer; none where the test has no place.
    pub(crate) in_place: Option<(usize, usize)>,
}

impl Test {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all_reduce",
            Self::AllGather => "all_gather",
            Self::ReduceScatter => "reduce_scatter",
            Self::Broadcast => "broadcast",
            Self::Reduce => "reduce",
            Self::AllToAll => "alltoall",
            Self::AllToAllV => "alltoallv",
            Self::Gather => "gather",
            Self::Scatter => "scatter",
            Self::SendRecv => "sendrecv",
            Self::Hypercube => "hypercube",
            Self::Barrier => "barrier",
            Self::Latency => "latency",
        }
    }

    /// None of what is made of sends and receives.
    pub(crate) fn collective(self) -> Option<Collective> {
        Some(match self {
            Self::AllReduce => Collective::AllReduce,
            Self::AllGather => Collective::AllGather,
            Self::ReduceScatter => Collective::ReduceScatter,
            Self::Broadcast => Collective::Broadcast,
            Self::Reduce => Collective::Reduce,
            Self::AllToAll => Collective::AllToAll,
            Self::AllToAllV => Collective::AllToAllV,
            Self::Gather => Collective::Gather,
            Self::Scatter => Collective::Scatter,
            Self::Barrier => Collective::Barrier,
            Self::SendRecv | Self::Hypercube | Self::Latency => return None,
        })
    }

    pub(crate) fn reduces(self) -> bool {
        matches!(self, Self::AllReduce | Self::ReduceScatter | Self::Reduce)
    }

    pub(crate) fn has_root(self) -> bool {
        matches!(
            self,
            Self::Broadcast | Self::Reduce | Self::Gather | Self::Scatter
        )
    }

    /// Made of sends and receives, not of one collective call.
    pub(crate) fn is_point_to_point(self) -> bool {
        self.collective().is_none()
    }

    /// Whether `size` counts all ranks' parts together, each of `count` elements.
    fn has_parts(self) -> bool {
        matches!(
            self,
            Self::AllGather
                | Self::ReduceScatter
                | Self::AllToAll
                | Self::AllToAllV
                | Self::Gather
                | Self::Scatter
                | Self::Hypercube
        )
    }

    /// Elements of a row that was asked for with `bytes`. Parts are cut down to a multiple of 16
    /// bytes, so that a small size on many ranks becomes 0, as with nccl-tests.
    pub(crate) fn count(self, bytes: u64, element_bytes: usize, world: u32) -> usize {
        const PART_BYTES: usize = 16;
        let elements = bytes as usize / element_bytes;
        match self {
            Self::Barrier => 0,
            _ if self.has_parts() => {
                let step = PART_BYTES.div_ceil(element_bytes);
                elements / world as usize / step * step
            }
            _ => elements,
        }
    }

    pub(crate) fn layout(self, count: usize, rank: u32, world: u32) -> Layout {
        let (rank, world) = (rank as usize, world as usize);
        let all = count * world;
        let (input, output, in_place) = match self {
            Self::AllReduce | Self::Broadcast | Self::Reduce => (count, count, Some((0, 0))),
            Self::AllGather | Self::Gather | Self::Hypercube => {
                (count, all, Some((rank * count, 0)))
            }
            Self::ReduceScatter | Self::Scatter => (all, count, Some((0, rank * count))),
            Self::AllToAll => (all, all, Some((0, 0))),
            Self::AllToAllV => {
                let sent = (0..world).map(|to| uneven(count, rank, to)).sum();
                let received = (0..world).map(|from| uneven(count, from, rank)).sum();
                (sent, received, None)
            }
            Self::SendRecv | Self::Latency => (count, count, None),
            Self::Barrier => (0, 0, None),
        };
        Layout {
            count,
            input,
            output,
            in_place,
        }
    }

    /// Elements of the printed size: the larger of what a rank reads and writes, on the rank that
    /// has most.
    pub(crate) fn size_elements(self, count: usize, world: u32) -> usize {
        let layouts = (0..world).map(|rank| self.layout(count, rank, world));
        let largest = layouts.map(|layout| layout.input.max(layout.output));
        largest.max().unwrap_or(0)
    }

    /// Bus bandwidth over algorithm bandwidth: what a link carries for each byte of the size.
    pub(crate) fn bus_factor(self, world: u32) -> f64 {
        let world = f64::from(world);
        match self {
            Self::AllReduce => 2.0 * (world - 1.0) / world,
            Self::AllGather
            | Self::ReduceScatter
            | Self::AllToAll
            | Self::AllToAllV
            | Self::Gather
            | Self::Scatter
            | Self::Hypercube => (world - 1.0) / world,
            Self::Broadcast | Self::Reduce | Self::SendRecv | Self::Barrier | Self::Latency => 1.0,
        }
    }
}

/// What one rank sends another in alltoallv.
pub(crate) fn uneven(count: usize, from: usize, to: usize) -> usize {
    match (from + 2 * to) % 3 {
        0 => count / 2,
        1 => count,
        _ => count + count / 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bus_factors_are_those_of_nccl_tests() {
        assert_eq!(Test::AllReduce.bus_factor(4), 1.5);
        assert_eq!(Test::AllGather.bus_factor(4), 0.75);
        assert_eq!(Test::Broadcast.bus_factor(4), 1.0);
    }

    #[test]
    fn parts_are_whole_16_bytes() {
        assert_eq!(Test::AllGather.count(8, 4, 8), 0);
        assert_eq!(Test::AllGather.count(1024, 4, 3), 84);
        assert_eq!(Test::AllReduce.count(8, 4, 8), 2);
        assert_eq!(Test::ReduceScatter.count(64, 16, 2), 2);
        assert_eq!(Test::AllGather.size_elements(84, 3), 252);
    }

    #[test]
    fn what_is_sent_unevenly_is_received() {
        for world in 1..9 {
            let layouts = || (0..world).map(|rank| Test::AllToAllV.layout(10, rank, world));
            let sent: usize = layouts().map(|layout| layout.input).sum();
            let received: usize = layouts().map(|layout| layout.output).sum();
            assert_eq!(sent, received, "{world} ranks");
        }
    }
}
