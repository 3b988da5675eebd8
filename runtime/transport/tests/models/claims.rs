//! `Claims::claim`, `tell_written`, `is_all_written`, `withdraw`: a reader and its helper copy a
//! stretch together, and nobody writes to the reader's memory after its call.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};

use crate::memory::{Orders, Plain, explore, wait_until};

const PIECES: u64 = 3;
const WITHDRAWN: u64 = u32::MAX as u64;

struct Stretch {
    /// The helper may begin a turn.
    begun: AtomicU64,
    claims: AtomicU64,
    written: AtomicU64,
    pieces: [Plain; PIECES as usize],
}

impl Stretch {
    fn new() -> Self {
        Self {
            begun: AtomicU64::new(0),
            claims: AtomicU64::new(0),
            written: AtomicU64::new(0),
            pieces: [Plain::new(), Plain::new(), Plain::new()],
        }
    }

    fn counted(&self, word: u64, turn: u64) -> Option<(u64, u64)> {
        match word >> 32 {
            of if of == turn && word & WITHDRAWN == WITHDRAWN => None,
            of if of == turn => Some((word >> 16 & 0xffff, word & 0xffff)),
            of if of > turn => None,
            _ => Some((1, 0)),
        }
    }

    fn claim(&self, turn: u64, is_reader: bool) -> Option<usize> {
        let mut word = self.claims.load(Ordering::Relaxed);
        loop {
            let (front, back) = self.counted(word, turn)?;
            if front + back >= PIECES {
                return None;
            }
            let (piece, next) = if is_reader {
                (front, (front + 1, back))
            } else {
                (PIECES - 1 - back, (front, back + 1))
            };
            let next = turn << 32 | next.0 << 16 | next.1;
            let claims = &self.claims;
            match claims.compare_exchange(word, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Some(piece as usize),
                Err(now) => word = now,
            }
        }
    }

    fn written_pieces(&self, turn: u64) -> u64 {
        let word = self.written.load(Ordering::Acquire);
        if word >> 32 == turn {
            word & WITHDRAWN
        } else {
            0
        }
    }

    fn help(&self, turn: u64, orders: Orders) {
        wait_until(|| self.begun.load(Ordering::Acquire) >= turn);
        let mut count = 0;
        while let Some(piece) = self.claim(turn, false) {
            self.pieces[piece].write(turn * 10);
            count += 1;
            self.written.store(turn << 32 | count, orders.publish());
        }
    }

    fn read(&self, turn: u64) {
        self.begun.store(turn, Ordering::Release);
        self.pieces[0].write(turn * 10);
        while let Some(piece) = self.claim(turn, true) {
            self.pieces[piece].write(turn * 10);
        }
        let back = self.claims.load(Ordering::Acquire) & 0xffff;
        wait_until(|| self.written_pieces(turn) == back);
        for piece in &self.pieces {
            assert_eq!(piece.read(), turn * 10);
        }
    }

    fn withdraw(&self, turn: u64) {
        self.begun.store(turn, Ordering::Release);
        let word = self.claims.swap(turn << 32 | WITHDRAWN, Ordering::AcqRel);
        let claimed = self.counted(word, turn).map_or(0, |(_, back)| back);
        wait_until(|| self.written_pieces(turn) == claimed);
        // The memory is its owner's again.
        for piece in &self.pieces {
            piece.write(1);
        }
    }
}

fn walk(turns: u64, orders: Orders) {
    explore(move || {
        let stretch = Arc::new(Stretch::new());
        let helpers = stretch.clone();
        let helper = loom::thread::spawn(move || {
            for turn in 1..=turns {
                helpers.help(turn, orders);
            }
        });
        for turn in 1..=turns {
            stretch.read(turn);
        }
        helper.join().expect("the helper ends");
    });
}

#[test]
fn every_piece_is_there_when_the_reader_goes_on() {
    walk(2, Orders::AsWritten);
}

#[test]
#[should_panic]
fn without_release_of_what_was_written_the_model_fails() {
    walk(2, Orders::Weakened);
}

#[test]
fn nobody_writes_to_one_that_has_withdrawn() {
    explore(move || {
        let stretch = Arc::new(Stretch::new());
        let helpers = stretch.clone();
        let helper = loom::thread::spawn(move || helpers.help(1, Orders::AsWritten));
        stretch.withdraw(1);
        helper.join().expect("the helper ends");
    });
}
