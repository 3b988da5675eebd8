//! Arithmetic and copies on host buffers, at the speed of the widest vectors that the processor has.
//!
//! Contracts:
//! - Integers wrap on overflow, as MPI and NCCL do.
//! - A NaN on either side makes the result of `min` and `max` the one canonical NaN; of zeros, `min`
//!   takes −0 and `max` takes +0. So all four operations are commutative to the bit, except that of
//!   two NaNs `sum` and `prod` may keep either.
//! - Pointers need no alignment. The result may be written over either operand, but not shifted
//!   against one.
//! - The instruction set is found at run time: AVX-512, AVX2, or what the build assumes. All give the
//!   same bits: no operation is fused or reordered.

mod copy;
mod element;
mod reduce;

pub use copy::{NONTEMPORAL_WORTH_BYTES, copy, copy_nontemporal};
pub use element::Element;
pub use reduce::{reduce, reduce_raw};
