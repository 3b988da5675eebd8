//! What each rank gives, and what it must get.

use rlaunch_runtime::{Collective, DType, Op};

use crate::cases::Case;
use crate::number::Number;

/// The element at `index` of what `rank` gives. Small enough that no order of reduction rounds.
pub(crate) fn input(case: &Case, rank: u32, index: usize) -> Number {
    let (rank, index) = (rank as usize, index);
    let mixed = (rank * 7 + index * 3) % 11;
    match case.op {
        _ if !case.collective.reduces() => match case.dtype {
            DType::Bool => Number(((rank + index) % 2) as f64, 0.0),
            _ => Number(mixed as f64, (index % 5) as f64),
        },
        // Few ranks have a part, so that 17 of them fit an 8-bit float.
        Op::Sum | Op::Avg | Op::PremulSum => {
            let has_part = (rank + index) % 4 == 0;
            match case.dtype {
                DType::C64 | DType::C128 => {
                    Number(f64::from(u8::from(has_part)), (rank % 2) as f64)
                }
                _ => Number::of(f64::from(u8::from(has_part))),
            }
        }
        Op::Prod => {
            let doubles = (rank + index) % 8 == 0;
            match case.dtype {
                DType::Bool => Number::of(f64::from(u8::from(!doubles))),
                // 1 + i, of whose first powers no zero is a negative one
                DType::C64 | DType::C128 if doubles => Number(1.0, 1.0),
                _ => Number(if doubles { 2.0 } else { 1.0 }, 0.0),
            }
        }
        Op::Min | Op::Max => match case.dtype {
            DType::Bool => Number::of((mixed % 2) as f64),
            dtype if is_unsigned(dtype) => Number::of(mixed as f64),
            _ => Number::of(mixed as f64 - 5.0),
        },
        Op::Band | Op::Bor | Op::Bxor if case.dtype != DType::Bool => {
            Number::of(((rank * 37 + index * 11) & 0x7f) as f64)
        }
        Op::Band | Op::Bor | Op::Bxor | Op::Land | Op::Lor | Op::Lxor => {
            Number::of(((rank * 5 + index) % 2) as f64)
        }
        Op::MinLoc | Op::MaxLoc => Number(
            ((rank * 5 + index) % 3) as f64,
            (rank * 100 + index % 50) as f64,
        ),
        Op::User => Number((rank % 3) as f64 + 1.0, (index % 7) as f64),
    }
}

fn is_unsigned(dtype: DType) -> bool {
    matches!(dtype, DType::U8 | DType::U16 | DType::U32 | DType::U64)
}

/// What a rank's input is multiplied with in premul_sum.
pub(crate) fn scalar(rank: u32) -> f64 {
    f64::from(1 + rank % 2)
}

/// `first` then `second`, as maps x → a x + b; the order matters.
pub(crate) fn compose(first: (i64, i64), second: (i64, i64)) -> (i64, i64) {
    let a = first.0.wrapping_mul(second.0) & 0xffff;
    (
        a,
        first.1.wrapping_mul(second.0).wrapping_add(second.1) & 0xffff,
    )
}

fn combine(case: &Case, left: Number, right: Number) -> Number {
    let bits = |join: fn(i64, i64) -> i64| Number::of(join(left.0 as i64, right.0 as i64) as f64);
    let truth = |join: fn(bool, bool) -> bool| {
        Number::of(f64::from(u8::from(join(left.0 != 0.0, right.0 != 0.0))))
    };
    let is_bool = case.dtype == DType::Bool;
    match case.op {
        Op::Sum | Op::Max if is_bool => truth(|left, right| left | right),
        Op::Prod | Op::Min if is_bool => truth(|left, right| left & right),
        Op::Sum | Op::Avg | Op::PremulSum => Number(left.0 + right.0, left.1 + right.1),
        Op::Prod => Number(
            left.0 * right.0 - left.1 * right.1,
            left.0 * right.1 + left.1 * right.0,
        ),
        Op::Min => Number::of(left.0.min(right.0)),
        Op::Max => Number::of(left.0.max(right.0)),
        Op::Band => bits(|left, right| left & right),
        Op::Bor => bits(|left, right| left | right),
        Op::Bxor => bits(|left, right| left ^ right),
        Op::Land => truth(|left, right| left & right),
        Op::Lor => truth(|left, right| left | right),
        Op::Lxor => truth(|left, right| left ^ right),
        Op::MinLoc | Op::MaxLoc => {
            let is_better = if case.op == Op::MinLoc {
                right.0 < left.0
            } else {
                right.0 > left.0
            };
            let is_first = right.0 == left.0 && right.1 < left.1;
            if is_better || is_first { right } else { left }
        }
        Op::User => {
            let (left, right) = (
                (left.0 as i64, left.1 as i64),
                (right.0 as i64, right.1 as i64),
            );
            let (a, b) = compose(left, right);
            Number(a as f64, b as f64)
        }
    }
}

/// The reduction over `ranks` of their elements at `index`.
fn reduced(case: &Case, ranks: std::ops::Range<u32>, world: u32, index: usize) -> Number {
    let scaled = |rank: u32| {
        let number = input(case, rank, index);
        match case.op {
            Op::PremulSum => Number(number.0 * scalar(rank), number.1 * scalar(rank)),
            _ => number,
        }
    };
    let total = ranks
        .map(scaled)
        .reduce(|left, right| combine(case, left, right))
        .unwrap();
    if case.op == Op::Avg {
        averaged(case.dtype, total, world)
    } else {
        total
    }
}

fn averaged(dtype: DType, total: Number, world: u32) -> Number {
    let ranks = f64::from(world);
    match dtype {
        DType::F64 | DType::C128 => Number(total.0 / ranks, total.1 / ranks),
        // 16- and 8-bit floats are divided as binary32, then rounded.
        DType::F32 | DType::C64 | DType::F16 | DType::BF16 | DType::F8E4M3 | DType::F8E5M2 => {
            Number(
                f64::from(total.0 as f32 / world as f32),
                f64::from(total.1 as f32 / world as f32),
            )
        }
        _ => Number::of((total.0 / ranks).trunc()),
    }
}

/// Sizes, in elements, of what `rank` gives and gets, gaps included.
pub(crate) fn lengths(case: &Case, world: u32, rank: u32) -> (usize, usize) {
    let (count, all) = (case.count, case.count * world as usize);
    let is_root = rank == case.root;
    let parts = |of: &dyn Fn(u32) -> usize| (0..world).map(|rank| of(rank) + GAP).sum::<usize>();
    match case.collective {
        Collective::Barrier => (0, 0),
        Collective::AllGather => (count, all),
        Collective::ReduceScatter => (all, count),
        Collective::Gather => (count, if is_root { all } else { 0 }),
        Collective::Scatter => (if is_root { all } else { 0 }, count),
        Collective::AllToAll => (all, all),
        Collective::AllGatherV => (case.part(0, rank), parts(&|peer| case.part(0, peer))),
        Collective::ReduceScatterV => (parts(&|peer| case.part(0, peer)), case.part(0, rank)),
        Collective::GatherV if is_root => (case.part(0, rank), parts(&|peer| case.part(0, peer))),
        Collective::ScatterV if is_root => (parts(&|peer| case.part(0, peer)), case.part(0, rank)),
        Collective::GatherV => (case.part(0, rank), 0),
        Collective::ScatterV => (0, case.part(0, rank)),
        Collective::AllToAllV => (
            parts(&|peer| case.part(rank, peer)),
            parts(&|peer| case.part(peer, rank)),
        ),
        _ => (count, count),
    }
}

/// Elements left alone behind each part of a v-variant.
pub(crate) const GAP: usize = 1;

/// Where the part of `peer` starts if each is `of` long.
pub(crate) fn offset(of: &dyn Fn(u32) -> usize, peer: u32) -> usize {
    (0..peer).map(|before| of(before) + GAP).sum()
}

/// What `rank` must have at `index` of its output; `None` for what must stay as it was.
pub(crate) fn expected(case: &Case, world: u32, rank: u32, index: usize) -> Option<Number> {
    let is_root = rank == case.root;
    let (peer, within) = match case.count {
        0 => (0, 0),
        count => ((index / count) as u32, index % count),
    };
    let count = case.count;
    let mine = rank as usize * count;
    match case.collective {
        Collective::Barrier => None,
        Collective::Broadcast => Some(input(case, case.root, index)),
        Collective::Reduce if !is_root => None,
        Collective::Reduce | Collective::AllReduce => Some(reduced(case, 0..world, world, index)),
        Collective::ReduceScatter => Some(reduced(case, 0..world, world, mine + index)),
        Collective::AllGather | Collective::Gather => Some(input(case, peer, within)),
        Collective::Scatter => Some(input(case, case.root, mine + index)),
        Collective::AllToAll => Some(input(case, peer, mine + within)),
        Collective::Scan => Some(reduced(case, 0..rank + 1, world, index)),
        Collective::Exscan if rank == 0 => None,
        Collective::Exscan => Some(reduced(case, 0..rank, world, index)),
        Collective::AllGatherV | Collective::GatherV => {
            let (peer, within) = place(&|peer| case.part(0, peer), world, index)?;
            Some(input(case, peer, within))
        }
        Collective::ReduceScatterV => {
            let start = offset(&|peer| case.part(0, peer), rank);
            Some(reduced(case, 0..world, world, start + index))
        }
        Collective::ScatterV => {
            let start = offset(&|peer| case.part(0, peer), rank);
            Some(input(case, case.root, start + index))
        }
        Collective::AllToAllV => {
            let (peer, within) = place(&|peer| case.part(peer, rank), world, index)?;
            let start = offset(&|to| case.part(peer, to), rank);
            Some(input(case, peer, start + within))
        }
        Collective::Send | Collective::Recv => None,
        Collective::Split | Collective::Duplicate | Collective::FromRanks | Collective::Shrink => {
            None
        }
    }
}

/// Whose part holds `index`, and at which place in it; `None` in a gap.
fn place(of: &dyn Fn(u32) -> usize, world: u32, index: usize) -> Option<(u32, usize)> {
    (0..world).find_map(|peer| {
        let within = index.checked_sub(offset(of, peer))?;
        (within < of(peer)).then_some((peer, within))
    })
}
