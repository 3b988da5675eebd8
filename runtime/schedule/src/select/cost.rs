//! What a call costs: a model with a few constants for each kind of link.
//!
//! Time is the sum of: steps on the longest chain, each with a link's latency; messages that the
//! busiest rank starts one after another; bytes that it sends or receives; bytes that it reduces,
//! and those that it copies.

use super::work::{Work, segments, work};
use super::{Choice, Question};
use crate::Algorithm;
use crate::spec::is_of_vectors;

/// Time of messages between two ranks, in picoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Link {
    /// From the sender's call to the receiver's return, of an empty message, without their own time.
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
                message: 150_000,
                byte: 200,
            },
            between: Link {
                latency: 9_000_000,
                message: 3_000_000,
                byte: 400,
            },
            reduced_byte: 60,
            copied_byte: 100,
        }
    }
}

/// Bytes of one message where nothing speaks for another length: a quarter of the shared ring, so
/// that several are under way, and small enough to stay in an L2 cache with what they are reduced
/// with. Of 32 to 256 KiB, measured with two ranks from 1 to 64 MiB, shared memory liked 128 best
/// at the long end and did not care elsewhere; TCP would take 256.
const SEGMENT_BYTES: usize = 128 * 1024;
/// The same between hosts, of blocks that are only passed on. A connection spreads a message over its
/// sockets and begins the next when that is out; longer ones keep all sockets busy.
const SEGMENT_BYTES_PASSED_ON: usize = 1 << 20;
/// What pipelined algorithms choose from.
const SEGMENT_POWERS: std::ops::Range<u32> = 13..21;

/// How often each constant counts, in the order of [`Costs::constants`].
pub(super) type Amounts = [u128; 5];

pub(super) fn amounts(question: Question, choice: Choice) -> Amounts {
    let Work {
        steps,
        messages,
        bytes,
        reduced,
        copied,
        inside: _,
    } = work_of(question, choice);
    [steps, messages, bytes, reduced, copied]
}

fn usual_segment_bytes(question: Question) -> usize {
    let collective = question.collective;
    if question.shape.hosts > 1 && !crate::reduces(collective) && !is_of_vectors(collective) {
        SEGMENT_BYTES_PASSED_ON
    } else {
        SEGMENT_BYTES
    }
}

fn work_of(question: Question, choice: Choice) -> Work {
    let question = question.as_carried_by(choice.algorithm);
    let segments = segments(question, choice.algorithm, choice.segment_bytes);
    work(question, choice.algorithm, segments)
}

impl Costs {
    /// With the best segment where segments are of use, else with the usual one.
    pub(super) fn best(&self, question: Question, algorithm: Algorithm) -> (Choice, u128) {
        let with = |segment_bytes| {
            let choice = Choice {
                algorithm,
                segment_bytes,
            };
            (choice, self.picoseconds(question, choice))
        };
        if segments(question, algorithm, 1) == 1 {
            return with(usual_segment_bytes(question));
        }
        let all = SEGMENT_POWERS.map(|power| with(1 << power));
        all.min_by_key(|(_, time)| *time)
            .expect("there are lengths")
    }

    pub(super) fn picoseconds(&self, question: Question, choice: Choice) -> u128 {
        let constants = self.constants(question.shape.hosts > 1);
        let work = sum(amounts(question, choice), constants);
        work.saturating_add(self.inside_picoseconds(question, choice))
    }

    /// The part of a hierarchy's time that is spent inside hosts alone. Its stages overlap: bytes move
    /// inside while others are between hosts, so only what takes longer inside is added.
    pub(super) fn inside_picoseconds(&self, question: Question, choice: Choice) -> u128 {
        let Work { inside, bytes, .. } = work_of(question, choice);
        let Link {
            latency,
            message,
            byte,
        } = self.inside;
        let [steps, messages, bytes_inside] = inside;
        let meanwhile = sum([bytes], [self.between.byte]);
        let moving = sum([bytes_inside], [byte]).saturating_sub(meanwhile);
        sum([steps, messages], [latency, message]).saturating_add(moving)
    }

    pub(super) fn constants(&self, is_between: bool) -> [u64; 5] {
        let link = if is_between {
            self.between
        } else {
            self.inside
        };
        let Link {
            latency,
            message,
            byte,
        } = link;
        [latency, message, byte, self.reduced_byte, self.copied_byte]
    }

    pub(super) fn set_constants(&mut self, is_between: bool, constants: [u64; 5]) {
        let [latency, message, byte, reduced_byte, copied_byte] = constants;
        let link = Link {
            latency,
            message,
            byte,
        };
        (self.reduced_byte, self.copied_byte) = (reduced_byte, copied_byte);
        if is_between {
            self.between = link;
        } else {
            self.inside = link;
        }
    }
}

fn sum<const N: usize>(amounts: [u128; N], constants: [u64; N]) -> u128 {
    let parts = amounts.into_iter().zip(constants);
    parts
        .map(|(amount, one)| amount.saturating_mul(u128::from(one)))
        .fold(0, u128::saturating_add)
}
