//! What a call that was started gives back: a [`Request`] to test or to wait for.
//!
//! The operation goes on whether or not anybody asks: a thread of the runtime drives it while no
//! call does. Dropping the request of a receive that no message has met cancels it; dropping any other
//! waits for its operation (at most its timeout), so that no buffer is given up while peers or the
//! runtime still write to it.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::communicator::Communicator;
use crate::completion::Completion;
use crate::{Call, DType, Error};

/// What is known of a completed operation. Of a receive: where it came from; else all zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Status {
    /// Rank in the communicator.
    pub source: u32,
    pub tag: u32,
    /// Elements.
    pub count: usize,
    /// Of a receive or probe.
    pub dtype: Option<DType>,
}

/// An operation under way.
#[must_use = "dropping a request waits for it, or cancels it, and loses its error"]
pub struct Request {
    communicator: Communicator,
    completion: Arc<Completion>,
}

impl Request {
    pub(crate) fn new(communicator: Communicator, completion: Arc<Completion>) -> Self {
        Self {
            communicator,
            completion,
        }
    }

    /// Whether it is complete; its error, if it failed. Drives the runtime a little.
    pub fn test(&self) -> Result<bool, Error> {
        self.communicator.engine().test()?;
        self.completion
            .result()
            .map_or(Ok(false), |result| result.map(|_| true))
    }

    /// Until it is complete.
    pub fn wait(self) -> Result<Status, Error> {
        self.communicator
            .engine()
            .wait(self.communicator.key(), &self.completion, None)?;
        self.completion.result().unwrap_or(Err(Error::Finalized))
    }

    /// At most this long; whether it is complete.
    pub fn wait_timeout(&self, longest: Duration) -> Result<bool, Error> {
        self.communicator.engine().wait(
            self.communicator.key(),
            &self.completion,
            Some(longest),
        )?;
        self.completion
            .result()
            .map_or(Ok(false), |result| result.map(|_| true))
    }

    /// Ends a receive that no message has met: its buffer is free, its message goes to another
    /// receive, and waiting for it gives [`Error::Cancelled`]. False where it is too late for that, or
    /// the operation is no receive; then it goes on, and is to be waited for.
    pub fn cancel(&self) -> Result<bool, Error> {
        if self.completion.is_done() {
            return Ok(false);
        }
        let completion = self.completion.clone();
        let engine = self.communicator.engine();
        engine.with(move |core| Ok(core.cancel_receive(&completion)))
    }

    /// The status of a completed operation; `None` while it is under way.
    pub fn status(&self) -> Option<Result<Status, Error>> {
        self.completion.result()
    }

    /// Calls `notify` once it is complete: at once where it is already, else on the thread that
    /// completes it, which holds no lock that a call needs. It must be quick and not call the
    /// runtime; writing to an eventfd is what it is for.
    pub fn on_complete(&self, notify: impl FnOnce() + Send + 'static) {
        self.completion.on_complete(Box::new(notify));
    }

    /// To ask later, without the request, whether the operation still has its buffers.
    pub fn watch(&self) -> Watch {
        Watch(Arc::downgrade(&self.completion))
    }

    pub fn communicator(&self) -> &Communicator {
        &self.communicator
    }
}

/// What [`Request::watch`] returns. It holds nothing back.
#[derive(Debug, Clone)]
pub struct Watch(Weak<Completion>);

impl Watch {
    /// Whether the operation is complete. Never waits, and doesn't drive the runtime.
    pub fn is_over(&self) -> bool {
        self.0
            .upgrade()
            .is_none_or(|completion| completion.is_done())
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if !self.completion.is_done() && !self.cancel().unwrap_or(false) {
            // Whoever wants the error waits.
            let _ =
                self.communicator
                    .engine()
                    .wait(self.communicator.key(), &self.completion, None);
        }
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("is_done", &self.completion.is_done())
            .finish_non_exhaustive()
    }
}

/// A call prepared once to be started many times, one at a time.
#[derive(Debug)]
pub struct Persistent {
    communicator: Communicator,
    call: Call,
}

impl Persistent {
    pub(crate) fn new(communicator: Communicator, call: Call) -> Self {
        Self { communicator, call }
    }

    /// Starts it again. Complete the request of the start before, first.
    pub fn start(&self) -> Result<Request, Error> {
        // SAFETY: whoever prepared the call vouched for its buffers for every start.
        unsafe { self.communicator.start(self.call.clone()) }
    }

    pub fn communicator(&self) -> &Communicator {
        &self.communicator
    }
}

/// A request that owns the buffers of its operation and gives them back.
#[must_use = "dropping it waits, or cancels it, and loses the buffers and the error"]
#[derive(Debug)]
pub struct Pending<B> {
    // Dropped first: it waits for the operation on the buffers below.
    request: Request,
    buffers: B,
}

impl<B> Pending<B> {
    pub(crate) fn new(request: Request, buffers: B) -> Self {
        Self { request, buffers }
    }

    pub fn test(&self) -> Result<bool, Error> {
        self.request.test()
    }

    pub fn wait_timeout(&self, longest: Duration) -> Result<bool, Error> {
        self.request.wait_timeout(longest)
    }

    /// As [`Request::cancel`].
    pub fn cancel(&self) -> Result<bool, Error> {
        self.request.cancel()
    }

    /// The buffers, once the operation is complete. After an error they are dropped; their contents
    /// would be undefined.
    pub fn wait(self) -> Result<B, Error> {
        let Self { request, buffers } = self;
        request.wait()?;
        Ok(buffers)
    }
}
