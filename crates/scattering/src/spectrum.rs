//! Two-dimensional Fourier transforms of one resolution.

use std::sync::Arc;

use rustfft::num_complex::Complex32;
use rustfft::{Fft, FftPlanner};

use crate::simd::vectorise;

/// Transforms of maps of one size, and the memory they take.
///
/// A spectrum is kept transposed, `[columns, rows]`: both directions then need one exchange of rows
/// and columns instead of two. No factor `1/size` is applied in either direction.
pub(crate) struct Spectrum {
    rows: usize,
    columns: usize,
    /// Along rows and along columns.
    forward: [Arc<dyn Fft<f32>>; 2],
    inverse: [Arc<dyn Fft<f32>>; 2],
    transposed: Vec<Complex32>,
    scratch: Vec<Complex32>,
}

impl Spectrum {
    pub(crate) fn new(rows: usize, columns: usize, planner: &mut FftPlanner<f32>) -> Self {
        let forward = [planner.plan_fft_forward(columns), planner.plan_fft_forward(rows)];
        let inverse = [planner.plan_fft_inverse(columns), planner.plan_fft_inverse(rows)];
        let plans = forward.iter().chain(&inverse);
        let scratch = plans.map(|plan| plan.get_inplace_scratch_len()).max().unwrap_or(0);
        Self {
            rows,
            columns,
            forward,
            inverse,
            transposed: vec![Complex32::default(); rows * columns],
            scratch: vec![Complex32::default(); scratch],
        }
    }

    /// Number of values of a map.
    pub(crate) fn len(&self) -> usize {
        self.rows * self.columns
    }

    /// The spectrum of a real map `[rows, columns]` into `spectrum`, transposed.
    pub(crate) fn of_map(&mut self, map: &[f32], spectrum: &mut [Complex32]) {
        let [along_rows, along_columns] = &self.forward;
        let transposed = &mut self.transposed;
        vectorise(
            #[inline(always)]
            || {
                for (value, &pixel) in transposed.iter_mut().zip(map) {
                    *value = Complex32::new(pixel, 0.0);
                }
            },
        );
        along_rows.process_with_scratch(&mut self.transposed, &mut self.scratch);
        transpose(&self.transposed, spectrum, self.rows, self.columns);
        along_columns.process_with_scratch(spectrum, &mut self.scratch);
    }

    /// The modulus of the map of a spectrum, which is overwritten, into `map`.
    pub(crate) fn modulus(&mut self, spectrum: &mut [Complex32], map: &mut [f32]) {
        let [along_rows, along_columns] = &self.inverse;
        along_columns.process_with_scratch(spectrum, &mut self.scratch);
        transpose(spectrum, &mut self.transposed, self.columns, self.rows);
        along_rows.process_with_scratch(&mut self.transposed, &mut self.scratch);
        let complex = &self.transposed;
        vectorise(
            #[inline(always)]
            || {
                for (value, complex) in map.iter_mut().zip(complex) {
                    *value = complex.re.mul_add(complex.re, complex.im * complex.im).sqrt();
                }
            },
        );
    }
}

/// `to[j, i] = from[i, j]` for `from` of this many rows and columns.
fn transpose(from: &[Complex32], to: &mut [Complex32], rows: usize, columns: usize) {
    for (i, row) in from.chunks_exact(columns).enumerate() {
        for (j, &value) in row.iter().enumerate() {
            to[j * rows + i] = value;
        }
    }
}
