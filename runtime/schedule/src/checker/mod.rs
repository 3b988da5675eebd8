//! Judges the programs of all ranks together: may any engine run them, and is the result right?
//!
//! 1. [`structure`]: indexes and ranks exist; slices of a step cover the same chunks.
//! 2. [`matching`]: the k-th send from a to b meets the k-th receive of b from a, over the same chunks.
//! 3. [`hazards`]: two steps of a rank that touch the same memory, one of them writing, are ordered.
//! 4. [`symbolic`]: run with sends that last until they are received, nothing stays waiting, and every
//!    rank ends with each contribution exactly once.
//!
//! Programs without hazards compute the same in every order that their edges allow, and so do their
//! matches, so one run of step 4 stands for all.

mod hazards;
mod matching;
mod structure;
mod symbolic;

pub use matching::{Matches, Place};

use crate::Program;
use rlaunch_wire::Collective;

/// Why programs may not run. A step is named by its rank and its index in that rank's program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    #[error("rank {rank} step {step}: waits for step {after}, which is not an earlier one")]
    NotEarlier {
        rank: usize,
        step: usize,
        after: u32,
    },
    #[error("rank {rank} step {step}: exchanges with rank {peer}, which is itself or nobody")]
    NoSuchPeer { rank: usize, step: usize, peer: u32 },
    #[error("rank {rank} step {step}: a slice ends past the last chunk")]
    PastTheEnd { rank: usize, step: usize },
    #[error("rank {rank} step {step}: slices cover different chunks")]
    SlicesDiffer { rank: usize, step: usize },
    #[error("rank {rank} step {step}: uses scratch, which the program does not ask for")]
    ScratchNotAskedFor { rank: usize, step: usize },
    #[error("rank {rank} cuts the vector in {chunks} chunks, rank 0 in {expected}")]
    ChunksDiffer {
        rank: usize,
        chunks: u32,
        expected: u32,
    },
    #[error("rank {from} sends {sends} messages to rank {to}, which receives {receives}")]
    Unmatched {
        from: usize,
        to: usize,
        sends: usize,
        receives: usize,
    },
    #[error("rank {from} step {send} meets rank {to} step {recv}, but they cover different chunks")]
    MatchDiffers {
        from: usize,
        send: usize,
        to: usize,
        recv: usize,
    },
    #[error("rank {rank}: steps {first} and {second} touch the same memory in no order")]
    Hazard {
        rank: usize,
        first: usize,
        second: usize,
    },
    #[error("rank {rank} step {step} waits for ever")]
    Deadlock { rank: usize, step: usize },
    #[error("rank {rank} step {step}: chunk {chunk} is read before anything was written there")]
    ReadUndefined {
        rank: usize,
        step: usize,
        chunk: u32,
    },
    #[error("rank {rank} step {step}: a contribution enters chunk {chunk} twice")]
    Twice {
        rank: usize,
        step: usize,
        chunk: u32,
    },
    #[error("rank {rank}: chunk {chunk} ends with contributions of the wrong ranks")]
    WrongResult { rank: usize, chunk: u32 },
    #[error("rank {rank} leaves the barrier without having heard of all ranks")]
    LeavesEarly { rank: usize },
}

/// Checks the programs of ranks 0, 1, … of one world. `root` counts for broadcast alone.
///
/// # Panics
/// If there is no program, or `collective` is `Send` or `Recv`.
pub fn check(collective: Collective, root: u32, programs: &[Program]) -> Result<(), Violation> {
    assert!(!programs.is_empty(), "a world has at least one rank");
    structure::check(programs)?;
    let matches = Matches::of(programs)?;
    hazards::check(programs)?;
    symbolic::check(collective, root, programs, &matches)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, Algorithm, Buffer, Slice, program};

    fn programs(collective: Collective, algorithm: Algorithm, world: u32) -> Vec<Program> {
        (0..world)
            .map(|rank| program(collective, algorithm, world, rank, 0))
            .collect()
    }

    fn all_reduce(algorithm: Algorithm, world: u32) -> Vec<Program> {
        programs(Collective::AllReduce, algorithm, world)
    }

    /// Every algorithm, in every world up to 33 and some beyond a machine word of ranks.
    #[test]
    fn all_algorithms_are_right() {
        for world in (1..34).chain([48, 64, 65, 100]) {
            for &collective in &Collective::ALL[..5] {
                for &algorithm in Algorithm::ALL.iter().filter(|one| one.serves(collective)) {
                    let roots = if collective == Collective::Broadcast {
                        world
                    } else {
                        1
                    };
                    for root in 0..roots {
                        let programs: Vec<_> = (0..world)
                            .map(|rank| program(collective, algorithm, world, rank, root))
                            .collect();
                        if let Err(violation) = check(collective, root, &programs) {
                            panic!("{collective} by {algorithm}, {world} ranks: {violation}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_world_of_one_does_nothing() {
        for &collective in &Collective::ALL[..5] {
            for &algorithm in Algorithm::ALL.iter().filter(|one| one.serves(collective)) {
                assert!(program(collective, algorithm, 1, 0, 0).steps.is_empty());
            }
        }
    }

    /// Each single edge of the recursive doubling is needed: dropping one is found.
    #[test]
    fn a_dropped_edge_is_a_hazard() {
        let good = all_reduce(Algorithm::RecursiveDoubling, 5);
        let mut dropped = 0;
        for rank in 0..good.len() {
            for step in 0..good[rank].steps.len() {
                for edge in 0..good[rank].steps[step].after.len() {
                    let mut bad = good.clone();
                    bad[rank].steps[step].after.remove(edge);
                    let verdict = check(Collective::AllReduce, 0, &bad);
                    // An edge may be implied by a chain of others; then nothing is lost.
                    if let Err(violation) = verdict {
                        assert!(matches!(violation, Violation::Hazard { .. }), "{violation}");
                        dropped += 1;
                    }
                }
            }
        }
        assert!(dropped > 10, "only {dropped} dropped edges were found");
    }

    #[test]
    fn a_dropped_message_is_unmatched() {
        let mut bad = all_reduce(Algorithm::Ring, 3);
        bad[1].steps.pop();
        let verdict = check(Collective::AllReduce, 0, &bad);
        assert!(
            matches!(verdict, Err(Violation::Unmatched { .. })),
            "{verdict:?}"
        );
    }

    /// Two ranks that first send, then receive into other memory, block each other.
    #[test]
    fn sends_that_wait_for_each_other_are_a_deadlock() {
        let mut bad = all_reduce(Algorithm::RecursiveDoubling, 2);
        for program in &mut bad {
            program.steps[1].after = vec![0];
        }
        let verdict = check(Collective::AllReduce, 0, &bad);
        assert!(
            matches!(verdict, Err(Violation::Deadlock { .. })),
            "{verdict:?}"
        );
    }

    #[test]
    fn a_contribution_taken_twice_is_found() {
        let mut bad = all_reduce(Algorithm::Ring, 2);
        let output = |chunk| Slice::new(Buffer::Output, chunk, 1);
        // The gathered chunk is added instead of copied.
        for (rank, program) in bad.iter_mut().enumerate() {
            let (left, chunk) = (1 - rank as u32, 1 - rank as u32);
            let last = program.steps.last_mut().unwrap();
            assert_eq!(
                last.action,
                Action::Recv {
                    from: left,
                    to: output(chunk)
                }
            );
            last.action = Action::RecvReduce {
                from: left,
                local: output(chunk),
                to: output(chunk),
            };
        }
        let verdict = check(Collective::AllReduce, 0, &bad);
        assert!(
            matches!(verdict, Err(Violation::Twice { .. })),
            "{verdict:?}"
        );
    }

    #[test]
    fn a_collective_is_held_to_its_own_result() {
        let reduce_scatter = programs(Collective::ReduceScatter, Algorithm::Ring, 3);
        let verdict = check(Collective::AllReduce, 0, &reduce_scatter);
        assert!(
            matches!(verdict, Err(Violation::WrongResult { .. })),
            "{verdict:?}"
        );
        let broadcast = programs(Collective::Broadcast, Algorithm::Binomial, 3);
        assert!(check(Collective::Broadcast, 1, &broadcast).is_err());
    }

    /// The order between rounds is all that a barrier is.
    #[test]
    fn a_barrier_without_order_is_found() {
        let mut bad = programs(Collective::Barrier, Algorithm::Dissemination, 8);
        for step in &mut bad[3].steps {
            step.after.clear();
        }
        let verdict = check(Collective::Barrier, 0, &bad);
        assert!(
            matches!(verdict, Err(Violation::LeavesEarly { .. })),
            "{verdict:?}"
        );
    }

    #[test]
    fn bad_indexes_are_named() {
        let good = all_reduce(Algorithm::RecursiveDoubling, 2);
        let mut bad = good.clone();
        bad[1].steps[0].after = vec![0];
        let verdict = check(Collective::AllReduce, 0, &bad);
        assert_eq!(
            verdict,
            Err(Violation::NotEarlier {
                rank: 1,
                step: 0,
                after: 0
            })
        );

        let mut bad = good.clone();
        bad[0].steps[0].action = Action::Send {
            to: 0,
            from: Slice::new(Buffer::Output, 0, 1),
        };
        let verdict = check(Collective::AllReduce, 0, &bad);
        assert_eq!(
            verdict,
            Err(Violation::NoSuchPeer {
                rank: 0,
                step: 0,
                peer: 0
            })
        );

        let mut bad = good;
        bad[0].needs_scratch = false;
        let verdict = check(Collective::AllReduce, 0, &bad);
        assert_eq!(
            verdict,
            Err(Violation::ScratchNotAskedFor { rank: 0, step: 1 })
        );
    }
}
