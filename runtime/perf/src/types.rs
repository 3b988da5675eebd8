//! Element types and operations by nccl-tests' names and by the runtime's.

use rlaunch_wire::{DType, Op};

/// One of the values, or each in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice<T> {
    One(T),
    All,
}

/// As nccl-tests calls it, where it knows the type.
pub(crate) fn dtype_name(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "half",
        DType::F32 => "float",
        DType::F64 => "double",
        DType::F8E4M3 => "f8e4m3",
        DType::F8E5M2 => "f8e5m2",
        other => other.name(),
    }
}

/// As nccl-tests calls it.
pub(crate) fn op_name(op: Op) -> &'static str {
    match op {
        Op::PremulSum => "mulsum",
        other => other.name(),
    }
}

/// The types that `-d all` goes through: nccl-tests' twelve. Others are named one by one.
pub(crate) const COMMON: [DType; 12] = [
    DType::I8,
    DType::U8,
    DType::I32,
    DType::U32,
    DType::I64,
    DType::U64,
    DType::F16,
    DType::F32,
    DType::F64,
    DType::BF16,
    DType::F8E4M3,
    DType::F8E5M2,
];

/// All but what a program would have to supply.
pub(crate) fn operations() -> impl Iterator<Item = Op> {
    Op::ALL.iter().copied().filter(|op| *op != Op::User)
}

pub(crate) fn parse_dtypes(text: &str) -> Result<Choice<DType>, String> {
    if text == "all" {
        return Ok(Choice::All);
    }
    let found = DType::ALL
        .iter()
        .find(|dtype| dtype_name(**dtype) == text || dtype.name() == text);
    found.map(|dtype| Choice::One(*dtype)).ok_or_else(|| {
        // Each under every name that it is known by.
        let names = |dtype: &DType| match (dtype_name(*dtype), dtype.name()) {
            (name, other) if name == other => name.to_owned(),
            (name, other) => format!("{name} ({other})"),
        };
        let names: Vec<String> = DType::ALL.iter().map(names).collect();
        format!(
            "`{text}` is no type; there are {} and all",
            names.join(", ")
        )
    })
}

pub(crate) fn parse_ops(text: &str) -> Result<Choice<Op>, String> {
    if text == "all" {
        return Ok(Choice::All);
    }
    let found = operations().find(|op| op_name(*op) == text || op.name() == text);
    found.map(Choice::One).ok_or_else(|| {
        let names: Vec<_> = operations().map(op_name).collect();
        format!(
            "`{text}` is no reduction; there are {} and all",
            names.join(", ")
        )
    })
}
