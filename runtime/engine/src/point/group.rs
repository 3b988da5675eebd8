//! Several sends and receives at once: none waits for another.

use std::marker::PhantomData;
use std::sync::Arc;

use rlaunch_wire::{Collective, DType, Descriptor};

use super::matching::Pattern;
use super::operation::{OperationId, Started};
use super::wait::PointWait;
use super::{RecvCall, SendCall, Source, Tag};
use crate::completion::Completion;
use crate::core::Core;
use crate::request::Status;
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
        let engine = self.communicator.engine();
        // SAFETY: whoever added the calls vouched for their buffers until the group has run.
        engine.with(|core| unsafe { core.exchange(sends, recvs) })
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
    /// Numbers a call and looks whether its communicator still stands.
    pub(super) fn begin_point(&mut self, call: &mut Descriptor) -> Result<(), Error> {
        call.sequence = self.points.calls;
        self.points.calls += 1;
        self.check(call)
    }

    /// # Safety
    /// As [`Core::start_send`]; it ends before this returns.
    pub(super) unsafe fn send(&mut self, mut send: SendCall) -> Result<(), Error> {
        self.begin_point(&mut send.call)?;
        send.is_blocking = true;
        let call = send.call;
        // SAFETY: as the caller vouches.
        match unsafe { self.start_send(send) } {
            Ok(Started::Done(_)) => Ok(()),
            Ok(Started::Waits(id)) => self.finish(call, id).map(drop),
            Err(error) => Err(self.fail_in(&call, error)),
        }
    }

    /// # Safety
    /// As [`Core::start_recv`]; it ends before this returns.
    pub(super) unsafe fn recv(&mut self, mut recv: RecvCall) -> Result<Status, Error> {
        self.begin_point(&mut recv.call)?;
        let call = recv.call;
        // SAFETY: as the caller vouches.
        match unsafe { self.start_recv(recv) }? {
            Started::Done(status) => Ok(status),
            Started::Waits(id) => self.finish(call, id),
        }
    }

    /// Receives are posted first, so that what is sent to this rank itself finds them.
    ///
    /// # Safety
    /// As [`Core::start_send`] and [`Core::start_recv`]; all end before this returns.
    pub(super) unsafe fn exchange(
        &mut self,
        sends: Vec<SendCall>,
        recvs: Vec<RecvCall>,
    ) -> Result<Vec<Status>, Error> {
        let first = recvs.first().map(|recv| recv.call);
        let Some(mut call) = first.or(sends.first().map(|send| send.call)) else {
            return Ok(Vec::new());
        };
        self.begin_point(&mut call)?;
        let mut started: Vec<Result<Started, Error>> = Vec::new();
        for mut recv in recvs {
            recv.call.sequence = call.sequence;
            // SAFETY: as the caller vouches.
            started.push(unsafe { self.start_recv(recv) });
        }
        let received = started.len();
        for mut send in sends {
            send.call.sequence = call.sequence;
            // SAFETY: as the caller vouches.
            started.push(unsafe { self.start_send(send) });
        }
        let waits = started.iter().filter_map(|started| match started {
            Ok(Started::Waits(id)) => Some(*id),
            _ => None,
        });
        let waits: Vec<OperationId> = waits.collect();
        if let Some(Err(error)) = started.iter().find(|started| started.is_err()) {
            let error = self.fail_in(&call, error.clone());
            self.give_up(&waits, &error);
            return Err(error);
        }
        let results = self.wait_for(call, &waits)?;
        let mut results = results.into_iter();
        let statuses = started.into_iter().map(|started| match started {
            Ok(Started::Done(status)) => status,
            _ => results.next().unwrap_or_default(),
        });
        Ok(statuses.take(received).collect())
    }

    fn finish(&mut self, call: Descriptor, id: OperationId) -> Result<Status, Error> {
        let ids = [id];
        let mut wait = PointWait::new(call, &ids);
        if let Err(error) = self.run(&call, &mut wait) {
            self.give_up(&ids, &error);
            return Err(error);
        }
        self.take_point(id).unwrap_or(Err(Error::Finalized))
    }

    /// The statuses of all; the first error of any.
    fn wait_for(&mut self, call: Descriptor, ids: &[OperationId]) -> Result<Vec<Status>, Error> {
        let mut wait = PointWait::new(call, ids);
        if let Err(error) = self.run(&call, &mut wait) {
            self.give_up(ids, &error);
            return Err(error);
        }
        // All are taken, whatever the first says.
        let results: Vec<_> = ids
            .iter()
            .map(|id| self.take_point(*id).unwrap_or(Err(Error::Finalized)))
            .collect();
        results.into_iter().collect()
    }

    fn give_up(&mut self, ids: &[OperationId], error: &Error) {
        for id in ids {
            self.cancel_point(*id, error);
            self.take_point(*id);
        }
    }

    /// An argument's error is the call's alone; any other is the communicator's.
    fn fail_in(&mut self, call: &Descriptor, error: Error) -> Error {
        match error {
            Error::Argument(_) => error,
            error => self.fail_communicator(call.communicator, error),
        }
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
        self.begin_point(&mut send.call)?;
        let call = send.call;
        send.completion = Some(completion.clone());
        // SAFETY: as the caller vouches.
        let started = unsafe { self.start_send(send) };
        started.map_err(|error| self.fail_in(&call, error))?;
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
        self.begin_point(&mut recv.call)?;
        recv.completion = Some(completion.clone());
        // SAFETY: as the caller vouches.
        unsafe { self.start_recv(recv) }?;
        Ok(())
    }
}
