//! What the busiest rank does in a call, in numbers that do not depend on the machine.

use super::Question;
use crate::{Algorithm, reduces};
use rlaunch_wire::Collective;

/// Time is a sum over these.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Work {
    /// Messages on the longest chain.
    pub(super) steps: u128,
    /// Messages that one rank sends and receives, of those that follow one another.
    pub(super) messages: u128,
    /// Bytes that follow one another on one rank's links.
    pub(super) bytes: u128,
    pub(super) reduced: u128,
    pub(super) copied: u128,
    /// What a hierarchy does inside a host: steps, messages, bytes.
    pub(super) inside: [u128; 3],
}

/// Segments that a pipelined algorithm cuts its vector in; 1 for the others.
pub(super) fn segments(question: Question, algorithm: Algorithm, segment_bytes: usize) -> u128 {
    let part = match algorithm {
        Algorithm::Chain => question.bytes,
        Algorithm::Hierarchical => match question.collective {
            Collective::Broadcast | Collective::Reduce => question
                .bytes
                .div_ceil(question.shape.lanes.max(1) as usize),
            _ => return 1,
        },
        Algorithm::Tree => question.bytes.div_ceil(2),
        _ => return 1,
    };
    part.div_ceil(segment_bytes.max(1)).max(1) as u128
}

/// `segments` as [`segments`] says.
pub(super) fn work(question: Question, algorithm: Algorithm, segments: u128) -> Work {
    let call = Call::of(question);
    if call.others == 0 {
        return Work {
            copied: call.bytes,
            ..Work::default()
        };
    }
    let work = match algorithm {
        Algorithm::Ring => call.ring(),
        Algorithm::RecursiveDoubling => call.recursive_doubling(),
        Algorithm::HalvingDoubling => call.halving_doubling(),
        Algorithm::Tree => call.tree(segments),
        Algorithm::Bruck => call.bruck(),
        Algorithm::Pairwise => call.pairwise(),
        Algorithm::Binomial => call.binomial(),
        Algorithm::ScatterAllGather => call.exchanges(call.rounds + call.others, 2 * call.share),
        Algorithm::Chain => call.chain(segments),
        Algorithm::Dissemination => call.exchanges(call.rounds, 0),
        Algorithm::Linear => call.linear(),
        Algorithm::Hierarchical => call.hierarchical(segments),
    };
    if question.shape.hosts < 2 {
        return work;
    }
    Work {
        bytes: work.bytes.max(call.bytes_of_host(algorithm)),
        ..work
    }
}

/// The numbers that formulas are made of.
struct Call {
    collective: Collective,
    bytes: u128,
    /// Bytes of all parts but one.
    share: u128,
    others: u128,
    /// ⌈log2 P⌉
    rounds: u128,
    /// Whether P is no power of two.
    is_folded: bool,
    hosts: u128,
    /// Ranks of a host, which share its way out.
    per_host: u128,
    /// Bytes that are of other hosts.
    remote: u128,
}

impl Call {
    fn of(question: Question) -> Self {
        let (bytes, world) = (question.bytes as u128, question.shape.world);
        let others = u128::from(world) - 1;
        Self {
            collective: question.collective,
            bytes,
            share: bytes * others / u128::from(world),
            others,
            rounds: u128::from(world.next_power_of_two().trailing_zeros()),
            is_folded: !world.is_power_of_two(),
            hosts: u128::from(question.shape.hosts),
            per_host: u128::from(world.div_ceil(question.shape.hosts.max(1))),
            remote: bytes - bytes / u128::from(question.shape.hosts.max(1)),
        }
    }

    /// Bytes that all ranks of a host together send to other hosts, where these may be more than a
    /// rank's own; with ranks placed host after host.
    fn bytes_of_host(&self, algorithm: Algorithm) -> u128 {
        let (per_host, remote) = (self.per_host, self.remote);
        let rounds = u128::from(self.hosts.next_power_of_two().trailing_zeros());
        match (algorithm, self.collective) {
            (Algorithm::RecursiveDoubling, Collective::AllGather) => per_host * remote,
            (Algorithm::RecursiveDoubling, _) => per_host * self.bytes * rounds,
            (Algorithm::HalvingDoubling, Collective::AllReduce) => 2 * remote,
            (Algorithm::Bruck, Collective::AllToAll) => per_host * self.bytes * self.rounds / 2,
            (Algorithm::HalvingDoubling | Algorithm::Bruck, _) => per_host * remote,
            (Algorithm::Pairwise, _) => self.turns() * per_host * remote,
            // Measured with two ranks on each of two hosts: half as much again as the vector.
            (Algorithm::Tree, _) if per_host > 1 => self.turns() * self.bytes * 3 / 2,
            _ => 0,
        }
    }

    /// Steps in each of which a rank sends and receives.
    fn exchanges(&self, steps: u128, bytes: u128) -> Work {
        Work {
            steps,
            messages: 2 * steps,
            bytes,
            ..Work::default()
        }
    }

    /// `bytes` where the collective reduces.
    fn reduced(&self, bytes: u128) -> u128 {
        if reduces(self.collective) { bytes } else { 0 }
    }

    /// An all_reduce is a reduce_scatter and an all_gather.
    fn turns(&self) -> u128 {
        if self.collective == Collective::AllReduce {
            2
        } else {
            1
        }
    }

    fn ring(&self) -> Work {
        Work {
            reduced: self.reduced(self.share),
            ..self.exchanges(self.turns() * self.others, self.turns() * self.share)
        }
    }

    fn recursive_doubling(&self) -> Work {
        let (bytes, rounds) = (self.bytes, self.rounds);
        match self.collective {
            Collective::AllGather if self.is_folded => {
                self.exchanges(rounds + 1, self.share + bytes)
            }
            Collective::AllGather => self.exchanges(rounds, self.share),
            Collective::Exscan => Work {
                reduced: bytes * rounds,
                ..self.exchanges(rounds + 1, bytes * (rounds + 1))
            },
            Collective::AllReduce if self.is_folded => Work {
                reduced: bytes * rounds,
                ..self.exchanges(rounds + 1, bytes * (rounds + 1))
            },
            _ => Work {
                reduced: bytes * rounds,
                copied: if rounds == 1 { bytes } else { 0 },
                ..self.exchanges(rounds, bytes * rounds)
            },
        }
    }

    fn halving_doubling(&self) -> Work {
        let (turns, folds) = (self.turns(), u128::from(self.is_folded));
        let rounds = self.rounds - folds;
        let back = if self.collective == Collective::AllReduce {
            folds * self.bytes
        } else {
            folds * (self.bytes - self.share)
        };
        Work {
            reduced: self.share + folds * self.bytes,
            ..self.exchanges(
                turns * rounds + 2 * folds,
                turns * self.share + folds * self.bytes + back,
            )
        }
    }

    /// A rank with two children has three messages for each segment and direction; every second of
    /// them for the half of the vector whose tree has it as a leaf.
    fn tree(&self, segments: u128) -> Work {
        let turns = self.turns();
        let segment = self.bytes.div_ceil(2).div_ceil(segments);
        let passes = turns * (2 * self.rounds + 2 * (segments - 1));
        Work {
            steps: turns * (self.rounds + 1),
            messages: 2 * passes,
            bytes: passes * segment,
            reduced: self.reduced(passes / turns * segment),
            ..Work::default()
        }
    }

    fn bruck(&self) -> Work {
        if self.collective == Collective::AllToAll {
            let moved = self.bytes * self.rounds / 2;
            return Work {
                copied: moved + self.bytes,
                ..self.exchanges(self.rounds, moved)
            };
        }
        Work {
            copied: self.bytes,
            ..self.exchanges(self.rounds, self.share)
        }
    }

    fn pairwise(&self) -> Work {
        let turns = self.turns();
        Work {
            steps: turns,
            messages: 2 * turns * self.others,
            bytes: turns * self.share,
            // What came waits in memory until all of it is there.
            reduced: self.reduced(self.share),
            copied: self.reduced(self.share),
            ..Work::default()
        }
    }

    fn binomial(&self) -> Work {
        let (moved, copied) = match self.collective {
            Collective::Gather | Collective::Scatter => (self.share, self.share / 2),
            _ => (self.bytes * self.rounds, 0),
        };
        Work {
            steps: self.rounds,
            messages: self.rounds,
            bytes: moved,
            reduced: self.reduced(moved),
            copied,
            ..Work::default()
        }
    }

    fn chain(&self, segments: u128) -> Work {
        let segment = self.bytes.div_ceil(segments);
        let turns = self.others + segments - 1;
        Work {
            steps: self.others,
            messages: 2 * turns,
            bytes: turns * segment,
            reduced: self.reduced(turns * segment),
            ..Work::default()
        }
    }

    fn linear(&self) -> Work {
        let moved = match self.collective {
            Collective::Reduce | Collective::Broadcast => self.bytes * self.others,
            _ => self.share,
        };
        Work {
            steps: 1,
            messages: self.others,
            bytes: moved,
            reduced: self.reduced(moved),
            ..Work::default()
        }
    }

    /// The lanes of a host share its way out; the carriers collect, and hand out, at once.
    fn hierarchical(&self, segments: u128) -> Work {
        let (neighbours, ring) = (self.per_host - 1, self.hosts - 1);
        let local = self.bytes * neighbours / self.per_host;
        let inside = |times: u128| [times, 2 * times * neighbours, times * local];
        let turns = self.turns();
        if matches!(self.collective, Collective::Broadcast | Collective::Reduce) {
            let passes = ring + segments - 1;
            return Work {
                steps: ring,
                messages: 2 * passes,
                bytes: passes * self.bytes.div_ceil(segments),
                reduced: self.reduced(local + self.bytes),
                copied: self.reduced(local),
                inside: inside(2),
            };
        }
        Work {
            reduced: self.reduced(local + self.remote),
            copied: self.reduced(local),
            inside: inside(turns),
            ..self.exchanges(turns * ring, turns * self.remote)
        }
    }
}
