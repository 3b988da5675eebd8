//! The lock around a job's state. It is only ever tried: who does not get it follows.
//!
//! Taking and giving back are sequentially consistent, so that who fails to take it and then counts
//! itself in is seen by who gives it back and then looks at that count, or the other way around; and
//! no fence besides is needed for that.

use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) struct Baton<T> {
    is_taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through a guard alone, of which there is one at a time.
unsafe impl<T: Send> Sync for Baton<T> {}

/// Who has it. Given back when dropped, also by a panic: the state it leaves is still sound, at worst
/// unusable.
pub(crate) struct BatonGuard<'a, T> {
    baton: &'a Baton<T>,
}

// SAFETY: as a reference to what it guards.
unsafe impl<T: Sync> Sync for BatonGuard<'_, T> {}

impl<T> Baton<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            is_taken: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    #[inline]
    pub(crate) fn try_take(&self) -> Option<BatonGuard<'_, T>> {
        self.is_taken
            .compare_exchange(false, true, Ordering::SeqCst, Ordering::SeqCst)
            .ok()
            .map(|_| BatonGuard { baton: self })
    }
}

impl<T> fmt::Debug for Baton<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_taken = self.is_taken.load(Ordering::Relaxed);
        f.debug_struct("Baton")
            .field("is_taken", &is_taken)
            .finish_non_exhaustive()
    }
}

impl<T> Deref for BatonGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one.
        unsafe { &*self.baton.value.get() }
    }
}

impl<T> DerefMut for BatonGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.baton.value.get() }
    }
}

impl<T> Drop for BatonGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.baton.is_taken.swap(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_has_it() {
        let baton = Baton::new(0_u64);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut left = 1000;
                    while left > 0 {
                        if let Some(mut value) = baton.try_take() {
                            *value += 1;
                            left -= 1;
                        } else {
                            std::thread::yield_now();
                        }
                    }
                });
            }
        });
        let value = baton.try_take().unwrap();
        assert_eq!(*value, 4000);
        assert!(baton.try_take().is_none());
    }
}
