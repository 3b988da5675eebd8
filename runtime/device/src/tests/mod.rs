//! Every kernel on every level of this processor against the plain reference.

mod conversions;
mod promises;
mod reference;
mod sample;

use rlaunch_wire::{DType, Op};

use self::reference::{combine, decode, encode, over};
use self::sample::Random;
use crate::copy::{copy, copy_between_cores, copy_nontemporal, copy_taking_over};
use crate::level::Level;
use crate::reduce::{average_many_at, reduce_many_at};
use crate::scale::premultiply_at;

/// Room around buffers, which no kernel may touch.
const GUARD: usize = 16;

/// Bytes at a chosen distance from a vector's alignment, with guards around them.
struct Guarded {
    bytes: Vec<u8>,
    offset: usize,
    length: usize,
}

impl Guarded {
    fn new(content: &[u8], offset: usize) -> Self {
        let mut bytes = vec![0xA5; GUARD + offset + content.len() + GUARD];
        bytes[GUARD + offset..][..content.len()].copy_from_slice(content);
        Self {
            bytes,
            offset: GUARD + offset,
            length: content.len(),
        }
    }

    fn pointer(&mut self) -> *mut u8 {
        self.bytes[self.offset..].as_mut_ptr()
    }

    fn content(&self) -> &[u8] {
        &self.bytes[self.offset..][..self.length]
    }

    fn is_intact(&self) -> bool {
        let (before, after) = (
            &self.bytes[..self.offset],
            &self.bytes[self.offset + self.length..],
        );
        before.iter().chain(after).all(|byte| *byte == 0xA5)
    }
}

/// Where the result goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Apart,
    Over(usize),
}

struct Case {
    level: Level,
    dtype: DType,
    op: Op,
    many: usize,
    count: usize,
    /// Distances of the inputs from alignment.
    offset: usize,
    place: Place,
}

impl Case {
    fn check(&self, random: &mut Random) {
        let Self {
            level,
            dtype,
            op,
            many,
            count,
            offset,
            place,
        } = *self;
        let name =
            format!("{dtype} {op}, {many} inputs of {count}, {level:?}, {offset}, {place:?}");
        let contents: Vec<_> = (0..many).map(|_| random.elements(dtype, count)).collect();
        let ranks = many as u32 + 1;
        let expected: Vec<u8> = (0..count)
            .flat_map(|at| {
                let element = |input: &Vec<u8>| decode(dtype, &input[at * dtype.size_bytes()..]);
                let rest = contents[1..].iter().map(element);
                let total = rest.fold(element(&contents[0]), |a, b| combine(dtype, op, a, b));
                let average = op == Op::Avg;
                encode(
                    dtype,
                    if average {
                        over(dtype, total, ranks)
                    } else {
                        total
                    },
                )
            })
            .collect();
        let mut inputs: Vec<_> = (0..many)
            .map(|input| Guarded::new(&contents[input], (input + 1) * offset % 9))
            .collect();
        let mut apart = Guarded::new(&vec![0x11; count * dtype.size_bytes()], offset);
        let pointers: Vec<_> = inputs
            .iter_mut()
            .map(|input| input.pointer().cast_const())
            .collect();
        let dst = match place {
            Place::Apart => apart.pointer(),
            Place::Over(input) => pointers[input].cast_mut(),
        };
        // SAFETY: all buffers hold `count` elements; the level is one of this processor's.
        unsafe {
            match op {
                Op::Avg => average_many_at(level, dtype, dst, &pointers, count, ranks),
                _ => reduce_many_at(level, dtype, op, dst, &pointers, count),
            }
        }
        let result = match place {
            Place::Apart => apart.content(),
            Place::Over(input) => inputs[input].content(),
        };
        assert_eq!(result, expected, "{name}");
        assert!(
            apart.is_intact() && inputs.iter().all(Guarded::is_intact),
            "{name}: wrote outside"
        );
    }
}

fn served() -> impl Iterator<Item = (DType, Op)> {
    let pairs = DType::ALL
        .iter()
        .flat_map(|dtype| Op::ALL.iter().map(move |op| (*dtype, *op)));
    pairs.filter(|(dtype, op)| op.serves(*dtype) && *op != Op::User)
}

/// Every length up to some blocks, and one that is longer than a tile; one under Miri, which is slow.
fn counts() -> Vec<usize> {
    if cfg!(miri) {
        vec![9]
    } else {
        (0..=70).chain([129, 1500]).collect()
    }
}

/// All levels against one reference: they give the same bits, so that a job may span processors of
/// different levels.
#[test]
fn every_type_and_operation_is_as_the_reference() {
    let mut random = Random(1);
    for (dtype, op) in served() {
        for level in Level::all() {
            for &count in &counts() {
                let ways = [
                    (2, Place::Apart),
                    (3, Place::Over(2)),
                    (2, Place::Over(0)),
                    (2, Place::Over(1)),
                    (5, Place::Apart),
                ];
                // All ways at few lengths, two at each.
                let is_telling = [0, 1, 17, 66, 1500].contains(&count);
                for (many, place) in ways.into_iter().take(if is_telling { 5 } else { 2 }) {
                    let offset = random.below(9) as usize;
                    Case {
                        level,
                        dtype,
                        op,
                        many,
                        count,
                        offset,
                        place,
                    }
                    .check(&mut random);
                }
            }
        }
    }
}

/// One input needs no operation, but an average needs its division.
#[test]
fn one_input_is_copied_or_divided() {
    let mut random = Random(2);
    for (dtype, op) in served() {
        // A copy keeps the bits of NaNs and of truth, which an operation would not.
        if op == Op::Avg {
            for place in [Place::Apart, Place::Over(0)] {
                let level = Level::detect();
                Case {
                    level,
                    dtype,
                    op,
                    many: 1,
                    count: 33,
                    offset: 1,
                    place,
                }
                .check(&mut random);
            }
            continue;
        }
        let content = random.elements(dtype, 33);
        let mut result = vec![0; content.len()];
        // SAFETY: both buffers hold 33 elements.
        unsafe { crate::reduce_many_raw(dtype, op, result.as_mut_ptr(), &[content.as_ptr()], 33) };
        assert_eq!(result, content, "{dtype} {op}");
    }
}

/// All pairs of all values of 8 bits.
#[test]
#[cfg_attr(miri, ignore = "too long for an interpreter")]
fn types_of_8_bits_are_as_the_reference_for_all_pairs() {
    let all = |of: fn(u32) -> u8| (0..65536).map(of).collect::<Vec<u8>>();
    let (a, b) = (all(|pair| pair as u8), all(|pair| (pair >> 8) as u8));
    for (dtype, op) in served().filter(|(dtype, _)| dtype.size_bytes() == 1) {
        let expected: Vec<u8> = (0..a.len())
            .flat_map(|at| {
                let values = (decode(dtype, &a[at..]), decode(dtype, &b[at..]));
                encode(dtype, combine(dtype, op, values.0, values.1))
            })
            .collect();
        for level in Level::all() {
            let mut result = vec![0; a.len()];
            let inputs = [a.as_ptr(), b.as_ptr()];
            // SAFETY: all buffers hold as many elements; the level is one of this processor's.
            unsafe {
                reduce_many_at(level, dtype, op, result.as_mut_ptr(), &inputs, a.len());
            }
            for at in 0..a.len() {
                assert_eq!(
                    result[at], expected[at],
                    "{dtype} {op} of {:#x} and {:#x}, {level:?}",
                    a[at], b[at]
                );
            }
        }
    }
}

#[test]
fn scaled_inputs_are_as_the_reference() {
    let mut random = Random(3);
    for (dtype, op) in served().filter(|(_, op)| *op == Op::PremulSum) {
        for level in Level::all() {
            for &count in &counts() {
                let content = random.elements(dtype, count);
                let scalar = random.element(dtype);
                let factor = decode(dtype, &scalar);
                let expected: Vec<u8> = content
                    .chunks(dtype.size_bytes())
                    .flat_map(|element| {
                        let product = combine(dtype, Op::Prod, decode(dtype, element), factor);
                        encode(dtype, product)
                    })
                    .collect();
                let mut buffer = Guarded::new(&content, count % 3);
                let (dst, factor) = (buffer.pointer(), scalar.as_ptr());
                // SAFETY: the buffer holds `count` elements, the scalar is one.
                unsafe { premultiply_at(level, dtype, dst, dst, factor, count) };
                assert_eq!(
                    buffer.content(),
                    expected,
                    "{dtype} {op}, {count}, {level:?}"
                );
                assert!(buffer.is_intact());
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "streaming stores are no part of the language")]
fn copies_are_exact_at_every_length_and_alignment() {
    let mut random = Random(4);
    let source = random.elements(DType::U8, 70_000);
    let lengths = (0..200).chain(1000..1100).chain([4096, 4097, 65_537]);
    for length in lengths {
        for (from, to) in [(0, 0), (1, 0), (0, 1), (17, 63)] {
            for kernel in [copy, copy_nontemporal, copy_between_cores, copy_taking_over] {
                let mut target = Guarded::new(&vec![0x11; length], to);
                // SAFETY: both ranges lie in their buffers.
                unsafe { kernel(target.pointer(), source[from..].as_ptr(), length) };
                assert_eq!(target.content(), &source[from..from + length]);
                assert!(target.is_intact());
            }
        }
    }
}
