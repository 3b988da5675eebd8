//! Combines the members' elements, in the order of members, whatever the operation.

use rlaunch_wire::{DType, Op};

use crate::call::{Factor, Reduction, UserOp};

/// A reduction of elements of one type.
#[derive(Debug)]
pub(crate) struct Combine {
    dtype: DType,
    op: Op,
    scalar: Option<Factor>,
    user: Option<UserOp>,
}

/// Combined at a time where the result goes back, too, while the lines of the next are on their way.
const RETURNED_BYTES: usize = 2048;
/// Elements of a user's operation are combined in aligned memory of this length.
const USER_BYTES: usize = 8192;
#[repr(align(64))]
struct Aligned([u8; USER_BYTES]);

impl Combine {
    #[inline]
    pub(crate) fn new(dtype: DType, reduction: &Reduction) -> Self {
        Self {
            dtype,
            op: reduction.op,
            scalar: (reduction.scalar.filter(|_| reduction.op == Op::PremulSum))
                .map(|scalar| scalar.factor),
            user: reduction.user.clone().filter(|_| reduction.op == Op::User),
        }
    }

    /// Whether a rank's elements change before they are combined.
    #[inline]
    pub(crate) fn prepares(&self) -> bool {
        self.scalar.is_some()
    }

    /// Writes what this rank contributes for its elements at `from`.
    ///
    /// # Safety
    /// `from` is valid for reads and `to` for writes of `bytes`; they are equal or apart.
    pub(crate) unsafe fn prepare(&self, to: *mut u8, from: *const u8, bytes: usize) {
        match &self.scalar {
            Some(scalar) => {
                let count = bytes / self.dtype.size_bytes();
                // SAFETY: as the caller vouches; the scalar holds one element.
                unsafe {
                    rlaunch_device::premultiply_raw(self.dtype, to, from, scalar.as_ptr(), count);
                }
            }
            None if to.cast_const() == from => {}
            // SAFETY: as the caller vouches; not equal, so apart.
            None => unsafe { rlaunch_device::copy_between_cores(to, from, bytes) },
        }
    }

    /// Whether contributions may be combined one by one, with the same bits as all at once: nothing
    /// changes before, and nothing is rounded between.
    pub(crate) fn is_stepwise(&self) -> bool {
        let is_rounded = self.dtype.is_small_float() && self.op.rounds();
        !self.prepares() && !is_rounded
    }

    /// `sum` becomes the combination of itself, which another core wrote and another reads next, and
    /// `own`. Averages are sums so far, see [`Combine::finish`].
    ///
    /// # Safety
    /// Both are valid for `bytes`, whole elements, and apart.
    pub(crate) unsafe fn add(&self, sum: *mut u8, own: *const u8, bytes: usize) {
        // SAFETY: as the caller vouches.
        unsafe {
            if self.user.is_some() {
                self.and_return(sum, own, sum, false, bytes);
            } else {
                let count = bytes / self.dtype.size_bytes();
                let (dtype, op) = (self.dtype, self.op);
                rlaunch_device::reduce_and_return_raw(dtype, op, sum, own, sum, false, count);
            }
        }
    }

    /// Whether the result is more than what [`Combine::add`] has made of all contributions.
    pub(crate) fn finishes(&self) -> bool {
        self.op == Op::Avg
    }

    /// What [`Combine::add`] has made of all contributions becomes the result.
    ///
    /// # Safety
    /// `sum` is valid for `bytes`, whole elements.
    pub(crate) unsafe fn finish(&self, sum: *mut u8, bytes: usize, ranks: u32) {
        if self.finishes() {
            let count = bytes / self.dtype.size_bytes();
            // SAFETY: as the caller vouches.
            unsafe { rlaunch_device::finish_avg_raw(self.dtype, sum, count, ranks) };
        }
    }

    /// `to` becomes the combination of all contributions, first to last.
    ///
    /// # Safety
    /// All are valid for `bytes`, whole elements; `to` equals a contribution or is apart from it.
    #[inline]
    pub(crate) unsafe fn many(&self, to: *mut u8, contributions: &[*const u8], bytes: usize) {
        let count = bytes / self.dtype.size_bytes();
        if count == 0 {
            return;
        }
        match (self.op, &self.user) {
            (Op::Avg, _) => {
                let ranks = contributions.len() as u32;
                // SAFETY: as the caller vouches.
                unsafe {
                    rlaunch_device::average_many_raw(self.dtype, to, contributions, count, ranks);
                }
            }
            (_, Some(user)) => {
                // SAFETY: as the caller vouches.
                unsafe { self.many_by_user(user, to, contributions, bytes) };
            }
            // SAFETY: as the caller vouches.
            (op, None) => unsafe {
                rlaunch_device::reduce_many_raw(self.dtype, op, to, contributions, count);
            },
        }
    }

    /// `to` and `theirs` become the combination of `own` and `theirs`, of which `own` comes first or
    /// last. Another core wrote `theirs`, and reads it next.
    ///
    /// # Safety
    /// All are valid for `bytes`, whole elements; `own` and `theirs` are apart, `to` equals one of
    /// them or is apart.
    pub(crate) unsafe fn and_return(
        &self,
        to: *mut u8,
        own: *const u8,
        theirs: *mut u8,
        is_own_first: bool,
        bytes: usize,
    ) {
        if self.op != Op::Avg && self.user.is_none() {
            let count = bytes / self.dtype.size_bytes();
            // SAFETY: as the caller vouches.
            unsafe {
                rlaunch_device::reduce_and_return_raw(
                    self.dtype,
                    self.op,
                    to,
                    own,
                    theirs,
                    is_own_first,
                    count,
                );
            }
            return;
        }
        rlaunch_device::take_over(theirs, RETURNED_BYTES.min(bytes));
        for at in (0..bytes).step_by(RETURNED_BYTES) {
            let length = RETURNED_BYTES.min(bytes - at);
            let next = RETURNED_BYTES.min(bytes - at - length);
            rlaunch_device::take_over(theirs.wrapping_add(at + length), next);
            // SAFETY: as the caller vouches; inside of the range.
            unsafe {
                let (to, own, theirs) = (to.add(at), own.add(at), theirs.add(at));
                let inputs = if is_own_first {
                    [own, theirs.cast_const()]
                } else {
                    [theirs.cast_const(), own]
                };
                self.many(to, &inputs, length);
                if to != theirs {
                    rlaunch_device::copy(theirs, to, length);
                }
            }
        }
    }

    /// The user's function sees aligned elements only, and none that others still read.
    ///
    /// # Safety
    /// As [`Combine::many`].
    unsafe fn many_by_user(
        &self,
        user: &UserOp,
        to: *mut u8,
        contributions: &[*const u8],
        bytes: usize,
    ) {
        let mut result = Aligned([0; USER_BYTES]);
        let mut next = Aligned([0; USER_BYTES]);
        let (first, rest) = contributions.split_first().expect("each rank contributes");
        for at in (0..bytes).step_by(USER_BYTES) {
            let length = USER_BYTES.min(bytes - at);
            // SAFETY: the caller vouches for the contribution; the piece fits.
            unsafe { std::ptr::copy_nonoverlapping(first.add(at), result.0.as_mut_ptr(), length) };
            for contribution in rest {
                // SAFETY: as above.
                unsafe {
                    std::ptr::copy_nonoverlapping(
                        contribution.add(at),
                        next.0.as_mut_ptr(),
                        length,
                    );
                }
                let count = length / self.dtype.size_bytes();
                (user.function)(result.0.as_mut_ptr(), next.0.as_ptr(), count);
            }
            // SAFETY: the caller vouches for the result; the piece fits.
            unsafe { std::ptr::copy_nonoverlapping(result.0.as_ptr(), to.add(at), length) };
        }
    }
}
