//! `Team::begin`, `post`, `has_posted`: a slot is written again only after all have read it; also
//! where two members swap their slots of data each time they come round.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};

use crate::memory::{Orders, Plain, explore, wait_until};

/// Rounds that a member may be ahead of another; the real ones are 8.
const ROUNDS: u64 = 2;
const LAST: u64 = 4;

struct Slot {
    flag: AtomicU64,
    data: Plain,
}

struct Member {
    slots: [Slot; ROUNDS as usize],
}

impl Member {
    fn new() -> Self {
        let slot = || Slot {
            flag: AtomicU64::new(0),
            data: Plain::new(),
        };
        Self {
            slots: [slot(), slot()],
        }
    }

    fn slot(&self, round: u64) -> &Slot {
        &self.slots[(round % ROUNDS) as usize]
    }

    /// Where the data of this one lie, if `other` is the other.
    fn data<'a>(&'a self, other: &'a Self, round: u64) -> &'a Plain {
        let is_swapped = (round / ROUNDS) % 2 == 1;
        &if is_swapped { other } else { self }.slot(round).data
    }

    fn has_posted(&self, round: u64) -> bool {
        self.slot(round).flag.load(Ordering::Acquire) >= round
    }
}

/// `reads`: whether it needs the other's data, as all do but the root of a broadcast.
fn run(me: &Member, other: &Member, reads: bool, orders: Orders) {
    for round in 1..=LAST {
        if round >= ROUNDS {
            wait_until(|| other.has_posted(round + 1 - ROUNDS));
        }
        me.data(other, round).write(round * 10);
        me.slot(round).flag.store(round, orders.publish());
        if reads {
            wait_until(|| other.has_posted(round));
            assert_eq!(other.data(me, round).read(), round * 10);
        }
    }
}

fn walk(reads: [bool; 2], orders: Orders) {
    explore(move || {
        let members = Arc::new([Member::new(), Member::new()]);
        let others = members.clone();
        let thread = loom::thread::spawn(move || run(&others[1], &others[0], reads[1], orders));
        run(&members[0], &members[1], reads[0], orders);
        thread.join().expect("the other member ends");
    });
}

#[test]
fn slots_are_read_before_they_are_written_again() {
    walk([true, true], Orders::AsWritten);
}

/// A root runs ahead as far as the slots allow.
#[test]
fn a_member_that_reads_nothing_does_not_overrun_the_others() {
    walk([false, true], Orders::AsWritten);
}

#[test]
#[should_panic]
fn without_release_the_model_fails() {
    walk([true, true], Orders::Weakened);
}
