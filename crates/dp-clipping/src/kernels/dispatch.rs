//! Choice of the instruction set at run time.
#![expect(unsafe_code, reason = "functions with target features are called after the processor was asked for them")]

use std::sync::OnceLock;

use super::{
    GradientFloat, norm::sum_of_squares_lanes, portable::Portable, stream::add_up_lanes,
    weighted_sum::add_scaled_rows_lanes,
};
#[cfg(target_arch = "x86_64")]
use super::{avx2::Avx2, avx512::Avx512};

/// An instruction set that this processor has.
///
/// ```
/// use dp_clipping::kernels::InstructionSet;
/// assert!(InstructionSet::available().contains(&InstructionSet::best()));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstructionSet(Kind);

/// Private, so that a value proves that the processor was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl InstructionSet {
    /// Every instruction set of this processor that has kernels, the slowest first.
    pub fn available() -> &'static [Self] {
        static AVAILABLE: OnceLock<Vec<InstructionSet>> = OnceLock::new();
        AVAILABLE.get_or_init(|| {
            let mut sets = vec![Self(Kind::Portable)];
            #[cfg(target_arch = "x86_64")]
            {
                if is_x86_feature_detected!("avx2") {
                    sets.push(Self(Kind::Avx2));
                }
                if is_x86_feature_detected!("avx512f") {
                    sets.push(Self(Kind::Avx512));
                }
            }
            sets
        })
    }

    /// The fastest.
    pub fn best() -> Self {
        Self::available().last().copied().unwrap_or(Self(Kind::Portable))
    }

    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "AVX2",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "AVX-512",
        }
    }
}

/// Gives a kernel written over lanes one entry that chooses the lanes.
macro_rules! dispatch {
    ($(#[$doc:meta])* $entry:ident, $avx2:ident, $avx512:ident => $kernel:ident; ($($argument:ident: $kind:ty),*) -> $result:ty) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2")]
        fn $avx2<T: GradientFloat>($($argument: $kind),*) -> $result {
            $kernel::<Avx2, T>($($argument),*)
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f")]
        fn $avx512<T: GradientFloat>($($argument: $kind),*) -> $result {
            $kernel::<Avx512, T>($($argument),*)
        }

        $(#[$doc])*
        pub(super) fn $entry<T: GradientFloat>(set: InstructionSet, $($argument: $kind),*) -> $result {
            match set.0 {
                Kind::Portable => $kernel::<Portable, T>($($argument),*),
                // SAFETY: a value of this kind exists only after the processor reported AVX2.
                #[cfg(target_arch = "x86_64")]
                Kind::Avx2 => unsafe { $avx2($($argument),*) },
                // SAFETY: a value of this kind exists only after the processor reported AVX-512F.
                #[cfg(target_arch = "x86_64")]
                Kind::Avx512 => unsafe { $avx512($($argument),*) },
            }
        }
    };
}

dispatch!(
    /// Sum of squares of a row.
    sum_of_squares, sum_of_squares_avx2, sum_of_squares_avx512 =>
    sum_of_squares_lanes; (row: &[T]) -> f64
);

dispatch!(
    /// Adds scaled rows to `total`.
    add_scaled_rows, add_scaled_rows_avx2, add_scaled_rows_avx512 =>
    add_scaled_rows_lanes; (rows: &[(&[T], f64)], total: &mut [f64]) -> ()
);

dispatch!(
    /// Sum of values.
    add_up, add_up_avx2, add_up_avx512 =>
    add_up_lanes; (values: &[T]) -> f64
);
