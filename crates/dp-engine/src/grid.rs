//! Multiples of a public step, on which sums over records are exact.

use dp_clipping::noise::StepNoise;
use rand::CryptoRng;

use crate::error::{EngineError, Result};

/// Multiples of a public step, a power of two, which values are rounded to before they are added.
///
/// **Guarantee.** Sums over records are sums of integers: they are exact in any order, on any number
/// of threads and ranks, and a record moves them by its own contribution and nothing else. Each
/// constructor says which sums have room.
///
/// **Example**
/// ```
/// use dp_engine::Grid;
/// let grid = Grid::for_values(1.0, 1_000);
/// assert_eq!(grid.step(), 2_f64.powi(11 - 53));
/// // Steps are whole numbers, which add up exactly in any order; a value that is not finite counts 0.
/// let steps: Vec<f64> = [0.1, -0.3, f64::NAN].map(|value| grid.place(value)).into();
/// assert!((steps.iter().sum::<f64>() * grid.step() + 0.2).abs() < 1e-12);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grid {
    step: f64,
    per_unit: f64,
}

/// A magnitude that no sum of clipped gradients reaches, in steps: 2⁵¹.
pub(crate) const CAPACITY: f64 = (1_u64 << 51) as f64;
/// Bits of a double-precision number's significand.
const SIGNIFICAND: u32 = f64::MANTISSA_DIGITS;
/// Fewer bits than this per value of a row would be a poor picture of it.
const LEAST_BITS: u32 = 10;

impl Grid {
    pub(crate) const fn of_step(step: f64) -> Self {
        Self { step, per_unit: step.recip() }
    }

    /// For clipped gradients of at most this norm, added as 64-bit integers.
    ///
    /// The step is at most `2⁻³⁹` of the bound, or `n 2⁻⁴⁸` of it for more than a thousand records: so
    /// fine that rounding to it costs nothing, and so coarse that the sum of all records is below 2⁵¹
    /// steps, where 64-bit integers and double precision are exact.
    pub fn for_gradients(bound: f64, n_records: usize) -> Self {
        let exponent = bound.log2().ceil() as i32;
        let records = f64::from(n_records.max(1).ilog2() + 1);
        Self::of_step((f64::from(exponent) - 40.0 + (records - 10.0).max(0.0)).exp2())
    }

    /// For values of at most `largest`, added in double precision: every partial sum is below 2⁵³
    /// steps.
    pub fn for_values(largest: f64, n_records: usize) -> Self {
        let needed = (largest * n_records.max(1) as f64).log2().ceil() as i32 + 1;
        Self::of_step(2_f64.powi(needed - SIGNIFICAND.cast_signed()))
    }

    /// The finest on which sums of products of the values of `n_records` rows of norm at most 1 are
    /// exact in double precision: `n · step⁻² ≤ 2⁵³`.
    ///
    /// # Errors
    /// [`EngineError::InvalidParameter`] for more than 2³³ records.
    pub fn for_products(n_records: usize) -> Result<Self> {
        let needed = n_records.max(1).next_power_of_two().ilog2();
        let bits = SIGNIFICAND.saturating_sub(needed) / 2;
        if bits < LEAST_BITS {
            let most = 1_u64 << (SIGNIFICAND - 2 * LEAST_BITS);
            return Err(EngineError::invalid("n_records", n_records, format!("at most {most}")));
        }
        Ok(Self::of_step(2_f64.powi(-bits.cast_signed())))
    }

    /// Whole numbers, for counts.
    pub const fn for_counts() -> Self {
        Self::of_step(1.0)
    }

    /// The grid of products of two of its values.
    #[must_use]
    pub fn squared(self) -> Self {
        Self::of_step(self.step * self.step)
    }

    /// The step.
    pub fn step(self) -> f64 {
        self.step
    }

    /// Steps in 1.
    pub fn per_unit(self) -> f64 {
        self.per_unit
    }

    /// A value in steps, towards zero; 0 if it is not finite, or too large for any sum.
    ///
    /// Rounding towards zero makes no vector longer, so a bound on a record's contribution stays one.
    /// By way of an integer: `trunc` is a call on processors that are not asked for more than the
    /// baseline.
    pub fn place(self, value: f64) -> f64 {
        const LARGEST: f64 = (1_u64 << SIGNIFICAND) as f64;
        let steps = value * self.per_unit;
        if steps.abs() < LARGEST { (steps as i64) as f64 } else { 0.0 }
    }

    /// Adds noise of this standard deviation to a sum in steps, and returns it in its own unit.
    ///
    /// **Guarantee.** The noise is exactly rounded to a public grid: post-processing of the Gaussian
    /// mechanism on real numbers, with nothing left over for rounding.
    pub fn release(self, mut sum: Vec<f64>, std: f64, rng: &mut dyn CryptoRng) -> Vec<f64> {
        StepNoise::draw(rng, std / self.step).add_f64(0, &mut sum);
        for value in &mut sum {
            *value *= self.step;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_leaves_room_for_every_sum_of_values() {
        for (largest, n) in [(1.0, 1), (13.7, 36_178), (0.01, 10_000_000)] {
            let grid = Grid::for_values(largest, n);
            assert!(grid.place(largest) * n as f64 <= 2_f64.powi(53), "{largest} {n}");
            assert!(grid.place(largest) * n as f64 >= 2_f64.powi(51), "{largest} {n}");
        }
        let grid = Grid::for_values(1.0, 8);
        assert_eq!((grid.place(f64::NAN), grid.place(f64::INFINITY)), (0.0, 0.0));
        assert!(grid.place(-0.3) * grid.step > -0.3);
    }

    #[test]
    fn a_grid_leaves_room_for_every_sum_of_products() {
        for (n_records, bits) in [(1, 26), (2, 26), (3, 25), (60_000, 18), (1 << 33, 10)] {
            let grid = Grid::for_products(n_records).unwrap();
            assert_eq!(grid.per_unit(), 2_f64.powi(bits), "{n_records}");
            assert!(n_records as f64 * grid.per_unit() * grid.per_unit() <= 2_f64.powi(53));
        }
        let error = Grid::for_products((1 << 33) + 1).unwrap_err().to_string();
        assert_eq!(error, "n_records = 8589934593: expected at most 8589934592");
    }
}
