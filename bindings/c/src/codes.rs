//! The numbers of the header. Codes are kept for ever; tests compare them with the runtime's.

/// What a call returns: RL_OK, or why not.
#[repr(C)]
pub enum rl_code {
    RL_OK = 0,
    /// This call's arguments can't be right; nothing was sent, and the communicator stays usable.
    RL_ERROR_ARGUMENT = 1,
    /// The world could not be formed.
    RL_ERROR_INIT = 2,
    /// Ranks made different calls at the same place, or a message does not fit its receiver.
    RL_ERROR_MISMATCH = 3,
    /// Another rank died, or left while this one counted on it.
    RL_ERROR_PEER_FAILED = 4,
    /// Peers did not come within the timeout.
    RL_ERROR_TIMEOUT = 5,
    /// The connection to a peer broke.
    RL_ERROR_CONNECTION = 6,
    /// A fault of rlaunch itself; please report it.
    RL_ERROR_INTERNAL = 7,
    /// A rank called rl_comm_abort, or this one did from another thread.
    RL_ERROR_ABORTED = 8,
    /// The others took this rank for dead, and went on without it.
    RL_ERROR_EXCLUDED = 9,
    /// A forked child used what belongs to its parent.
    RL_ERROR_FORKED = 10,
    /// The world is finalized.
    RL_ERROR_FINALIZED = 11,
    /// The request was cancelled; the communicator stays usable.
    RL_ERROR_CANCELLED = 12,
    /// A buffer of that size can't be had; nothing was taken, and the communicator stays usable.
    RL_ERROR_MEMORY = 13,
}

/// Element types. Pairs are a value and an index, for RL_MINLOC and RL_MAXLOC:
/// struct { float value; int32_t index; } and so on.
#[repr(C)]
pub enum rl_dtype {
    RL_INT32 = 1,
    RL_INT64 = 2,
    RL_FLOAT32 = 3,
    RL_FLOAT64 = 4,
    RL_INT8 = 5,
    RL_UINT8 = 6,
    RL_INT16 = 7,
    RL_UINT16 = 8,
    RL_UINT32 = 9,
    RL_UINT64 = 10,
    RL_FLOAT16 = 11,
    RL_BFLOAT16 = 12,
    RL_FLOAT8_E4M3 = 13,
    RL_FLOAT8_E5M2 = 14,
    RL_COMPLEX64 = 15,
    RL_COMPLEX128 = 16,
    RL_BOOL = 17,
    RL_FLOAT32_INT32 = 18,
    RL_FLOAT64_INT64 = 19,
    RL_INT32_INT32 = 20,
    RL_INT64_INT64 = 21,
}

/// Reductions. rl_op_premul_sum and rl_op_create make further ones.
#[repr(C)]
pub enum rl_op {
    RL_SUM = 1,
    RL_PROD = 2,
    RL_MIN = 3,
    RL_MAX = 4,
    /// The sum divided by the number of ranks; integers toward zero.
    RL_AVG = 5,
    /// Bitwise and, or, exclusive or.
    RL_BAND = 6,
    RL_BOR = 7,
    RL_BXOR = 8,
    /// The same of truth values: an element other than 0 is true, the result is 0 or 1.
    RL_LAND = 9,
    RL_LOR = 10,
    RL_LXOR = 11,
    /// The least (greatest) value with its index; of equal values, the least index.
    RL_MINLOC = 12,
    RL_MAXLOC = 13,
}

/// In rl_recv and rl_probe: from whichever rank.
pub const RL_ANY_SOURCE: i32 = -1;
/// In rl_recv and rl_probe: with whichever tag.
pub const RL_ANY_TAG: i64 = -1;
/// In rl_comm_split: this rank joins no new communicator.
pub const RL_NO_COLOR: i64 = -1;
