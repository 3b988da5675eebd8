//! How a rank sleeps until a neighbour has something for it.
//!
//! The owner takes a [`Ticket`] (which announces that it is about to sleep), looks once more
//! whether there is work, then sleeps. A neighbour publishes its work, then rings. Both sides put a
//! full fence between their write and their read, so one of them always sees the other: a wakeup
//! can't be lost.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
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
pub struct Ticket(u32);

impl Doorbell {
    pub fn new(arena: Arc<Arena>, rank: u32) -> Self {
        Self { arena, rank }
    }

    /// Announces sleep. Look for work once more after this, then [`Doorbell::sleep`] or
    /// [`Doorbell::cancel`].
    pub fn ticket(&self) -> Ticket {
        let (count, asleep) = self.arena.doorbell(self.rank);
        let ticket = Ticket(count.load(Ordering::Relaxed));
        asleep.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        ticket
    }

    /// Sleeps until rung after the ticket was taken, or for `longest`.
    pub fn sleep(&self, ticket: Ticket, longest: Duration) {
        let (count, asleep) = self.arena.doorbell(self.rank);
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
                ticket.0,
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
        ring(&self.arena, rank);
    }
}

pub(super) fn ring(arena: &Arena, rank: u32) {
    let (count, asleep) = arena.doorbell(rank);
    fence(Ordering::SeqCst);
    if asleep.load(Ordering::Relaxed) == 0 {
        return;
    }
    count.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the word lies in a live mapping; waking touches no memory.
    unsafe {
        libc::syscall(libc::SYS_futex, count.as_ptr(), libc::FUTEX_WAKE, i32::MAX);
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
        let ticket = mine.ticket();
        let begin = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| other.ring(0));
            mine.sleep(ticket, Duration::from_secs(20));
        });
        assert!(begin.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_ring_between_ticket_and_sleep_is_not_lost() {
        let arena = Arena::create(2).unwrap();
        let (mine, other) = (Doorbell::new(arena.clone(), 0), Doorbell::new(arena, 1));
        let ticket = mine.ticket();
        other.ring(0);
        let begin = Instant::now();
        mine.sleep(ticket, Duration::from_secs(20));
        assert!(begin.elapsed() < Duration::from_secs(10));
    }
}
