//! `Team::in_slot`, `out_slot`, `publish`, `has_come`: blocks through two staging slots of each kind,
//! within an exchange and from one to the next.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};

use crate::memory::{Orders, Plain, explore, wait_until};

const SLOTS: u64 = 2;
const PUT: usize = 0;
const TAKEN: usize = 1;
const FETCHED: usize = 2;

struct Member {
    /// The round's flag: an exchange ends only when all have begun it.
    begun: AtomicU64,
    counters: [AtomicU64; 3],
    inward: [Plain; SLOTS as usize],
    outward: [Plain; SLOTS as usize],
}

impl Member {
    fn new() -> Self {
        Self {
            begun: AtomicU64::new(0),
            counters: [AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)],
            inward: [Plain::new(), Plain::new()],
            outward: [Plain::new(), Plain::new()],
        }
    }

    fn has_come(&self, stage: usize, wanted: u64) -> bool {
        self.counters[stage].load(Ordering::Acquire) >= wanted
    }

    fn publish(&self, stage: usize, value: u64, orders: Orders) {
        self.counters[stage].store(value, orders.publish());
    }
}

fn counter_value(exchange: u64, blocks: u64) -> u64 {
    exchange << 32 | blocks
}

/// Exchange and blocks that a slot was last used for.
type Use = (u64, u64);

fn wait_for_slot(other: &Member, last: Use, exchange: u64, stage: usize) {
    // All had begun the exchange before this one, and so had ended those before it.
    if exchange - last.0 < 2 {
        wait_until(|| other.has_come(stage, counter_value(last.0, last.1)));
    }
}

fn run(me: &Member, other: &Member, exchanges: u64, blocks: u64, orders: Orders) {
    let mut in_use: [Use; SLOTS as usize] = Default::default();
    let mut out_use: [Use; SLOTS as usize] = Default::default();
    for exchange in 1..=exchanges {
        me.begun.store(exchange, Ordering::Release);
        for block in 0..blocks {
            let slot = ((exchange + block) % SLOTS) as usize;
            let (done, mark) = (counter_value(exchange, block + 1), exchange * 100 + block);
            wait_for_slot(other, in_use[slot], exchange, TAKEN);
            in_use[slot] = (exchange, block + 1);
            me.inward[slot].write(mark);
            me.publish(PUT, done, orders);

            wait_until(|| other.has_come(PUT, done));
            wait_for_slot(other, out_use[slot], exchange, FETCHED);
            out_use[slot] = (exchange, block + 1);
            let taken = other.inward[slot].read();
            assert_eq!(taken, mark);
            me.outward[slot].write(taken + 1);
            me.publish(TAKEN, done, orders);

            wait_until(|| other.has_come(TAKEN, done));
            assert_eq!(other.outward[slot].read(), mark + 1);
            me.publish(FETCHED, done, orders);
        }
        wait_until(|| other.begun.load(Ordering::Acquire) >= exchange);
    }
}

fn walk(exchanges: u64, blocks: u64, orders: Orders) {
    explore(move || {
        let members = Arc::new([Member::new(), Member::new()]);
        let others = members.clone();
        let thread =
            loom::thread::spawn(move || run(&others[1], &others[0], exchanges, blocks, orders));
        run(&members[0], &members[1], exchanges, blocks, orders);
        thread.join().expect("the other member ends");
    });
}

#[test]
fn blocks_of_one_exchange_reuse_both_slots() {
    walk(1, 4, Orders::AsWritten);
}

#[test]
fn exchanges_of_one_block_reuse_the_slots_of_the_one_before_the_last() {
    walk(3, 1, Orders::AsWritten);
}

#[test]
#[should_panic]
fn without_release_the_model_fails() {
    walk(1, 2, Orders::Weakened);
}
