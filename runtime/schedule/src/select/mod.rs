//! Which algorithm runs: a pure function of what is equal on all ranks.
//!
//! Candidates are those that serve the collective and its order and that the user's [`Preference`]
//! allows. What was measured of just this world decides ([`Tuning`]); else the least cost, in
//! picoseconds and in integers so that every rank, whatever its processor, comes to the same choice.
//! What only one rank knows (alignment, kind of pointer) is no argument. Tuning and preference must
//! be the same on all ranks: [`Selector::fingerprint`] is compared when a communicator is made.

mod cost;
mod fit;
mod numbers;
mod preference;
mod tuning;
mod work;

pub use cost::{Costs, Link};
pub use fit::Measurement;
pub use numbers::Numbers;
pub use preference::{Preference, PreferenceError};
pub use tuning::{Tuning, TuningError};

use crate::{Algorithm, Fold, Hosts};
use rlaunch_wire::{Collective, DType, Op};

/// How the ranks of a communicator lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    pub world: u32,
    /// Hosts that hold at least one rank; 1 where all ranks share memory.
    pub hosts: u32,
    /// The fewest ranks that one of the hosts has: as many lanes as a hierarchy can have.
    pub lanes: u32,
}

impl Shape {
    /// Ranks that share memory.
    pub fn of_one_host(world: u32) -> Self {
        Self {
            world,
            hosts: 1,
            lanes: world,
        }
    }

    pub fn of(hosts: &Hosts) -> Self {
        let members = hosts.members();
        Self {
            world: hosts.world(),
            hosts: members.len() as u32,
            lanes: members.iter().map(Vec::len).min().unwrap_or(1) as u32,
        }
    }

    /// No two ranks share memory.
    pub fn of_strangers(world: u32) -> Self {
        Self {
            world,
            hosts: world,
            lanes: 1,
        }
    }

    fn has_hierarchy(self) -> bool {
        1 < self.hosts && self.hosts < self.world
    }
}

/// A call, as far as the choice depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Question {
    pub collective: Collective,
    /// Bytes of the vector, or of the blocks of all ranks together. Not all ranks know it of
    /// gather_v, scatter_v and all_to_all_v, which have one algorithm each; there it is 0.
    pub bytes: usize,
    pub shape: Shape,
    pub fold: Fold,
    /// How many times longer an element is in a partial sum: 2 or 4 where floats of 16 or 8 bits are to
    /// travel as binary32, which only algorithms that sum at once ([`Algorithm::sums_at_once`]) do
    /// without; else 1.
    pub widening: usize,
}

impl Question {
    /// Of an operation that commutes, on elements that travel as they are.
    pub fn new(collective: Collective, bytes: usize, shape: Shape) -> Self {
        Self {
            collective,
            bytes,
            shape,
            fold: Fold::Any,
            widening: 1,
        }
    }

    /// Whether elements are longer on their way than in memory if `algorithm` carries them.
    pub fn is_widened_by(&self, algorithm: Algorithm) -> bool {
        self.widening > 1 && !algorithm.sums_at_once(self.collective)
    }

    /// The call that `algorithm` sees.
    fn as_carried_by(self, algorithm: Algorithm) -> Self {
        let times = if self.is_widened_by(algorithm) {
            self.widening
        } else {
            1
        };
        Self {
            bytes: self.bytes.saturating_mul(times),
            ..self
        }
    }
}

/// How a call runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    pub algorithm: Algorithm,
    /// For [`crate::Program::segments`].
    pub segment_bytes: usize,
}

impl Choice {
    /// Whether such a call can run so.
    pub fn serves(&self, question: Question) -> bool {
        let is_known = self.algorithm.serves(question.collective);
        is_known && self.segment_bytes > 0 && serves(self.algorithm, question)
    }
}

/// A candidate and what the model says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prediction {
    pub choice: Choice,
    pub picoseconds: u128,
    /// The user's preference lets it run.
    pub is_allowed: bool,
    /// This is what [`Selector::select`] says.
    pub is_chosen: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    tuning: Tuning,
    preference: Preference,
    numbers: Numbers,
}

impl Selector {
    pub fn new(tuning: Tuning, preference: Preference) -> Self {
        Self {
            tuning,
            preference,
            numbers: Numbers::default(),
        }
    }

    pub fn with_numbers(self, numbers: Numbers) -> Self {
        Self { numbers, ..self }
    }

    /// What the choice for such a call depends on. `bytes` as in [`Question::bytes`]; `reduction` where
    /// the collective reduces, and whether that commutes.
    pub fn question(
        &self,
        collective: Collective,
        bytes: usize,
        shape: Shape,
        reduction: Option<(DType, Op)>,
        commutes: bool,
    ) -> Question {
        self.numbers
            .question(collective, bytes, shape, reduction, commutes)
    }

    pub fn tuning(&self) -> &Tuning {
        &self.tuning
    }

    /// The algorithm for a call. Where the order of ranks counts and nothing that is allowed keeps
    /// it, the preference is without effect.
    ///
    /// # Panics
    /// For `Send`, `Recv` and what makes communicators, which have no schedule.
    pub fn select(&self, question: Question) -> Choice {
        let is_allowed = |one| self.preference.allows(question.collective, one);
        // What was measured did not widen.
        if question.widening == 1
            && let Some(choice) = self.tuning.measured(question, is_allowed)
        {
            return choice;
        }
        let candidates = || {
            let serving = Algorithm::serving(question.collective);
            serving.filter(move |one| serves(*one, question))
        };
        let cheapest = |one: &(Choice, u128)| one.1;
        let best = |one| self.tuning.costs.best(question, one);
        let allowed = candidates()
            .filter(|one| is_allowed(*one))
            .map(best)
            .min_by_key(cheapest);
        let any = || candidates().map(best).min_by_key(cheapest);
        let (choice, _) = allowed
            .or_else(any)
            .expect("every collective has an algorithm");
        choice
    }

    /// All candidates, the cheapest first; none for what has no algorithms.
    pub fn explain(&self, question: Question) -> Vec<Prediction> {
        if Algorithm::serving(question.collective).next().is_none() {
            return Vec::new();
        }
        let chosen = self.select(question);
        let candidates = Algorithm::serving(question.collective);
        let mut predictions: Vec<_> = candidates
            .filter(|one| serves(*one, question))
            .map(|algorithm| {
                let is_chosen = algorithm == chosen.algorithm;
                let choice = match self.tuning.costs.best(question, algorithm) {
                    _ if is_chosen => chosen,
                    (choice, _) => choice,
                };
                Prediction {
                    choice,
                    picoseconds: self.tuning.costs.picoseconds(question, choice),
                    is_allowed: self.preference.allows(question.collective, algorithm),
                    is_chosen,
                }
            })
            .collect();
        predictions.sort_by_key(|one| one.picoseconds);
        predictions
    }

    /// Equal where all choices are equal: a hash (FNV-1a, so the same in every build) of tuning,
    /// preference and numbers.
    pub fn fingerprint(&self) -> u64 {
        let (preference, numbers) = (&self.preference, self.numbers);
        let text = format!("{}{preference:?}{numbers:?}", self.tuning.to_text());
        text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }
}

fn serves(algorithm: Algorithm, question: Question) -> bool {
    (algorithm != Algorithm::Hierarchical || question.shape.has_hierarchy())
        && algorithm.folds(question.collective, question.fold)
}

#[cfg(test)]
mod tests;
