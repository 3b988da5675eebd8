//! `Doorbell`: announce, look once more, sleep; publish, look whether somebody sleeps, wake.
//!
//! Both sides fence here. Where the sleeper has the system raise the barrier on the ringer's
//! processor, the ringer's own fence costs nothing but means the same. Who needs several others sleeps
//! until one certain of them rings, then looks for the next.

use loom::sync::atomic::{AtomicU32, Ordering, fence};
use loom::sync::{Arc, Condvar, Mutex};

use crate::memory::explore;

struct Bell {
    work: AtomicU32,
    asleep: AtomicU32,
    count: AtomicU32,
    /// The system's futex: it compares and sleeps as one step.
    futex: Mutex<()>,
    woken: Condvar,
}

impl Bell {
    fn new() -> Self {
        Self {
            work: AtomicU32::new(0),
            asleep: AtomicU32::new(0),
            count: AtomicU32::new(0),
            futex: Mutex::new(()),
            woken: Condvar::new(),
        }
    }

    /// Sleeps for ever where a ring is lost: loom reports the deadlock.
    fn wait_for_work(&self, wanted: u32) {
        while self.work.load(Ordering::Acquire) < wanted {
            let ticket = self.count.load(Ordering::Relaxed);
            self.asleep.store(1, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            if self.work.load(Ordering::Acquire) < wanted {
                let guard = self.futex.lock().expect("no panic under it");
                if self.count.load(Ordering::SeqCst) == ticket {
                    drop(self.woken.wait(guard).expect("no panic under it"));
                }
            }
            self.asleep.store(0, Ordering::Relaxed);
        }
    }

    fn publish_and_ring(&self, work: u32, fences: bool) {
        self.work.store(work, Ordering::Release);
        if fences {
            fence(Ordering::SeqCst);
        }
        if self.asleep.load(Ordering::Relaxed) != 0 {
            self.count.fetch_add(1, Ordering::SeqCst);
            let _guard = self.futex.lock().expect("no panic under it");
            self.woken.notify_all();
        }
    }
}

/// Two ringers post once each; the sleeper needs both, and is woken by the one that it names alone.
#[test]
fn who_needs_two_may_wait_for_one_after_the_other() {
    const ONLY: u32 = 2;
    explore(|| {
        let bell = Arc::new(Bell::new());
        let posted = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let ring = |me: u32| {
            let (bell, posted) = (bell.clone(), posted.clone());
            loom::thread::spawn(move || {
                posted[me as usize].store(1, Ordering::Release);
                fence(Ordering::SeqCst);
                if bell.asleep.load(Ordering::Relaxed) == ONLY + me {
                    bell.count.fetch_add(1, Ordering::SeqCst);
                    let _guard = bell.futex.lock().expect("no panic under it");
                    bell.woken.notify_all();
                }
            })
        };
        let ringers = [ring(0), ring(1)];
        let lacking = || {
            (0..2u32)
                .rev()
                .find(|other| posted[*other as usize].load(Ordering::Acquire) == 0)
        };
        while let Some(only) = lacking() {
            let ticket = bell.count.load(Ordering::Relaxed);
            bell.asleep.store(ONLY + only, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            if posted[only as usize].load(Ordering::Acquire) == 0 {
                let guard = bell.futex.lock().expect("no panic under it");
                if bell.count.load(Ordering::SeqCst) == ticket {
                    drop(bell.woken.wait(guard).expect("no panic under it"));
                }
            }
            bell.asleep.store(0, Ordering::Relaxed);
        }
        for ringer in ringers {
            ringer.join().expect("a ringer ends");
        }
    });
}

fn walk(rings: u32, fences: bool) {
    explore(move || {
        let bell = Arc::new(Bell::new());
        let other = bell.clone();
        let ringer = loom::thread::spawn(move || {
            for work in 1..=rings {
                other.publish_and_ring(work, fences);
            }
        });
        bell.wait_for_work(rings);
        ringer.join().expect("the ringer ends");
    });
}

#[test]
fn no_ring_is_lost() {
    walk(1, true);
    walk(2, true);
}

#[test]
#[should_panic]
fn without_the_ringers_fence_the_model_fails() {
    walk(1, false);
}
