//! One call of a test, on given memory.

use crate::data::scalar_bytes;
use crate::test::{Layout, Test, uneven};
use rlaunch_runtime::{Call, Communicator, Counts, Error, Reduction, Scalar};
use rlaunch_schedule::Choice;
use rlaunch_wire::{DType, Op};

/// What is called.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) test: Test,
    pub(crate) dtype: DType,
    pub(crate) op: Op,
    pub(crate) root: u32,
    /// Instead of the selected algorithm.
    pub(crate) schedule: Option<Choice>,
}

/// A call with its memory, ready to be made many times.
pub(crate) struct Prepared<'a> {
    communicator: &'a Communicator,
    kind: Kind,
    layout: Layout,
    call: Option<Call>,
    input: *const u8,
    output: *mut u8,
}

impl<'a> Prepared<'a> {
    /// # Safety
    /// `input` and `output` are valid for the layout's elements, as long as this value exists, and
    /// overlap in place at most.
    pub(crate) unsafe fn new(
        communicator: &'a Communicator,
        kind: Kind,
        layout: Layout,
        input: *const u8,
        output: *mut u8,
    ) -> Self {
        Self {
            communicator,
            kind,
            layout,
            call: collective(communicator, kind, layout, input, output),
            input,
            output,
        }
    }

    /// Makes the call and waits for its end.
    pub(crate) fn run(&self) -> Result<(), Error> {
        if let Some(call) = &self.call {
            // SAFETY: whoever made this value vouches for the memory.
            return unsafe { self.communicator.run(call) };
        }
        match self.kind.test {
            Test::SendRecv => self.around(),
            Test::Hypercube => self.hypercube(),
            _ => self.there_and_back(),
        }
    }

    /// Starts the call several times, then waits for all.
    pub(crate) fn run_together(&self, times: u32) -> Result<(), Error> {
        let (Some(call), 2..) = (&self.call, times) else {
            return self.run();
        };
        // SAFETY: as above; all are complete before this returns, since a request that is dropped
        // waits. That they share memory is as harmless as calls one after the other.
        let start = |_| unsafe { self.communicator.start(call.clone()) };
        let requests = (0..times).map(start).collect::<Result<Vec<_>, _>>()?;
        requests
            .into_iter()
            .try_for_each(|request| request.wait().map(drop))
    }

    /// To the next rank and from the one before.
    fn around(&self) -> Result<(), Error> {
        let (rank, size) = (self.communicator.rank(), self.communicator.size());
        let (to, from) = ((rank + 1) % size, (rank + size - 1) % size);
        self.exchange(self.input, to, self.output, from, self.layout.count)
    }

    /// Doubles what is gathered with each partner: ranks that differ in one bit.
    fn hypercube(&self) -> Result<(), Error> {
        let (rank, size) = (self.communicator.rank(), self.communicator.size());
        let part_bytes = self.layout.count * self.kind.dtype.size_bytes();
        // SAFETY: the output has room for a part of every rank.
        let part = |rank: u32| unsafe { self.output.add(rank as usize * part_bytes) };
        if !std::ptr::eq(self.input, part(rank)) {
            // SAFETY: both are valid for a part, and the input is elsewhere if it is not in place.
            unsafe { std::ptr::copy(self.input, part(rank), part_bytes) };
        }
        let mut mask = 1;
        while mask < size {
            let partner = rank ^ mask;
            // All parts whose ranks differ in lower bits lie together.
            let (ours, theirs) = (rank & !(mask - 1), partner & !(mask - 1));
            let count = self.layout.count * mask as usize;
            self.exchange(part(ours), partner, part(theirs), partner, count)?;
            mask *= 2;
        }
        Ok(())
    }

    /// From the first rank to the last and back.
    fn there_and_back(&self) -> Result<(), Error> {
        let (rank, last) = (self.communicator.rank(), self.communicator.size() - 1);
        let (count, dtype) = (self.layout.count, self.kind.dtype);
        // SAFETY: whoever made this value vouches for the memory.
        let send = |to| unsafe {
            self.communicator
                .send_raw(self.input, count, dtype, to, 0, None)
        };
        // SAFETY: as above.
        let recv = |from: u32| unsafe {
            let received = self
                .communicator
                .recv_raw(self.output, count, dtype, from, 0, None);
            received.map(drop)
        };
        match rank {
            _ if last == 0 => Ok(()),
            0 => send(last).and_then(|()| recv(last)),
            _ if rank == last => recv(0).and_then(|()| send(0)),
            _ => Ok(()),
        }
    }

    fn exchange(
        &self,
        input: *const u8,
        to: u32,
        output: *mut u8,
        from: u32,
        count: usize,
    ) -> Result<(), Error> {
        let (communicator, dtype) = (self.communicator, self.kind.dtype);
        if to == communicator.rank() {
            // SAFETY: both are valid for `count` elements, and not the same memory.
            unsafe { std::ptr::copy(input, output, count * dtype.size_bytes()) };
            return Ok(());
        }
        // SAFETY: both are valid for `count` elements and not the same memory. A request that is
        // dropped waits, so that the memory is free again whatever happens below.
        let received = unsafe { communicator.start_recv_raw(output, count, dtype, from, 0, None)? };
        // SAFETY: as above.
        unsafe { communicator.send_raw(input, count, dtype, to, 0, None)? };
        received.wait().map(drop)
    }
}

/// None for what is made of sends and receives.
fn collective(
    communicator: &Communicator,
    kind: Kind,
    layout: Layout,
    input: *const u8,
    output: *mut u8,
) -> Option<Call> {
    let (count, dtype, root) = (layout.count, kind.dtype, kind.root);
    let reduction = || {
        if kind.op == Op::PremulSum {
            let bytes = scalar_bytes(dtype, communicator.rank());
            Reduction {
                scalar: Scalar::from_bytes(&bytes),
                ..kind.op.into()
            }
        } else {
            kind.op.into()
        }
    };
    let call = match kind.test {
        Test::AllReduce => Call::all_reduce(input, output, count, dtype, reduction()),
        Test::Reduce => Call::reduce(input, output, count, dtype, reduction(), root),
        Test::ReduceScatter => Call::reduce_scatter(input, output, count, dtype, reduction()),
        Test::AllGather => Call::all_gather(input, output, count, dtype),
        Test::Broadcast => Call {
            input,
            ..Call::broadcast(output, count, dtype, root)
        },
        Test::AllToAll => Call::all_to_all(input, output, count, dtype),
        Test::AllToAllV => {
            let counts = uneven_counts(count, communicator.rank(), communicator.size());
            Call::all_to_all_v(input, output, dtype, counts)
        }
        Test::Gather => Call::gather(input, output, count, dtype, root),
        Test::Scatter => Call::scatter(input, output, count, dtype, root),
        Test::Barrier => Call::barrier(),
        Test::SendRecv | Test::Hypercube | Test::Latency => return None,
    };
    Some(Call {
        schedule: kind.schedule,
        ..call
    })
}

fn uneven_counts(count: usize, rank: u32, world: u32) -> Counts {
    let (rank, ranks) = (rank as usize, 0..world as usize);
    let send: Vec<_> = ranks.clone().map(|to| uneven(count, rank, to)).collect();
    let recv: Vec<_> = ranks.map(|from| uneven(count, from, rank)).collect();
    Counts::contiguous(&send, &recv)
}
