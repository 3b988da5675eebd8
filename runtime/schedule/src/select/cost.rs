//! What a call costs: a model with a few constants for each kind of link.
//!
//! Time is the sum of: steps on the longest chain, each with a link's latency; messages that the
//! busiest rank starts one after another; bytes that it sends or receives; bytes that it reduces,
//! and those that it copies.

use super::Question;
use crate::Algorithm;
use rlaunch_wire::Collective;

/// Time of messages between two ranks, in picoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Link {
    /// From the sender's call to the receiver's return, of an empty message.
    pub latency: u64,
    /// A rank's own time for a message, sent or received.
    pub message: u64,
    pub byte: u64,
}

/// The constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Costs {
    /// Between ranks that share memory.
    pub inside: Link,
    pub between: Link,
    pub reduced_byte: u64,
    pub copied_byte: u64,
}

impl Default for Costs {
    /// Two copies through shared segments (measured about 5 GB/s) and a flag seen by the other core;
    /// one TCP stream, 10 to 20 µs one way, 20 to 25 Gb/s; 10 GB/s inside a rank.
    fn default() -> Self {
        Self {
            inside: Link {
                latency: 700_000,
                message: 300_000,
                byte: 200,
            },
            between: Link {
                latency: 12_000_000,
                message: 4_000_000,
                byte: 400,
            },
            reduced_byte: 60,
            copied_byte: 100,
        }
    }
}

/// The cost of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cost {
    pub picoseconds: u128,
    /// The best segment, where segments are of use; else the usual one.
    pub segment_bytes: usize,
}

/// Bytes of one message where nothing speaks for another length: a quarter of the shared ring, so
/// that several are under way, and small enough to stay in an L2 cache with what they are reduced
/// with. Of 32 to 256 KiB, measured with two ranks from 1 to 64 MiB, shared memory liked 128 best
/// at the long end and did not care elsewhere; TCP would take 256.
const SEGMENT_BYTES: usize = 128 * 1024;

/// What the busiest rank does.
#[derive(Debug, Clone, Copy, Default)]
struct Work {
    steps: u128,
    messages: u128,
    bytes: u128,
    reduced: u128,
    copied: u128,
}

impl Costs {
    pub(super) fn of(&self, question: Question, algorithm: Algorithm) -> Cost {
        let pipelined = matches!(algorithm, Algorithm::Chain | Algorithm::Tree);
        if !pipelined || question.shape.world == 1 {
            let work = work(question, algorithm, 1);
            return Cost {
                picoseconds: self.time(question, work),
                segment_bytes: SEGMENT_BYTES,
            };
        }
        let lengths = (13..21).map(|power| 1_usize << power);
        let costs = lengths.map(|segment_bytes| {
            let parts = if algorithm == Algorithm::Tree { 2 } else { 1 };
            let segments = question
                .bytes
                .div_ceil(parts)
                .div_ceil(segment_bytes)
                .max(1);
            Cost {
                picoseconds: self.time(question, work(question, algorithm, segments as u128)),
                segment_bytes,
            }
        });
        costs
            .min_by_key(|cost| cost.picoseconds)
            .expect("there are lengths")
    }

    fn time(&self, question: Question, work: Work) -> u128 {
        let link = if question.shape.hosts > 1 {
            self.between
        } else {
            self.inside
        };
        work.steps * u128::from(link.latency)
            + work.messages * u128::from(link.message)
            + work.bytes * u128::from(link.byte)
            + work.reduced * u128::from(self.reduced_byte)
            + work.copied * u128::from(self.copied_byte)
    }
}

/// `segments` counts where the algorithm is pipelined.
fn work(question: Question, algorithm: Algorithm, segments: u128) -> Work {
    let bytes = question.bytes as u128;
    let world = u128::from(question.shape.world);
    let others = world - 1;
    let rounds = u128::from(question.shape.world.next_power_of_two().trailing_zeros());
    let is_folded = !question.shape.world.is_power_of_two();
    let share = bytes * others / world;
    let reduces = crate::reduces(question.collective);
    let reduced = |bytes: u128| if reduces { bytes } else { 0 };
    let exchange = |steps: u128, bytes: u128| Work {
        steps,
        messages: 2 * steps,
        bytes,
        reduced: reduced(bytes),
        copied: 0,
    };
    match algorithm {
        Algorithm::Ring => {
            let turns = if question.collective == Collective::AllReduce {
                2
            } else {
                1
            };
            Work {
                reduced: reduced(share),
                ..exchange(turns * others, turns * share)
            }
        }
        Algorithm::RecursiveDoubling => recursive_doubling(question, bytes, rounds, is_folded),
        Algorithm::HalvingDoubling => {
            let turns = if question.collective == Collective::AllReduce {
                2
            } else {
                1
            };
            let rounds = if is_folded { rounds - 1 } else { rounds };
            let folds = if is_folded { 2 } else { 0 };
            Work {
                reduced: share + if is_folded { bytes } else { 0 },
                ..exchange(turns * rounds + folds, turns * share + folds * bytes)
            }
        }
        Algorithm::Tree => tree(question, bytes, rounds, segments),
        Algorithm::Bruck if question.collective == Collective::AllToAll => Work {
            copied: bytes * rounds,
            ..exchange(rounds, bytes * rounds / 2)
        },
        Algorithm::Bruck => Work {
            copied: bytes,
            ..exchange(rounds, share)
        },
        Algorithm::Pairwise => {
            let turns = if question.collective == Collective::AllReduce {
                2
            } else {
                1
            };
            Work {
                steps: turns,
                messages: 2 * turns * others,
                bytes: turns * share,
                reduced: reduced(share),
                copied: reduced(share),
            }
        }
        Algorithm::Binomial => binomial(question, bytes, rounds),
        Algorithm::ScatterAllGather => exchange(rounds + others, 2 * share),
        Algorithm::Chain => {
            let segment = bytes.div_ceil(segments);
            let turns = others + segments - 1;
            Work {
                steps: others,
                messages: 2 * turns,
                bytes: turns * segment,
                reduced: reduced(turns * segment),
                copied: 0,
            }
        }
        Algorithm::Dissemination => exchange(rounds, 0),
        Algorithm::Linear => linear(question, bytes, others, share),
    }
}

fn recursive_doubling(question: Question, bytes: u128, rounds: u128, is_folded: bool) -> Work {
    let world = u128::from(question.shape.world);
    let folds = if is_folded { 1 } else { 0 };
    let (steps, moved, reduced) = match question.collective {
        Collective::AllGather => (
            rounds + folds,
            bytes * (world - 1) / world + folds * bytes,
            0,
        ),
        Collective::AllReduce => {
            let steps = rounds + folds;
            (steps, bytes * steps, bytes * rounds)
        }
        Collective::Exscan => (rounds + 1, bytes * (rounds + 1), bytes * rounds),
        _ => (rounds, bytes * rounds, bytes * rounds),
    };
    Work {
        steps,
        messages: 2 * steps,
        bytes: moved,
        reduced,
        copied: if rounds == 1 { bytes } else { 0 },
    }
}

fn binomial(question: Question, bytes: u128, rounds: u128) -> Work {
    let world = u128::from(question.shape.world);
    let share = bytes * (world - 1) / world;
    let (moved, reduced, copied) = match question.collective {
        Collective::Gather | Collective::Scatter => (share, 0, share / 2),
        Collective::Reduce => (bytes * rounds, bytes * rounds, 0),
        _ => (bytes * rounds, 0, 0),
    };
    Work {
        steps: rounds,
        messages: rounds,
        bytes: moved,
        reduced,
        copied,
    }
}

fn linear(question: Question, bytes: u128, others: u128, share: u128) -> Work {
    let (moved, reduced) = match question.collective {
        Collective::Gather | Collective::Scatter => (share, 0),
        Collective::Reduce => (bytes * others, bytes * others),
        Collective::Broadcast => (bytes * others, 0),
        _ => (0, 0),
    };
    Work {
        steps: 1,
        messages: others,
        bytes: moved,
        reduced,
        copied: 0,
    }
}

/// Each half of the vector has `segments` segments; a rank has two children in one tree.
fn tree(question: Question, bytes: u128, rounds: u128, segments: u128) -> Work {
    let half = bytes.div_ceil(2);
    let segment = half.div_ceil(segments);
    let (turns, reduced) = match question.collective {
        Collective::AllReduce => (2, 1),
        Collective::Reduce => (1, 1),
        _ => (1, 0),
    };
    // Two messages for each level; then each segment keeps a rank busy three times.
    let passes = 2 * rounds * turns + 2 * (segments - 1) * turns;
    Work {
        steps: rounds * turns,
        messages: 2 * passes,
        bytes: passes * segment,
        reduced: reduced * passes / turns * segment,
        copied: 0,
    }
}
