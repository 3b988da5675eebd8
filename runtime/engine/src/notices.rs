//! How a failure of one rank reaches the others as the same error: notices on the control link.
//!
//! | what failed here | what the others get |
//! |---|---|
//! | [`Error::Mismatch`], [`Error::MessageMismatch`], [`Error::Timeout`], [`Error::Aborted`] | the same, word by word |
//! | [`Error::PeerFailed`], [`Error::PeerLeft`] | the same, with what they were in, and the others |
//! | a reason of this rank's own (interrupted, no memory, a broken connection) | [`Error::PeerFailed`] of this rank, which tells it |

use std::time::{Duration, Instant};

use prost::Message;
use rlaunch_wire::Descriptor;
use rlaunch_wire::notice::{
    Aborted, Disagreement, Failed, GaveUp, Notice, NoticeKind, TimedOut, Unfit, descriptor,
};

use crate::core::{Cause, Core};
use crate::error::Bound;
use crate::failure::{Departure, Doing, LastSeen, NOT_ANSWERED, Others};
use crate::{Error, Rank};

/// What the others are told of a communicator's failure.
pub(crate) fn of_failure(error: &Error, communicator: u32) -> NoticeKind {
    let bytes = |call: &Descriptor| call.encode().to_vec();
    match error {
        Error::Mismatch {
            left_rank,
            left,
            right_rank,
            right,
            detail,
        } => NoticeKind::Disagreement(Disagreement {
            left_rank: left_rank.rank,
            left: bytes(left),
            right_rank: right_rank.rank,
            right: bytes(right),
            detail: detail.clone(),
        }),
        Error::MessageMismatch {
            sender,
            sent,
            expected,
            ..
        } => NoticeKind::Unfit(Unfit {
            sender: sender.rank,
            sent: bytes(sent),
            expected: bytes(expected),
        }),
        Error::Aborted { reason, .. } => NoticeKind::Aborted(Aborted {
            communicator,
            reason: reason.clone(),
        }),
        Error::Timeout {
            during,
            waited,
            missing,
            others,
            bound,
            ..
        } => NoticeKind::TimedOut(TimedOut {
            communicator,
            during: during.clone(),
            waited_ns: waited.as_nanos() as u64,
            missing: missing.iter().map(|rank| rank.rank).collect(),
            others: others
                .seen
                .iter()
                .map(|seen| seen.doing.encode(seen.rank.rank, communicator))
                .collect(),
            left_out: others.left_out,
            bound: bound.code(),
        }),
        Error::PeerFailed { peer, cause, .. } => {
            failed(peer.rank, cause.clone(), false, communicator)
        }
        Error::PeerLeft { peer, .. } => failed(peer.rank, String::new(), true, communicator),
        other => NoticeKind::GaveUp(GaveUp {
            communicator,
            cause: other.to_string(),
        }),
    }
}

fn failed(rank: u32, cause: String, has_left: bool, communicator: u32) -> NoticeKind {
    NoticeKind::Failed(Failed {
        rank,
        cause,
        has_left,
        communicator: Some(communicator),
    })
}

impl Core {
    pub(crate) fn handle_notice(&mut self, from: u32, payload: &[u8]) {
        let Some(by) = self.known(from) else {
            return;
        };
        let Ok(Notice { kind: Some(kind) }) = Notice::decode(payload) else {
            return;
        };
        match kind {
            NoticeKind::Waiting(waiting) => {
                let peer = &mut self.peers[from as usize];
                peer.waits_in = calls(&waiting.calls);
                let doing = waiting.doing.iter();
                let doing = doing.map(|told| (told.communicator, Doing::decode(told)));
                peer.doing = doing.collect();
                peer.told_at = Some(Instant::now());
                self.watch.someone_waits = true;
                self.compare_waits();
            }
            NoticeKind::Left(left) => self.handle_left(from, calls(&left.calls)),
            NoticeKind::Disagreement(told) => self.handle_disagreement(told),
            NoticeKind::Failed(failed) => self.handle_failed_notice(from, failed),
            NoticeKind::Unfit(unfit) => self.handle_unfit(by, &unfit),
            NoticeKind::TimedOut(timed_out) => self.handle_timed_out(by, timed_out),
            NoticeKind::Aborted(told) => self.handle_aborted(by, told),
            // For the launcher.
            NoticeKind::Blames(_) => {}
            NoticeKind::GaveUp(GaveUp {
                communicator,
                cause,
            }) => self.watch.departed.push(Departure {
                rank: from,
                cause: Cause::Failed(format!("it gave up: {cause}")),
                communicator: Some(communicator),
            }),
        }
    }

    /// Makes what another rank tells the communicator's error, if it is one of this rank's.
    fn poison_told(&mut self, communicator: u32, error: Error) {
        if let Some(key) = self.groups.find(communicator) {
            self.poison(key, error);
        }
    }

    fn handle_aborted(&mut self, by: Rank, told: Aborted) {
        if let Some(key) = self.groups.find(told.communicator) {
            let error = Error::Aborted {
                others: self.others(key, &[]),
                by,
                communicator: told.communicator,
                reason: told.reason,
                during: self.group(key).during(),
            };
            self.poison(key, error);
        }
    }

    fn handle_left(&mut self, from: u32, calls: Vec<Descriptor>) {
        let peer = &mut self.peers[from as usize];
        peer.is_leaving = true;
        // The newest stands last of each communicator. Nothing is told of those that have failed.
        for call in &calls {
            peer.doing.retain(|(id, _)| *id != call.communicator);
            let doing = Doing::Between(Some(*call));
            peer.doing.push((call.communicator, doing));
        }
        peer.waits_in = calls;
        let connection = peer.connection.as_ref();
        // Else it says so behind all it sent.
        peer.has_left |= !connection.is_some_and(|peer| peer.is_connected());
        self.watch.someone_waits = true;
        self.compare_waits();
    }

    fn handle_disagreement(&mut self, told: Disagreement) {
        let (Some(left), Some(right)) = (descriptor(&told.left), descriptor(&told.right)) else {
            return;
        };
        let (Some(left_rank), Some(right_rank)) =
            (self.known(told.left_rank), self.known(told.right_rank))
        else {
            return;
        };
        let id = left.communicator;
        let is_mine = [told.left_rank, told.right_rank].contains(&self.rank);
        let error = Error::Mismatch {
            left_rank,
            left: Box::new(left),
            right_rank,
            right: Box::new(right),
            detail: told.detail,
        };
        match self.groups.find(id) {
            Some(key) => self.poison(key, error),
            // Where it had failed before it was freed, that is told already, or kept for the end.
            None if self.groups.is_over(id) => {}
            None if is_mine => drop(self.ending.late.get_or_insert(error)),
            None => {}
        }
    }

    fn handle_unfit(&mut self, receiver: Rank, unfit: &Unfit) {
        let (Some(sent), Some(expected)) = (descriptor(&unfit.sent), descriptor(&unfit.expected))
        else {
            return;
        };
        let Some(sender) = self.known(unfit.sender) else {
            return;
        };
        let communicator = expected.communicator;
        let error = Error::MessageMismatch {
            sender,
            sent: Box::new(sent),
            receiver,
            expected: Box::new(expected),
        };
        self.poison_told(communicator, error);
    }

    fn handle_timed_out(&mut self, by: Rank, told: TimedOut) {
        let missing = told.missing.iter().map(|rank| self.known(*rank));
        let Some(missing) = missing.collect::<Option<Vec<Rank>>>() else {
            return;
        };
        let seen = told.others.iter().take(Others::MAX).filter_map(|other| {
            Some(LastSeen {
                rank: self.known(other.rank)?,
                doing: Doing::decode(other),
            })
        });
        let others = Others {
            seen: seen.collect(),
            left_out: told.left_out,
        };
        let error = Error::Timeout {
            by,
            during: told.during,
            waited: Duration::from_nanos(told.waited_ns),
            missing,
            others,
            bound: Bound::from_code(told.bound),
        };
        self.poison_told(told.communicator, error);
    }

    fn handle_failed_notice(&mut self, from: u32, failed: Failed) {
        if failed.rank >= self.size() {
            return;
        }
        if failed.rank == self.rank && failed.cause == NOT_ANSWERED {
            // The others go on without this rank, which lives.
            let by = self.identity(from);
            self.ending.excluded_by = Some(from);
            for key in self.groups.keys() {
                self.poison(key, Error::Excluded { by: by.clone() });
            }
            return;
        }
        let cause = if failed.has_left {
            Cause::Left
        } else {
            Cause::Failed(failed.cause)
        };
        match failed.communicator {
            None => drop(self.lose_peer(failed.rank, &cause)),
            Some(_) => self.watch.departed.push(Departure {
                rank: failed.rank,
                cause,
                communicator: failed.communicator,
            }),
        }
    }

    fn known(&self, rank: u32) -> Option<Rank> {
        self.peers
            .get(rank as usize)
            .map(|peer| peer.identity.clone())
    }
}

fn calls(told: &[Vec<u8>]) -> Vec<Descriptor> {
    told.iter().filter_map(|call| descriptor(call)).collect()
}
