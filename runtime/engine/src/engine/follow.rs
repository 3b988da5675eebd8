//! Following: waiting for somebody else to drive, and taking over when nobody does.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::baton::BatonGuard;
use super::{Engine, FOLLOWER_SPINS, INTERRUPT_PERIOD, lock};
use crate::Error;
use crate::completion::Completion;
use crate::core::Core;
use crate::group::GroupKey;
use crate::interrupt::is_interrupted;

impl Engine {
    /// Waits until the operation is complete, or `longest` has passed.
    pub(crate) fn wait(
        &self,
        key: GroupKey,
        completion: &Arc<Completion>,
        longest: Option<Duration>,
    ) -> Result<(), Error> {
        self.process.check()?;
        let mut is_asked = false;
        let result = self.lead_or_follow(key, completion, longest, &mut is_asked);
        if is_asked && let Some(guard) = self.try_lead() {
            // Nobody else was asked to drive what the last one left.
            self.hand_over(guard);
        }
        result
    }

    /// `is_asked`: somebody who left asked this thread to drive, and it has not done so.
    fn lead_or_follow(
        &self,
        key: GroupKey,
        completion: &Arc<Completion>,
        longest: Option<Duration>,
        is_asked: &mut bool,
    ) -> Result<(), Error> {
        let deadline = longest.map(|longest| Instant::now() + longest);
        while !completion.is_done() {
            let now = Instant::now();
            if deadline.is_some_and(|deadline| now >= deadline) {
                return Ok(());
            }
            self.enlist(completion);
            match self.try_lead() {
                Some(mut guard) => {
                    self.delist(completion);
                    *is_asked = false;
                    let result = match guard.as_mut() {
                        Some(core) => self.drive_towards(core, key, completion, deadline),
                        None => Err(Error::Finalized),
                    };
                    self.hand_over(guard);
                    result?;
                }
                None => {
                    let left = deadline.map(|deadline| deadline - now);
                    let longest = left.map_or(INTERRUPT_PERIOD, |left| left.min(INTERRUPT_PERIOD));
                    self.rest_as_follower(completion, longest);
                    *is_asked |= self.delist(completion);
                    if !completion.is_done() && now.elapsed() >= INTERRUPT_PERIOD {
                        self.end_if_interrupted(key)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// A follower whose program wants to end its wait fails the communicator.
    pub(super) fn end_if_interrupted(&self, key: GroupKey) -> Result<(), Error> {
        if !is_interrupted() {
            return Ok(());
        }
        self.with(move |core| {
            let during = core.group(key).during();
            Err(core.fail(key, Error::Interrupted { during }))
        })
    }

    pub(super) fn rest_as_follower(&self, completion: &Completion, longest: Duration) {
        if self.place.has_core {
            for _ in 0..FOLLOWER_SPINS {
                if completion.is_done() || completion.is_asked() {
                    return;
                }
                std::hint::spin_loop();
            }
        }
        completion.park(longest);
    }

    pub(super) fn enlist(&self, completion: &Arc<Completion>) {
        let mut followers = lock(&self.followers);
        followers.push_back(completion.clone());
        self.following.fetch_add(1, Ordering::SeqCst);
        drop(followers);
        // Who drives for others only makes room.
        self.wake();
    }

    /// Whether it had been asked to drive.
    pub(super) fn delist(&self, completion: &Arc<Completion>) -> bool {
        let mut followers = lock(&self.followers);
        let at = followers
            .iter()
            .position(|other| Arc::ptr_eq(other, completion));
        if let Some(at) = at {
            followers.remove(at);
            self.following.fetch_sub(1, Ordering::SeqCst);
        }
        completion.withdraw();
        at.is_none()
    }

    /// The driving thread has done what it wanted: the next one drives, if anything is to be driven.
    pub(crate) fn hand_over(&self, guard: BatonGuard<'_, Option<Core>>) {
        let has_active = guard.as_ref().is_some_and(|core| !core.is_quiet());
        drop(guard);
        // Who failed to get the lock before this shows in these numbers.
        let is_wanted = has_active || self.submitted.load(Ordering::SeqCst) > 0;
        if self.following.load(Ordering::SeqCst) > 0 {
            let next = lock(&self.followers).pop_front();
            if let Some(next) = next {
                self.following.fetch_sub(1, Ordering::SeqCst);
                next.ask_to_lead();
                return;
            }
        }
        if is_wanted && let Some(progress) = self.progress.get() {
            progress.wake();
        }
    }

    pub(super) fn end_followers(&self) {
        for follower in lock(&self.followers).drain(..) {
            follower.ask_to_lead();
        }
        self.following.store(0, Ordering::SeqCst);
    }

    /// Waits for the lock itself; who has it leaves soon, since it sees that somebody follows.
    pub(super) fn lead(&self) -> BatonGuard<'_, Option<Core>> {
        if let Some(guard) = self.try_lead() {
            return guard;
        }
        let waiting = Arc::<Completion>::default();
        loop {
            self.enlist(&waiting);
            if let Some(guard) = self.try_lead() {
                self.delist(&waiting);
                return guard;
            }
            self.rest_as_follower(&waiting, INTERRUPT_PERIOD);
            self.delist(&waiting);
        }
    }
}
