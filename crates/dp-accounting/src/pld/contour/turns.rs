//! Sums of many rotations at equal distances.

#![expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]

use rustfft::num_complex::Complex64;

use crate::simd::vectorise;

/// Losses whose terms are turned side by side: two of the widest vectors, since a turn waits for
/// the one before it.
const LANES: usize = 16;

/// Terms between two restarts of the inner recurrence, and restarts of it between two of the outer
/// one.
const INNER: usize = 16;
const OUTER: usize = 16;

/// Terms between two evaluations of sines.
const SPAN: usize = INNER * OUTER;

/// `Σ weights·(e^(iktx) - 1)` for `k = 1, …, n`.
///
/// `e^(ix) - 1` is turned by `d ← d + (1 + d)·d₁`, which keeps its relative precision however small
/// `x` is; every [`INNER`] terms from what was itself turned by as much at once, every [`SPAN`]
/// terms anew.
pub(super) fn characteristic_excess(losses: &[f64], weights: &[f64], t: f64, n: usize) -> Vec<Complex64> {
    let chunks: Vec<Turned> = losses
        .chunks(LANES)
        .zip(weights.chunks(LANES))
        .map(|(losses, weights)| Turned::new(losses, weights, t))
        .collect();
    let mut sums = Vec::with_capacity(n);
    let mut lanes = vec![([0.0; LANES], [0.0; LANES]); SPAN.min(n)];
    for span in 0..n.div_ceil(SPAN) {
        let lanes = &mut lanes[..SPAN.min(n - span * SPAN)];
        lanes.fill(([0.0; LANES], [0.0; LANES]));
        for chunk in &chunks {
            let start = chunk.at((span * SPAN) as f64);
            vectorise(
                #[inline(always)]
                || chunk.add(start, lanes),
            );
        }
        sums.extend(lanes.iter().map(|(re, im)| Complex64::new(re.iter().sum(), im.iter().sum())));
    }
    sums
}

/// Bound on the error of a sum over `n` losses, relative to the sum of the weighted chords.
pub(super) fn summing_error(n: usize) -> f64 {
    // The recurrences round once or twice what they have, and their factors a little more often;
    // then chunks and lanes are summed.
    f64::EPSILON * (8 * (INNER + OUTER) + n / LANES + LANES + 32) as f64
}

/// A vector of losses, and what turns them.
#[derive(Debug, Clone, Copy)]
struct Turned {
    angle: [f64; LANES],
    weight: [f64; LANES],
    /// By one term, and by [`INNER`] of them.
    one: Turn,
    inner: Turn,
}

/// Real and imaginary parts of `e^(ix) - 1`.
#[derive(Debug, Clone, Copy)]
struct Turn {
    re: [f64; LANES],
    im: [f64; LANES],
}

impl Turned {
    fn new(losses: &[f64], weights: &[f64], t: f64) -> Self {
        let (mut angle, mut weight) = ([0.0; LANES], [0.0; LANES]);
        weight[..weights.len()].copy_from_slice(weights);
        angle.iter_mut().zip(losses).for_each(|(angle, x)| *angle = t * x);
        Self { angle, weight, one: Turn::by(&angle, 1.0), inner: Turn::by(&angle, INNER as f64) }
    }

    fn at(&self, k: f64) -> Turn {
        Turn::by(&self.angle, k)
    }

    /// Adds the terms after `start`, lane by lane.
    #[inline(always)]
    fn add(&self, mut start: Turn, lanes: &mut [([f64; LANES], [f64; LANES])]) {
        for block in lanes.chunks_mut(INNER) {
            let mut turned = start;
            for (sum_re, sum_im) in block {
                turned.turn(&self.one);
                for lane in 0..LANES {
                    sum_re[lane] += self.weight[lane] * turned.re[lane];
                    sum_im[lane] += self.weight[lane] * turned.im[lane];
                }
            }
            start.turn(&self.inner);
        }
    }
}

impl Turn {
    fn by(angle: &[f64; LANES], k: f64) -> Self {
        if k == 0.0 {
            return Self { re: [0.0; LANES], im: [0.0; LANES] };
        }
        let halves = angle.map(|angle| libm::sin(0.5 * k * angle));
        Self { re: halves.map(|half| -2.0 * half * half), im: angle.map(|angle| libm::sin(k * angle)) }
    }

    #[inline(always)]
    fn turn(&mut self, by: &Self) {
        for lane in 0..LANES {
            let (a, b) = (1.0 + self.re[lane], self.im[lane]);
            self.re[lane] += a * by.re[lane] - b * by.im[lane];
            self.im[lane] += a * by.im[lane] + b * by.re[lane];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_equal_those_of_sines_and_cosines() {
        let losses: Vec<f64> = (0..37).map(|i| 1e-3 * f64::from(i * i) - 0.2).collect();
        let weights: Vec<f64> = (0..37).map(|i| 1.0 / f64::from(37 + i)).collect();
        let spacing = 0.07;
        let sums = characteristic_excess(&losses, &weights, spacing, 700);
        for (k, sum) in (1..).zip(sums) {
            let (mut re, mut im, mut chords) = (0.0, 0.0, 0.0);
            for (x, weight) in losses.iter().zip(&weights) {
                let (sin, cos) = libm::sincos(0.5 * f64::from(k) * spacing * x);
                re -= 2.0 * weight * sin * sin;
                im += 2.0 * weight * sin * cos;
                chords += weight * (f64::from(k) * spacing * x.abs()).min(2.0);
            }
            // The angles of this comparison are rounded as well.
            let allowed = summing_error(losses.len()) * chords + 1e-15 * f64::from(k);
            assert!((sum - Complex64::new(re, im)).norm_sqr().sqrt() <= allowed, "term {k}");
        }
    }
}
