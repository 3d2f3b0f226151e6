//! Eight lanes as an array, for every processor.

use super::lanes::Lanes;

#[derive(Clone, Copy)]
pub(super) struct Portable([f64; 8]);

impl Lanes for Portable {
    #[inline(always)]
    fn splat(value: f64) -> Self {
        Self([value; 8])
    }

    #[inline(always)]
    fn load_f32(values: &[f32; 8]) -> Self {
        Self(values.map(f64::from))
    }

    #[inline(always)]
    fn load_f64(values: &[f64; 8]) -> Self {
        Self(*values)
    }

    #[inline(always)]
    fn store(self, values: &mut [f64; 8]) {
        *values = self.0;
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(std::array::from_fn(|lane| self.0[lane] + other.0[lane]))
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Self(std::array::from_fn(|lane| self.0[lane] * other.0[lane]))
    }
}
