//! What other ranks were doing, as errors tell it.

use std::fmt;
use std::sync::Arc;

use rlaunch_wire::Descriptor;
use rlaunch_wire::notice::{Activity, descriptor};

use crate::Rank;

/// What a rank does on a communicator, as far as another one knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Doing {
    /// It said so, or it is this rank.
    In(Descriptor),
    /// It said that it was in no call; with its last one, if there was one.
    Between(Option<Descriptor>),
    /// It said nothing; this is the last call that something came for, from it.
    HeardOf(Descriptor),
    Unknown,
}

/// A rank and what it was doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastSeen {
    pub rank: Rank,
    pub doing: Doing,
}

/// The other ranks of a communicator when it failed: those that the error is about first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Others {
    /// At most [`Others::MAX`].
    pub seen: Arc<[LastSeen]>,
    /// How many more there are.
    pub left_out: u32,
}

impl Others {
    /// More than anybody reads; errors are copied to every call that they end.
    pub const MAX: usize = 32;
    /// Named in a message.
    const SHOWN_MAX: usize = 8;

    pub(crate) fn none() -> Self {
        Self {
            seen: Arc::new([]),
            left_out: 0,
        }
    }

    pub fn of(&self, rank: u32) -> Doing {
        let mut seen = self.seen.iter();
        let found = seen.find(|seen| seen.rank.rank == rank);
        found.map_or(Doing::Unknown, |seen| seen.doing)
    }

    /// `; it was in barrier #3`: of the rank that an error is about.
    pub(crate) fn it_was(&self, rank: &Rank) -> String {
        match self.of(rank.rank) {
            Doing::Unknown => String::new(),
            doing => format!("; it was {doing}"),
        }
    }

    /// `; the others: rank 1 (…), rank 2 (…) in barrier #3; rank 4 (…) not heard of`: all but those
    /// that the error is about.
    pub(crate) fn and_the_rest(&self, about: &[Rank]) -> String {
        let is_rest = |seen: &&LastSeen| about.iter().all(|rank| rank.rank != seen.rank.rank);
        let rest: Vec<&LastSeen> = self.seen.iter().filter(is_rest).collect();
        let shown = &rest[..rest.len().min(Self::SHOWN_MAX)];
        let mut kinds: Vec<(Doing, Vec<String>)> = Vec::new();
        for seen in shown {
            let name = seen.rank.to_string();
            match kinds.iter_mut().find(|(doing, _)| *doing == seen.doing) {
                Some((_, names)) => names.push(name),
                None => kinds.push((seen.doing, vec![name])),
            }
        }
        let mut parts: Vec<String> = kinds
            .into_iter()
            .map(|(doing, names)| format!("{} {doing}", names.join(", ")))
            .collect();
        let more = rest.len() - shown.len() + self.left_out as usize;
        if more > 0 {
            parts.push(format!("{more} more"));
        }
        if parts.is_empty() {
            return String::new();
        }
        format!("; the others: {}", parts.join("; "))
    }
}

/// `in barrier #3`
impl fmt::Display for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::In(_) | Self::Between(_) => write!(f, "in {}", self.during()),
            Self::HeardOf(call) => write!(f, "last heard of in {call}"),
            Self::Unknown => f.write_str("not heard of"),
        }
    }
}

const IN: u32 = 1;
const BETWEEN: u32 = 2;
const HEARD_OF: u32 = 3;

impl Doing {
    /// What follows "in".
    pub(crate) fn during(&self) -> String {
        match self {
            Self::In(call) | Self::HeardOf(call) => call.to_string(),
            Self::Between(Some(call)) => format!("no call (the last was {call})"),
            Self::Between(None) | Self::Unknown => "no call".into(),
        }
    }

    pub(crate) fn call(&self) -> Option<&Descriptor> {
        match self {
            Self::In(call) | Self::HeardOf(call) => Some(call),
            Self::Between(call) => call.as_ref(),
            Self::Unknown => None,
        }
    }

    pub(crate) fn encode(&self, rank: u32, communicator: u32) -> Activity {
        let how = match self {
            Self::Unknown => 0,
            Self::In(_) => IN,
            Self::Between(_) => BETWEEN,
            Self::HeardOf(_) => HEARD_OF,
        };
        let call = self.call().map(|call| call.encode().to_vec());
        Activity {
            rank,
            communicator,
            how,
            call: call.unwrap_or_default(),
        }
    }

    /// What is not understood is not known.
    pub(crate) fn decode(told: &Activity) -> Self {
        match (told.how, descriptor(&told.call)) {
            (IN, Some(call)) => Self::In(call),
            (BETWEEN, call) => Self::Between(call),
            (HEARD_OF, Some(call)) => Self::HeardOf(call),
            _ => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use rlaunch_wire::{Collective, DType};

    use super::*;

    fn barrier(sequence: u64) -> Descriptor {
        Descriptor {
            communicator: 0,
            sequence,
            collective: Collective::Barrier,
            dtype: DType::I32,
            op: None,
            root: 0,
            digest: 0,
            count: 0,
        }
    }

    fn seen(rank: u32, doing: Doing) -> LastSeen {
        let (host, pid) = ("a".to_owned(), 10 + rank);
        LastSeen {
            rank: Rank { rank, host, pid },
            doing,
        }
    }

    #[test]
    fn who_does_the_same_is_named_together() {
        let seen = [
            seen(2, Doing::HeardOf(barrier(3))),
            seen(1, Doing::In(barrier(4))),
            seen(3, Doing::Unknown),
            seen(4, Doing::In(barrier(4))),
            seen(5, Doing::Between(Some(barrier(3)))),
        ];
        let others = Others {
            seen: seen.clone().into(),
            left_out: 2,
        };
        assert_eq!(
            others.it_was(&seen[0].rank),
            "; it was last heard of in barrier #3"
        );
        assert_eq!(others.it_was(&seen[2].rank), "");
        assert_eq!(
            others.and_the_rest(&[seen[0].rank.clone()]),
            "; the others: rank 1 (host a, pid 11), rank 4 (host a, pid 14) in barrier #4; \
             rank 3 (host a, pid 13) not heard of; \
             rank 5 (host a, pid 15) in no call (the last was barrier #3); 2 more"
        );
        assert_eq!(Others::none().and_the_rest(&[]), "");
    }

    #[test]
    fn encoding_is_undone_by_decoding() {
        let all = [
            Doing::In(barrier(4)),
            Doing::Between(Some(barrier(5))),
            Doing::Between(None),
            Doing::HeardOf(barrier(6)),
            Doing::Unknown,
        ];
        for doing in all {
            assert_eq!(Doing::decode(&doing.encode(1, 7)), doing);
        }
        let wrong = Activity {
            how: IN,
            call: vec![1, 2],
            ..Activity::default()
        };
        assert_eq!(Doing::decode(&wrong), Doing::Unknown);
    }
}
