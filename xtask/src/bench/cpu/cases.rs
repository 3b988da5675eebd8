//! What is raced, and what counts as won: the goals, as data.

#[derive(Debug)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) kind: Kind,
    pub(super) tests: &'static [&'static str],
    pub(super) ranks: usize,
    pub(super) transport: Transport,
    /// Ours on buffers from the runtime.
    pub(super) is_shared: bool,
    pub(super) sizes: &'static [u64],
    pub(super) rounds: usize,
    /// The most that our time over theirs may be.
    goal: fn(test: &str, bytes: u64) -> Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Against the better of Open MPI and MPICH.
    Mpi,
    /// Against Open MPI alone.
    OpenMpi,
    Gloo,
    /// Our Python against our Rust: the goal is a difference in microseconds.
    Python,
    /// Ours against ours on half the ranks.
    HalfTheRanks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    SharedMemory,
    Tcp,
}

const SIZES: &[u64] = &[8, 1 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20];

pub(super) const CASES: &[Case] = &[
    Case {
        name: "shm2",
        title: "all_reduce, 2 ranks, shared memory, any buffers",
        kind: Kind::Mpi,
        tests: &["all_reduce"],
        ranks: 2,
        transport: Transport::SharedMemory,
        is_shared: false,
        sizes: SIZES,
        rounds: 5,
        goal: |_, bytes| by_size(bytes, [0.5, 0.4, 0.4, 0.5, 0.5, 0.55]),
    },
    Case {
        name: "shared2",
        title: "all_reduce, 2 ranks, shared memory, buffers from the runtime",
        kind: Kind::Mpi,
        tests: &["all_reduce"],
        ranks: 2,
        transport: Transport::SharedMemory,
        is_shared: true,
        sizes: SIZES,
        rounds: 5,
        goal: |_, bytes| by_size(bytes, [0.5, 0.4, 0.35, 0.45, 0.4, 0.5]),
    },
    Case {
        name: "shm4",
        title: "all_reduce, 4 ranks, shared memory",
        kind: Kind::Mpi,
        tests: &["all_reduce"],
        ranks: 4,
        transport: Transport::SharedMemory,
        is_shared: false,
        sizes: SIZES,
        rounds: 3,
        goal: |_, bytes| by_size(bytes, [1.0, 0.9, 0.5, 0.4, 0.4, 0.4]),
    },
    Case {
        name: "tcp2",
        title: "all_reduce, 2 ranks, TCP on loopback",
        kind: Kind::Mpi,
        tests: &["all_reduce"],
        ranks: 2,
        transport: Transport::Tcp,
        is_shared: false,
        sizes: SIZES,
        rounds: 5,
        goal: |_, bytes| by_size(bytes, [0.6, 0.6, 0.5, 0.6, 0.6, 0.55]),
    },
    Case {
        name: "others2",
        title: "the other collectives and ping-pong, 2 ranks, shared memory",
        kind: Kind::Mpi,
        tests: &[
            "broadcast",
            "all_gather",
            "reduce_scatter",
            "alltoall",
            "reduce",
            "latency",
        ],
        ranks: 2,
        transport: Transport::SharedMemory,
        is_shared: false,
        sizes: SIZES,
        rounds: 3,
        goal: |_, bytes| {
            let is_middle = (64 << 10..=16 << 20).contains(&bytes);
            Some(if is_middle { 1.0 / 1.3 } else { 1.1 })
        },
    },
    Case {
        name: "barrier8",
        title: "barrier, 8 ranks, shared memory",
        kind: Kind::OpenMpi,
        tests: &["barrier"],
        ranks: 8,
        transport: Transport::SharedMemory,
        is_shared: false,
        sizes: &[0],
        rounds: 5,
        goal: |_, _| Some(0.8),
    },
    Case {
        name: "ranks8",
        title: "8 ranks against 4, shared memory",
        kind: Kind::HalfTheRanks,
        tests: &[
            "all_reduce",
            "broadcast",
            "all_gather",
            "reduce_scatter",
            "alltoall",
            "reduce",
            "barrier",
        ],
        ranks: 8,
        transport: Transport::SharedMemory,
        is_shared: false,
        sizes: &[1 << 10, 64 << 10, 1 << 20, 16 << 20],
        rounds: 3,
        goal: |_, _| Some(4.0),
    },
    Case {
        name: "gloo2",
        title: "all_reduce, 2 ranks on one machine, against Gloo",
        kind: Kind::Gloo,
        tests: &["all_reduce"],
        ranks: 2,
        transport: Transport::SharedMemory,
        is_shared: false,
        sizes: SIZES,
        rounds: 2,
        goal: |_, bytes| match bytes {
            0..=1_048_576 => Some(0.2),
            67_108_864.. => Some(0.4),
            _ => None,
        },
    },
    Case {
        name: "python2",
        title: "all_reduce of 8 B from Python and from Rust, 2 ranks",
        kind: Kind::Python,
        tests: &["all_reduce"],
        ranks: 2,
        transport: Transport::SharedMemory,
        is_shared: false,
        sizes: &[8],
        rounds: 5,
        goal: |_, bytes| (bytes == 8).then_some(1.0),
    },
];

/// Up to this size times follow the latency of a flag, which has two states.
pub(super) const SMALL_BYTES_MAX: u64 = 4096;

impl Case {
    /// In the slow state of the flag 8 bytes may cost more: much of theirs is waiting too.
    pub(super) fn goal(&self, test: &str, bytes: u64, is_flag_slow: bool) -> Option<f64> {
        let goal = (self.goal)(test, bytes)?;
        let is_first_goal = self.ranks == 2
            && self.kind == Kind::Mpi
            && self.transport == Transport::SharedMemory
            && test == "all_reduce";
        Some(if is_flag_slow && bytes <= 8 && is_first_goal {
            goal.max(0.9)
        } else {
            goal
        })
    }

    /// What `size` stands for in this test: parts below 16 bytes become 0 on our side.
    pub(super) fn bytes(&self, test: &str, size: u64) -> u64 {
        const PART_BYTES: u64 = 16;
        match test {
            "barrier" => 0,
            "all_gather" | "reduce_scatter" | "alltoall" => {
                size.max(PART_BYTES * self.ranks as u64)
            }
            _ => size,
        }
    }
}

/// A goal for each of [`SIZES`]; sizes between have none.
fn by_size(bytes: u64, goals: [f64; 6]) -> Option<f64> {
    let at = SIZES.iter().position(|size| *size == bytes)?;
    Some(goals[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_found_by_size_and_state() {
        let case = &CASES[0];
        assert_eq!(case.goal("all_reduce", 8, false), Some(0.5));
        assert_eq!(case.goal("all_reduce", 8, true), Some(0.9));
        assert_eq!(case.goal("all_reduce", 64 << 20, true), Some(0.55));
        assert_eq!(case.goal("all_reduce", 9, false), None);
        assert_eq!(
            (case.bytes("all_gather", 8), case.bytes("reduce", 8)),
            (32, 8)
        );
    }
}
