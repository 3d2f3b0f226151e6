//! Averaging over neighbourhoods, subsampling and cutting off the margin, as two small matrices.

use crate::simd::vectorise;
use rustfft::FftPlanner;
use rustfft::num_complex::Complex;

use crate::filters::low_pass_axis;

/// Columns of results that are formed side by side, in one register.
const LANES: usize = 8;

/// The low pass for maps of one resolution: `rows · map · columnsᵀ`.
///
/// The Gaussian is a product over both axes, and so are subsampling and cutting off, so all of them
/// together are one matrix from the left and one from the right.
pub(crate) struct LowPass {
    /// `[blocks, map columns]` of [`LANES`] columns of results each, the last block padded with
    /// zeros.
    columns: Vec<[f32; LANES]>,
    /// `[out rows, map rows]`.
    rows: Vec<f32>,
    map: (usize, usize),
    out: (usize, usize),
    /// Every row of the map with a block of columns done.
    buffer: Vec<[f32; LANES]>,
}

impl LowPass {
    /// For maps that were halved `halvings` times, of a padded image of this size.
    pub(crate) fn new(image: (usize, usize), log2_scale: usize, halvings: usize) -> Self {
        let (rows, out_rows) = axis(image.0, log2_scale, halvings);
        let (weights, out_columns) = axis(image.1, log2_scale, halvings);
        let map = (image.0 >> halvings, image.1 >> halvings);
        let mut columns = vec![[0.0; LANES]; map.1 * out_columns.div_ceil(LANES)];
        for (out, weights) in weights.chunks_exact(map.1).enumerate() {
            let block = &mut columns[out / LANES * map.1..][..map.1];
            for (lanes, &weight) in block.iter_mut().zip(weights) {
                lanes[out % LANES] = weight;
            }
        }
        Self { columns, rows, map, out: (out_rows, out_columns), buffer: vec![[0.0; LANES]; map.0] }
    }

    /// Rows and columns of a result.
    pub(crate) fn out(&self) -> (usize, usize) {
        self.out
    }

    /// The map's average into `out`, row-major.
    pub(crate) fn apply(&mut self, map: &[f32], out: &mut [f32]) {
        let Self { columns, rows, map: (height, width), out: (_, out_columns), buffer } = self;
        vectorise(
            #[inline(always)]
            || {
                for (block, weights) in columns.chunks_exact(*width).enumerate() {
                    for (sum, row) in buffer.iter_mut().zip(map.chunks_exact(*width)) {
                        *sum = weighted_sum(row, weights);
                    }
                    let start = block * LANES;
                    let end = (start + LANES).min(*out_columns);
                    for (weights, out) in rows.chunks_exact(*height).zip(out.chunks_exact_mut(*out_columns)) {
                        out[start..end].copy_from_slice(&weighted_sum(weights, buffer)[..end - start]);
                    }
                }
            },
        );
    }
}

/// `Σ factors[i] · values[i]`, lane by lane.
#[expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]
#[inline(always)]
fn weighted_sum(factors: &[f32], values: &[[f32; LANES]]) -> [f32; LANES] {
    let mut sum = [0.0; LANES];
    for (&factor, values) in factors.iter().zip(values) {
        for (sum, &value) in sum.iter_mut().zip(values) {
            *sum = factor.mul_add(value, *sum);
        }
    }
    sum
}

/// `[out, map]` weights of one axis and the number of outputs: every `2^(J − halvings)`-th value of
/// the filtered map, without the first and the last.
fn axis(len: usize, log2_scale: usize, halvings: usize) -> (Vec<f32>, usize) {
    let transfer = low_pass_axis(len, log2_scale, halvings);
    let map = transfer.len();
    let mut response: Vec<Complex<f64>> = transfer.iter().map(|&value| Complex::new(value, 0.0)).collect();
    FftPlanner::new().plan_fft_inverse(map).process(&mut response);
    let n_out = (len >> log2_scale) - 2;
    let stride = 1 << (log2_scale - halvings);
    let mut weights = Vec::with_capacity(n_out * map);
    for out in 1..=n_out {
        let weight = |i: usize| response[(out * stride + map - i) % map].re / map as f64;
        weights.extend((0..map).map(|i| weight(i) as f32));
    }
    (weights, n_out)
}
