//! Element types, reductions and collectives, as numbers on the wire.

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $code:literal => $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $name { $($variant = $code),+ }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            pub fn from_code(code: u8) -> Option<Self> {
                match code { $($code => Some(Self::$variant),)+ _ => None }
            }

            #[inline]
            pub fn code(self) -> u8 {
                self as u8
            }

            /// The name that users write and messages show.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

codes! {
    /// Element types. Codes are kept for ever; types of later versions get new ones.
    ///
    /// Layout in memory, little endian: floats as IEEE 754 (`BF16`: the upper half of a binary32;
    /// `F8E4M3`, `F8E5M2`: the OCP 8-bit formats, the former without infinities), complex numbers as
    /// (real, imaginary), pairs as (value, index), `Bool` as a byte that is true unless 0.
    DType {
        I32 = 1 => "int32", I64 = 2 => "int64", F32 = 3 => "float32", F64 = 4 => "float64",
        I8 = 5 => "int8", U8 = 6 => "uint8", I16 = 7 => "int16", U16 = 8 => "uint16",
        U32 = 9 => "uint32", U64 = 10 => "uint64", F16 = 11 => "float16", BF16 = 12 => "bfloat16",
        F8E4M3 = 13 => "float8_e4m3", F8E5M2 = 14 => "float8_e5m2", C64 = 15 => "complex64",
        C128 = 16 => "complex128", Bool = 17 => "bool", F32I32 = 18 => "float32_int32",
        F64I64 = 19 => "float64_int64", I32I32 = 20 => "int32_int32", I64I64 = 21 => "int64_int64",
    }
}

codes! {
    /// Reductions.
    Op {
        Sum = 1 => "sum", Prod = 2 => "prod", Min = 3 => "min", Max = 4 => "max", Avg = 5 => "avg",
        Band = 6 => "band", Bor = 7 => "bor", Bxor = 8 => "bxor", Land = 9 => "land",
        Lor = 10 => "lor", Lxor = 11 => "lxor", MinLoc = 12 => "minloc", MaxLoc = 13 => "maxloc",
        PremulSum = 14 => "premul_sum", User = 15 => "user",
    }
}

codes! {
    /// Calls that ranks make together, or in pairs. A variant with counts of its own for each rank
    /// (`…V`) has a code of its own, so that a mix-up of the two shows as a mismatch.
    Collective {
        Barrier = 1 => "barrier", Broadcast = 2 => "broadcast", AllReduce = 3 => "all_reduce",
        AllGather = 4 => "all_gather", ReduceScatter = 5 => "reduce_scatter", Send = 6 => "send",
        Recv = 7 => "recv", Reduce = 8 => "reduce", Gather = 9 => "gather",
        Scatter = 10 => "scatter", AllToAll = 11 => "all_to_all", Scan = 12 => "scan",
        Exscan = 13 => "exscan", AllGatherV = 14 => "all_gather_v",
        ReduceScatterV = 15 => "reduce_scatter_v", GatherV = 16 => "gather_v",
        ScatterV = 17 => "scatter_v", AllToAllV = 18 => "all_to_all_v", Split = 19 => "split",
        Duplicate = 20 => "duplicate", FromRanks = 21 => "from_ranks", Shrink = 22 => "shrink",
    }
}

/// What sort of number a type holds: operations serve whole sorts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Integer,
    Float,
    Complex,
    Bool,
    /// A value and an index, for `minloc` and `maxloc`.
    Pair,
}

impl DType {
    #[inline]
    pub const fn size_bytes(self) -> usize {
        match self {
            Self::I8 | Self::U8 | Self::F8E4M3 | Self::F8E5M2 | Self::Bool => 1,
            Self::I16 | Self::U16 | Self::F16 | Self::BF16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 | Self::C64 | Self::F32I32 | Self::I32I32 => 8,
            Self::C128 | Self::F64I64 | Self::I64I64 => 16,
        }
    }

    /// Floats of 16 and 8 bits, which are computed in binary32.
    #[inline]
    pub const fn is_small_float(self) -> bool {
        matches!(self, Self::F16 | Self::BF16 | Self::F8E4M3 | Self::F8E5M2)
    }

    #[inline]
    pub const fn kind(self) -> Kind {
        match self {
            Self::I8 | Self::I16 | Self::I32 | Self::I64 => Kind::Integer,
            Self::U8 | Self::U16 | Self::U32 | Self::U64 => Kind::Integer,
            Self::F8E4M3 | Self::F8E5M2 => Kind::Float,
            Self::F16 | Self::BF16 | Self::F32 | Self::F64 => Kind::Float,
            Self::C64 | Self::C128 => Kind::Complex,
            Self::Bool => Kind::Bool,
            Self::F32I32 | Self::F64I64 | Self::I32I32 | Self::I64I64 => Kind::Pair,
        }
    }
}

impl Op {
    /// Whether elements of this type can be reduced so. [`Op::refusal`] says why not.
    pub const fn serves(self, dtype: DType) -> bool {
        self.refusal(dtype).is_none()
    }

    /// Whether its results on floats have to be rounded, so that how often counts.
    #[inline]
    pub const fn rounds(self) -> bool {
        matches!(self, Self::Sum | Self::Prod | Self::Avg | Self::PremulSum)
    }

    /// Why this operation has no meaning for elements of `dtype`; `None` where it has one.
    ///
    /// On `Bool`, where a byte other than 0 is true: `sum` and `max` are "or", `prod` and `min` are
    /// "and", the bitwise operations are the logical ones.
    #[inline]
    pub const fn refusal(self, dtype: DType) -> Option<&'static str> {
        match (self, dtype.kind()) {
            (Self::User, _) | (Self::MinLoc | Self::MaxLoc, Kind::Pair) => None,
            (Self::MinLoc | Self::MaxLoc, _) => {
                Some("minloc and maxloc serve pairs of a value and an index, such as float32_int32")
            }
            (_, Kind::Pair) => Some("pairs of a value and an index serve minloc and maxloc only"),
            (Self::Sum | Self::Prod, _) => None,
            (Self::Min | Self::Max, Kind::Complex) => Some("complex numbers have no order"),
            (Self::Min | Self::Max, _) => None,
            (Self::Avg | Self::PremulSum, Kind::Bool) => {
                Some("truth values have no average and no multiple; sum is \"or\", prod is \"and\"")
            }
            (Self::Avg | Self::PremulSum, _) => None,
            (_, Kind::Integer | Kind::Bool) => None,
            (_, _) => Some("bitwise and logical operations serve integers and bool"),
        }
    }
}

impl Collective {
    /// Makes a communicator out of another.
    #[inline]
    pub const fn makes_communicator(self) -> bool {
        matches!(
            self,
            Self::Split | Self::Duplicate | Self::FromRanks | Self::Shrink
        )
    }

    /// Whether its call carries a reduction.
    #[inline]
    pub const fn reduces(self) -> bool {
        matches!(
            self,
            Self::AllReduce
                | Self::Reduce
                | Self::ReduceScatter
                | Self::ReduceScatterV
                | Self::Scan
                | Self::Exscan
        )
    }

    /// Whether one rank, the root, has a part of its own in it.
    #[inline]
    pub const fn has_root(self) -> bool {
        matches!(
            self,
            Self::Broadcast
                | Self::Reduce
                | Self::Gather
                | Self::GatherV
                | Self::Scatter
                | Self::ScatterV
        )
    }

    /// Whether each rank has a count of its own.
    #[inline]
    pub const fn has_counts(self) -> bool {
        matches!(
            self,
            Self::AllGatherV
                | Self::ReduceScatterV
                | Self::GatherV
                | Self::ScatterV
                | Self::AllToAllV
        )
    }

    /// Whether it is a call of two ranks, not of all.
    #[inline]
    pub const fn is_point_to_point(self) -> bool {
        matches!(self, Self::Send | Self::Recv)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs that were built apart agree on these numbers.
    #[test]
    fn codes_and_names_are_unique_and_kept() {
        assert_eq!((DType::I32.code(), DType::F64.code()), (1, 4));
        assert_eq!((Op::Sum.code(), Op::Max.code()), (1, 4));
        assert_eq!(
            (Collective::Barrier.code(), Collective::Recv.code()),
            (1, 7)
        );
        for (at, dtype) in DType::ALL.iter().enumerate() {
            assert_eq!(DType::from_code(dtype.code()), Some(*dtype));
            assert_eq!(usize::from(dtype.code()), at + 1);
            let named = DType::ALL
                .iter()
                .filter(|other| other.name() == dtype.name());
            assert_eq!(named.count(), 1);
        }
        assert_eq!((DType::from_code(0), Op::from_code(16)), (None, None));
    }

    #[test]
    fn each_operation_serves_the_types_it_has_a_meaning_for() {
        let served = |op: Op| DType::ALL.iter().filter(|dtype| op.serves(**dtype)).count();
        let counts: Vec<usize> = Op::ALL.iter().map(|op| served(*op)).collect();
        assert_eq!(counts, [17, 17, 15, 15, 16, 9, 9, 9, 9, 9, 9, 4, 4, 16, 21]);
        assert_eq!(
            Op::Min.refusal(DType::C64),
            Some("complex numbers have no order")
        );
        assert!(!Op::Band.serves(DType::F32) && !Op::Sum.serves(DType::F32I32));
    }
}
