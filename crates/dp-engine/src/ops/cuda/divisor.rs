//! Division by numbers that are known before a kernel starts.

use candle_core::cuda::cudarc::driver::DeviceRepr;
use candle_core::{Error, Result};

/// Numbers that can be divided: those below 2³¹.
pub(super) const LIMIT: usize = 1 << 31;

/// The kernels' `Divisor`: `n / by` is the upper half of `2n · factor`, shifted.
///
/// With `2^(shift-1) < by ≤ 2^shift` the factor is `⌊2^(31+shift) / by⌋ + 1`, which is too large by
/// at most 1. A quotient is thus too large by less than `n 2^-(31+shift) ≤ 1/by` for `n < 2³¹`, and
/// its whole part is right.
///
/// **Source.** Granlund and Montgomery 1994, Theorem 4.2.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Divisor {
    by: u32,
    factor: u32,
    shift: u32,
}

#[expect(unsafe_code, reason = "says that a structure may be passed to a kernel")]
// SAFETY: plain numbers in the kernels' order and layout.
unsafe impl DeviceRepr for Divisor {}
super::launch::by_value!(Divisor);

impl Divisor {
    /// # Errors
    /// If the number is 0 or not below 2³¹.
    pub(super) fn new(by: usize) -> Result<Self> {
        let divisor = u32::try_from(by).ok().filter(|&divisor| divisor > 0 && by < LIMIT);
        let divisor = divisor
            .ok_or_else(|| Error::Msg(format!("size on a CUDA device: expected 1 to {}, got {by}", LIMIT - 1)))?;
        let shift = divisor.next_power_of_two().ilog2();
        let factor = (1_u64 << (31 + shift)) / u64::from(divisor) + 1;
        Ok(Self { by: divisor, factor: factor as u32, shift })
    }
}

/// A size as the kernels take it.
///
/// # Errors
/// If it is not below 2³¹.
pub(super) fn size(size: usize) -> Result<u32> {
    u32::try_from(size)
        .ok()
        .filter(|_| size < LIMIT)
        .ok_or_else(|| Error::Msg(format!("size on a CUDA device: expected at most {}, got {size}", LIMIT - 1)))
}

/// The number of things, with `values` values each, that one launch can number.
///
/// # Errors
/// If one of them has too many values.
pub(super) fn at_once(values: usize) -> Result<usize> {
    size(values)?;
    Ok((LIMIT - 1) / values.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_right() {
        let quotient = |n: u32, d: Divisor| ((u64::from(2 * n) * u64::from(d.factor)) >> 32) as u32 >> d.shift;
        let last = (LIMIT - 1) as u32;
        for by in (1..2_000).chain([4_095, 4_096, 4_097, 65_535, 65_537, 1_000_003, 1 << 30, (1 << 30) + 1, LIMIT - 1])
        {
            let divisor = Divisor::new(by).unwrap();
            let by = by as u32;
            // Around multiples a wrong quotient shows first.
            for k in [0, 1, 2, 3, 7, 1_000, last / by / 2, last / by] {
                let multiple = k.min(last / by) * by;
                for n in [multiple.saturating_sub(1), multiple, multiple.saturating_add(1).min(last), last] {
                    assert_eq!(quotient(n, divisor), n / by, "{n} / {by}");
                }
            }
        }
        let error = Divisor::new(0).unwrap_err().to_string();
        assert!(error.starts_with("size on a CUDA device: expected 1 to 2147483647, got 0"), "{error}");
    }

    #[test]
    fn a_launch_numbers_all_its_values() {
        for values in [1, 2, 3, 1_000, LIMIT - 1] {
            let n = at_once(values).unwrap();
            assert!(n >= 1 && n * values < LIMIT, "{values}");
        }
        assert!(at_once(LIMIT).is_err());
    }
}
