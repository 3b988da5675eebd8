//! Contributions whose reduction is exact in any order, and that reduction, both without a loop
//! over ranks.
//!
//! - Sums of floats: one whole number that the type holds exactly is cut into a part for each rank;
//!   all parts have one sign, so that no partial sum is larger. Sums of integers wrap, and are
//!   differences of neighbours in a row of random numbers.
//! - Products: powers of two (of three for integers), whose exponents are such parts; one rank has
//!   random digits besides.
//! - Minimum, maximum, and, or: one rank, drawn for each element, decides.
//! - Exclusive or: neighbours in a row of random bits.
//! - Averages divide such a sum once.

use super::format::Format;
use rlaunch_wire::Op;

/// A rank's contribution, or what becomes of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Rank(u32),
    All,
}

/// What is random about one element (or part of a complex one).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Draw {
    hash: u64,
    world: u32,
}

/// Ranks with an odd number multiply by this; the others by 1, as in nccl-tests.
pub(crate) const ODD_SCALAR: u64 = 2;

pub(crate) fn scalar(rank: u32) -> u64 {
    if rank % 2 == 1 { ODD_SCALAR } else { 1 }
}

impl Draw {
    pub(crate) fn new(seed: u64, element: u64, world: u32) -> Self {
        Self {
            hash: mix(seed ^ mix(element)),
            world,
        }
    }

    /// Another, for the second part of a complex number.
    pub(crate) fn second(self) -> Self {
        Self {
            hash: mix(self.hash ^ 0x05EC_04D5),
            ..self
        }
    }

    /// A random number for `key`, the same on all ranks.
    pub(crate) fn random(self, key: u64) -> u64 {
        mix(self
            .hash
            .wrapping_add(key.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
    }

    /// The rank that decides.
    pub(crate) fn decider(self) -> u32 {
        (self.random(1 << 40) % u64::from(self.world)) as u32
    }

    /// A row of random numbers between ranks: `(before, after)` of a rank, or its ends.
    fn neighbours(self, who: Who) -> (u64, u64) {
        let (from, to) = match who {
            Who::Rank(rank) => (rank, rank + 1),
            Who::All => (0, self.world),
        };
        (self.random(u64::from(from)), self.random(u64::from(to)))
    }

    /// `total` cut into random parts, at most 2^44; with [`Who::All`] the total itself.
    fn part(self, total: u64, who: Who) -> u64 {
        let Who::Rank(rank) = who else { return total };
        const WIDTH: u64 = 256;
        let world = u64::from(self.world);
        let cut = |at: u64| {
            let inside = at > 0 && at < world;
            let place = at * WIDTH + if inside { self.random(at) % WIDTH } else { 0 };
            total * place / (world * WIDTH)
        };
        let at = (u64::from(rank) + self.random(1 << 41)) % world;
        cut(at + 1) - cut(at)
    }

    fn sign(self) -> bool {
        self.random(1 << 42) & 1 == 1
    }

    /// As two's complement; the caller cuts it to the type's width.
    pub(crate) fn integer(self, op: Op, who: Who, bits: u32, signed: bool) -> u64 {
        let (before, after) = self.neighbours(who);
        let decides = matches!(who, Who::All) || who == Who::Rank(self.decider());
        // What others may add without changing the outcome.
        let noise = match who {
            _ if decides => 0,
            Who::Rank(rank) => self.random((1 << 50) | u64::from(rank)),
            Who::All => 0,
        };
        let value = self.random(1 << 43);
        match op {
            Op::Sum => after.wrapping_sub(before),
            Op::PremulSum => {
                let half = after.wrapping_sub(before);
                let factor = match who {
                    Who::Rank(rank) => ODD_SCALAR / scalar(rank),
                    Who::All => ODD_SCALAR,
                };
                half.wrapping_mul(factor)
            }
            Op::Avg => {
                let total = value % (1 << (bits - 1).min(44));
                let mut part = self.part(total, who);
                if matches!(who, Who::All) {
                    part /= u64::from(self.world);
                }
                if signed && self.sign() {
                    part.wrapping_neg()
                } else {
                    part
                }
            }
            Op::Prod => {
                let power = 3_u64.wrapping_pow(self.part(value % 40, who) as u32);
                if (before ^ after) & 1 == 1 {
                    power.wrapping_neg()
                } else {
                    power
                }
            }
            Op::Min | Op::Max | Op::MinLoc | Op::MaxLoc => {
                self.extreme(op, bits, signed, value, (!decides).then_some(noise))
            }
            Op::Band => value | noise,
            Op::Bor if decides => value,
            Op::Bor => value & noise,
            Op::Bxor => before ^ after,
            Op::Land | Op::Lor | Op::Lxor => self.truth(op, who, noise),
            Op::User => 0,
        }
    }

    /// A random value in the middle half of the type's range, moved by up to an eighth of it away
    /// from what wins.
    fn extreme(self, op: Op, bits: u32, signed: bool, value: u64, noise: Option<u64>) -> u64 {
        let quarter = 1_u64 << (bits - 2);
        let lowest = if signed {
            quarter.wrapping_neg()
        } else {
            quarter
        };
        let middle = lowest.wrapping_add(value % (2 * quarter));
        let distance = noise.map_or(0, |noise| 1 + noise % (quarter / 2));
        match op {
            Op::Min | Op::MinLoc => middle.wrapping_add(distance),
            _ => middle.wrapping_sub(distance),
        }
    }

    /// 0 or 1 as an outcome; any number but 0 as a true contribution.
    fn truth(self, op: Op, who: Who, noise: u64) -> u64 {
        let (before, after) = self.neighbours(who);
        let outcome = self.sign();
        let truth = match (op, who) {
            (Op::Land, Who::Rank(rank)) => outcome || rank != self.decider() && noise & 1 == 1,
            (Op::Lor, Who::Rank(rank)) => outcome && (rank == self.decider() || noise & 1 == 1),
            (Op::Land | Op::Lor, Who::All) => outcome,
            _ => (before ^ after) & 1 == 1,
        };
        match who {
            Who::All => u64::from(truth),
            Who::Rank(_) => u64::from(truth) * (1 + noise % 100),
        }
    }

    /// Exact in `format`, except averages, which are to be rounded once more.
    pub(crate) fn float(self, op: Op, who: Who, format: Format) -> f64 {
        let decides = matches!(who, Who::All) || who == Who::Rank(self.decider());
        let value = self.random(1 << 43);
        let bits = format.precision_bits().min(44);
        let signed = |magnitude: f64| if self.sign() { -magnitude } else { magnitude };
        match op {
            Op::Sum => signed(self.part(value % (1 << bits), who) as f64 * self.scale()),
            Op::Avg => {
                let sum = self.part(value % (1 << bits), who) as f64 * self.scale();
                let ranks = if matches!(who, Who::All) {
                    self.world
                } else {
                    1
                };
                signed(sum / f64::from(ranks))
            }
            Op::PremulSum => {
                let half = self.part(value % (1 << (bits - 1)), who);
                let factor = match who {
                    Who::Rank(rank) => ODD_SCALAR / scalar(rank),
                    Who::All => ODD_SCALAR,
                };
                signed((half * factor) as f64 * self.scale())
            }
            Op::Prod => {
                const POWER_MAX: u64 = 6;
                let (before, after) = self.neighbours(who);
                let power = self.part(value % (POWER_MAX + 1), who) as i32;
                let digits = (1 << (bits - 1)) | ((value >> 8) % (1 << (bits - 1)));
                let digits = digits as f64 / f64::from(bits - 1).exp2();
                let magnitude = if decides { digits } else { 1.0 } * 2.0_f64.powi(power);
                if (before ^ after) & 1 == 1 {
                    -magnitude
                } else {
                    magnitude
                }
            }
            _ => {
                // A whole number and a step away from what wins, both with a bit less.
                let half = 1_i64 << (bits - 1);
                let middle = (value % (half as u64)) as i64 - half / 2;
                let Who::Rank(rank) = who else {
                    return middle as f64;
                };
                if decides {
                    return middle as f64;
                }
                let away =
                    1 + (self.random((1 << 50) | u64::from(rank)) % (half as u64 / 2)) as i64;
                let towards = if matches!(op, Op::Min | Op::MinLoc) {
                    1
                } else {
                    -1
                };
                (middle + towards * away) as f64
            }
        }
    }

    /// A power of two, so that exponents differ between elements.
    fn scale(self) -> f64 {
        const POWERS: u64 = 5;
        2.0_f64.powi((self.random(1 << 44) % POWERS) as i32)
    }

    /// A complex factor is a float times a power of i, so that one part is 0 and nothing rounds.
    pub(crate) fn complex_product(self, who: Who, format: Format) -> (f64, f64) {
        let magnitude = self.float(Op::Prod, who, format);
        let (before, after) = self.second().neighbours(who);
        match after.wrapping_sub(before) & 3 {
            0 => (magnitude, 0.0),
            1 => (0.0, magnitude),
            2 => (-magnitude, 0.0),
            _ => (0.0, -magnitude),
        }
    }
}

/// SplitMix64's last steps.
pub(crate) fn mix(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
