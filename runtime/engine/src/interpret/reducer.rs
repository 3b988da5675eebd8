//! How two operands become one, by an operation of ours or of the user's.

use rlaunch_transport::Sink;
use rlaunch_wire::{DType, Op};

use crate::call::UserOp;

#[derive(Debug, Clone)]
pub(crate) struct Reducer {
    pub(crate) dtype: DType,
    pub(crate) op: Op,
    /// Instead of `op`.
    pub(crate) user: Option<UserOp>,
}

impl Reducer {
    /// A sink that makes `to` the sum of `local` and what comes. A user's operation takes whole
    /// messages, which need a buffer: it has none.
    pub(super) fn sink(&self, local: *const u8, to: *mut u8, incoming_first: bool) -> Option<Sink> {
        if self.user.is_some() {
            return None;
        }
        Some(Sink::Reduce {
            dtype: self.dtype,
            op: self.op,
            local,
            to,
            payload_first: incoming_first,
        })
    }

    /// `to = left op right`.
    ///
    /// # Safety
    /// All are valid for `count` elements; `to` may be either of the others, which are apart.
    pub(super) unsafe fn combine(
        &self,
        to: *mut u8,
        left: *const u8,
        right: *const u8,
        count: usize,
    ) {
        let Some(user) = &self.user else {
            // SAFETY: as the caller vouches.
            unsafe { rlaunch_device::reduce_raw(self.dtype, self.op, to, left, right, count) };
            return;
        };
        let bytes = count * self.dtype.size_bytes();
        if to.cast_const() == right && to.cast_const() != left {
            // The function writes over its left operand, which is to be kept.
            let mut result = vec![0_u64; bytes.div_ceil(8)];
            let result = result.as_mut_ptr().cast::<u8>();
            // SAFETY: the operand is valid and the new memory as large.
            unsafe { std::ptr::copy_nonoverlapping(left, result, bytes) };
            (user.function)(result, right, count);
            // SAFETY: both are valid and apart.
            unsafe { std::ptr::copy_nonoverlapping(result, to, bytes) };
            return;
        }
        // SAFETY: both are valid; `copy` allows for them being the same.
        unsafe { std::ptr::copy(left, to, bytes) };
        (user.function)(to, right, count);
    }

    /// `to = inputs[0] op inputs[1] op …`; an average takes the contributions of all ranks at once.
    ///
    /// # Safety
    /// As [`Reducer::combine`], for all inputs, of which there is at least one.
    pub(super) unsafe fn combine_all(&self, to: *mut u8, inputs: &[*const u8], count: usize) {
        if self.op == Op::Avg {
            let ranks = inputs.len() as u32;
            // SAFETY: as the caller vouches.
            unsafe { rlaunch_device::average_many_raw(self.dtype, to, inputs, count, ranks) };
            return;
        }
        if self.user.is_none() {
            // SAFETY: as the caller vouches.
            unsafe { rlaunch_device::reduce_many_raw(self.dtype, self.op, to, inputs, count) };
            return;
        }
        // What is written may be still to be read, so the sum is made elsewhere.
        let bytes = count * self.dtype.size_bytes();
        let mut sum = vec![0_u64; bytes.div_ceil(8)];
        let sum = sum.as_mut_ptr().cast::<u8>();
        // SAFETY: the first input is valid and the new memory as large.
        unsafe { std::ptr::copy_nonoverlapping(inputs[0], sum, bytes) };
        for input in &inputs[1..] {
            // SAFETY: as the caller vouches.
            unsafe { self.combine(sum, sum, *input, count) };
        }
        // SAFETY: both are valid and apart.
        unsafe { std::ptr::copy_nonoverlapping(sum, to, bytes) };
    }
}
