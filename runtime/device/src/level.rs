//! What the processor can do, found at run time.

/// Instruction sets that kernels are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// The standard library looks once and keeps the answer.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn detect() -> Self {
        if !(is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c")) {
            Self::Baseline
        } else if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
        {
            Self::Avx512
        } else {
            Self::Avx2
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn detect() -> Self {
        Self::Baseline
    }

    /// All that this processor has, for tests.
    #[cfg(test)]
    pub(crate) fn all() -> Vec<Self> {
        #[cfg(target_arch = "x86_64")]
        match Self::detect() {
            Self::Baseline => vec![Self::Baseline],
            Self::Avx2 => vec![Self::Baseline, Self::Avx2],
            Self::Avx512 => vec![Self::Baseline, Self::Avx2, Self::Avx512],
        }
        #[cfg(not(target_arch = "x86_64"))]
        vec![Self::Baseline]
    }
}

/// Defines `fn at(level)`, which returns the generic function `$body` compiled for that level. Its
/// first type argument tells it which level it is compiled for.
macro_rules! compiled_for_each_level {
    (
        impl<$($generic:ident: $bound:path),*> $owner:ty;
        $body:ident as fn($($name:ident: $type:ty),* $(,)?)
    ) => {
        impl<$($generic: $bound),*> $owner {
            pub(crate) fn at(level: $crate::level::Level) -> unsafe fn($($type),*) {
                match level {
                    $crate::level::Level::Baseline => Self::baseline,
                    #[cfg(target_arch = "x86_64")]
                    $crate::level::Level::Avx2 => Self::avx2,
                    #[cfg(target_arch = "x86_64")]
                    $crate::level::Level::Avx512 => Self::avx512,
                }
            }

            /// # Safety
            /// As the function that it compiles.
            unsafe fn baseline($($name: $type),*) {
                // SAFETY: the caller's promise.
                unsafe { $body::<$crate::isa::Baseline, $($generic),*>($($name),*) }
            }

            /// # Safety
            /// As the function that it compiles, on a processor with these features.
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,f16c")]
            unsafe fn avx2($($name: $type),*) {
                // SAFETY: the caller's promise.
                unsafe { $body::<$crate::isa::Avx2, $($generic),*>($($name),*) }
            }

            /// # Safety
            /// As the function that it compiles, on a processor with these features.
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,f16c")]
            unsafe fn avx512($($name: $type),*) {
                // SAFETY: the caller's promise.
                unsafe { $body::<$crate::isa::Avx512, $($generic),*>($($name),*) }
            }
        }
    };
}
pub(crate) use compiled_for_each_level;
