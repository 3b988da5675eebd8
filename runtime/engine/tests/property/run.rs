//! One case on one rank: buffers, the call, the comparison.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use rlaunch_runtime::{
    Call, Collective, Communicator, Counts, DType, Op, Reduction, Scalar, SharedBuffer, UserOp,
};

use crate::cases::Case;
use crate::number::{Number, encode};
use crate::reference::{self, compose, expected, input, lengths, offset};

/// Makes the call and compares; says what differs.
pub(crate) fn check(communicator: &Communicator, case: &Case) -> Result<(), String> {
    let (world, rank) = (communicator.size(), communicator.rank());
    let size = case.dtype.size_bytes();
    let (given, gotten) = lengths(case, world, rank);
    let mut source = Guarded::new(communicator, given, case, 0);
    fill(case, rank, &mut source);
    let mut target = Guarded::new(communicator, gotten, case, 1);
    let (from, to) = places(case, rank, &mut source, &mut target);
    let before = source.bytes.to_vec();
    let call = call(case, world, rank, from, to);
    // SAFETY: the buffers have the lengths that the call needs, and outlive it.
    let result = unsafe {
        if case.is_non_blocking {
            communicator
                .start(call)
                .and_then(|request| request.wait().map(drop))
        } else {
            communicator.run(&call).map(drop)
        }
    };
    result.map_err(|error| error.to_string())?;
    let is_result_in_source = case.is_in_place && source.holds(to, gotten * size);
    let result = if is_result_in_source {
        &source
    } else {
        &target
    };
    for index in 0..gotten {
        let mut wanted = Vec::new();
        match expected(case, world, rank, index) {
            Some(number) => encode(case.dtype, number, &mut wanted),
            None if is_result_in_source => continue,
            None => wanted.resize(size, GUARD),
        }
        // SAFETY: `to` has room for `gotten` elements.
        let found = unsafe { std::slice::from_raw_parts(to.add(index * size), size) };
        if found != wanted {
            return Err(format!(
                "rank {rank} of {world}, element {index}: {found:?}, not {wanted:?}"
            ));
        }
    }
    result
        .check_guards()
        .map_err(|what| format!("rank {rank}: output, {what}"))?;
    if !is_result_in_source && !case.is_in_place && source.bytes[..] != before {
        return Err(format!("rank {rank}: the input was changed"));
    }
    Ok(())
}

const GUARD: u8 = 0xa5;
const GUARD_BYTES: usize = 128;

/// A buffer with guard bytes on both sides, full of them at first.
struct Guarded {
    bytes: Bytes,
    start: usize,
    length: usize,
}

enum Bytes {
    Own(Vec<u8>),
    Shared(SharedBuffer<u8>),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

impl DerefMut for Bytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

impl Guarded {
    /// `which` of the rank's buffers it is.
    fn new(communicator: &Communicator, count: usize, case: &Case, which: u32) -> Self {
        let length = count * case.dtype.size_bytes();
        let whole = length + 3 * GUARD_BYTES;
        let mut bytes = if case.memory.is_shared(communicator.rank(), which) {
            Bytes::Shared(communicator.allocate(whole).unwrap())
        } else {
            Bytes::Own(vec![0; whole])
        };
        bytes.fill(GUARD);
        let shift = if case.is_shifted {
            case.dtype.size_bytes()
        } else {
            0
        };
        let start = GUARD_BYTES + bytes[GUARD_BYTES..].as_ptr().align_offset(64) + shift;
        Self {
            bytes,
            start,
            length,
        }
    }

    fn pointer(&mut self) -> *mut u8 {
        self.bytes[self.start..].as_mut_ptr()
    }

    fn holds(&self, place: *const u8, bytes: usize) -> bool {
        let range = self.bytes.as_ptr_range();
        // SAFETY: not followed; an end inside or behind the buffer.
        bytes > 0 && range.contains(&place) && place.wrapping_add(bytes) <= range.end
    }

    fn check_guards(&self) -> Result<(), &'static str> {
        let is_guard = |byte: &u8| *byte == GUARD;
        if !self.bytes[..self.start].iter().all(is_guard) {
            return Err("bytes before it were written");
        }
        if !self.bytes[self.start + self.length..].iter().all(is_guard) {
            return Err("bytes behind it were written");
        }
        Ok(())
    }
}

fn fill(case: &Case, rank: u32, source: &mut Guarded) {
    let mut bytes = Vec::with_capacity(source.length);
    let count = source.length / case.dtype.size_bytes();
    for index in 0..count {
        encode(case.dtype, input(case, rank, index), &mut bytes);
    }
    let start = source.start;
    source.bytes[start..start + bytes.len()].copy_from_slice(&bytes);
}

/// Input and output of the call; in place, both in the larger buffer as MPI has it.
fn places(
    case: &Case,
    rank: u32,
    source: &mut Guarded,
    target: &mut Guarded,
) -> (*const u8, *mut u8) {
    let (from, to) = (source.pointer(), target.pointer());
    let part = case.count * case.dtype.size_bytes() * rank as usize;
    let is_root = rank == case.root;
    match case.collective {
        // One buffer; what the others hold is overwritten.
        Collective::Broadcast => {
            if is_root {
                // SAFETY: both are as long.
                unsafe { std::ptr::copy_nonoverlapping(from, to, target.length) };
            }
            (to, to)
        }
        _ if !case.is_in_place => (from, to),
        Collective::AllGather => inside(from, to, part, source.length),
        Collective::Gather if is_root => inside(from, to, part, source.length),
        // SAFETY: this rank's part lies in the input.
        Collective::ReduceScatter => (from, unsafe { from.add(part) }),
        // SAFETY: as above.
        Collective::Scatter if is_root => (from, unsafe { from.add(part) }),
        Collective::AllReduce | Collective::Scan | Collective::Exscan | Collective::AllToAll => {
            (from, from)
        }
        Collective::Reduce if is_root => (from, from),
        _ => (from, to),
    }
}

/// Puts the input where its result would lie.
fn inside(from: *const u8, to: *mut u8, offset: usize, length: usize) -> (*const u8, *mut u8) {
    // SAFETY: the output has room for every rank's input.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to.add(offset), length);
        (to.add(offset), to)
    }
}

fn call(case: &Case, world: u32, rank: u32, from: *const u8, to: *mut u8) -> Call {
    let (count, dtype, root) = (case.count, case.dtype, case.root);
    let reduction = || reduction(case, rank);
    let mine = case.part(0, rank);
    match case.collective {
        Collective::Barrier => Call::barrier(),
        Collective::Broadcast => Call::broadcast(to, count, dtype, root),
        Collective::Reduce => Call::reduce(from, to, count, dtype, reduction(), root),
        Collective::AllReduce => Call::all_reduce(from, to, count, dtype, reduction()),
        Collective::ReduceScatter => Call::reduce_scatter(from, to, count, dtype, reduction()),
        Collective::AllGather => Call::all_gather(from, to, count, dtype),
        Collective::Gather => Call::gather(from, to, count, dtype, root),
        Collective::Scatter => Call::scatter(from, to, count, dtype, root),
        Collective::AllToAll => Call::all_to_all(from, to, count, dtype),
        Collective::Scan => Call::scan(from, to, count, dtype, reduction()),
        Collective::Exscan => Call::exscan(from, to, count, dtype, reduction()),
        Collective::AllGatherV => Call::all_gather_v(from, to, dtype, counts(case, world, rank)),
        Collective::ReduceScatterV => {
            Call::reduce_scatter_v(from, to, dtype, counts(case, world, rank), reduction())
        }
        Collective::GatherV => {
            Call::gather_v(from, to, mine, dtype, counts(case, world, rank), root)
        }
        Collective::ScatterV => {
            Call::scatter_v(from, to, mine, dtype, counts(case, world, rank), root)
        }
        Collective::AllToAllV => Call::all_to_all_v(from, to, dtype, counts(case, world, rank)),
        other => panic!("{other} is no collective"),
    }
}

fn counts(case: &Case, world: u32, rank: u32) -> Counts {
    let of = |part: &dyn Fn(u32) -> usize| -> (Vec<usize>, Vec<usize>) {
        (0..world)
            .map(|peer| (part(peer), offset(part, peer)))
            .unzip()
    };
    let ((send, send_offsets), (recv, recv_offsets)) = match case.collective {
        Collective::AllToAllV => (
            of(&|peer| case.part(rank, peer)),
            of(&|peer| case.part(peer, rank)),
        ),
        Collective::ScatterV => (of(&|peer| case.part(0, peer)), Default::default()),
        _ => (Default::default(), of(&|peer| case.part(0, peer))),
    };
    Counts {
        send,
        send_offsets,
        recv,
        recv_offsets,
    }
}

fn reduction(case: &Case, rank: u32) -> Reduction {
    match case.op {
        Op::PremulSum => {
            let mut bytes = Vec::new();
            encode(case.dtype, Number::of(reference::scalar(rank)), &mut bytes);
            Reduction::premul_sum(Scalar::from_bytes(&bytes).expect("an element"))
        }
        Op::User => Reduction::user(UserOp {
            function: Arc::new(composed),
            is_commutative: false,
        }),
        op => op.into(),
    }
}

fn composed(inout: *mut u8, input: *const u8, count: usize) {
    debug_assert_eq!(DType::I64I64.size_bytes(), 16);
    for index in 0..count {
        // SAFETY: both hold `count` pairs of 64-bit integers, aligned or not.
        unsafe {
            let (into, from) = (
                inout.cast::<[i64; 2]>().add(index),
                input.cast::<[i64; 2]>().add(index),
            );
            let (left, right) = (into.read_unaligned(), from.read_unaligned());
            let (a, b) = compose((left[0], left[1]), (right[0], right[1]));
            into.write_unaligned([a, b]);
        }
    }
}
