//! Reductions of two buffers, and of many.

use std::mem::MaybeUninit;

use rlaunch_wire::{DType, Op};

use crate::copy::{copy, take_over};
use crate::level::Level;
use crate::scale::{Source, divide};
use crate::table::{Kernels, kernels};

/// `dst[i] = a[i] op b[i]` for `count` elements of `dtype`. The pointers need no alignment, and `dst`
/// may equal `a` or `b`. `Avg` and `PremulSum` are sums here: see [`crate::finish_avg_raw`] and
/// [`crate::premultiply_raw`].
///
/// # Panics
/// If the operation does not serve the type ([`Op::serves`]) or is the user's own.
///
/// # Safety
/// `a` and `b` are valid for reads and `dst` for writes of `count` elements, which nobody else writes
/// meanwhile. `dst` either equals an operand or does not overlap it.
pub unsafe fn reduce_raw(
    dtype: DType,
    op: Op,
    dst: *mut u8,
    a: *const u8,
    b: *const u8,
    count: usize,
) {
    let kernels = served(Level::detect(), dtype, op);
    // SAFETY: the caller's promise; the kernel is of this processor's level.
    unsafe { (kernels.pair)(dst, a, b, count) }
}

/// `dst[i] = theirs[i] = own[i] op theirs[i]` (or the other way around), where another core wrote
/// `theirs` and reads it next: its lines are asked for ahead, as their only owner.
///
/// # Panics
/// As [`reduce_raw`].
///
/// # Safety
/// `own` is valid for reads, `dst` and `theirs` for reads and writes of `count` elements, which nobody
/// else writes or reads meanwhile. `dst` equals one of both or overlaps nothing; these two don't.
pub unsafe fn reduce_and_return_raw(
    dtype: DType,
    op: Op,
    dst: *mut u8,
    own: *const u8,
    theirs: *mut u8,
    is_own_first: bool,
    count: usize,
) {
    let kernel = served(Level::detect(), dtype, op).pair;
    let element = dtype.size_bytes();
    let (step, bytes) = ((RETURNED_BYTES / element).max(1) * element, count * element);
    take_over(theirs, bytes.min(RETURNED_AHEAD_BYTES));
    for at in (0..bytes).step_by(step) {
        let length = step.min(bytes - at);
        let ask = |lines: *mut u8, ahead: usize| {
            let left = bytes.saturating_sub(at + ahead);
            take_over(lines.wrapping_add(at + ahead), left.min(step));
        };
        ask(theirs, RETURNED_AHEAD_BYTES);
        if dst != theirs {
            ask(dst, OWN_AHEAD_BYTES);
        }
        // SAFETY: `at + length` is within the caller's elements; the kernel is of this level.
        unsafe {
            let (dst, own, theirs) = (dst.add(at), own.add(at), theirs.add(at));
            let (a, b) = if is_own_first {
                (own, theirs.cast_const())
            } else {
                (theirs.cast_const(), own)
            };
            kernel(dst, a, b, length / element);
            if dst != theirs {
                copy(theirs, dst, length);
            }
        }
    }
}

/// `dst[i] = inputs[0][i] op inputs[1][i] op …`, from left to right, for `count` elements of `dtype`.
/// Floats of 16 and 8 bits are accumulated in binary32 and rounded once. Each input is read once.
/// The pointers need no alignment, and `dst` may equal any inputs. `Avg` and `PremulSum` are sums here.
///
/// # Panics
/// As [`reduce_raw`], and if there is no input.
///
/// # Safety
/// As [`reduce_raw`], for each of the inputs.
pub unsafe fn reduce_many_raw(
    dtype: DType,
    op: Op,
    dst: *mut u8,
    inputs: &[*const u8],
    count: usize,
) {
    // SAFETY: the caller's promise; this is the processor's level.
    unsafe { reduce_many_at(Level::detect(), dtype, op, dst, inputs, count) }
}

/// `dst[i] = (inputs[0][i] + inputs[1][i] + …) / ranks`: a sum and [`crate::finish_avg_raw`] in one,
/// where floats of 16 and 8 bits are divided before they are rounded.
///
/// # Panics
/// As [`reduce_many_raw`], and if `ranks` is 0.
///
/// # Safety
/// As [`reduce_many_raw`].
pub unsafe fn average_many_raw(
    dtype: DType,
    dst: *mut u8,
    inputs: &[*const u8],
    count: usize,
    ranks: u32,
) {
    // SAFETY: the caller's promise; this is the processor's level.
    unsafe { average_many_at(Level::detect(), dtype, dst, inputs, count, ranks) }
}

/// # Safety
/// As [`reduce_many_raw`], on a processor of this level.
pub(crate) unsafe fn reduce_many_at(
    level: Level,
    dtype: DType,
    op: Op,
    dst: *mut u8,
    inputs: &[*const u8],
    count: usize,
) {
    let kernels = served(level, dtype, op);
    match *inputs {
        [] => panic!("a reduction has at least one input"),
        // SAFETY: the caller's promise; what is equal needs no copy.
        [only] if only != dst.cast_const() => unsafe {
            copy(dst, only, count * dtype.size_bytes());
        },
        [_] => {}
        // SAFETY: the caller's promise.
        [a, b] => unsafe { (kernels.pair)(dst, a, b, count) },
        [ref most @ .., last] => {
            let accumulated = Accumulated::new(&kernels, dtype, most);
            let in_tile = |tile: *const u8, first: usize, length: usize| {
                let offset = first * dtype.size_bytes();
                // SAFETY: the elements from `first` on are the caller's; the tile holds `length`.
                unsafe { (kernels.last)(dst.add(offset), tile, last.add(offset), length) }
            };
            // SAFETY: the caller's promise.
            unsafe { accumulated.for_each_tile(count, in_tile) }
        }
    }
}

/// # Safety
/// As [`reduce_many_raw`], on a processor of this level.
pub(crate) unsafe fn average_many_at(
    level: Level,
    dtype: DType,
    dst: *mut u8,
    inputs: &[*const u8],
    count: usize,
    ranks: u32,
) {
    let kernels = served(level, dtype, Op::Avg);
    match *inputs {
        [] => panic!("a reduction has at least one input"),
        // SAFETY: the caller's promise.
        [only] => unsafe { divide(level, dtype, dst, only, Source::Elements, count, ranks) },
        _ => {
            let accumulated = Accumulated::new(&kernels, dtype, inputs);
            let in_tile = |tile: *const u8, first: usize, length: usize| {
                // SAFETY: the elements from `first` on are the caller's; the tile holds `length`.
                unsafe {
                    let to = dst.add(first * dtype.size_bytes());
                    divide(level, dtype, to, tile, Source::Numbers, length, ranks);
                }
            };
            // SAFETY: the caller's promise.
            unsafe { accumulated.for_each_tile(count, in_tile) }
        }
    }
}

fn served(level: Level, dtype: DType, op: Op) -> Kernels {
    kernels(level, dtype, op).unwrap_or_else(|| panic!("{op} does not serve {dtype}"))
}

/// Reduced at a time, then copied back: few enough lines that asking for more of them never waits.
const RETURNED_BYTES: usize = 512;
/// How far ahead lines of another core are asked for, and one's own, which lie in slower caches.
const RETURNED_AHEAD_BYTES: usize = 1024;
const OWN_AHEAD_BYTES: usize = 2048;

/// Stays in the first-level cache beside the lines that stream past it.
const TILE_BYTES: usize = 4096;

/// Processors tell a load from an earlier store by the lower 12 bits of their addresses first: a tile
/// that lies a little *ahead* of an input, in this sense, halves the speed. (Buffers usually lie alike
/// to a page.) So its place is chosen: a little behind.
const ALIASING_BYTES: usize = 4096;
const BEHIND_BYTES: usize = 512;

#[repr(align(4096))]
struct TileRoom(MaybeUninit<[u8; ALIASING_BYTES + TILE_BYTES]>);

impl TileRoom {
    /// A tile in it, aligned to a line.
    fn tile_for(&mut self, input: *const u8) -> *mut u8 {
        let offset = (input.addr().wrapping_sub(BEHIND_BYTES) % ALIASING_BYTES) & !63;
        // The room is as long as the largest offset and a tile.
        self.0.as_mut_ptr().cast::<u8>().wrapping_add(offset)
    }
}

/// Two or more inputs, reduced into a tile of numbers at a time.
struct Accumulated<'a> {
    kernels: &'a Kernels,
    element_bytes: usize,
    inputs: &'a [*const u8],
}

impl<'a> Accumulated<'a> {
    fn new(kernels: &'a Kernels, dtype: DType, inputs: &'a [*const u8]) -> Self {
        Self {
            kernels,
            element_bytes: dtype.size_bytes(),
            inputs,
        }
    }

    /// Calls `conclude(tile, first, length)` with the numbers of `length` elements from `first` on.
    ///
    /// # Safety
    /// The inputs are valid for reads of `count` elements; the kernels are of this processor's level.
    unsafe fn for_each_tile(self, count: usize, mut conclude: impl FnMut(*const u8, usize, usize)) {
        let mut room = TileRoom(MaybeUninit::uninit());
        let tile = room.tile_for(self.inputs[0]);
        let length_max = TILE_BYTES / self.kernels.number_bytes;
        let mut first = 0;
        while first < count {
            let length = length_max.min(count - first);
            let offset = first * self.element_bytes;
            // SAFETY: `first + length <= count`; the tile holds `length` numbers.
            unsafe {
                let at = |input: usize| self.inputs[input].add(offset);
                (self.kernels.begin)(tile, at(0), at(1), length);
                for input in 2..self.inputs.len() {
                    (self.kernels.onward)(tile, tile, at(input), length);
                }
            }
            conclude(tile, first, length);
            first += length;
        }
    }
}
