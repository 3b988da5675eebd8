//! The outcome without a loop is that of a loop, in any order.

use super::*;
use rlaunch_wire::Op;

const ELEMENTS: usize = 40;

fn served() -> impl Iterator<Item = (DType, Op)> {
    let all = DType::ALL
        .iter()
        .flat_map(|dtype| Op::ALL.iter().map(|op| (*dtype, *op)));
    all.filter(|(dtype, op)| *op != Op::User && op.serves(*dtype))
}

/// Two operands as whatever the type holds, reduced plainly.
fn reduce(dtype: DType, op: Op, a: &[u8], b: &[u8]) -> Vec<u8> {
    let mut out = vec![0; a.len()];
    match (dtype, Format::of(dtype)) {
        (DType::C64 | DType::C128, Some(format)) => {
            let read = |bytes: &[u8]| {
                let (real, imaginary) = bytes.split_at(format.bytes());
                (format.decode(word(real)), format.decode(word(imaginary)))
            };
            let ((a, b), (c, d)) = (read(a), read(b));
            let (real, imaginary) = match op {
                Op::Prod => (a * c - b * d, a * d + b * c),
                _ => (a + c, b + d),
            };
            let (first, second) = out.split_at_mut(format.bytes());
            write(format.encode(real), first);
            write(format.encode(imaginary), second);
        }
        (DType::F32I32 | DType::F64I64, Some(format)) => {
            let value = |bytes: &[u8]| format.decode(word(&bytes[..format.bytes()]));
            return located(op, value(a), value(b), a, b);
        }
        (DType::I32I32 | DType::I64I64, None) => {
            let half = a.len() / 2;
            let value = |bytes: &[u8]| extend(&bytes[..half]) as f64;
            return located(op, value(a), value(b), a, b);
        }
        (_, Some(format)) => {
            let (a, b) = (format.decode(word(a)), format.decode(word(b)));
            let value = match op {
                Op::Prod => a * b,
                Op::Min => a.min(b),
                Op::Max => a.max(b),
                _ => a + b,
            };
            write(format.encode(value), &mut out);
        }
        (DType::Bool, None) => {
            let (a, b) = (a[0] != 0, b[0] != 0);
            out[0] = u8::from(match bool_op(op) {
                Op::Lor => a || b,
                Op::Lxor => a ^ b,
                _ => a && b,
            });
        }
        (_, None) => write(integers(dtype, op, a, b), &mut out),
    }
    out
}

fn located(op: Op, value_a: f64, value_b: f64, a: &[u8], b: &[u8]) -> Vec<u8> {
    assert_ne!(value_a, value_b, "no ties are made");
    let a_wins = (value_a < value_b) == (op == Op::MinLoc);
    if a_wins { a } else { b }.to_vec()
}

fn extend(bytes: &[u8]) -> i64 {
    let shift = 64 - 8 * bytes.len() as u32;
    ((word(bytes) << shift) as i64) >> shift
}

fn integers(dtype: DType, op: Op, a: &[u8], b: &[u8]) -> u64 {
    let signed = matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
    let less = if signed {
        extend(a) < extend(b)
    } else {
        word(a) < word(b)
    };
    let (a, b) = (word(a), word(b));
    match op {
        Op::Prod => a.wrapping_mul(b),
        Op::Min => {
            if less {
                a
            } else {
                b
            }
        }
        Op::Max => {
            if less {
                b
            } else {
                a
            }
        }
        Op::Band => a & b,
        Op::Bor => a | b,
        Op::Bxor => a ^ b,
        Op::Land => u64::from(a != 0 && b != 0),
        Op::Lor => u64::from(a != 0 || b != 0),
        Op::Lxor => u64::from((a != 0) ^ (b != 0)),
        _ => a.wrapping_add(b),
    }
}

/// A rank's contribution as the operation takes it: multiplied, or as a truth value.
fn taken(data: &Data, rank: u32) -> Vec<u8> {
    let size = data.dtype.size_bytes();
    let mut bytes = vec![0; size * ELEMENTS];
    let elements = bytes.len() / data.dtype.size_bytes();
    data.reduced(Who::Rank(rank), 5, elements)
        .copy_to(&mut bytes);
    for element in bytes.chunks_exact_mut(size) {
        match (data.op, Format::of(data.dtype)) {
            (Op::PremulSum, None) => write(word(element).wrapping_mul(scalar(rank)), element),
            (Op::PremulSum, Some(format)) => {
                for part in element.chunks_exact_mut(format.bytes()) {
                    let value = format.decode(word(part)) * scalar(rank) as f64;
                    write(format.encode(value), part);
                }
            }
            (Op::Land | Op::Lor | Op::Lxor, _) => {
                let truth = u64::from(word(element) != 0);
                write(truth, element);
            }
            _ => {}
        }
    }
    bytes
}

/// Divides as `avg` does; other outcomes stay.
fn finish(data: &Data, sum: &mut [u8]) {
    if data.op != Op::Avg {
        return;
    }
    let signed = matches!(data.dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
    let Some(format) = Format::of(data.dtype) else {
        let world = i64::from(data.world);
        let quotient = if signed {
            extend(sum) / world
        } else {
            word(sum) as i64 / world
        };
        return write(quotient as u64, sum);
    };
    for part in sum.chunks_exact_mut(format.bytes()) {
        let quotient = format.decode(word(part)) / f64::from(data.world);
        write(format.encode(quotient), part);
    }
}

#[test]
fn outcomes_are_those_of_a_loop_in_either_order() {
    for (dtype, op) in served() {
        for world in [1, 2, 3, 7, 300] {
            let data = Data {
                dtype,
                op,
                world,
                seed: 42 + u64::from(world),
            };
            let size = dtype.size_bytes();
            let mut expected = vec![0; size * ELEMENTS];
            let elements = expected.len() / data.dtype.size_bytes();
            data.reduced(Who::All, 5, elements).copy_to(&mut expected);
            let parts: Vec<_> = (0..world).map(|rank| taken(&data, rank)).collect();
            for element in 0..ELEMENTS {
                let at = element * size..(element + 1) * size;
                let fold = |order: &mut dyn Iterator<Item = &Vec<u8>>| {
                    let parts = order.map(|part| part[at.clone()].to_vec());
                    let mut outcome = parts
                        .reduce(|a, b| reduce(dtype, op, &a, &b))
                        .expect("a world has a rank");
                    finish(&data, &mut outcome);
                    outcome
                };
                for outcome in [fold(&mut parts.iter()), fold(&mut parts.iter().rev())] {
                    let wrong = data.count_wrong(&outcome, &expected[at.clone()]);
                    assert_eq!(
                        wrong,
                        0,
                        "{op} of {dtype}, {world} ranks, element {element}: {outcome:?} {:?}",
                        &expected[at.clone()]
                    );
                }
            }
        }
    }
}

/// Data that is the same everywhere would hide what goes to the wrong place.
#[test]
fn ranks_elements_and_seeds_differ() {
    for (dtype, op) in served().filter(|(dtype, _)| dtype.size_bytes() >= 2) {
        let fill = |rank, seed| {
            let data = Data {
                dtype,
                op,
                world: 4,
                seed,
            };
            let mut bytes = vec![0; dtype.size_bytes() * 64];
            let elements = bytes.len() / data.dtype.size_bytes();
            data.reduced(Who::Rank(rank), 0, elements)
                .copy_to(&mut bytes);
            bytes
        };
        assert_ne!(fill(0, 1), fill(1, 1), "{op} of {dtype}");
        assert_ne!(fill(0, 1), fill(0, 2), "{op} of {dtype}");
    }
}

#[test]
fn moved_bytes_are_the_same_wherever_the_part_begins() {
    let data = Data {
        dtype: DType::U8,
        op: Op::Sum,
        world: 2,
        seed: 9,
    };
    let mut whole = [0; 100];
    let elements = whole.len() / data.dtype.size_bytes();
    data.moved(1, 0, elements).copy_to(&mut whole);
    let mut part = [0; 40];
    let elements = part.len() / data.dtype.size_bytes();
    data.moved(1, 13, elements).copy_to(&mut part);
    assert_eq!(part, whole[13..53]);
    let mut other = [0; 100];
    let elements = other.len() / data.dtype.size_bytes();
    data.moved(0, 0, elements).copy_to(&mut other);
    assert_ne!(whole, other);
}

#[test]
fn a_wrong_element_is_found_and_counted() {
    for (dtype, op) in served() {
        let data = Data {
            dtype,
            op,
            world: 3,
            seed: 1,
        };
        let mut expected = vec![0; dtype.size_bytes() * 8];
        let elements = expected.len() / data.dtype.size_bytes();
        data.reduced(Who::All, 0, elements).copy_to(&mut expected);
        let mut found = expected.clone();
        let at = dtype.size_bytes() * 3;
        // The highest bit below the sign: far from any tolerance.
        found[at + dtype.size_bytes() - 1] ^= 0x40;
        if dtype == DType::Bool {
            found[at] = u8::from(expected[at] == 0);
        }
        assert_eq!(data.count_wrong(&found, &expected), 1, "{op} of {dtype}");
    }
}
