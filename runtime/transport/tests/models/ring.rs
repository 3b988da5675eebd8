//! `ShmConnection`: header slots that carry their flag, payloads in a ring, room given back.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};

use crate::memory::{Orders, Plain, explore, wait_until};

const HEADER_SLOTS: u64 = 2;
/// Units of payload that the ring holds.
const RING: u64 = 2;
/// Units of payload of each message: one that fits, and one that is published piece by piece.
const MESSAGES: [u64; 3] = [1, 3, 1];

struct Channel {
    flags: [AtomicU64; HEADER_SLOTS as usize],
    headers: [Plain; HEADER_SLOTS as usize],
    ring: [Plain; RING as usize],
    written: AtomicU64,
    taken: AtomicU64,
    headers_taken: AtomicU64,
}

impl Channel {
    fn new() -> Self {
        Self {
            flags: [AtomicU64::new(0), AtomicU64::new(0)],
            headers: [Plain::new(), Plain::new()],
            ring: [Plain::new(), Plain::new()],
            written: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            headers_taken: AtomicU64::new(0),
        }
    }
}

fn send(channel: &Channel, orders: Orders) {
    let mut written = 0;
    let mut fill = |remaining: &mut u64, channel: &Channel| {
        let room = RING - (written - channel.taken.load(Ordering::Acquire));
        for _ in 0..room.min(*remaining) {
            channel.ring[(written % RING) as usize].write(1000 + written);
            written += 1;
            *remaining -= 1;
        }
        written
    };
    for (number, length) in (0_u64..).zip(MESSAGES) {
        wait_until(|| number - channel.headers_taken.load(Ordering::Acquire) < HEADER_SLOTS);
        let slot = (number % HEADER_SLOTS) as usize;
        let mut remaining = length;
        // What is in the ring already, the header says itself.
        let at_first = fill(&mut remaining, channel);
        channel.headers[slot].write(at_first);
        channel.flags[slot].store(number + 1, orders.publish());
        while remaining > 0 {
            let before = remaining;
            let end = fill(&mut remaining, channel);
            if remaining < before {
                channel.written.store(end, orders.publish());
            } else {
                loom::thread::yield_now();
            }
        }
    }
}

fn receive(channel: &Channel) {
    let mut taken = 0;
    for (number, length) in (0_u64..).zip(MESSAGES) {
        let slot = (number % HEADER_SLOTS) as usize;
        wait_until(|| channel.flags[slot].load(Ordering::Acquire) > number);
        let mut written = channel.headers[slot].read();
        channel.headers_taken.store(number + 1, Ordering::Release);
        let end = taken + length;
        while taken < end {
            if written <= taken {
                wait_until(|| {
                    written = channel.written.load(Ordering::Acquire);
                    written > taken
                });
            }
            while taken < written.min(end) {
                let unit = channel.ring[(taken % RING) as usize].read();
                assert_eq!(unit, 1000 + taken);
                taken += 1;
            }
            channel.taken.store(taken, Ordering::Release);
        }
    }
}

fn walk(orders: Orders) {
    explore(move || {
        let channel = Arc::new(Channel::new());
        let other = channel.clone();
        let sender = loom::thread::spawn(move || send(&other, orders));
        receive(&channel);
        sender.join().expect("the sender ends");
    });
}

#[test]
fn messages_arrive_whole_and_room_is_given_back() {
    walk(Orders::AsWritten);
}

#[test]
#[should_panic]
fn without_release_the_model_fails() {
    walk(Orders::Weakened);
}
