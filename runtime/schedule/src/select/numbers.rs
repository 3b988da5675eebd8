//! How exact sums are, as far as the user has a say; pure.

use super::{Question, Shape};
use crate::Fold;
use rlaunch_wire::{Collective, DType, Op};

/// What is asked of the numbers; the same on all ranks.
///
/// Inside a host, and where an algorithm brings all contributions together before it sums
/// ([`crate::Algorithm::sums_at_once`]), floats of 16 and 8 bits are summed in binary32 and rounded
/// once. Elsewhere partial sums travel in their own type and are rounded at each hop, as NCCL does it:
/// half the bytes. An average never does so, since its sum may be too large for its type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Numbers {
    /// Partial sums of 16- and 8-bit floats travel as binary32: one rounding, whatever the way.
    pub precise: bool,
    /// Contributions are combined from the first rank on, one after the other, and rounded once: the
    /// same bits whatever the algorithm, the hosts and the transport.
    pub deterministic: bool,
}

impl Numbers {
    pub(super) fn question(
        self,
        collective: Collective,
        bytes: usize,
        shape: Shape,
        reduction: Option<(DType, Op)>,
        commutes: bool,
    ) -> Question {
        let fold = match self.deterministic {
            true => Fold::FromFirst,
            false if commutes => Fold::Any,
            false => Fold::InOrder,
        };
        let widening = match reduction {
            Some((dtype, op)) if self.widens(shape, dtype, op) => {
                size_of::<f32>() / dtype.size_bytes()
            }
            _ => 1,
        };
        Question {
            collective,
            bytes,
            shape,
            fold,
            widening,
        }
    }

    fn widens(self, shape: Shape, dtype: DType, op: Op) -> bool {
        // Of two ranks' contributions there is one sum.
        let is_asked = (self.precise || self.deterministic) && shape.world > 2;
        dtype.is_small_float() && op.rounds() && (op == Op::Avg || is_asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_grow_where_a_rounding_would_be_one_too_many() {
        let widening = |numbers: Numbers, world, dtype, op| {
            let (collective, shape) = (Collective::AllReduce, Shape::of_strangers(world));
            let reduction = Some((dtype, op));
            let question = numbers.question(collective, 64, shape, reduction, true);
            question.widening
        };
        let plain = Numbers::default();
        let precise = Numbers {
            precise: true,
            ..plain
        };
        assert_eq!(widening(plain, 4, DType::BF16, Op::Sum), 1);
        assert_eq!(widening(plain, 4, DType::BF16, Op::Avg), 2);
        assert_eq!(widening(plain, 4, DType::F32, Op::Avg), 1);
        assert_eq!(widening(precise, 4, DType::F16, Op::Sum), 2);
        assert_eq!(widening(precise, 4, DType::F8E4M3, Op::Prod), 4);
        assert_eq!(widening(precise, 2, DType::F16, Op::Sum), 1);
        assert_eq!(widening(precise, 4, DType::F16, Op::Max), 1);
    }

    #[test]
    fn the_order_is_what_is_asked_or_needed() {
        let fold = |deterministic, commutes| {
            let numbers = Numbers {
                deterministic,
                precise: false,
            };
            let (collective, shape) = (Collective::AllReduce, Shape::of_strangers(4));
            numbers.question(collective, 64, shape, None, commutes).fold
        };
        assert_eq!(fold(false, true), Fold::Any);
        assert_eq!(fold(false, false), Fold::InOrder);
        assert_eq!(fold(true, true), Fold::FromFirst);
        assert_eq!(fold(true, false), Fold::FromFirst);
    }
}
