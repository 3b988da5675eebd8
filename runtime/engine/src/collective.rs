//! The calls of a world: which way each goes, and how a rank leaves.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rlaunch_schedule::{Layout, Question, Shape, Spec, select};
use rlaunch_transport::{Header, Kind, Progress};
use rlaunch_wire::{Collective, DType, Descriptor, Op};

use crate::core::Core;
use crate::flat::{self, FlatExchange};
use crate::interpret::{Interpreter, Plan, Reducer, Task};
use crate::{Call, Error};
use rlaunch_wire::notice::{Left, Notice, NoticeKind};

impl Core {
    /// # Safety
    /// As [`crate::Communicator::run`].
    pub(crate) unsafe fn call(&mut self, call: &Call) -> Result<(), Error> {
        let Call {
            dtype,
            root,
            input,
            output,
            count,
            ..
        } = *call;
        let op = call
            .reduction
            .as_ref()
            .map_or(Op::Sum, |reduction| reduction.op);
        if call.collective.reduces()
            && let Some(reason) = op.refusal(dtype)
        {
            return Err(Error::Argument(format!("{op} of {dtype}: {reason}")));
        }
        // SAFETY: as the caller vouches.
        unsafe {
            match call.collective {
                Collective::Barrier => self.barrier(),
                Collective::Broadcast => self.broadcast(output, count, dtype, root),
                Collective::AllReduce => {
                    std::ptr::copy(input, output, bytes(count, dtype)?);
                    self.all_reduce(output, count, dtype, op)
                }
                Collective::AllGather => self.all_gather(input, output, count, dtype),
                Collective::ReduceScatter => self.reduce_scatter(input, output, count, dtype, op),
                other => Err(Error::Argument(format!("{other} is not served yet"))),
            }
        }
    }

    pub(crate) fn barrier(&mut self) -> Result<(), Error> {
        let call = self.begin(Collective::Barrier, DType::I32, None, 0, 0)?;
        let nothing = std::ptr::NonNull::<u64>::dangling().as_ptr().cast();
        // SAFETY: nothing is read or written.
        unsafe { self.collective(call, nothing, 0, nothing, 0) }
    }

    /// # Safety
    /// As [`crate::Communicator::broadcast`].
    pub(crate) unsafe fn broadcast(
        &mut self,
        buffer: *mut u8,
        count: usize,
        dtype: DType,
        root: u32,
    ) -> Result<(), Error> {
        self.check_rank("root", root)?;
        let bytes = bytes(count, dtype)?;
        let call = self.begin(Collective::Broadcast, dtype, None, root, count)?;
        let share = if root == self.rank { bytes } else { 0 };
        // SAFETY: as the caller vouches.
        unsafe { self.collective(call, buffer, share, buffer, bytes) }
    }

    /// # Safety
    /// As [`crate::Communicator::all_reduce`].
    pub(crate) unsafe fn all_reduce(
        &mut self,
        buffer: *mut u8,
        count: usize,
        dtype: DType,
        op: Op,
    ) -> Result<(), Error> {
        let bytes = bytes(count, dtype)?;
        let call = self.begin(Collective::AllReduce, dtype, Some(op), 0, count)?;
        // SAFETY: as the caller vouches.
        unsafe { self.collective(call, buffer, bytes, buffer, bytes) }
    }

    /// # Safety
    /// As [`crate::Communicator::all_gather`].
    pub(crate) unsafe fn all_gather(
        &mut self,
        input: *const u8,
        output: *mut u8,
        count: usize,
        dtype: DType,
    ) -> Result<(), Error> {
        let part = bytes(count, dtype)?;
        let total = count
            .checked_mul(self.size() as usize)
            .ok_or_else(too_large)?;
        let whole = bytes(total, dtype)?;
        let call = self.begin(Collective::AllGather, dtype, None, 0, count)?;
        if flat::serves(self, part) {
            // SAFETY: as the caller vouches.
            return unsafe { self.flat(call, input, part, output, part) };
        }
        // SAFETY: as the caller vouches.
        unsafe { self.scheduled(call, input, output, Layout::Blocks { count }, whole) }
    }

    /// # Safety
    /// As [`crate::Communicator::reduce_scatter`].
    pub(crate) unsafe fn reduce_scatter(
        &mut self,
        input: *const u8,
        output: *mut u8,
        count: usize,
        dtype: DType,
        op: Op,
    ) -> Result<(), Error> {
        let part = bytes(count, dtype)?;
        let total = count
            .checked_mul(self.size() as usize)
            .ok_or_else(too_large)?;
        let whole = bytes(total, dtype)?;
        let call = self.begin(Collective::ReduceScatter, dtype, Some(op), 0, count)?;
        if flat::serves(self, whole) {
            // SAFETY: as the caller vouches.
            return unsafe { self.flat(call, input, whole, output, part) };
        }
        // SAFETY: as the caller vouches.
        unsafe { self.scheduled(call, input, output, Layout::Blocks { count }, whole) }
    }

    /// A collective whose result lies where its input did.
    ///
    /// # Safety
    /// `share` is valid for `share_bytes`, `buffer` for `bytes`, which is the call's count.
    unsafe fn collective(
        &mut self,
        call: Descriptor,
        share: *const u8,
        share_bytes: usize,
        buffer: *mut u8,
        bytes: usize,
    ) -> Result<(), Error> {
        if flat::serves(self, bytes) {
            // SAFETY: as the caller vouches.
            return unsafe { self.flat(call, share, share_bytes, buffer, bytes) };
        }
        let layout = Layout::Vector {
            count: call.count as usize,
        };
        // SAFETY: as the caller vouches.
        unsafe { self.scheduled(call, buffer, buffer, layout, bytes) }
    }

    /// # Safety
    /// `share` is valid for `share_bytes`; `output` and `length` as [`flat::conclude`].
    unsafe fn flat(
        &mut self,
        call: Descriptor,
        share: *const u8,
        share_bytes: usize,
        output: *mut u8,
        length: usize,
    ) -> Result<(), Error> {
        // SAFETY: as the caller vouches.
        let mut exchange = unsafe { FlatExchange::new(call, share, share_bytes) };
        self.run(&call, &mut exchange)?;
        // SAFETY: the exchange is done; as the caller vouches.
        unsafe { flat::conclude(self, &call, output, length) };
        Ok(())
    }

    /// # Safety
    /// The buffers are valid for what the layout says, `bytes` in all, and apart or in place.
    unsafe fn scheduled(
        &mut self,
        call: Descriptor,
        input: *const u8,
        output: *mut u8,
        layout: Layout,
        bytes: usize,
    ) -> Result<(), Error> {
        let choice = select(
            Question {
                collective: call.collective,
                bytes,
                shape: Shape {
                    world: self.size(),
                    hosts: self.hosts,
                },
                in_order: false,
            },
            self.algorithm,
        );
        let spec = Spec::new(call.collective, choice.algorithm, self.size()).with_root(call.root);
        let rank = self.rank;
        let plan = self.plans.entry(spec);
        let plan = plan
            .or_insert_with(|| Arc::new(Plan::new(spec, rank)))
            .clone();
        let task = Task {
            plan,
            layout,
            segment_bytes: choice.segment_bytes,
            descriptor: call,
            reducer: call.op.map(|op| Reducer {
                dtype: call.dtype,
                op,
                user: None,
            }),
            ranks: (0..self.size()).collect(),
            input,
            output,
        };
        // SAFETY: as the caller vouches; the operation ends within this call.
        let mut operation = unsafe { Interpreter::new(self, task) };
        let result = self.run(&call, &mut operation);
        operation.end(self);
        result
    }

    /// Tells all that this rank is out, and lets what it sent arrive.
    pub(crate) fn leave(mut self) -> Result<(), Error> {
        const CLOSE_MAX: Duration = Duration::from_secs(1);
        const GOODBYE_MAX: Duration = Duration::from_millis(200);
        let end = Descriptor {
            communicator: 0,
            sequence: self.calls,
            collective: Collective::Barrier,
            dtype: DType::I32,
            op: None,
            root: 0,
            count: 0,
        };
        let mut events = Vec::new();
        if self.poison.is_none() {
            self.look(&end);
            self.control.poll(&mut events);
        }
        let poison = self.poison.clone();
        self.control
            .broadcast(self.rank, Notice::encoded(NoticeKind::Left(Left {})));
        if let Some(neighbours) = &self.neighbours {
            neighbours.arena.set_state(
                self.peers[self.rank as usize].local.unwrap_or(0),
                rlaunch_transport::shm::State::Left,
            );
        }
        for rank in 0..self.size() {
            let connection = self.peers[rank as usize].connection.as_ref();
            // Where nothing was ever sent, the notice is enough.
            if connection.is_some_and(|connection| connection.is_connected()) {
                let header = Header {
                    descriptor: end,
                    length_bytes: 0,
                    tag: 0,
                    kind: Kind::Leave,
                };
                self.post(rank, header);
            }
        }
        // A poisoned world may have half a message under way; nothing can follow it.
        if poison.is_none() {
            self.close(&end, Instant::now() + CLOSE_MAX);
        }
        self.control.leave(GOODBYE_MAX);
        poison.map_or(Ok(()), Err)
    }

    fn close(&mut self, end: &Descriptor, deadline: Instant) {
        let mut open: Vec<u32> = (0..self.size()).filter(|rank| *rank != self.rank).collect();
        while !open.is_empty() && Instant::now() < deadline {
            open.retain(|rank| match self.flush_outbox(*rank, end) {
                Ok(false) => true,
                Ok(true) => {
                    let connection = self.peers[*rank as usize].connection.as_mut();
                    connection.is_some_and(|connection| {
                        !matches!(connection.poll_close(), Ok(Progress::Done) | Err(_))
                    })
                }
                Err(_) => false,
            });
            if !open.is_empty() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    fn check_rank(&self, what: &str, rank: u32) -> Result<(), Error> {
        if rank < self.size() {
            return Ok(());
        }
        Err(Error::Argument(format!(
            "{what} {rank} is outside the world of {} ranks (they count from 0)",
            self.size()
        )))
    }
}

fn bytes(count: usize, dtype: DType) -> Result<usize, Error> {
    count
        .checked_mul(dtype.size_bytes())
        .filter(|bytes| isize::try_from(*bytes).is_ok())
        .ok_or_else(too_large)
}

fn too_large() -> Error {
    Error::Argument("more bytes than an address space holds".into())
}
