//! Eight lanes in one AVX-512 register.
#![expect(unsafe_code, reason = "vector intrinsics; dispatch checks for AVX-512F before any kernel reaches this type")]

use std::arch::x86_64::{
    __m512d, _mm256_loadu_ps, _mm512_add_pd, _mm512_cvtps_pd, _mm512_loadu_pd, _mm512_mul_pd, _mm512_set1_pd,
    _mm512_storeu_pd,
};

use super::lanes::Lanes;

#[derive(Clone, Copy)]
pub(super) struct Avx512(__m512d);

impl Lanes for Avx512 {
    #[inline(always)]
    fn splat(value: f64) -> Self {
        // SAFETY: AVX-512F is present, see the module.
        Self(unsafe { _mm512_set1_pd(value) })
    }

    #[inline(always)]
    fn load_f32(values: &[f32; 8]) -> Self {
        // SAFETY: AVX-512F is present; the unaligned load reads the eight values behind the
        // reference.
        Self(unsafe { _mm512_cvtps_pd(_mm256_loadu_ps(values.as_ptr())) })
    }

    #[inline(always)]
    fn load_f64(values: &[f64; 8]) -> Self {
        // SAFETY: AVX-512F is present; the unaligned load reads the eight values behind the
        // reference.
        Self(unsafe { _mm512_loadu_pd(values.as_ptr()) })
    }

    #[inline(always)]
    fn store(self, values: &mut [f64; 8]) {
        // SAFETY: AVX-512F is present; the unaligned store writes the eight values behind the
        // reference.
        unsafe { _mm512_storeu_pd(values.as_mut_ptr(), self.0) }
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        // SAFETY: AVX-512F is present, see the module.
        Self(unsafe { _mm512_add_pd(self.0, other.0) })
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        // SAFETY: AVX-512F is present, see the module.
        Self(unsafe { _mm512_mul_pd(self.0, other.0) })
    }
}
