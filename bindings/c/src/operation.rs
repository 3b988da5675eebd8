//! Reductions by number: the named ones, and those that C makes.

use crate::argument::{self, place};
use crate::error::{Failure, guarded};
use rlaunch_runtime::{DType, Op, Reduction, Scalar, UserOp};
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, PoisonError, RwLock};

/// Combines: inout[i] = inout[i] op input[i] for count elements of dtype. inout holds what came from
/// lower ranks. It runs on some thread of this process, and must not call rlaunch.
pub type rl_reduce_function = Option<
    unsafe extern "C" fn(
        inout: *mut c_void,
        input: *const c_void,
        count: u64,
        dtype: c_int,
        context: *mut c_void,
    ),
>;

/// Above every code that the runtime may ever have.
const FIRST: c_int = 1 << 16;

enum Own {
    Premultiplied(DType, Scalar),
    User(User),
}

#[derive(Clone, Copy)]
struct User {
    function: unsafe extern "C" fn(*mut c_void, *const c_void, u64, c_int, *mut c_void),
    context: *mut c_void,
    is_commutative: bool,
}

// SAFETY: whoever made the operation vouched that its function may run on any thread.
unsafe impl Send for User {}
// SAFETY: as above.
unsafe impl Sync for User {}

struct Table {
    next: c_int,
    own: BTreeMap<c_int, Own>,
}

static TABLE: RwLock<Table> = RwLock::new(Table {
    next: FIRST,
    own: BTreeMap::new(),
});

/// Makes a reduction: each rank's input times *scalar, which is one element of dtype, then the sum.
/// Ranks may give different scalars.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_op_premul_sum(
    scalar: *const c_void,
    dtype: c_int,
    op: *mut c_int,
) -> c_int {
    guarded("rl_op_premul_sum", || {
        let (dtype, op) = (argument::dtype(dtype)?, place("op", op)?);
        if scalar.is_null() {
            return Err(Failure::argument("scalar is NULL"));
        }
        // SAFETY: not null, and by the caller's word one element.
        let bytes = unsafe { std::slice::from_raw_parts(scalar.cast(), dtype.size_bytes()) };
        let scalar = Scalar::from_bytes(bytes)
            .ok_or_else(|| Failure::argument("an element of this type can't be a scalar"))?;
        served(Op::PremulSum, dtype)?;
        // SAFETY: checked, and by the caller's word writable.
        unsafe { op.write(add(Own::Premultiplied(dtype, scalar))) };
        Ok(())
    })
}

/// Makes a reduction of your own, for any type; it must be associative. context is passed to each
/// call of function. commutative: 0 where the operands' order matters; ranks are combined in their
/// order either way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rl_op_create(
    function: rl_reduce_function,
    context: *mut c_void,
    commutative: c_int,
    op: *mut c_int,
) -> c_int {
    guarded("rl_op_create", || {
        let op = place("op", op)?;
        let function = function.ok_or_else(|| Failure::argument("function is NULL"))?;
        let user = User {
            function,
            context,
            is_commutative: commutative != 0,
        };
        // SAFETY: checked, and by the caller's word writable.
        unsafe { op.write(add(Own::User(user))) };
        Ok(())
    })
}

/// Frees what rl_op_premul_sum or rl_op_create made. Calls under way keep what they need; what
/// context points to must outlive them.
#[unsafe(no_mangle)]
pub extern "C" fn rl_op_free(op: c_int) -> c_int {
    guarded("rl_op_free", || {
        let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
        match table.own.remove(&op) {
            Some(_) => Ok(()),
            None => Err(unknown(op)),
        }
    })
}

fn add(own: Own) -> c_int {
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let number = table.next;
    table.next = number.checked_add(1).unwrap_or(FIRST);
    table.own.insert(number, own);
    number
}

/// What the number means for elements of this type.
pub(crate) fn reduction(code: c_int, dtype: DType) -> Result<Reduction, Failure> {
    if code >= FIRST {
        return own(code, dtype);
    }
    let known = u8::try_from(code).ok().and_then(Op::from_code);
    match known {
        Some(op) if !matches!(op, Op::PremulSum | Op::User) => Ok(served(op, dtype)?.into()),
        _ => Err(unknown(code)),
    }
}

fn own(code: c_int, dtype: DType) -> Result<Reduction, Failure> {
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    match table.own.get(&code) {
        None => Err(unknown(code)),
        Some(Own::Premultiplied(of, scalar)) if *of == dtype => Ok(Reduction::premul_sum(*scalar)),
        Some(Own::Premultiplied(of, _)) => Err(Failure::argument(&format!(
            "op {code} has a scalar of {of}, but the elements are {dtype}"
        ))),
        Some(Own::User(user)) => {
            let user = *user;
            let code = c_int::from(dtype.code());
            let apply = move |inout: *mut u8, input: *const u8, count: usize| {
                let user = { user };
                // SAFETY: whoever made the operation vouched for its function, and the runtime
                // passes `count` elements of the type in both.
                unsafe {
                    let (inout, input) = (inout.cast(), input.cast());
                    (user.function)(inout, input, count as u64, code, user.context);
                }
            };
            Ok(Reduction::user(UserOp {
                function: Arc::new(apply),
                is_commutative: user.is_commutative,
            }))
        }
    }
}

fn served(op: Op, dtype: DType) -> Result<Op, Failure> {
    match op.refusal(dtype) {
        None => Ok(op),
        Some(reason) => Err(Failure::argument(&format!(
            "op {op} on elements of {dtype}: {reason}"
        ))),
    }
}

fn unknown(code: c_int) -> Failure {
    Failure::argument(&format!(
        "op is {code}, none of RL_SUM and so on, nor one that rl_op_create made"
    ))
}
