//! A stretch of memory that two ranks copy together: one takes pieces from its front, the other from
//! its back, until they meet.
//!
//! The *reader* waits for the stretch, and copies it from the *giver*'s memory ([`super::Reach`]). A
//! giver that has nothing better to do *helps*: it writes pieces into the reader's memory. Two words
//! that both see tell who has what; `turn` is the number of the exchange or message:
//! ```text
//! claims:   turn (32) | pieces taken from the front (16) | from the back (16)
//! written:  turn (32) | pieces that the helper has written (32)
//! ```
//! The first piece is the reader's from the start: it asks for no line that the other has.
//!
//! A helper writes only what it has claimed, and the reader goes on only when all that is claimed is
//! written. So nobody writes to a rank's memory after its call. One whose call fails withdraws
//! ([`Claims::withdraw`]): then nothing more can be claimed. It waits for what is being written, but
//! not for ever: a helper that is stopped between its last look and its write, a few instructions,
//! writes one piece when it goes on.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Shorter stretches are copied sooner than shared out.
const WORTH_BYTES: usize = 24 * 1024;
/// A piece is long against a system call, and short against the stretch.
const PIECE_BYTES_MIN: usize = 16 * 1024;
const PIECE_BYTES_MAX: usize = 256 * 1024;
const PIECES: usize = 4;
/// Up to here each of the two takes one.
const HALVED_BYTES_MAX: usize = 128 * 1024;
/// They are counted in 16 bits.
const PIECES_MAX: usize = 32 * 1024;
/// In place of the counts: the reader has withdrawn.
const WITHDRAWN: u32 = u32::MAX;
/// How long a withdrawing reader waits for what is being written. Long against writing a piece.
const SETTLE_MAX: Duration = Duration::from_secs(1);
const SETTLE_PERIOD: Duration = Duration::from_micros(50);

/// From where a piece is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By the reader.
    Front,
    /// By the helper.
    Back,
}

/// How a stretch is divided; both sides find the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pieces {
    pub count: u16,
    piece_bytes: usize,
    bytes: usize,
}

impl Pieces {
    pub fn of(bytes: usize) -> Self {
        let pieces = match bytes {
            0..WORTH_BYTES => 1,
            WORTH_BYTES..=HALVED_BYTES_MAX => 2,
            _ => PIECES,
        };
        let piece = match pieces {
            1 => bytes.max(1),
            _ => (bytes / pieces)
                .clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX)
                .max(bytes.div_ceil(PIECES_MAX))
                .next_multiple_of(PIECE_BYTES_MIN),
        };
        Self {
            // At most PIECES_MAX.
            count: bytes.div_ceil(piece) as u16,
            piece_bytes: piece,
            bytes,
        }
    }

    pub fn range(&self, piece: u16) -> Range<usize> {
        let begin = usize::from(piece) * self.piece_bytes;
        begin..self.bytes.min(begin + self.piece_bytes)
    }
}

/// The words of one stretch, in one turn.
#[derive(Debug, Clone, Copy)]
pub struct Claims<'a> {
    pub(super) claims: &'a AtomicU64,
    pub(super) written: &'a AtomicU64,
    pub(super) turn: u32,
}

impl Claims<'_> {
    /// Takes the next piece; `None` once all are taken. The first is taken by the reader from the
    /// start.
    pub fn claim(&self, pieces: &Pieces, end: End) -> Option<u16> {
        let mut word = self.claims.load(Ordering::Relaxed);
        loop {
            let (front, back) = self.counted(word, end)?;
            if u32::from(front) + u32::from(back) >= u32::from(pieces.count) {
                return None;
            }
            let (piece, front, back) = match end {
                End::Front => (front, front + 1, back),
                End::Back => (pieces.count - 1 - back, front, back + 1),
            };
            let next = self.word(u32::from(front) << 16 | u32::from(back));
            match self
                .claims
                .compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return Some(piece),
                Err(now) => word = now,
            }
        }
    }

    fn word(&self, counts: u32) -> u64 {
        u64::from(self.turn) << 32 | u64::from(counts)
    }

    /// Pieces taken from front and back; `None` once withdrawn, or for a helper whose turn is over. A
    /// reader's turn never is: what is not of it is left from an earlier one, however long ago.
    fn counted(&self, word: u64, end: End) -> Option<(u16, u16)> {
        let age = self.turn.wrapping_sub((word >> 32) as u32).cast_signed();
        let counts = word as u32;
        match age {
            0 if counts == WITHDRAWN => None,
            0 => Some(((counts >> 16) as u16, counts as u16)),
            ..0 if end == End::Back => None,
            _ => Some((1, 0)),
        }
    }

    /// Whether the reader has withdrawn: its memory may be anything but a place for results.
    pub fn is_withdrawn(&self) -> bool {
        let word = self.claims.load(Ordering::Acquire);
        self.counted(word, End::Back).is_none()
    }

    /// The helper has written one more piece.
    pub fn tell_written(&self) {
        let count = self.written_pieces() + 1;
        self.written.store(self.word(count), Ordering::Release);
    }

    fn written_pieces(&self) -> u32 {
        let word = self.written.load(Ordering::Acquire);
        let is_of_this = (word >> 32) as u32 == self.turn;
        if is_of_this { word as u32 } else { 0 }
    }

    /// Whether the helper has written all that it has claimed. For the reader, once nothing is left to
    /// claim.
    pub fn is_all_written(&self) -> bool {
        let word = self.claims.load(Ordering::Acquire);
        let claimed = self.counted(word, End::Front).map_or(0, |(_, back)| back);
        self.written_pieces() == u32::from(claimed)
    }

    /// Nothing more is claimed in this turn. Returns when nobody writes any more, or when the helper
    /// is gone (`is_there`) or has stood still for a second.
    pub fn withdraw(&self, is_there: impl Fn() -> bool) {
        let word = self.claims.swap(self.word(WITHDRAWN), Ordering::AcqRel);
        let claimed = match self.counted(word, End::Front) {
            Some((_, back)) => u32::from(back),
            None => return,
        };
        let end = Instant::now() + SETTLE_MAX;
        while self.written_pieces() != claimed && Instant::now() < end && is_there() {
            std::thread::sleep(SETTLE_PERIOD);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_the_stretch_once() {
        for bytes in [1, 100, WORTH_BYTES, 65_536, 131_073, 1 << 20, (1 << 40) + 1] {
            let pieces = Pieces::of(bytes);
            let mut at = 0;
            for piece in 0..pieces.count {
                let range = pieces.range(piece);
                assert_eq!(range.start, at);
                assert!(range.end > at);
                at = range.end;
            }
            assert_eq!(at, bytes);
        }
    }

    #[test]
    fn each_piece_is_taken_once_turn_by_turn() {
        let (claims, written) = (AtomicU64::new(0), AtomicU64::new(0));
        let pieces = Pieces::of(64 << 20);
        // The last one after longer than a turn can be told from a later one.
        for turn in [1, 2, 1 << 30, 1 << 31, u32::MAX, 0, 3, u32::MAX - 5] {
            let words = Claims {
                claims: &claims,
                written: &written,
                turn,
            };
            let take = |end: End| {
                let mut taken = Vec::new();
                while let Some(piece) = words.claim(&pieces, end) {
                    taken.push(piece);
                    if end == End::Back {
                        words.tell_written();
                    }
                }
                taken
            };
            let (front, back) = std::thread::scope(|scope| {
                let front = scope.spawn(|| take(End::Front));
                let back = scope.spawn(|| take(End::Back));
                (front.join().unwrap(), back.join().unwrap())
            });
            assert!(words.is_all_written());
            let mut all: Vec<u16> = front.into_iter().chain(back).chain([0]).collect();
            all.sort_unstable();
            assert_eq!(all, (0..pieces.count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn nothing_is_claimed_of_what_is_withdrawn_or_over() {
        let (claims, written) = (AtomicU64::new(0), AtomicU64::new(0));
        let words = |turn| Claims {
            claims: &claims,
            written: &written,
            turn,
        };
        let pieces = Pieces::of(1 << 20);
        assert!(words(5).claim(&pieces, End::Back).is_some());
        // The helper has not written it, and is gone.
        words(5).withdraw(|| false);
        assert!(words(5).is_withdrawn());
        assert_eq!(words(5).claim(&pieces, End::Back), None);
        assert_eq!(words(6).claim(&pieces, End::Front), Some(1));
        assert_eq!(
            words(5).claim(&pieces, End::Back),
            None,
            "a turn that is over"
        );
    }
}
