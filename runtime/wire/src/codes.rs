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
    DType { I32 = 1 => "int32", I64 = 2 => "int64", F32 = 3 => "float32", F64 = 4 => "float64" }
}

codes! {
    /// Reductions.
    Op { Sum = 1 => "sum", Prod = 2 => "prod", Min = 3 => "min", Max = 4 => "max" }
}

codes! {
    /// Calls that ranks make together, or in pairs.
    Collective {
        Barrier = 1 => "barrier", Broadcast = 2 => "broadcast", AllReduce = 3 => "all_reduce",
        AllGather = 4 => "all_gather", ReduceScatter = 5 => "reduce_scatter", Send = 6 => "send",
        Recv = 7 => "recv",
    }
}

impl DType {
    pub const fn size_bytes(self) -> usize {
        match self {
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 => 8,
        }
    }
}
