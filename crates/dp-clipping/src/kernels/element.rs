//! The two number types of gradients.

use super::lanes::Lanes;
use crate::noise::StepNoise;

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// f32 or f64.
pub trait GradientFloat: sealed::Sealed + Copy + Default + Send + Sync + Into<f64> + 'static {
    /// The nearest value.
    fn from_f64(value: f64) -> Self;

    /// A scale in this precision. An f32 product in f64 is then exact, whatever the instruction
    /// set.
    fn round_scale(scale: f64) -> f64;

    /// Eight values as f64.
    #[doc(hidden)]
    #[expect(private_bounds, reason = "the vector types of the kernels are not public")]
    fn load<V: Lanes>(values: &[Self; 8]) -> V;

    /// Adds a step's noise to the values of its vector from a block on.
    #[doc(hidden)]
    fn add_step_noise(noise: &StepNoise, first_block: u64, values: &mut [Self]);

    /// Norm of a row whose sum of squares left the range of f64.
    #[doc(hidden)]
    fn rescaled_norm(row: &[Self]) -> f64 {
        let largest = row.iter().fold(0.0_f64, |largest, &value| largest.max(value.into().abs()));
        if largest == 0.0 || !largest.is_finite() {
            return largest;
        }
        let sum: f64 = row.iter().map(|&value| (value.into() / largest).powi(2)).sum();
        largest * sum.sqrt()
    }
}

impl GradientFloat for f32 {
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value as Self
    }

    #[inline(always)]
    fn round_scale(scale: f64) -> f64 {
        f64::from(scale as Self)
    }

    #[inline(always)]
    #[expect(private_bounds, reason = "the vector types of the kernels are not public")]
    fn load<V: Lanes>(values: &[Self; 8]) -> V {
        V::load_f32(values)
    }

    fn add_step_noise(noise: &StepNoise, first_block: u64, values: &mut [Self]) {
        noise.add_f32(first_block, values);
    }
}

impl GradientFloat for f64 {
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn round_scale(scale: f64) -> f64 {
        scale
    }

    #[inline(always)]
    #[expect(private_bounds, reason = "the vector types of the kernels are not public")]
    fn load<V: Lanes>(values: &[Self; 8]) -> V {
        V::load_f64(values)
    }

    fn add_step_noise(noise: &StepNoise, first_block: u64, values: &mut [Self]) {
        noise.add_f64(first_block, values);
    }
}
