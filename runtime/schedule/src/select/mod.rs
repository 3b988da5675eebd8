//! Which algorithm runs: a pure function of what is equal on all ranks.
//!
//! Candidates are compared by a cost in picoseconds, computed in integers so that every rank,
//! whatever its processor, comes to the same choice. What only one rank knows (alignment, kind of
//! pointer) is no argument.

mod cost;

pub use cost::{Costs, Link};

use crate::Algorithm;
use rlaunch_wire::Collective;

/// How the ranks of a communicator lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub world: u32,
    /// Hosts that hold at least one rank; 1 where all ranks share memory.
    pub hosts: u32,
}

/// A call, as far as the choice depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    pub collective: Collective,
    /// Bytes of the vector, or of the blocks of all ranks together. Not all ranks know it of
    /// gather_v, scatter_v and all_to_all_v, which have one algorithm each; there it is 0.
    pub bytes: usize,
    pub shape: Shape,
    /// The operation needs the order of ranks.
    pub in_order: bool,
}

/// How a call runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    pub algorithm: Algorithm,
    /// For [`crate::Program::segments`].
    pub segment_bytes: usize,
}

/// The algorithm for a call. `forced` wins where it serves the collective, and is without effect
/// elsewhere: one name given by a user holds for the calls that know it.
///
/// # Panics
/// For `Send`, `Recv` and `Create`, which have no schedule.
pub fn select(question: Question, forced: Option<Algorithm>) -> Choice {
    let costs = Costs::default();
    let candidates =
        || Algorithm::serving(question.collective).filter(|one| serves(*one, question));
    let is_forced = |one: &Algorithm| Some(*one) == forced;
    let algorithm = candidates().find(is_forced).unwrap_or_else(|| {
        candidates()
            .min_by_key(|one| costs.of(question, *one).picoseconds)
            .expect("every collective has an algorithm")
    });
    Choice {
        algorithm,
        segment_bytes: costs.of(question, algorithm).segment_bytes,
    }
}

fn serves(algorithm: Algorithm, question: Question) -> bool {
    !question.in_order || algorithm.keeps_order(question.collective)
}
