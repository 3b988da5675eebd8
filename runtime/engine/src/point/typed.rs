//! The calls of a communicator, by slice and by pointer.

use std::sync::Arc;
use std::time::Duration;

use rlaunch_wire::{Collective, DType};

use super::wait::ProbeWait;
use super::{Group, Source, Tag};
use crate::completion::Completion;
use crate::core::Core;
use crate::request::{Pending, Request, Status};
use crate::{Buffer, Communicator, Element, Error};

impl Communicator {
    /// Sends to one rank. Small messages return at once, larger ones when the receiver takes them.
    pub fn send<T: Element>(&self, buffer: &[T], to: u32, tag: u32) -> Result<(), Error> {
        // SAFETY: the slice is valid for its length and of T's type.
        unsafe {
            self.send_raw(
                buffer.as_ptr().cast(),
                buffer.len(),
                T::DTYPE,
                to,
                tag,
                None,
            )
        }
    }

    /// Receives the oldest message that matches, of T's type and at most the buffer's length. The
    /// status says from whom it is and how long; a longer message is an error on both sides.
    pub fn recv<T: Element>(
        &self,
        buffer: &mut [T],
        from: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<Status, Error> {
        let (place, count) = (buffer.as_mut_ptr().cast(), buffer.len());
        // SAFETY: the slice is valid for its length and of T's type.
        unsafe { self.recv_raw(place, count, T::DTYPE, from, tag, None) }
    }

    /// Sends and receives at once; neither waits for the other. `to` and `from` may be the same
    /// rank, and may be this one.
    pub fn sendrecv<T: Element, U: Element>(
        &self,
        (send, to, send_tag): (&[T], u32, u32),
        (recv, from, recv_tag): (&mut [U], impl Into<Source>, impl Into<Tag>),
    ) -> Result<Status, Error> {
        let statuses = self.group(|group| {
            group.recv(recv, from, recv_tag);
            group.send(send, to, send_tag);
        })?;
        Ok(statuses.first().copied().unwrap_or_default())
    }

    /// Runs all calls that `collect` adds, none waiting for another; so they can't deadlock,
    /// whatever their order here and on other ranks. Returns the status of each receive, in order.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), rlaunch_runtime::Error> {
    /// # let world = rlaunch_runtime::init()?;
    /// let (left, right) = (world.rank(), 1 - world.rank());
    /// let (mine, mut theirs) = ([left; 1000], [0u32; 1000]);
    /// world.group(|group| {
    ///     group.send(&mine, right, 0);
    ///     group.recv(&mut theirs, right, 0);
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn group<'a>(&'a self, collect: impl FnOnce(&mut Group<'a>)) -> Result<Vec<Status>, Error> {
        let mut group = Group::new(self);
        collect(&mut group);
        group.run()
    }

    /// Waits until a message is there that a receive with the same arguments would take; says whose
    /// and how long it is.
    pub fn probe(&self, from: impl Into<Source>, tag: impl Into<Tag>) -> Result<Status, Error> {
        self.probe_within(from, tag, None)
    }

    /// The same with a timeout instead of the communicator's.
    pub fn probe_within(
        &self,
        from: impl Into<Source>,
        tag: impl Into<Tag>,
        timeout: Option<Duration>,
    ) -> Result<Status, Error> {
        let pattern = self.pattern(from.into(), tag.into())?;
        let mut call = self.point_call(Collective::Recv, 0, DType::U8)?;
        let begin = move |core: &mut Core| {
            core.number_point(&mut call);
            let found = None;
            Ok(ProbeWait {
                call,
                pattern,
                found,
            })
        };
        self.engine().run_operation(self.key(), timeout, begin)
    }

    /// The same without waiting.
    pub fn try_probe(
        &self,
        from: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<Option<Status>, Error> {
        let pattern = self.pattern(from.into(), tag.into())?;
        let mut call = self.point_call(Collective::Recv, 0, DType::U8)?;
        let key = self.key();
        self.engine().with(move |core| {
            core.check(key)?;
            core.number_point(&mut call);
            core.progress_pairs(&call)?;
            Ok(core.probe(call.communicator, pattern))
        })
    }

    /// As [`Communicator::send`], at once; the buffer comes back when it may be changed.
    pub fn start_send<T: Element, B: Buffer<T>>(
        &self,
        mut buffer: B,
        to: u32,
        tag: u32,
    ) -> Result<Pending<B>, Error> {
        let (place, count) = (buffer.as_mut_ptr().cast_const().cast(), buffer.length());
        // SAFETY: the buffer is valid, of T's type, and kept by what is returned, which waits for
        // the operation before it drops it.
        let request = unsafe { self.start_send_raw(place, count, T::DTYPE, to, tag, None)? };
        Ok(Pending::new(request, buffer))
    }

    /// As [`Communicator::recv`], at once; the buffer comes back with the message.
    pub fn start_recv<T: Element, B: Buffer<T>>(
        &self,
        mut buffer: B,
        from: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<Pending<B>, Error> {
        let (place, count) = (buffer.as_mut_ptr().cast(), buffer.length());
        // SAFETY: the buffer is valid, of T's type, and kept by what is returned, which waits for
        // the operation before it drops it.
        let request = unsafe { self.start_recv_raw(place, count, T::DTYPE, from, tag, None)? };
        Ok(Pending::new(request, buffer))
    }
}

/// The same by pointer, for bindings. `timeout`: instead of the communicator's.
impl Communicator {
    /// # Safety
    /// `buffer` is valid for reads of `count` elements of `dtype`.
    pub unsafe fn send_raw(
        &self,
        buffer: *const u8,
        count: usize,
        dtype: DType,
        to: u32,
        tag: u32,
        timeout: Option<Duration>,
    ) -> Result<(), Error> {
        let send = self.send_call(buffer, count, dtype, to, tag)?;
        // SAFETY: as this function's caller vouches.
        let begin = move |core: &mut Core| unsafe { core.send(send) };
        let sent = self.engine().run_operation(self.key(), timeout, begin);
        sent.map(drop)
    }

    /// # Safety
    /// `buffer` is valid for writes of `count` elements of `dtype`.
    pub unsafe fn recv_raw(
        &self,
        buffer: *mut u8,
        count: usize,
        dtype: DType,
        from: impl Into<Source>,
        tag: impl Into<Tag>,
        timeout: Option<Duration>,
    ) -> Result<Status, Error> {
        let recv = self.recv_call(buffer, count, dtype, from.into(), tag.into())?;
        // SAFETY: as this function's caller vouches.
        let begin = move |core: &mut Core| unsafe { core.recv(recv) };
        self.engine().run_operation(self.key(), timeout, begin)
    }

    /// # Safety
    /// `buffer` is valid for reads of `count` elements of `dtype`, and unchanged, until the request
    /// is complete.
    pub unsafe fn start_send_raw(
        &self,
        buffer: *const u8,
        count: usize,
        dtype: DType,
        to: u32,
        tag: u32,
        timeout: Option<Duration>,
    ) -> Result<Request, Error> {
        let mut send = self.send_call(buffer, count, dtype, to, tag)?;
        send.timeout = timeout;
        let completion = Arc::new(Completion::default());
        let tells = completion.clone();
        // SAFETY: as this function's caller vouches.
        let start = move |core: &mut Core| unsafe { core.begin_send(send, &tells) };
        self.engine().start_operation(self.key(), start)?;
        Ok(Request::new(self.clone(), completion))
    }

    /// # Safety
    /// `buffer` is valid for writes of `count` elements of `dtype`, and not used, until the request
    /// is complete.
    pub unsafe fn start_recv_raw(
        &self,
        buffer: *mut u8,
        count: usize,
        dtype: DType,
        from: impl Into<Source>,
        tag: impl Into<Tag>,
        timeout: Option<Duration>,
    ) -> Result<Request, Error> {
        let mut recv = self.recv_call(buffer, count, dtype, from.into(), tag.into())?;
        recv.timeout = timeout;
        let completion = Arc::new(Completion::default());
        let tells = completion.clone();
        // SAFETY: as this function's caller vouches.
        let start = move |core: &mut Core| unsafe { core.begin_recv(recv, &tells) };
        self.engine().start_operation(self.key(), start)?;
        Ok(Request::new(self.clone(), completion))
    }
}
