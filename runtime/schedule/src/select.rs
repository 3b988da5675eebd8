//! Which algorithm runs: a pure function of what is equal on all ranks.
//!
//! Candidates are compared by a cost in picoseconds, computed in integers so that every rank,
//! whatever its processor, comes to the same choice. What only one rank knows (alignment, kind of
//! pointer) is no argument.

use rlaunch_wire::Collective;
use std::fmt;
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    Ring,
    RecursiveDoubling,
    Binomial,
    Dissemination,
}

/// How the ranks of a communicator lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub world: u32,
    /// Hosts that hold at least one rank; 1 where all ranks share memory.
    pub hosts: u32,
}

/// The algorithm for a vector of `bytes`. `forced` wins where it serves the collective, and is
/// without effect elsewhere: one name given by a user holds for the calls that know it.
///
/// # Panics
/// For `Send` and `Recv`, which are no collectives.
pub fn select(
    collective: Collective,
    bytes: usize,
    shape: Shape,
    forced: Option<Algorithm>,
) -> Algorithm {
    if let Some(algorithm) = forced.filter(|algorithm| algorithm.serves(collective)) {
        return algorithm;
    }
    let candidates = Algorithm::ALL
        .iter()
        .copied()
        .filter(|choice| choice.serves(collective));
    candidates
        .min_by_key(|choice| cost_picoseconds(collective, *choice, bytes as u128, shape))
        .expect("every collective has an algorithm")
}

impl Algorithm {
    pub const ALL: &'static [Self] = &[
        Self::Ring,
        Self::RecursiveDoubling,
        Self::Binomial,
        Self::Dissemination,
    ];

    pub fn serves(self, collective: Collective) -> bool {
        match collective {
            Collective::AllReduce => matches!(self, Self::Ring | Self::RecursiveDoubling),
            Collective::AllGather | Collective::ReduceScatter => self == Self::Ring,
            Collective::Broadcast => self == Self::Binomial,
            Collective::Barrier => self == Self::Dissemination,
            _ => false,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::RecursiveDoubling => "recursive_doubling",
            Self::Binomial => "binomial",
            Self::Dissemination => "dissemination",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no algorithm; known are {}", known_names())]
pub struct UnknownAlgorithm {
    pub name: String,
}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
        let found = Self::ALL.iter().find(|algorithm| algorithm.name() == name);
        found.copied().ok_or_else(|| UnknownAlgorithm {
            name: name.to_owned(),
        })
    }
}

fn known_names() -> String {
    Algorithm::ALL
        .iter()
        .map(|algorithm| algorithm.name())
        .collect::<Vec<_>>()
        .join(", ")
}

/// Time of a message between two ranks: the start, and each byte, in picoseconds.
struct Link {
    start: u128,
    byte: u128,
}

/// Two copies through shared segments (measured about 5 GB/s), a flag seen by the other core.
const SHARED_MEMORY: Link = Link {
    start: 1_000_000,
    byte: 200,
};
/// One TCP stream: 10 to 20 µs one way, 20 to 25 Gb/s.
const NETWORK: Link = Link {
    start: 15_000_000,
    byte: 400,
};
/// Copying inside a rank, 10 GB/s.
const COPY_BYTE: u128 = 100;

fn cost_picoseconds(
    collective: Collective,
    algorithm: Algorithm,
    bytes: u128,
    shape: Shape,
) -> u128 {
    let link = if shape.hosts > 1 {
        NETWORK
    } else {
        SHARED_MEMORY
    };
    let world = u128::from(shape.world);
    let rounds = u128::from(shape.world.next_power_of_two().trailing_zeros());
    let (steps, bytes_on_chain, bytes_copied) = match algorithm {
        Algorithm::Ring => {
            let turns = if collective == Collective::AllReduce {
                2
            } else {
                1
            };
            (turns * (world - 1), turns * bytes * (world - 1) / world, 0)
        }
        Algorithm::RecursiveDoubling if shape.world.is_power_of_two() => {
            (rounds, bytes * rounds, bytes * (rounds % 2))
        }
        Algorithm::RecursiveDoubling => (rounds + 1, bytes * (rounds + 1), bytes),
        Algorithm::Binomial => (rounds, bytes * rounds, 0),
        Algorithm::Dissemination => (rounds, 0, 0),
    };
    steps * link.start + bytes_on_chain * link.byte + bytes_copied * COPY_BYTE
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Shape = Shape { world: 8, hosts: 1 };

    #[test]
    fn short_vectors_take_few_steps_and_long_ones_few_bytes() {
        for shape in [
            HERE,
            Shape { world: 8, hosts: 8 },
            Shape { world: 2, hosts: 1 },
        ] {
            let at = |bytes| select(Collective::AllReduce, bytes, shape, None);
            assert_eq!(at(0), Algorithm::RecursiveDoubling);
            assert_eq!(at(8), Algorithm::RecursiveDoubling);
            assert_eq!(at(64 << 20), Algorithm::Ring);
            assert_eq!(at(usize::MAX), Algorithm::Ring);
        }
    }

    /// Once the ring wins it keeps winning: the choice changes at one length only.
    #[test]
    fn the_choice_changes_once() {
        for world in 2..65 {
            let shape = Shape { world, hosts: 1 };
            let choices: Vec<_> = (0..40)
                .map(|power| select(Collective::AllReduce, 1 << power, shape, None))
                .collect();
            let changes = choices.windows(2).filter(|pair| pair[0] != pair[1]).count();
            assert!(changes <= 1, "world {world}: {choices:?}");
        }
    }

    #[test]
    fn a_name_forces_where_it_serves() {
        let forced = Some("ring".parse().unwrap());
        assert_eq!(
            select(Collective::AllReduce, 8, HERE, forced),
            Algorithm::Ring
        );
        assert_eq!(
            select(Collective::Broadcast, 8, HERE, forced),
            Algorithm::Binomial
        );
        let error = "rings".parse::<Algorithm>().unwrap_err().to_string();
        assert!(
            error.contains("`rings`") && error.contains("recursive_doubling"),
            "{error}"
        );
    }

    #[test]
    fn every_collective_has_an_algorithm_in_a_world_of_one() {
        for &collective in &Collective::ALL[..5] {
            let shape = Shape { world: 1, hosts: 1 };
            assert!(select(collective, 8, shape, None).serves(collective));
        }
    }
}
