//! Which Rust types travel.

use rlaunch_wire::DType;

/// A type whose values can be sent and reduced. Other types of [`DType`] (half and 8-bit floats,
/// complex numbers, pairs) travel through [`crate::Call`], or a type of the program's own that
/// implements this.
///
/// # Safety
/// `DTYPE` describes the type's size and representation exactly, and every bit pattern is a value.
pub unsafe trait Element: Copy + Send + 'static {
    const DTYPE: DType;
}

macro_rules! element {
    ($($type:ty => $dtype:ident),+ $(,)?) => {$(
        // SAFETY: an integer in two's complement or an IEEE 754 float of the size that the type's
        // name says, as the DType of that name is; all patterns are values.
        unsafe impl Element for $type {
            const DTYPE: DType = DType::$dtype;
        }
    )+};
}
element! {
    i8 => I8, u8 => U8, i16 => I16, u16 => U16, i32 => I32, u32 => U32, i64 => I64, u64 => U64,
    f32 => F32, f64 => F64,
}
