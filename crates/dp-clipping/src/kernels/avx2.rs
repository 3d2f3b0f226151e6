//! Eight lanes in two AVX registers.
#![expect(unsafe_code, reason = "vector intrinsics; dispatch checks for AVX2 before any kernel reaches this type")]

use std::arch::x86_64::{
    __m256d, _mm_loadu_ps, _mm256_add_pd, _mm256_cvtps_pd, _mm256_loadu_pd, _mm256_mul_pd, _mm256_set1_pd,
    _mm256_storeu_pd,
};

use super::lanes::Lanes;

#[derive(Clone, Copy)]
pub(super) struct Avx2(__m256d, __m256d);

impl Lanes for Avx2 {
    #[inline(always)]
    fn splat(value: f64) -> Self {
        // SAFETY: AVX2 is present, see the module.
        let half = unsafe { _mm256_set1_pd(value) };
        Self(half, half)
    }

    #[inline(always)]
    fn load_f32(values: &[f32; 8]) -> Self {
        let values = values.as_ptr();
        // SAFETY: AVX2 is present; the unaligned loads read values 0..4 and 4..8 behind the
        // reference.
        unsafe { Self(_mm256_cvtps_pd(_mm_loadu_ps(values)), _mm256_cvtps_pd(_mm_loadu_ps(values.add(4)))) }
    }

    #[inline(always)]
    fn load_f64(values: &[f64; 8]) -> Self {
        let values = values.as_ptr();
        // SAFETY: AVX2 is present; the unaligned loads read values 0..4 and 4..8 behind the
        // reference.
        unsafe { Self(_mm256_loadu_pd(values), _mm256_loadu_pd(values.add(4))) }
    }

    #[inline(always)]
    fn store(self, values: &mut [f64; 8]) {
        let values = values.as_mut_ptr();
        // SAFETY: AVX2 is present; the unaligned stores write values 0..4 and 4..8 behind the
        // reference.
        unsafe {
            _mm256_storeu_pd(values, self.0);
            _mm256_storeu_pd(values.add(4), self.1);
        }
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        // SAFETY: AVX2 is present, see the module.
        unsafe { Self(_mm256_add_pd(self.0, other.0), _mm256_add_pd(self.1, other.1)) }
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        // SAFETY: AVX2 is present, see the module.
        unsafe { Self(_mm256_mul_pd(self.0, other.0), _mm256_mul_pd(self.1, other.1)) }
    }
}
