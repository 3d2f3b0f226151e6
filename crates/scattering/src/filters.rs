//! The Morlet wavelets and the Gaussian low pass, as real transfer functions on a periodic grid.

use rustfft::FftPlanner;
use rustfft::num_complex::Complex;

/// Half-width of the Gaussian envelope at scale 1, in pixels.
const ENVELOPE: f64 = 0.8;
/// Periods of the grid by which copies of a filter are shifted and added up, to make it periodic.
const SHIFTS: [f64; 5] = [-2.0, -1.0, 0.0, 1.0, 2.0];
/// The circle number in the envelopes' normalisation. Four decimals, as in Kymatio, so that the
/// values of both can be compared to the last digits of single precision.
#[expect(clippy::approx_constant, reason = "Kymatio's")]
const FOUR_DECIMAL_PI: f64 = 3.1415;

/// A transfer function on a grid, row-major `[rows, columns]`.
#[derive(Debug, Clone)]
pub(crate) struct Transfer {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) values: Vec<f64>,
}

impl Transfer {
    /// The wavelet of scale `2^scale` and the given angle out of `angles`.
    ///
    /// `ψ(u) = g(u) (exp(i ξ·u) − K)`: a Gaussian envelope, stretched across the wave by `L/4`,
    /// times a wave of frequency `¾π/2^scale`, with `K` such that constants are not seen.
    pub(crate) fn wavelet(rows: usize, columns: usize, scale: usize, angle: usize, angles: usize) -> Self {
        let octave = (1_u64 << scale) as f64;
        let first = (angles as f64 / 2.0 - 1.0).trunc();
        let direction = (first - angle as f64) * std::f64::consts::PI / angles as f64;
        let gabor = Gabor {
            width: ENVELOPE * octave,
            direction,
            frequency: 0.75 * std::f64::consts::PI / octave,
            slant: 4.0 / angles as f64,
        };
        let mut wave = gabor.on_grid(rows, columns);
        let envelope = Gabor { frequency: 0.0, ..gabor }.on_grid(rows, columns);
        let offset = wave.iter().sum::<Complex<f64>>() / envelope.iter().sum::<Complex<f64>>();
        for (wave, envelope) in wave.iter_mut().zip(&envelope) {
            *wave -= offset * envelope;
        }
        Self::of_signal(rows, columns, wave)
    }

    /// The transfer function of a filter in space: real, since the filters' imaginary parts are
    /// odd.
    fn of_signal(rows: usize, columns: usize, mut signal: Vec<Complex<f64>>) -> Self {
        let mut planner = FftPlanner::new();
        planner.plan_fft_forward(columns).process(&mut signal);
        let along_columns = planner.plan_fft_forward(rows);
        let mut column = vec![Complex::default(); rows];
        for j in 0..columns {
            for (i, value) in column.iter_mut().enumerate() {
                *value = signal[i * columns + j];
            }
            along_columns.process(&mut column);
            for (i, value) in column.iter().enumerate() {
                signal[i * columns + j] = *value;
            }
        }
        Self { rows, columns, values: signal.iter().map(|value| value.re).collect() }
    }

    /// The part of it that a grid `2^halvings` times as coarse can hold: its low frequencies.
    pub(crate) fn coarser(&self, halvings: usize) -> Self {
        let (rows, columns) = (self.rows >> halvings, self.columns >> halvings);
        let mut values = vec![0.0; rows * columns];
        for i in (0..self.rows).filter(|&i| is_low(i, self.rows, halvings)) {
            for j in (0..self.columns).filter(|&j| is_low(j, self.columns, halvings)) {
                values[(i % rows) * columns + j % columns] += self.values[i * self.columns + j];
            }
        }
        Self { rows, columns, values }
    }
}

/// Whether a frequency of a grid of `len` points survives on a grid `2^halvings` times as coarse.
fn is_low(frequency: usize, len: usize, halvings: usize) -> bool {
    let start = len >> (halvings + 1);
    let removed = len - (len >> halvings);
    !(start..start + removed).contains(&frequency)
}

/// One axis of the separable Gaussian low pass of width `0.8 · 2^(J−1)`: its transfer function.
///
/// The two-dimensional one is the product over both axes.
pub(crate) fn low_pass_axis(len: usize, log2_scale: usize, halvings: usize) -> Vec<f64> {
    let width = ENVELOPE * (1_u64 << log2_scale) as f64 / 2.0;
    let mut signal: Vec<Complex<f64>> = (0..len)
        .map(|u| {
            let copies = SHIFTS.map(|shift| u as f64 + shift * len as f64);
            let sum: f64 = copies.iter().map(|u| (-u * u / (2.0 * width * width)).exp()).sum();
            Complex::new(sum / (2.0 * FOUR_DECIMAL_PI).sqrt() / width, 0.0)
        })
        .collect();
    FftPlanner::new().plan_fft_forward(len).process(&mut signal);
    let coarse = len >> halvings;
    let mut transfer = vec![0.0; coarse];
    for (frequency, value) in signal.iter().enumerate().filter(|(k, _)| is_low(*k, len, halvings)) {
        transfer[frequency % coarse] += value.re;
    }
    transfer
}

/// A wave under a Gaussian envelope.
#[derive(Clone, Copy)]
struct Gabor {
    width: f64,
    direction: f64,
    frequency: f64,
    slant: f64,
}

impl Gabor {
    /// Its values on a periodic grid, `[rows, columns]`.
    fn on_grid(self, rows: usize, columns: usize) -> Vec<Complex<f64>> {
        let Self { width, direction, frequency, slant } = self;
        let (sin, cos) = direction.sin_cos();
        let (along, across) = (1.0, slant * slant);
        let scale = 2.0 * width * width;
        let curvature = [
            (cos * cos * along + sin * sin * across) / scale,
            2.0 * sin * cos * (along - across) / scale,
            (sin * sin * along + cos * cos * across) / scale,
        ];
        let norm = 2.0 * FOUR_DECIMAL_PI * width * width / slant;
        let mut values = Vec::with_capacity(rows * columns);
        for i in 0..rows {
            for j in 0..columns {
                let mut sum = Complex::default();
                for a in SHIFTS {
                    for b in SHIFTS {
                        let (x, y) = (i as f64 + a * rows as f64, j as f64 + b * columns as f64);
                        let decay = curvature[0] * x * x + curvature[1] * x * y + curvature[2] * y * y;
                        // Beyond it, exp() is 0 even in double precision.
                        if decay < 745.0 {
                            sum += Complex::from_polar((-decay).exp(), frequency * (x * cos + y * sin));
                        }
                    }
                }
                values.push(sum / norm);
            }
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wavelet_does_not_see_constants_and_the_low_pass_keeps_them() {
        for (scale, angle) in [(0, 0), (0, 5), (1, 3)] {
            let wavelet = Transfer::wavelet(36, 20, scale, angle, 8);
            assert!(wavelet.values[0].abs() < 1e-12, "{}", wavelet.values[0]);
            assert!(wavelet.values.iter().fold(0.0_f64, |a, b| a.max(b.abs())) > 0.5);
        }
        // Kymatio's 3.1415 makes it a little more than 1.
        let low_pass = low_pass_axis(36, 2, 0);
        assert!((low_pass[0] * low_pass[0] - 1.0).abs() < 1e-4, "{}", low_pass[0]);
    }

    /// A grid of 4 holds the frequencies 0, 1, 6, 7 of 8: two of each sign.
    #[test]
    fn a_coarser_grid_holds_the_low_frequencies() {
        let low: Vec<usize> = (0..8).filter(|&k| is_low(k, 8, 1)).collect();
        assert_eq!(low, [0, 1, 6, 7]);
        let all: Vec<usize> = (0..8).filter(|&k| is_low(k, 8, 0)).collect();
        assert_eq!(all, [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}
