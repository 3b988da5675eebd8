//! Who is left: survivors of a failure agree on one set of failed ranks. Pure: no clock, no socket.
//!
//! Everyone sends its set of failed ranks to all that it does not count as failed, and waits for
//! theirs, round after round. Sets only grow.
//! ```text
//!  Voting, round r ── all live ranks sent my set ──► decided; told to all survivors
//!        │   ▲
//!        └───┘  a set differed, or a rank failed meanwhile: the union is the next round's vote
//! ```
//! - Who has decided takes part in no later round, so nobody can decide anything else without it: a
//!   rank that still votes gets the decision from it, adopts it and passes it on. A decision of a
//!   rank that the receiver counts as failed is ignored, as its votes are; hence two ranks that both
//!   live never hold different decisions.
//! - A rank that dies after the votes can be in the decided set of survivors. Then the new
//!   communicator fails at once, and is shrunk again.
//! - It ends after at most one round for each rank that fails while it runs, and two more.
//! - A rank that finds itself in another's set was given up although it lives (it had stopped for
//!   longer than the timeout): [`Outcome::Excluded`].
//!
//! Calls: [`Agreement::handle_message`] and [`Agreement::handle_failed`] in any order; after each,
//! [`Agreement::poll_send`] until `None`, then [`Agreement::outcome`]. Channels keep order for each
//! pair; whoever is named failed stays so.

use std::collections::{BTreeMap, VecDeque};

/// A set of ranks of one communicator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RankSet {
    words: Vec<u64>,
}

/// What one rank tells another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ballot {
    pub(crate) is_decision: bool,
    pub(crate) round: u32,
    pub(crate) failed: RankSet,
    /// Number of the new communicator: one that is free on every survivor.
    pub(crate) next_id: u32,
    /// Some rank has something against going on so.
    pub(crate) has_trouble: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All survivors have the same.
    Decided {
        survivors: Vec<u32>,
        next_id: u32,
        has_trouble: bool,
    },
    /// That rank has given this one up.
    Excluded { by: u32 },
}

#[derive(Debug)]
pub(crate) struct Agreement {
    me: u32,
    size: u32,
    round: u32,
    /// This round's vote.
    vote: Ballot,
    /// What is known by now.
    failed: RankSet,
    next_id: u32,
    has_trouble: bool,
    /// Votes by sender; a peer can be one round ahead.
    votes: Vec<BTreeMap<u32, Ballot>>,
    outbound: VecDeque<(u32, Ballot)>,
    outcome: Option<Outcome>,
}

impl RankSet {
    pub(crate) fn new(size: u32) -> Self {
        Self {
            words: vec![0; (size as usize).div_ceil(64)],
        }
    }

    pub(crate) fn insert(&mut self, rank: u32) {
        self.words[rank as usize / 64] |= 1 << (rank % 64);
    }

    pub(crate) fn contains(&self, rank: u32) -> bool {
        self.words[rank as usize / 64] >> (rank % 64) & 1 == 1
    }

    fn unite(&mut self, other: &Self) {
        for (mine, theirs) in self.words.iter_mut().zip(&other.words) {
            *mine |= theirs;
        }
    }
}

impl Ballot {
    /// `| decision u32 | round u32 | next id u32 | trouble u32 | set, 8 bytes for 64 ranks |`
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (decision, trouble) = (u32::from(self.is_decision), u32::from(self.has_trouble));
        let words = [decision, self.round, self.next_id, trouble];
        let head = words.into_iter().flat_map(u32::to_le_bytes);
        let set = self.failed.words.iter().flat_map(|word| word.to_le_bytes());
        head.chain(set).collect()
    }

    pub(crate) fn encoded_bytes(size: u32) -> usize {
        16 + 8 * (size as usize).div_ceil(64)
    }

    /// `None` for bytes that no rank of such a communicator writes.
    pub(crate) fn decode(bytes: &[u8], size: u32) -> Option<Self> {
        if bytes.len() != Self::encoded_bytes(size) {
            return None;
        }
        let (head, set) = bytes.split_at(16);
        let u32_at = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("4 bytes"));
        let words = set.chunks_exact(8);
        let words = words.map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")));
        Some(Self {
            is_decision: match u32_at(0) {
                0 => false,
                1 => true,
                _ => return None,
            },
            round: u32_at(4),
            next_id: u32_at(8),
            has_trouble: u32_at(12) != 0,
            failed: RankSet {
                words: words.collect(),
            },
        })
    }
}

impl Agreement {
    /// `failed`: who is known to have failed; `next_id`: a number that is free here.
    pub(crate) fn new(
        me: u32,
        size: u32,
        failed: RankSet,
        next_id: u32,
        has_trouble: bool,
    ) -> Self {
        assert!(me < size, "one takes part in one's own communicator");
        assert!(!failed.contains(me), "this rank lives");
        let vote = Ballot {
            is_decision: false,
            round: 0,
            failed: failed.clone(),
            next_id,
            has_trouble,
        };
        let mut agreement = Self {
            me,
            size,
            round: 0,
            vote,
            failed,
            next_id,
            has_trouble,
            votes: (0..size).map(|_| BTreeMap::new()).collect(),
            outbound: VecDeque::new(),
            outcome: None,
        };
        agreement.send_all(&agreement.vote.clone());
        agreement.count();
        agreement
    }

    pub(crate) fn handle_message(&mut self, from: u32, ballot: Ballot) {
        if self.outcome.is_some() || from >= self.size || self.failed.contains(from) {
            return;
        }
        if ballot.failed.contains(self.me) {
            self.outcome = Some(Outcome::Excluded { by: from });
            return;
        }
        if ballot.is_decision {
            self.decide(ballot);
            return;
        }
        // Whom one has given up all do, or they would wait for it one after the other.
        self.failed.unite(&ballot.failed);
        if ballot.round >= self.round {
            self.votes[from as usize].insert(ballot.round, ballot);
        }
        self.count();
    }

    pub(crate) fn handle_failed(&mut self, rank: u32) {
        assert_ne!(rank, self.me, "this rank lives");
        if self.outcome.is_none() {
            self.failed.insert(rank);
            self.count();
        }
    }

    pub(crate) fn round(&self) -> u32 {
        self.round
    }

    pub(crate) fn poll_send(&mut self) -> Option<(u32, Ballot)> {
        self.outbound.pop_front()
    }

    pub(crate) fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// Whose vote is missing.
    pub(crate) fn awaited(&self) -> Vec<u32> {
        if self.outcome.is_some() {
            return Vec::new();
        }
        let waits = |rank: &u32| !self.votes[*rank as usize].contains_key(&self.round);
        self.others().filter(waits).collect()
    }

    /// Ends every round that is complete.
    fn count(&mut self) {
        while self.outcome.is_none() && self.awaited().is_empty() {
            let mut is_stable = self.failed == self.vote.failed;
            let others: Vec<u32> = self.others().collect();
            for rank in others {
                let theirs = self.votes[rank as usize].remove(&self.round);
                let theirs = theirs.expect("nobody is awaited");
                is_stable &= theirs == self.vote;
                self.failed.unite(&theirs.failed);
                self.next_id = self.next_id.max(theirs.next_id);
                self.has_trouble |= theirs.has_trouble;
            }
            if is_stable {
                let decision = Ballot {
                    is_decision: true,
                    ..self.vote.clone()
                };
                self.decide(decision);
                return;
            }
            self.round += 1;
            self.vote = Ballot {
                is_decision: false,
                round: self.round,
                failed: self.failed.clone(),
                next_id: self.next_id,
                has_trouble: self.has_trouble,
            };
            self.send_all(&self.vote.clone());
        }
    }

    fn decide(&mut self, decision: Ballot) {
        let survivors = (0..self.size).filter(|rank| !decision.failed.contains(*rank));
        self.outcome = Some(Outcome::Decided {
            survivors: survivors.collect(),
            next_id: decision.next_id,
            has_trouble: decision.has_trouble,
        });
        self.send_all(&decision);
    }

    fn send_all(&mut self, ballot: &Ballot) {
        let others: Vec<u32> = self.others().collect();
        for rank in others {
            self.outbound.push_back((rank, ballot.clone()));
        }
    }

    /// All that are not known to have failed.
    fn others(&self) -> impl Iterator<Item = u32> {
        let (me, failed) = (self.me, &self.failed);
        (0..self.size).filter(move |rank| *rank != me && !failed.contains(*rank))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Random(u64);

    impl Random {
        fn below(&mut self, end: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 % end as u64) as usize
        }
    }

    /// Channels keep order. A dying rank's last messages arrive or don't; its death is noticed by
    /// each in its own time, also before messages that it sent.
    struct Simulation {
        random: Random,
        ranks: Vec<Option<Agreement>>,
        channels: Vec<Vec<VecDeque<Ballot>>>,
        dead: Vec<u32>,
        noticed: Vec<Vec<bool>>,
    }

    impl Simulation {
        fn new(size: u32, seed: u64) -> Self {
            let n = size as usize;
            Self {
                random: Random(seed * 0x9E37_79B9 + 1),
                ranks: (0..n).map(|_| None).collect(),
                channels: vec![vec![VecDeque::new(); n]; n],
                dead: Vec::new(),
                noticed: vec![vec![false; n]; n],
            }
        }

        fn is_dead(&self, rank: usize) -> bool {
            self.dead.contains(&(rank as u32))
        }

        /// Begins late, with what it knows.
        fn begin(&mut self, rank: usize) {
            let size = self.ranks.len() as u32;
            let mut failed = RankSet::new(size);
            for peer in (0..size).filter(|peer| self.noticed[rank][*peer as usize]) {
                failed.insert(peer);
            }
            let next_id = 1 + self.random.below(5) as u32;
            let has_trouble = self.random.below(20) == 0;
            let agreement = Agreement::new(rank as u32, size, failed, next_id, has_trouble);
            self.ranks[rank] = Some(agreement);
        }

        fn kill(&mut self, rank: usize) {
            self.dead.push(rank as u32);
            for to in 0..self.ranks.len() {
                let kept = self.random.below(self.channels[rank][to].len() + 1);
                self.channels[rank][to].truncate(kept);
            }
        }

        fn step(&mut self, deaths_left: &mut u32) {
            let n = self.ranks.len();
            let rank = self.random.below(n);
            if self.is_dead(rank) {
                return;
            }
            let other = self.random.below(n);
            match self.random.below(40) {
                0 if *deaths_left > 0 && self.dead.len() + 1 < n => {
                    *deaths_left -= 1;
                    self.kill(rank);
                }
                1..=5 => {
                    if self.is_dead(other) && !self.noticed[rank][other] {
                        self.noticed[rank][other] = true;
                        if let Some(agreement) = &mut self.ranks[rank] {
                            agreement.handle_failed(other as u32);
                        }
                    }
                }
                _ if self.ranks[rank].is_none() => self.begin(rank),
                6..=20 => {
                    let agreement = self.ranks[rank].as_mut().unwrap();
                    if let Some((to, ballot)) = agreement.poll_send() {
                        self.channels[rank][to as usize].push_back(ballot);
                    }
                }
                _ => {
                    if let Some(ballot) = self.channels[other][rank].pop_front() {
                        let agreement = self.ranks[rank].as_mut().unwrap();
                        agreement.handle_message(other as u32, ballot);
                    }
                }
            }
        }

        fn is_over(&self) -> bool {
            (0..self.ranks.len()).all(|rank| {
                let agreement = self.ranks[rank].as_ref();
                self.is_dead(rank) || agreement.is_some_and(|one| one.outcome().is_some())
            })
        }
    }

    #[test]
    fn all_survivors_decide_the_same_whatever_dies_when() {
        for seed in 1..1500u64 {
            let size = 1 + (seed % 9) as u32;
            let mut deaths = (seed % 4) as u32;
            let mut simulation = Simulation::new(size, seed);
            let mut steps = 0;
            while !simulation.is_over() {
                simulation.step(&mut deaths);
                steps += 1;
                assert!(steps < 2_000_000, "seed {seed}: no end");
            }
            let mut outcomes = (0..size as usize)
                .filter(|rank| !simulation.is_dead(*rank))
                .map(|rank| simulation.ranks[rank].as_ref().unwrap().outcome().unwrap());
            let first = outcomes.next().unwrap();
            assert!(outcomes.all(|outcome| outcome == first), "seed {seed}");
            let Outcome::Decided { survivors, .. } = first else {
                panic!("seed {seed}: {first:?}");
            };
            let lives = |rank: u32| !simulation.is_dead(rank as usize);
            assert!((0..size).all(|rank| !lives(rank) || survivors.contains(&rank)));
        }
    }

    #[test]
    fn one_rank_is_alone_at_once() {
        let mut alone = Agreement::new(0, 1, RankSet::new(1), 7, false);
        assert_eq!(alone.poll_send(), None);
        let expected = Outcome::Decided {
            survivors: vec![0],
            next_id: 7,
            has_trouble: false,
        };
        assert_eq!(alone.outcome(), Some(&expected));
    }

    #[test]
    fn who_was_given_up_learns_it() {
        let mut stopped = Agreement::new(1, 2, RankSet::new(2), 1, false);
        let mut failed = RankSet::new(2);
        failed.insert(1);
        let ballot = Ballot {
            is_decision: true,
            round: 0,
            failed,
            next_id: 1,
            has_trouble: false,
        };
        stopped.handle_message(0, ballot);
        assert_eq!(stopped.outcome(), Some(&Outcome::Excluded { by: 0 }));
    }

    #[test]
    fn encoding_is_undone_by_decoding() {
        let mut failed = RankSet::new(70);
        failed.insert(69);
        let ballot = Ballot {
            is_decision: true,
            round: 3,
            failed,
            next_id: 9,
            has_trouble: true,
        };
        let bytes = ballot.encode();
        assert_eq!(bytes.len(), Ballot::encoded_bytes(70));
        assert_eq!(Ballot::decode(&bytes, 70), Some(ballot));
        assert_eq!(Ballot::decode(&bytes, 2), None);
    }
}
