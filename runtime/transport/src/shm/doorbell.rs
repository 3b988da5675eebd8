//! How a rank sleeps until a neighbour has something for it.
//!
//! The owner takes a [`Ticket`] (which announces that it is about to sleep), looks once more
//! whether there is work, then sleeps. A neighbour publishes its work, then rings. Between their
//! write and their read both sides need a full barrier, so that one of them always sees the other:
//! then no wakeup is lost. An owner that can go on only when one certain neighbour has come says so, and
//! the others let it sleep. The sleeper, who has time, makes the system raise that barrier on every
//! processor where a neighbour runs; so ringing costs no fence, only a look at a line that hardly
//! ever changes. Where the system can't, the ringer fences for itself.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{Ordering, compiler_fence, fence};
use std::time::Duration;

use super::Arena;

/// This rank's bell, and the means to ring the others'.
#[derive(Debug, Clone)]
pub struct Doorbell {
    arena: Arc<Arena>,
    rank: u32,
}

/// The bell's count when its owner announced itself.
#[derive(Debug, Clone, Copy)]
pub struct Ticket {
    count: u32,
    /// No barrier could be raised on the neighbours: a ring may be missed.
    is_unsure: bool,
}

/// Sleep of one who may miss a ring.
const UNSURE_SLEEP_MAX: Duration = Duration::from_millis(1);

/// What the flag of a sleeper says: that anyone wakes it, or this plus a rank that alone does.
const ANYONE: u32 = 1;
const ONLY: u32 = 2;

const MEMBARRIER_GLOBAL_EXPEDITED: libc::c_long = 1 << 1;
const MEMBARRIER_REGISTER_GLOBAL_EXPEDITED: libc::c_long = 1 << 2;

impl Doorbell {
    pub fn new(arena: Arc<Arena>, rank: u32) -> Self {
        is_registered();
        Self { arena, rank }
    }

    pub fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// Announces sleep, until anyone rings or `only` that neighbour (or this rank). Look for work once
    /// more after this, then [`Doorbell::sleep`] or [`Doorbell::cancel`].
    pub fn ticket(&self, only: Option<u32>) -> Ticket {
        let (count, asleep) = self.arena.doorbell(self.rank);
        let count = count.load(Ordering::Relaxed);
        asleep.store(only.map_or(ANYONE, |rank| ONLY + rank), Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let is_unsure = membarrier(MEMBARRIER_GLOBAL_EXPEDITED).is_err();
        Ticket { count, is_unsure }
    }

    /// Sleeps until rung after the ticket was taken, or for `longest`.
    pub fn sleep(&self, ticket: Ticket, longest: Duration) {
        let (count, asleep) = self.arena.doorbell(self.rank);
        let longest = if ticket.is_unsure {
            longest.min(UNSURE_SLEEP_MAX)
        } else {
            longest
        };
        let timeout = libc::timespec {
            tv_sec: longest.as_secs() as libc::time_t,
            tv_nsec: libc::c_long::from(longest.subsec_nanos()),
        };
        // SAFETY: the word lies in a mapping that outlives the call; no other thread's memory is
        // touched. Any result (woken, changed, timed out, interrupted) means: look again.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                count.as_ptr(),
                libc::FUTEX_WAIT,
                ticket.count,
                &raw const timeout,
            );
        }
        asleep.store(0, Ordering::Relaxed);
    }

    pub fn cancel(&self) {
        self.arena.doorbell(self.rank).1.store(0, Ordering::Relaxed);
    }

    /// Wakes `rank` if it sleeps. Call after publishing what it may wait for.
    pub fn ring(&self, rank: u32) {
        ring(&self.arena, self.rank, rank);
    }
}

#[inline]
pub(super) fn ring(arena: &Arena, from: u32, to: u32) {
    order_before_look();
    ring_ordered(arena, from, to);
}

/// Wakes those of `ranks` that sleep until `from` rings.
#[inline]
pub(super) fn ring_all(arena: &Arena, from: u32, ranks: impl Iterator<Item = u32>) {
    order_before_look();
    for rank in ranks {
        ring_ordered(arena, from, rank);
    }
}

#[inline]
fn order_before_look() {
    if is_registered() {
        // The sleeper's barrier does the rest.
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

#[inline]
fn ring_ordered(arena: &Arena, from: u32, to: u32) {
    let (count, asleep) = arena.doorbell(to);
    let asleep = asleep.load(Ordering::Relaxed);
    if asleep != 0 && (asleep == ANYONE || asleep == ONLY + from || from == to) {
        wake(count);
    }
}

#[cold]
fn wake(count: &std::sync::atomic::AtomicU32) {
    count.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the word lies in a live mapping; waking touches no memory.
    unsafe {
        libc::syscall(libc::SYS_futex, count.as_ptr(), libc::FUTEX_WAKE, i32::MAX);
    }
}

/// Whether barriers that others raise reach this process. Asked for once.
#[inline]
fn is_registered() -> bool {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    *REGISTERED.get_or_init(|| membarrier(MEMBARRIER_REGISTER_GLOBAL_EXPEDITED).is_ok())
}

fn membarrier(command: libc::c_long) -> std::io::Result<()> {
    // SAFETY: touches no memory of ours.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
    if result == 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_sleeper_is_woken() {
        let arena = Arena::create(2).unwrap();
        let (mine, other) = (Doorbell::new(arena.clone(), 0), Doorbell::new(arena, 1));
        let ticket = mine.ticket(None);
        let begin = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| other.ring(0));
            mine.sleep(ticket, Duration::from_secs(20));
        });
        assert!(begin.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn who_waits_for_one_is_woken_by_that_one_and_itself_alone() {
        let arena = Arena::create(3).unwrap();
        let bells: Vec<_> = (0..3)
            .map(|rank| Doorbell::new(arena.clone(), rank))
            .collect();
        let is_woken = |by: usize| {
            let ticket = bells[0].ticket(Some(1));
            bells[by].ring(0);
            let begin = Instant::now();
            bells[0].sleep(ticket, Duration::from_millis(100));
            begin.elapsed() < Duration::from_millis(50)
        };
        assert_eq!([0, 1, 2].map(is_woken), [true, true, false]);
    }

    #[test]
    fn a_ring_between_ticket_and_sleep_is_not_lost() {
        let arena = Arena::create(2).unwrap();
        let (mine, other) = (Doorbell::new(arena.clone(), 0), Doorbell::new(arena, 1));
        let ticket = mine.ticket(None);
        other.ring(0);
        let begin = Instant::now();
        mine.sleep(ticket, Duration::from_secs(20));
        assert!(begin.elapsed() < Duration::from_secs(10));
    }
}
