//! Which Rust types travel.

use rlaunch_wire::DType;

/// A type whose values can be sent and reduced.
///
/// # Safety
/// `DTYPE` describes the type's size and representation exactly, and every bit pattern is a value.
pub unsafe trait Element: Copy + Send + 'static {
    const DTYPE: DType;
}

// SAFETY: a four-byte two's complement integer, as DType::I32 says; all patterns are values.
unsafe impl Element for i32 {
    const DTYPE: DType = DType::I32;
}
// SAFETY: an eight-byte two's complement integer, as DType::I64 says; all patterns are values.
unsafe impl Element for i64 {
    const DTYPE: DType = DType::I64;
}
// SAFETY: IEEE 754 binary32, as DType::F32 says; all patterns are values.
unsafe impl Element for f32 {
    const DTYPE: DType = DType::F32;
}
// SAFETY: IEEE 754 binary64, as DType::F64 says; all patterns are values.
unsafe impl Element for f64 {
    const DTYPE: DType = DType::F64;
}
