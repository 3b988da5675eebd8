//! The order in which contributions are combined, as far as a call asks for one.

use crate::Algorithm;
use rlaunch_wire::Collective;

/// What a call asks of the order in which contributions are combined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fold {
    /// Nothing: the operation commutes.
    #[default]
    Any,
    /// The order of ranks, with brackets anywhere: the operation is associative and no more.
    InOrder,
    /// From the first rank on, one after the other: ((c₀ op c₁) op c₂) op …, so that the same bits come
    /// out whatever the algorithm, the transport and the placement of ranks.
    FromFirst,
}

impl Algorithm {
    /// Whether contributions can be combined so. True where nothing is reduced.
    pub fn folds(self, collective: Collective, fold: Fold) -> bool {
        match fold {
            _ if !crate::reduces(collective) => true,
            Fold::Any => true,
            Fold::InOrder => self.keeps_order(collective),
            Fold::FromFirst => matches!(
                (self, collective),
                (Self::Pairwise, _)
                    | (Self::Linear, Collective::Reduce)
                    | (Self::Chain, Collective::Scan | Collective::Exscan)
            ),
        }
    }

    /// Whether each part is reduced where all contributions to it have come, at once: so it is
    /// rounded once, however narrow its type. Others round at each hop.
    pub fn sums_at_once(self, collective: Collective) -> bool {
        self == Self::Pairwise && crate::reduces(collective)
    }
}
