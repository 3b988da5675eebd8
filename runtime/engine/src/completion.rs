//! The end of an operation, as seen by whoever waits for it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use crate::Error;
use crate::request::Status;

type Notify = Box<dyn FnOnce() + Send>;

/// Shared between the operation, its request and the threads that wait.
#[derive(Default)]
pub(crate) struct Completion {
    result: OnceLock<Result<Status, Error>>,
    waiting: Mutex<Waiting>,
    /// Its waiter is asked to drive the runtime.
    leads: AtomicBool,
}

#[derive(Default)]
struct Waiting {
    thread: Option<Thread>,
    notify: Option<Notify>,
}

impl Completion {
    pub(crate) fn is_done(&self) -> bool {
        self.result.get().is_some()
    }

    pub(crate) fn result(&self) -> Option<Result<Status, Error>> {
        self.result.get().cloned()
    }

    /// The first result stays.
    pub(crate) fn complete(&self, result: Result<Status, Error>) {
        let mut waiting = self.lock();
        if self.result.set(result).is_err() {
            return;
        }
        let (thread, notify) = (waiting.thread.take(), waiting.notify.take());
        drop(waiting);
        if let Some(thread) = thread {
            thread.unpark();
        }
        if let Some(notify) = notify {
            notify();
        }
    }

    pub(crate) fn on_complete(&self, notify: Notify) {
        let mut waiting = self.lock();
        if self.is_done() {
            drop(waiting);
            notify();
        } else {
            waiting.notify = Some(notify);
        }
    }

    /// Asks the thread that waits here to drive the runtime.
    pub(crate) fn ask_to_lead(&self) {
        self.leads.store(true, Ordering::Release);
        if let Some(thread) = &self.lock().thread {
            thread.unpark();
        }
    }

    /// Whether the thread that waits here is asked to drive the runtime.
    pub(crate) fn is_asked(&self) -> bool {
        self.leads.load(Ordering::Acquire)
    }

    /// The thread that waited here has been asked, or waits no longer.
    pub(crate) fn withdraw(&self) {
        self.leads.store(false, Ordering::Release);
    }

    /// Sleeps until done, asked to lead, or `longest` has passed. One thread at a time.
    pub(crate) fn park(&self, longest: Duration) {
        self.lock().thread = Some(std::thread::current());
        if !self.is_done() && !self.is_asked() {
            std::thread::park_timeout(longest);
        }
        self.lock().thread = None;
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nothing inside can panic but a clone of a thread handle; the state stays sound.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completion")
            .field("result", &self.result.get())
            .finish_non_exhaustive()
    }
}
