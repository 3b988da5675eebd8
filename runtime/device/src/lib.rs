//! Arithmetic and copies on host buffers, at the speed of the widest vectors that the processor has.
//!
//! Contracts:
//! - Integers wrap on overflow, as MPI and NCCL do; the average of integers truncates toward zero.
//! - Floats of 16 and 8 bits are computed in binary32. [`reduce_many_raw`] and [`average_many_raw`]
//!   round once, at the end; to the nearest, ties to even. What is too large becomes infinite in
//!   float16 and bfloat16. In the 8-bit formats a finite number that is too large becomes the largest
//!   one (448 in e4m3, 57344 in e5m2), as NCCL has it; e5m2 keeps infinities, e4m3 has none.
//! - A NaN on either side makes the result the type's one canonical NaN, in `min` and `max` too. Of
//!   zeros, `min` takes −0 and `max` takes +0. So every operation is commutative to the bit.
//! - `minloc` and `maxloc` take the lower index of equal values; a NaN is found as the smallest and as
//!   the largest value.
//! - A bool is true unless its byte is 0; results are 0 and 1.
//! - Pointers need no alignment. The result may be written over any operand, but not shifted against
//!   one.
//! - The instruction set is found at run time: AVX-512, AVX2, or what the build assumes. All give the
//!   same bits: no operation is fused or reordered.

#![deny(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "they panic where nobody reads"
)]

mod copy;
mod isa;
mod kernel;
mod level;
mod number;
mod reduce;
mod scale;
mod small_float;
mod table;

pub use copy::{
    NONTEMPORAL_WORTH_BYTES, copy, copy_between_cores, copy_nontemporal, copy_taking_over,
    take_over,
};
pub use reduce::{average_many_raw, reduce_and_return_raw, reduce_many_raw, reduce_raw};
pub use scale::{finish_avg_raw, narrow_raw, premultiply_raw, widen_raw};

#[cfg(test)]
mod tests;
