//! `Team::begin_direct`, `publish`, `give_up`, `has_anyone_given_up`: members read each other's buffers
//! in place, and each has its own back when the call ends, well or not.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering, fence};

use crate::memory::{Orders, Plain, explore, wait_until};

struct Member {
    begun: AtomicU64,
    fetched: AtomicU64,
    input: Plain,
}

impl Member {
    fn new() -> Self {
        Self {
            begun: AtomicU64::new(0),
            fetched: AtomicU64::new(0),
            input: Plain::new(),
        }
    }
}

fn run(me: &Member, other: &Member, calls: u64, orders: Orders) {
    for call in 1..=calls {
        me.input.write(call * 10);
        me.begun.store(call, Ordering::Release);
        wait_until(|| other.begun.load(Ordering::Acquire) >= call);
        assert_eq!(other.input.read(), call * 10);
        me.fetched.store(call, orders.publish());
        wait_until(|| other.fetched.load(Ordering::Acquire) >= call);
    }
}

fn walk(calls: u64, orders: Orders) {
    explore(move || {
        let members = Arc::new([Member::new(), Member::new()]);
        let others = members.clone();
        let thread = loom::thread::spawn(move || run(&others[1], &others[0], calls, orders));
        run(&members[0], &members[1], calls, orders);
        thread.join().expect("the other member ends");
    });
}

#[test]
fn a_buffer_is_written_again_only_when_it_was_read() {
    walk(3, Orders::AsWritten);
}

#[test]
#[should_panic]
fn without_release_the_model_fails() {
    walk(3, Orders::Weakened);
}

/// One gives up, and its caller writes to the buffer that the other still reads.
fn give_up(orders: Orders) {
    explore(move || {
        let shared = Arc::new((AtomicU64::new(0), AtomicU64::new(1)));
        let owners = shared.clone();
        let owner = loom::thread::spawn(move || {
            let (given_up, input) = &*owners;
            given_up.store(1, Ordering::Relaxed);
            if orders == Orders::AsWritten {
                fence(Ordering::SeqCst);
            }
            input.store(2, Ordering::Relaxed);
        });
        let (given_up, input) = &*shared;
        let read = input.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        let is_given_up = given_up.load(Ordering::Relaxed) == 1;
        assert!(is_given_up || read == 1);
        owner.join().expect("the owner ends");
    });
}

#[test]
fn what_was_read_of_one_that_gave_up_is_not_used() {
    give_up(Orders::AsWritten);
}

#[test]
#[should_panic]
fn without_a_fence_it_would_be() {
    give_up(Orders::Weakened);
}
