//! What users of other runtimes suffered, and what is promised here.

use rlaunch_wire::{DType, Op};

use crate::small_float::{BF16, E4M3, SmallFloat};
use crate::{
    average_many_raw, finish_avg_raw, premultiply_raw, reduce_and_return_raw, reduce_many_raw,
    reduce_raw,
};

fn bytes_of<T: Copy>(elements: &[T]) -> *const u8 {
    elements.as_ptr().cast()
}

/// 3 and 5 give 4, not 0: no factor of 1/n is rounded to a whole number first.
#[test]
fn integers_average_by_division_toward_zero() {
    let (a, b) = ([3_i32, -3, 7, i32::MAX], [5_i32, -4, 0, 0]);
    let mut average = [0_i32; 4];
    let inputs = [bytes_of(&a), bytes_of(&b)];
    // SAFETY: all buffers hold 4 elements.
    unsafe { average_many_raw(DType::I32, average.as_mut_ptr().cast(), &inputs, 4, 2) };
    assert_eq!(average, [4, -3, 3, i32::MAX / 2]);
    let mut sums = [i64::MIN, i64::MAX, -1, 1 << 53 | 1];
    // SAFETY: the buffer holds 4 elements.
    unsafe { finish_avg_raw(DType::I64, sums.as_mut_ptr().cast(), 4, 3) };
    assert_eq!(sums, [i64::MIN / 3, i64::MAX / 3, 0, (1 << 53 | 1) / 3]);
    let mut more_ranks_than_fit = [100_i8, -128];
    // SAFETY: the buffer holds 2 elements.
    unsafe { finish_avg_raw(DType::I8, more_ranks_than_fit.as_mut_ptr().cast(), 2, 300) };
    assert_eq!(more_ranks_than_fit, [0, 0]);
}

/// In the flavour of its own type, and exact where the result is a value of it.
#[test]
fn averages_of_8_bit_floats_are_exact() {
    let of = |values: [f32; 4]| values.map(E4M3::narrow);
    let (a, b) = (of([1.0, 448.0, -0.5, 240.0]), of([2.0, 448.0, -1.0, 16.0]));
    let mut average = [0_u8; 4];
    let inputs = [bytes_of(&a), bytes_of(&b)];
    // SAFETY: all buffers hold 4 elements.
    unsafe { average_many_raw(DType::F8E4M3, average.as_mut_ptr(), &inputs, 4, 2) };
    // 448 + 448 would not fit: it is divided before it is rounded.
    assert_eq!(average, of([1.5, 448.0, -0.75, 128.0]));
}

/// 256 and many ones in bfloat16: rounded after each step, every one would be lost.
#[test]
fn small_terms_survive_in_a_sum_of_many() {
    let elements: Vec<[u16; 3]> = (0..16)
        .map(|rank| [BF16::narrow(if rank == 0 { 256.0 } else { 1.0 }); 3])
        .collect();
    let inputs: Vec<_> = elements.iter().map(|input| bytes_of(input)).collect();
    let mut sum = [0_u16; 3];
    // SAFETY: all buffers hold 3 elements.
    unsafe { reduce_many_raw(DType::BF16, Op::Sum, sum.as_mut_ptr().cast(), &inputs, 3) };
    assert_eq!(
        sum.map(BF16::widen),
        [272.0; 3],
        "271 lies halfway; even wins"
    );
}

/// Whatever lies in them, to the bit.
#[test]
fn operations_commute() {
    let patterns = [
        0_u32,
        0x8000_0000,
        0x7FC0_0000,
        0xFFC0_0000,
        0x7F80_0001,
        0x7F80_0000,
        0x3F80_0000,
    ];
    let pairs = || {
        patterns
            .iter()
            .flat_map(|a| patterns.iter().map(move |b| (*a, *b)))
    };
    let (a, b): (Vec<u32>, Vec<u32>) = pairs().cycle().take(200).unzip();
    for op in [Op::Sum, Op::Prod, Op::Min, Op::Max] {
        let (mut forth, mut back) = (vec![0_u32; a.len()], vec![0_u32; a.len()]);
        let (x, y) = (bytes_of(&a), bytes_of(&b));
        // SAFETY: all buffers hold as many elements.
        unsafe {
            reduce_raw(DType::F32, op, forth.as_mut_ptr().cast(), x, y, a.len());
            reduce_raw(DType::F32, op, back.as_mut_ptr().cast(), y, x, a.len());
        }
        assert_eq!(forth, back, "{op}");
        let nan = |bits: &u32| f32::from_bits(*bits).is_nan();
        let canonical = forth
            .iter()
            .filter(|bits| nan(bits))
            .all(|bits| *bits == 0x7FC0_0000);
        assert!(canonical, "{op}: one NaN");
    }
}

/// Also where the result lies over the other core's elements, and at every border of pieces.
#[test]
fn what_goes_back_is_the_same_result() {
    for count in [0, 1, 127, 128, 129, 5000] {
        let own: Vec<i32> = (0..count).map(|at| at * 3).collect();
        let other: Vec<i32> = (0..count).map(|at| at % 7).collect();
        let expected: Vec<i32> = own.iter().zip(&other).map(|(a, b)| a + b).collect();
        for (is_own_first, is_over_theirs) in [(true, false), (false, false), (true, true)] {
            let (mut to, mut theirs) = (own.clone(), other.clone());
            let (place, back) = (
                to.as_mut_ptr().cast::<u8>(),
                theirs.as_mut_ptr().cast::<u8>(),
            );
            let place = if is_over_theirs { back } else { place };
            let (first, sum) = (bytes_of(&own), Op::Sum);
            // SAFETY: all buffers hold as many elements.
            unsafe {
                let count = count as usize;
                reduce_and_return_raw(DType::I32, sum, place, first, back, is_own_first, count);
            }
            assert_eq!(theirs, expected);
            assert!(is_over_theirs || to == expected);
        }
    }
}

/// Each rank's input is multiplied before the sum, in the type's own arithmetic.
#[test]
fn premultiplied_inputs_wrap_and_round_as_their_type() {
    let (src, scalar, mut dst) = ([100_i8, -3, 0], [3_i8], [0_i8; 3]);
    // SAFETY: buffers of 3 elements, a scalar of one.
    unsafe {
        let to = dst.as_mut_ptr().cast();
        premultiply_raw(DType::I8, to, bytes_of(&src), bytes_of(&scalar), 3);
    }
    assert_eq!(dst, [44, -9, 0]);
}

#[test]
#[should_panic(expected = "min does not serve complex64")]
fn an_operation_without_meaning_is_refused() {
    let element = [0.0_f32; 2];
    let mut result = [0.0_f32; 2];
    let (a, to) = (bytes_of(&element), result.as_mut_ptr().cast());
    // SAFETY: buffers of one element.
    unsafe { reduce_raw(DType::C64, Op::Min, to, a, a, 1) };
}
