//! Which kernels serve a type and an operation.

use rlaunch_wire::{DType, Op};

use crate::kernel::{Binary, BinaryKernel, Plain, Small};
use crate::level::Level;
use crate::number::{
    And, Bits, Complex, Located, Logical, LogicalAnd, LogicalOr, LogicalXor, Max, MaxLoc, Min,
    MinLoc, Number, Operation, Or, Ordered, Pair, Prod, Ring, Sum, Xor,
};
use crate::small_float::{BF16, E4M3, E5M2, F16, SmallFloat};

/// The kernels of one type and operation on one level.
///
/// A reduction of many inputs keeps its intermediate result in a tile of *numbers*: the type itself,
/// or binary32 where elements are smaller floats.
#[derive(Clone, Copy)]
pub(crate) struct Kernels {
    /// Size of an intermediate number.
    pub(crate) number_bytes: usize,
    /// Elements of two elements.
    pub(crate) pair: BinaryKernel,
    /// Numbers of two elements.
    pub(crate) begin: BinaryKernel,
    /// Numbers of a number and an element.
    pub(crate) onward: BinaryKernel,
    /// Elements of a number and an element.
    pub(crate) last: BinaryKernel,
}

/// `None` where the operation does not serve the type, and for the user's own. `Avg` and `PremulSum`
/// are sums here.
pub(crate) fn kernels(level: Level, dtype: DType, op: Op) -> Option<Kernels> {
    match dtype {
        DType::I8 => integer::<i8, u8>(level, op),
        DType::U8 => integer::<u8, u8>(level, op),
        DType::I16 => integer::<i16, u16>(level, op),
        DType::U16 => integer::<u16, u16>(level, op),
        DType::I32 => integer::<i32, u32>(level, op),
        DType::U32 => integer::<u32, u32>(level, op),
        DType::I64 => integer::<i64, u64>(level, op),
        DType::U64 => integer::<u64, u64>(level, op),
        DType::F16 => small::<F16>(level, op),
        DType::BF16 => small::<BF16>(level, op),
        DType::F8E4M3 => small::<E4M3>(level, op),
        DType::F8E5M2 => small::<E5M2>(level, op),
        DType::F32 => ring::<f32>(level, op).or_else(|| ordered::<f32>(level, op)),
        DType::F64 => ring::<f64>(level, op).or_else(|| ordered::<f64>(level, op)),
        DType::C64 => ring::<Complex<f32>>(level, op),
        DType::C128 => ring::<Complex<f64>>(level, op),
        DType::Bool => truth(level, op),
        DType::F32I32 => located::<Pair<f32, i32>>(level, op),
        DType::F64I64 => located::<Pair<f64, i64>>(level, op),
        DType::I32I32 => located::<Pair<i32, i32>>(level, op),
        DType::I64I64 => located::<Pair<i64, i64>>(level, op),
    }
}

/// `U` is the unsigned integer of the same size.
fn integer<T: Ordered, U: Ring + Bits + Logical>(level: Level, op: Op) -> Option<Kernels> {
    ring::<U>(level, op)
        .or_else(|| ordered::<T>(level, op))
        .or_else(|| match op {
            Op::Band => Some(plain::<U, And>(level)),
            Op::Bor => Some(plain::<U, Or>(level)),
            Op::Bxor => Some(plain::<U, Xor>(level)),
            Op::Land => Some(plain::<U, LogicalAnd>(level)),
            Op::Lor => Some(plain::<U, LogicalOr>(level)),
            Op::Lxor => Some(plain::<U, LogicalXor>(level)),
            _ => None,
        })
}

fn ring<T: Ring>(level: Level, op: Op) -> Option<Kernels> {
    match op {
        Op::Sum | Op::Avg | Op::PremulSum => Some(plain::<T, Sum>(level)),
        Op::Prod => Some(plain::<T, Prod>(level)),
        _ => None,
    }
}

fn ordered<T: Ordered>(level: Level, op: Op) -> Option<Kernels> {
    match op {
        Op::Min => Some(plain::<T, Min>(level)),
        Op::Max => Some(plain::<T, Max>(level)),
        _ => None,
    }
}

fn located<T: Located>(level: Level, op: Op) -> Option<Kernels> {
    match op {
        Op::MinLoc => Some(plain::<T, MinLoc>(level)),
        Op::MaxLoc => Some(plain::<T, MaxLoc>(level)),
        _ => None,
    }
}

fn truth(level: Level, op: Op) -> Option<Kernels> {
    match op {
        Op::Prod | Op::Min | Op::Band | Op::Land => Some(plain::<u8, LogicalAnd>(level)),
        Op::Sum | Op::Max | Op::Bor | Op::Lor => Some(plain::<u8, LogicalOr>(level)),
        Op::Bxor | Op::Lxor => Some(plain::<u8, LogicalXor>(level)),
        _ => None,
    }
}

fn small<F: SmallFloat>(level: Level, op: Op) -> Option<Kernels> {
    match op {
        Op::Sum | Op::Avg | Op::PremulSum => Some(rounded::<F, Sum>(level)),
        Op::Prod => Some(rounded::<F, Prod>(level)),
        Op::Min => Some(rounded::<F, Min>(level)),
        Op::Max => Some(rounded::<F, Max>(level)),
        _ => None,
    }
}

fn plain<T: Number, O: Operation<T>>(level: Level) -> Kernels {
    let kernel = Binary::<Plain<T>, Plain<T>, Plain<T>, O>::at(level);
    Kernels {
        number_bytes: size_of::<T>(),
        pair: kernel,
        begin: kernel,
        onward: kernel,
        last: kernel,
    }
}

fn rounded<F: SmallFloat, O: Operation<f32>>(level: Level) -> Kernels {
    Kernels {
        number_bytes: size_of::<f32>(),
        pair: Binary::<Small<F>, Small<F>, Small<F>, O>::at(level),
        begin: Binary::<Plain<f32>, Small<F>, Small<F>, O>::at(level),
        onward: Binary::<Plain<f32>, Plain<f32>, Small<F>, O>::at(level),
        last: Binary::<Small<F>, Plain<f32>, Small<F>, O>::at(level),
    }
}
