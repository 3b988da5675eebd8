//! Several sends and receives at once: none waits for another.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use rlaunch_wire::{Collective, DType, Descriptor};
use smallvec::smallvec;

use super::matching::Pattern;
use super::operation::Started;
use super::wait::PointWait;
use super::{RecvCall, SendCall, Source, Tag};
use crate::completion::Completion;
use crate::core::Core;
use crate::failure::About;
use crate::request::Status;
use crate::wait::Operation;
use crate::{Communicator, Element, Error};

/// Collects calls; see [`Communicator::group`].
#[derive(Debug)]
pub struct Group<'a> {
    communicator: &'a Communicator,
    sends: Vec<SendCall>,
    recvs: Vec<RecvCall>,
    error: Option<Error>,
    buffers: PhantomData<&'a mut [u8]>,
}

impl<'a> Group<'a> {
    pub(super) fn new(communicator: &'a Communicator) -> Self {
        Self {
            communicator,
            sends: Vec::new(),
            recvs: Vec::new(),
            error: None,
            buffers: PhantomData,
        }
    }

    /// As [`Communicator::send`], begun when the group is complete.
    pub fn send<T: Element>(&mut self, buffer: &'a [T], to: u32, tag: u32) {
        // SAFETY: the slice is borrowed for longer than the group lives.
        unsafe { self.send_raw(buffer.as_ptr().cast(), buffer.len(), T::DTYPE, to, tag) };
    }

    /// As [`Communicator::recv`], begun when the group is complete.
    pub fn recv<T: Element>(
        &mut self,
        buffer: &'a mut [T],
        from: impl Into<Source>,
        tag: impl Into<Tag>,
    ) {
        let (place, count) = (buffer.as_mut_ptr().cast(), buffer.len());
        // SAFETY: the slice is borrowed for longer than the group lives.
        unsafe { self.recv_raw(place, count, T::DTYPE, from, tag) };
    }

    /// # Safety
    /// The buffer is valid for reads of `count` elements until the group has run.
    pub unsafe fn send_raw(
        &mut self,
        buffer: *const u8,
        count: usize,
        dtype: DType,
        to: u32,
        tag: u32,
    ) {
        match self.communicator.send_call(buffer, count, dtype, to, tag) {
            Ok(call) => self.sends.push(call),
            Err(error) => drop(self.error.get_or_insert(error)),
        }
    }

    /// # Safety
    /// The buffer is valid for writes of `count` elements until the group has run.
    pub unsafe fn recv_raw(
        &mut self,
        buffer: *mut u8,
        count: usize,
        dtype: DType,
        from: impl Into<Source>,
        tag: impl Into<Tag>,
    ) {
        let (from, tag) = (from.into(), tag.into());
        match self.communicator.recv_call(buffer, count, dtype, from, tag) {
            Ok(call) => self.recvs.push(call),
            Err(error) => drop(self.error.get_or_insert(error)),
        }
    }

    /// The status of each receive, in their order.
    pub(super) fn run(self) -> Result<Vec<Status>, Error> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let (sends, recvs) = (self.sends, self.recvs);
        let received = recvs.len();
        let answer = Arc::<Mutex<Vec<Status>>>::default();
        let to = answer.clone();
        let begin = move |core: &mut Core| {
            // SAFETY: whoever added the calls vouched for their buffers until the group has run.
            let wait = unsafe { core.exchange(sends, recvs)? };
            Ok(wait.with_answer(to))
        };
        let communicator = self.communicator;
        communicator
            .engine()
            .run_operation(communicator.key(), None, begin)?;
        let mut statuses = answer.lock().unwrap_or_else(PoisonError::into_inner);
        statuses.truncate(received);
        Ok(std::mem::take(&mut statuses))
    }
}

impl Communicator {
    pub(super) fn send_call(
        &self,
        payload: *const u8,
        count: usize,
        dtype: DType,
        to: u32,
        tag: u32,
    ) -> Result<SendCall, Error> {
        Ok(SendCall {
            call: self.point_call(Collective::Send, count, dtype)?,
            to: self.world_rank("receiver", to)?,
            tag,
            payload,
            is_blocking: false,
            completion: None,
            timeout: None,
        })
    }

    pub(super) fn recv_call(
        &self,
        buffer: *mut u8,
        count: usize,
        dtype: DType,
        from: Source,
        tag: Tag,
    ) -> Result<RecvCall, Error> {
        Ok(RecvCall {
            call: self.point_call(Collective::Recv, count, dtype)?,
            pattern: self.pattern(from, tag)?,
            buffer,
            completion: None,
            timeout: None,
        })
    }

    pub(super) fn pattern(&self, from: Source, tag: Tag) -> Result<Pattern, Error> {
        let source = match from {
            Source::Any => None,
            Source::Rank(rank) => Some(self.world_rank("sender", rank)?),
        };
        let tag = match tag {
            Tag::Any => None,
            Tag::Is(tag) => Some(tag),
        };
        Ok(Pattern { source, tag })
    }

    /// Numbered when it begins.
    pub(super) fn point_call(
        &self,
        collective: Collective,
        count: usize,
        dtype: DType,
    ) -> Result<Descriptor, Error> {
        let bytes = count.checked_mul(dtype.size_bytes());
        if bytes.is_none_or(|bytes| isize::try_from(bytes).is_err()) {
            return Err(Error::Argument(
                "more bytes than an address space holds".into(),
            ));
        }
        Ok(Descriptor {
            communicator: self.id(),
            sequence: 0,
            collective,
            dtype,
            op: None,
            root: 0,
            digest: 0,
            count: count as u64,
        })
    }

    fn world_rank(&self, what: &str, rank: u32) -> Result<u32, Error> {
        self.ranks().get(rank as usize).copied().ok_or_else(|| {
            Error::Argument(format!(
                "{what} {rank} is outside the communicator of {} ranks (they count from 0)",
                self.size()
            ))
        })
    }
}

impl Core {
    pub(super) fn number_point(&mut self, call: &mut Descriptor) {
        call.sequence = self.points.calls;
        self.points.calls += 1;
    }

    /// # Safety
    /// As [`Core::start_send`], until what is returned has ended.
    pub(super) unsafe fn send(&mut self, mut send: SendCall) -> Result<PointWait, Error> {
        self.number_point(&mut send.call);
        send.is_blocking = true;
        let (call, pattern) = (send.call, send.pattern());
        // SAFETY: as the caller vouches.
        let started = unsafe { self.start_send(send)? };
        Ok(PointWait::new(call, smallvec![started]).with(pattern))
    }

    /// # Safety
    /// As [`Core::start_recv`], until what is returned has ended.
    pub(super) unsafe fn recv(&mut self, mut recv: RecvCall) -> Result<PointWait, Error> {
        self.number_point(&mut recv.call);
        let (call, pattern) = (recv.call, recv.pattern);
        // SAFETY: as the caller vouches.
        let started = unsafe { self.start_recv(recv)? };
        Ok(PointWait::new(call, smallvec![started]).with(pattern))
    }

    /// Receives are posted first, so that what is sent to this rank itself finds them.
    ///
    /// # Safety
    /// As [`Core::start_send`] and [`Core::start_recv`], until what is returned has ended.
    unsafe fn exchange(
        &mut self,
        sends: Vec<SendCall>,
        recvs: Vec<RecvCall>,
    ) -> Result<PointWait, Error> {
        let first = recvs.first().map(|recv| recv.call);
        let Some(mut call) = first.or(sends.first().map(|send| send.call)) else {
            return Err(Error::Argument("a group without calls".into()));
        };
        self.number_point(&mut call);
        let mut started: Vec<Started> = Vec::new();
        let mut failed = None;
        for mut recv in recvs {
            recv.call.sequence = call.sequence;
            // SAFETY: as the caller vouches.
            match unsafe { self.start_recv(recv) } {
                Ok(one) => started.push(one),
                Err(error) => drop(failed.get_or_insert(error)),
            }
        }
        for mut send in sends {
            send.call.sequence = call.sequence;
            // SAFETY: as the caller vouches.
            match unsafe { self.start_send(send) } {
                Ok(one) => started.push(one),
                Err(error) => drop(failed.get_or_insert(error)),
            }
        }
        let mut wait = PointWait::new(call, started.into());
        let Some(error) = failed else {
            return Ok(wait);
        };
        wait.end(self);
        // Some may have begun, which peers count on.
        Err(self.fail_communicator(call.communicator, error))
    }

    /// Starts a send whose end `completion` tells.
    ///
    /// # Safety
    /// As [`Core::start_send`].
    pub(super) unsafe fn begin_send(
        &mut self,
        mut send: SendCall,
        completion: &Arc<Completion>,
    ) -> Result<(), Error> {
        self.number_point(&mut send.call);
        send.completion = Some(completion.clone());
        let (call, pattern) = (send.call, send.pattern());
        // SAFETY: as the caller vouches.
        let started = unsafe { self.start_send(send)? };
        self.record_point(&call, pattern, started);
        Ok(())
    }

    /// Starts a receive whose end `completion` tells.
    ///
    /// # Safety
    /// As [`Core::start_recv`].
    pub(super) unsafe fn begin_recv(
        &mut self,
        mut recv: RecvCall,
        completion: &Arc<Completion>,
    ) -> Result<(), Error> {
        self.number_point(&mut recv.call);
        recv.completion = Some(completion.clone());
        let (call, pattern) = (recv.call, recv.pattern);
        // SAFETY: as the caller vouches.
        let started = unsafe { self.start_recv(recv)? };
        self.record_point(&call, pattern, started);
        Ok(())
    }

    fn record_point(&mut self, call: &Descriptor, pattern: Pattern, started: Started) {
        let about = About {
            peer: pattern.source,
            tag: pattern.tag,
            bytes: call.count * call.dtype.size_bytes() as u64,
        };
        let slot = self.record_start(call, about);
        match started {
            Started::Done(_) => self.record_finish(call.communicator, slot, true),
            Started::Waits(id) => match self.points.operations.find(id) {
                Some(operation) => operation.slot = slot,
                None => self.record_finish(call.communicator, slot, true),
            },
        }
    }

    /// Makes `error` that of a communicator.
    pub(super) fn fail_communicator(&mut self, communicator: u32, error: Error) -> Error {
        match self.groups.find(communicator) {
            Some(key) => self.fail(key, error),
            None => error,
        }
    }

    /// The rank's number in a communicator.
    pub(super) fn rank_in(&self, communicator: u32, rank: u32) -> u32 {
        let key = self.groups.find(communicator);
        let group = key.and_then(|key| self.groups.get(key));
        let number = group.and_then(|group| group.ranks.iter().position(|other| *other == rank));
        number.map_or(rank, |number| number as u32)
    }

    /// The members of a communicator, as ranks of the world.
    pub(crate) fn members(&self, communicator: u32) -> Vec<u32> {
        let key = self.groups.find(communicator);
        let group = key.and_then(|key| self.groups.get(key));
        group.map_or_else(Vec::new, |group| group.ranks.to_vec())
    }
}
