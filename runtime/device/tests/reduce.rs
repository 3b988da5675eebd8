//! Kernels against a plain reference: every length up to some blocks, every misalignment.

use rlaunch_device::{Element, copy, copy_nontemporal, reduce, reduce_raw};
use rlaunch_wire::Op;

/// Room after the last element, which no kernel may touch.
const GUARD: usize = 16;

trait Sample: Element {
    fn sample(seed: usize) -> Self;
    fn reference(op: Op, a: Self, b: Self) -> Self;
    fn bytes(self) -> Vec<u8>;
}

/// A generator that spreads consecutive seeds.
fn scramble(seed: usize) -> u64 {
    let mut x = (seed as u64)
        .wrapping_add(1)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x ^= x >> 29;
    x.wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

macro_rules! integer {
    ($type:ty) => {
        impl Sample for $type {
            fn sample(seed: usize) -> Self {
                scramble(seed) as $type // the whole range, so that sums and products wrap
            }
            fn reference(op: Op, a: Self, b: Self) -> Self {
                match op {
                    Op::Sum => a.wrapping_add(b),
                    Op::Prod => a.wrapping_mul(b),
                    Op::Min => a.min(b),
                    _ => a.max(b),
                }
            }
            fn bytes(self) -> Vec<u8> {
                self.to_ne_bytes().to_vec()
            }
        }
    };
}

macro_rules! float {
    ($type:ty) => {
        impl Sample for $type {
            fn sample(seed: usize) -> Self {
                match scramble(seed) % 11 {
                    0 => 0.0,
                    1 => -0.0,
                    2 => <$type>::INFINITY,
                    3 => <$type>::NEG_INFINITY,
                    4 => <$type>::NAN,
                    5 => <$type>::MIN_POSITIVE / 4.0,
                    other => scramble(seed + 1000) as i32 as $type / (other as $type * 100.0),
                }
            }
            fn reference(op: Op, a: Self, b: Self) -> Self {
                let either_nan = a.is_nan() || b.is_nan();
                match op {
                    Op::Sum => a + b,
                    Op::Prod => a * b,
                    Op::Min | Op::Max if either_nan => <$type>::NAN,
                    Op::Min if a == b => {
                        if a.is_sign_negative() {
                            a
                        } else {
                            b
                        }
                    }
                    Op::Max if a == b => {
                        if a.is_sign_negative() {
                            b
                        } else {
                            a
                        }
                    }
                    Op::Min => a.min(b),
                    _ => a.max(b),
                }
            }
            fn bytes(self) -> Vec<u8> {
                // Which NaN a sum gives is not promised.
                let kept = if self.is_nan() { <$type>::NAN } else { self };
                kept.to_ne_bytes().to_vec()
            }
        }
    };
}

integer!(i32);
integer!(i64);
float!(f32);
float!(f64);

/// The elements as they lie at `pointer`, with all NaNs alike.
fn read<T: Sample>(pointer: *const u8, count: usize) -> Vec<Vec<u8>> {
    // SAFETY: callers pass buffers of at least `count` elements.
    (0..count)
        .map(|at| unsafe { pointer.cast::<T>().add(at).read_unaligned() }.bytes())
        .collect()
}

fn filled<T: Sample>(count: usize, offset: usize, seed: usize) -> Vec<u8> {
    let mut bytes = vec![0xA5; offset];
    for at in 0..count {
        let element = T::sample(seed + at);
        let raw: *const u8 = (&raw const element).cast();
        // SAFETY: `T` is a number: all its bytes are defined.
        bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(raw, size_of::<T>()) });
    }
    bytes.extend([0xA5; GUARD]);
    bytes
}

fn check_case<T: Sample>(op: Op, count: usize, offsets: [usize; 3], in_place: bool) {
    let a = filled::<T>(count, offsets[0], 7 * count);
    let b = filled::<T>(count, offsets[1], 7 * count + 5000);
    let mut dst = if in_place {
        a.clone()
    } else {
        vec![0xA5; offsets[2] + GUARD + count * size_of::<T>()]
    };
    let dst_offset = if in_place { offsets[0] } else { offsets[2] };
    let expected: Vec<_> = (0..count)
        .map(|at| {
            T::reference(
                op,
                T::sample(7 * count + at),
                T::sample(7 * count + 5000 + at),
            )
        })
        .map(T::bytes)
        .collect();
    // SAFETY: each buffer holds `count` elements behind its offset.
    unsafe {
        let to = dst.as_mut_ptr().add(dst_offset);
        let from = if in_place {
            to.cast_const()
        } else {
            a.as_ptr().add(offsets[0])
        };
        reduce_raw(T::DTYPE, op, to, from, b.as_ptr().add(offsets[1]), count);
    }
    let name = format!(
        "{} {op}, {count} elements, offsets {offsets:?}, in place {in_place}",
        T::DTYPE
    );
    assert_eq!(
        read::<T>(dst[dst_offset..].as_ptr(), count),
        expected,
        "{name}"
    );
    assert!(
        dst[..dst_offset].iter().all(|byte| *byte == 0xA5),
        "{name}: wrote before the result"
    );
    let end = dst_offset + count * size_of::<T>();
    assert!(
        dst[end..].iter().all(|byte| *byte == 0xA5),
        "{name}: wrote after the result"
    );
}

fn check_type<T: Sample>() {
    for &op in &Op::ALL[..4] {
        for count in 0..=130 {
            for offsets in [[0, 0, 0], [1, 0, 0], [0, 3, 5], [4, 8, 7]] {
                check_case::<T>(op, count, offsets, false);
                check_case::<T>(op, count, offsets, true);
            }
        }
        for count in [1000, 4097] {
            check_case::<T>(op, count, [0, 4, 1], false);
        }
    }
}

#[test]
fn int32_is_as_the_reference() {
    check_type::<i32>();
}

#[test]
fn int64_is_as_the_reference() {
    check_type::<i64>();
}

#[test]
fn float32_is_as_the_reference() {
    check_type::<f32>();
}

#[test]
fn float64_is_as_the_reference() {
    check_type::<f64>();
}

/// Swapped operands give the same bits, whatever mix of zeros and NaNs, at every place of a vector.
#[test]
fn min_and_max_commute_to_the_bit() {
    let specials = [
        0.0,
        -0.0,
        f32::NAN,
        -f32::NAN,
        f32::from_bits(0x7FC0_1234),
        1.0,
        f32::INFINITY,
    ];
    let pairs = || {
        specials
            .iter()
            .flat_map(|a| specials.iter().map(move |b| (*a, *b)))
    };
    let (a, b): (Vec<f32>, Vec<f32>) = pairs().cycle().take(200).unzip();
    for op in [Op::Min, Op::Max] {
        let (mut forth, mut back) = (vec![0.0; a.len()], vec![0.0; a.len()]);
        reduce(op, &mut forth, &a, &b);
        reduce(op, &mut back, &b, &a);
        for at in 0..a.len() {
            let (x, y) = (a[at], b[at]);
            assert_eq!(
                forth[at].to_bits(),
                back[at].to_bits(),
                "{op} of {x:?} and {y:?}"
            );
            assert_eq!(
                forth[at].is_nan(),
                x.is_nan() || y.is_nan(),
                "{op} of {x:?} and {y:?}"
            );
        }
    }
}

#[test]
fn copies_are_exact_at_every_length_and_alignment() {
    let source: Vec<u8> = (0..70_000).map(|at| scramble(at) as u8).collect();
    let lengths = (0..200).chain(1000..1100).chain([4096, 4097, 65_537]);
    for length in lengths {
        for (from, to) in [(0, 0), (1, 0), (0, 1), (17, 63)] {
            for kernel in [copy, copy_nontemporal] {
                let mut target = vec![0xA5_u8; to + length + GUARD];
                // SAFETY: both ranges lie in their buffers.
                unsafe { kernel(target[to..].as_mut_ptr(), source[from..].as_ptr(), length) };
                assert_eq!(target[to..to + length], source[from..from + length]);
                assert!(target[..to].iter().all(|byte| *byte == 0xA5));
                assert!(target[to + length..].iter().all(|byte| *byte == 0xA5));
            }
        }
    }
}
