//! A collective call as plain data: the one form in which every call, blocking or not, typed or
//! raw, from Rust, C or Python, reaches the engine.
//!
//! `count` is what MPI and NCCL take as the count: all_gather, gather: elements that each rank
//! contributes; reduce_scatter, scatter: elements that each receives; all_to_all: elements to each
//! peer; all others: the length of the vector. In the v-variants [`Counts`] hold every rank's.
//!
//! A call is in place where the input lies where its result would: all_gather, gather (root):
//! `input == output + rank * count`; reduce_scatter, scatter (root): `output == input + rank * count`;
//! all others: `input == output`. Otherwise input and output may not overlap.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rlaunch_schedule::Choice;
use rlaunch_wire::{Collective, DType, Op};

/// See the module's documentation. Pointers are followed only by the `unsafe` functions of
/// [`crate::Communicator`] that take a call.
#[derive(Debug, Clone)]
pub struct Call {
    pub collective: Collective,
    pub dtype: DType,
    /// For the collectives that reduce.
    pub reduction: Option<Reduction>,
    /// Rank in the communicator; 0 where there is none.
    pub root: u32,
    /// Not read where this rank contributes nothing (broadcast and scatter except at the root).
    pub input: *const u8,
    /// Not written where this rank receives nothing (reduce and gather except at the root).
    pub output: *mut u8,
    pub count: usize,
    /// For the v-variants.
    pub counts: Option<Arc<Counts>>,
    /// Instead of the communicator's.
    pub timeout: Option<Duration>,
    /// Instead of the algorithm that would be selected, the same on all ranks: for measuring.
    /// Without effect where ranks share memory, or on calls that it does not serve.
    pub schedule: Option<Choice>,
}

// SAFETY: a call is plain data; the pointers are followed only where a caller has vouched for them,
// whichever thread drives the operation.
unsafe impl Send for Call {}
// SAFETY: as above; a shared call is only read.
unsafe impl Sync for Call {}

/// How elements are combined, with what an operation needs besides its name.
#[derive(Debug, Clone)]
pub struct Reduction {
    pub op: Op,
    /// What [`Op::PremulSum`] multiplies this rank's input with.
    pub scalar: Option<Scalar>,
    /// What [`Op::User`] does.
    pub user: Option<UserOp>,
}

impl From<Op> for Reduction {
    fn from(op: Op) -> Self {
        Self {
            op,
            scalar: None,
            user: None,
        }
    }
}

impl Reduction {
    /// Each rank's input times its scalar, then the sum. Ranks may give different scalars.
    pub fn premul_sum(scalar: impl Into<Scalar>) -> Self {
        Self {
            scalar: Some(scalar.into()),
            ..Op::PremulSum.into()
        }
    }

    pub fn user(user: UserOp) -> Self {
        Self {
            user: Some(user),
            ..Op::User.into()
        }
    }
}

/// A factor in the element's type: its bytes as they lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scalar {
    pub(crate) factor: Factor,
    /// Where it is known: it must be the elements'.
    pub(crate) dtype: Option<DType>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(align(16))]
pub(crate) struct Factor([u8; 16]);

impl Factor {
    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.0.as_ptr()
    }
}

impl Scalar {
    /// The scalar lies at `from`, of as many bytes as the elements' type has.
    pub fn from_bytes(from: &[u8]) -> Option<Self> {
        let mut bytes = [0; 16];
        bytes.get_mut(..from.len())?.copy_from_slice(from);
        Some(Self {
            factor: Factor(bytes),
            dtype: None,
        })
    }
}

macro_rules! scalar_from {
    ($($type:ty),+) => {$(
        impl From<$type> for Scalar {
            fn from(value: $type) -> Self {
                let mut bytes = [0; 16];
                bytes[..size_of::<$type>()].copy_from_slice(&value.to_ne_bytes());
                Self {
                    factor: Factor(bytes),
                    dtype: Some(<$type as crate::Element>::DTYPE),
                }
            }
        }
    )+};
}
scalar_from!(i8, u8, i16, u16, i32, u32, i64, u64, f32, f64);

/// `inout[i] = inout[i] op input[i]` for `count` elements: `inout` holds what came from lower ranks.
pub type UserFunction = dyn Fn(*mut u8, *const u8, usize) + Send + Sync;

/// A reduction of the user's own. It is applied in the order of ranks, on some thread of this
/// process that drives the runtime, and must not call the runtime.
#[derive(Clone)]
pub struct UserOp {
    pub function: Arc<UserFunction>,
    /// Whether the order of the operands does not matter. The order of ranks is kept either way;
    /// a hint that allows quicker ways.
    pub is_commutative: bool,
}

impl fmt::Debug for UserOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserOp")
            .field("is_commutative", &self.is_commutative)
            .finish_non_exhaustive()
    }
}

/// What each rank sends and receives in a v-variant, in elements, and where it lies.
///
/// | | `send` | `recv` |
/// |---|---|---|
/// | all_gather_v | | contribution of each rank, its place in the output |
/// | reduce_scatter_v | | result of each rank, its place in the input |
/// | gather_v | | at the root: as all_gather_v; [`Call::count`] is this rank's contribution |
/// | scatter_v | at the root: part of each rank, its place in the input | [`Call::count`] is this rank's |
/// | all_to_all_v | to each rank, its place in the input | from each, its place in the output |
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    pub send: Vec<usize>,
    pub send_offsets: Vec<usize>,
    pub recv: Vec<usize>,
    pub recv_offsets: Vec<usize>,
}

impl Counts {
    /// Parts that lie one behind the other.
    pub fn contiguous(send: &[usize], recv: &[usize]) -> Self {
        Self {
            send: send.to_vec(),
            send_offsets: offsets(send),
            recv: recv.to_vec(),
            recv_offsets: offsets(recv),
        }
    }
}

fn offsets(counts: &[usize]) -> Vec<usize> {
    let next = |at: &mut usize, count: &usize| {
        let offset = *at;
        *at = at.saturating_add(*count);
        Some(offset)
    };
    counts.iter().scan(0, next).collect()
}

impl Call {
    /// Nothing given yet but what is called.
    fn new(collective: Collective, dtype: DType, count: usize) -> Self {
        Self {
            collective,
            dtype,
            reduction: None,
            root: 0,
            input: std::ptr::null(),
            output: std::ptr::null_mut(),
            count,
            counts: None,
            timeout: None,
            schedule: None,
        }
    }

    fn between(self, input: *const u8, output: *mut u8) -> Self {
        Self {
            input,
            output,
            ..self
        }
    }

    fn with(self, reduction: impl Into<Reduction>) -> Self {
        Self {
            reduction: Some(reduction.into()),
            ..self
        }
    }

    fn at(self, root: u32) -> Self {
        Self { root, ..self }
    }

    fn counted(self, counts: Counts) -> Self {
        Self {
            counts: Some(Arc::new(counts)),
            ..self
        }
    }

    pub fn barrier() -> Self {
        Self::new(Collective::Barrier, DType::I32, 0)
    }

    pub fn broadcast(buffer: *mut u8, count: usize, dtype: DType, root: u32) -> Self {
        Self::new(Collective::Broadcast, dtype, count)
            .between(buffer, buffer)
            .at(root)
    }

    pub fn all_reduce(
        input: *const u8,
        output: *mut u8,
        count: usize,
        dtype: DType,
        reduction: impl Into<Reduction>,
    ) -> Self {
        Self::new(Collective::AllReduce, dtype, count)
            .between(input, output)
            .with(reduction)
    }

    pub fn reduce(
        input: *const u8,
        output: *mut u8,
        count: usize,
        dtype: DType,
        reduction: impl Into<Reduction>,
        root: u32,
    ) -> Self {
        Self::new(Collective::Reduce, dtype, count)
            .between(input, output)
            .with(reduction)
            .at(root)
    }

    pub fn reduce_scatter(
        input: *const u8,
        output: *mut u8,
        count: usize,
        dtype: DType,
        reduction: impl Into<Reduction>,
    ) -> Self {
        Self::new(Collective::ReduceScatter, dtype, count)
            .between(input, output)
            .with(reduction)
    }

    pub fn all_gather(input: *const u8, output: *mut u8, count: usize, dtype: DType) -> Self {
        Self::new(Collective::AllGather, dtype, count).between(input, output)
    }

    pub fn gather(
        input: *const u8,
        output: *mut u8,
        count: usize,
        dtype: DType,
        root: u32,
    ) -> Self {
        Self::new(Collective::Gather, dtype, count)
            .between(input, output)
            .at(root)
    }

    pub fn scatter(
        input: *const u8,
        output: *mut u8,
        count: usize,
        dtype: DType,
        root: u32,
    ) -> Self {
        Self::new(Collective::Scatter, dtype, count)
            .between(input, output)
            .at(root)
    }

    pub fn all_to_all(input: *const u8, output: *mut u8, count: usize, dtype: DType) -> Self {
        Self::new(Collective::AllToAll, dtype, count).between(input, output)
    }

    pub fn scan(
        input: *const u8,
        output: *mut u8,
        count: usize,
        dtype: DType,
        reduction: impl Into<Reduction>,
    ) -> Self {
        Self::new(Collective::Scan, dtype, count)
            .between(input, output)
            .with(reduction)
    }

    /// The output of rank 0 is left as it is.
    pub fn exscan(
        input: *const u8,
        output: *mut u8,
        count: usize,
        dtype: DType,
        reduction: impl Into<Reduction>,
    ) -> Self {
        Self::new(Collective::Exscan, dtype, count)
            .between(input, output)
            .with(reduction)
    }

    pub fn all_gather_v(input: *const u8, output: *mut u8, dtype: DType, counts: Counts) -> Self {
        Self::new(Collective::AllGatherV, dtype, 0)
            .between(input, output)
            .counted(counts)
    }

    pub fn reduce_scatter_v(
        input: *const u8,
        output: *mut u8,
        dtype: DType,
        counts: Counts,
        reduction: impl Into<Reduction>,
    ) -> Self {
        Self::new(Collective::ReduceScatterV, dtype, 0)
            .between(input, output)
            .with(reduction)
            .counted(counts)
    }

    /// `counts` matter at the root only.
    pub fn gather_v(
        input: *const u8,
        output: *mut u8,
        count: usize,
        dtype: DType,
        counts: Counts,
        root: u32,
    ) -> Self {
        Self::new(Collective::GatherV, dtype, count)
            .between(input, output)
            .counted(counts)
            .at(root)
    }

    /// `counts` matter at the root only.
    pub fn scatter_v(
        input: *const u8,
        output: *mut u8,
        count: usize,
        dtype: DType,
        counts: Counts,
        root: u32,
    ) -> Self {
        Self::new(Collective::ScatterV, dtype, count)
            .between(input, output)
            .counted(counts)
            .at(root)
    }

    pub fn all_to_all_v(input: *const u8, output: *mut u8, dtype: DType, counts: Counts) -> Self {
        Self::new(Collective::AllToAllV, dtype, 0)
            .between(input, output)
            .counted(counts)
    }
}
