//! Sums of many independent discrete losses, by FFT under an exponential tilt, with every error
//! accounted for.

use rustfft::FftPlanner;
use rustfft::num_complex::Complex64;

use super::discrete::DiscreteLoss;

/// Independent losses on one grid, each with a count.
#[derive(Debug)]
pub(super) struct Summands {
    pub(super) interval: f64,
    pub(super) parts: Vec<(DiscreteLoss, f64)>,
}

impl Summands {
    /// Loss at grid index 0 of the sum.
    pub(super) fn offset(&self) -> f64 {
        self.parts.iter().map(|(loss, count)| count * loss.offset).sum()
    }

    /// `ln E[e^(λ(Y - offset))]` of the sum.
    pub(super) fn log_moment(&self, tilt: f64) -> f64 {
        self.parts.iter().map(|(loss, count)| count * loss.log_moment(tilt, self.interval)).sum()
    }

    /// About the same sum on so few points that searches cost little; whatever they find is then
    /// bounded on the fine ones.
    pub(super) fn coarsened(&self) -> Self {
        let most = self.parts.iter().map(|(loss, _)| loss.masses.len()).max().unwrap_or(0);
        let factor = (most / 2048).max(1);
        let parts = self.parts.iter().map(|(loss, count)| (loss.coarsened(factor), *count)).collect();
        Self { interval: self.interval * factor as f64, parts }
    }

    /// Grid indices, in units of `interval`, between which the sum lies, under the tilt, up to
    /// `exp(log_tail)` on either side (Chernoff).
    pub(super) fn window(&self, tilt: f64, log_tail: f64, interval: f64) -> Window {
        let at_tilt = self.log_moment(tilt);
        let step = {
            // Standard deviation under the tilt, from the curvature of ln E[e^(λY)].
            let probe = (1e-3 / self.interval).min(0.05 * (1.0 + tilt));
            let curvature =
                (self.log_moment(tilt + probe) - 2.0 * at_tilt + self.log_moment(tilt - probe)) / (probe * probe);
            let deviation = curvature.max(0.0).sqrt().max(self.interval);
            (-2.0 * log_tail).sqrt() / deviation
        };
        // Any shift gives a valid bound, and the bound has one minimum in the shift. Of a normal
        // sum that is `step`; a heavy tail asks for a smaller one.
        let bound = |shift: f64| (self.log_moment(tilt + shift) - at_tilt - log_tail) / shift;
        let best = |sign: f64| {
            let descend = |start: f64, factor: f64| {
                let mut best = (bound(start), start);
                for _ in 0..60 {
                    let shift = best.1 * factor;
                    let reach = bound(shift);
                    if reach * sign >= best.0 * sign {
                        break;
                    }
                    best = (reach, shift);
                }
                best
            };
            let coarse = descend(sign * step, 0.6);
            descend(if coarse.1 == sign * step { descend(coarse.1, 1.5).1 } else { coarse.1 }, 1.2)
        };
        let ((high, shift_up), (low, shift_down)) = (best(1.0), best(-1.0));
        Window { low: (low / interval).floor(), high: (high / interval).ceil(), shift_up, shift_down }
    }

    /// Bound on the probability, under the tilt, of the sum outside `[low, high)`.
    fn outside(&self, tilt: f64, at_tilt: f64, window: &Window, low: f64, length: f64) -> (f64, f64) {
        let chernoff =
            |shift: f64, index: f64| libm::exp(self.log_moment(tilt + shift) - at_tilt - shift * index * self.interval);
        (chernoff(window.shift_up, low + length), chernoff(window.shift_down, low - 1.0))
    }

    fn tilted_into(&self, part: usize, tilt: f64, mut put: impl FnMut(usize, f64), length: usize) {
        let (loss, _) = &self.parts[part];
        let log_moment = loss.log_moment(tilt, self.interval);
        loss.tilted(tilt, self.interval, log_moment, |index, mass| put(index.rem_euclid(length as i64) as usize, mass));
    }
}

/// Where the sum lies, in grid indices, with the Chernoff parameters that show it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    low: f64,
    high: f64,
    shift_up: f64,
    shift_down: f64,
}

/// A length of transform that covers both windows.
pub(super) fn transform_length([a, b]: &[Window; 2]) -> usize {
    let needed = (a.high.max(b.high) - a.low.min(b.low) + 2.0).max(16.0);
    if needed > 1e9 { usize::MAX } else { smooth_length(needed as usize) }
}

/// The next product of a power of two with 1, 3, 5 or 9.
fn smooth_length(n: usize) -> usize {
    [1, 3, 5, 9].into_iter().map(|odd| odd * n.div_ceil(odd).next_power_of_two()).min().unwrap_or(n)
}

/// The distribution of a sum under a tilt, as a privacy profile with its error.
#[derive(Debug)]
pub(super) struct TiltedSum {
    interval: f64,
    tilt: f64,
    log_moment: f64,
    offset: f64,
    first: i64,
    masses: Vec<f64>,
    /// Bound on the Euclidean norm of the error of `masses`.
    rounding: f64,
    /// Bounds on the mass above and below the window; it has been folded into the window.
    above: f64,
    below: f64,
    /// Relative error of the probabilities of one step, accumulated.
    relative: f64,
}

/// Sums of the upper and of the lower losses, in one complex transform.
pub(super) fn convolve(
    upper: &Summands,
    lower: &Summands,
    tilt: f64,
    windows: &[Window; 2],
    length: usize,
) -> (TiltedSum, TiltedSum) {
    let mut planner = FftPlanner::new();
    let forward = planner.plan_fft_forward(length);
    let inverse = planner.plan_fft_inverse(length);
    let half = length / 2;
    // Spectra of the sums: logarithm of the modulus and phase, for non-negative frequencies.
    let mut spectra = vec![[Complex64::new(0.0, 0.0); 2]; half + 1];
    let mut buffer = vec![Complex64::new(0.0, 0.0); length];
    let mut scratch =
        vec![Complex64::new(0.0, 0.0); forward.get_inplace_scratch_len().max(inverse.get_inplace_scratch_len())];
    let fft_error = 8.0 * f64::EPSILON * libm::log2(length as f64);
    let mut rounding = 0.0;
    let (mut total_count, mut relative) = (0.0, 64.0 * f64::EPSILON);
    for part in 0..upper.parts.len() {
        buffer.fill(Complex64::new(0.0, 0.0));
        upper.tilted_into(part, tilt, |i, mass| buffer[i].re += mass, length);
        lower.tilted_into(part, tilt, |i, mass| buffer[i].im += mass, length);
        let norm = buffer.iter().map(Complex64::norm_sqr).sum::<f64>().sqrt();
        forward.process_with_scratch(&mut buffer, &mut scratch);
        let count = upper.parts[part].1;
        for (j, sum) in spectra.iter_mut().enumerate() {
            let (z, w) = (buffer[j], buffer[(length - j) % length].conj());
            let (a, b) = ((z + w) * 0.5, (z - w) * Complex64::new(0.0, -0.5));
            // ln 0 is -∞, which the exponential below turns into 0.
            sum[0] += Complex64::new(0.5 * libm::log(a.norm_sqr()), libm::atan2(a.im, a.re)) * count;
            sum[1] += Complex64::new(0.5 * libm::log(b.norm_sqr()), libm::atan2(b.im, b.re)) * count;
        }
        // A coefficient's error e becomes count·|F|^(count-1)·e, and all moduli are at most 1 up to
        // rounding; the power itself adds rounding of its phase. (|F| + e)^(count-1) exceeds 1 by a
        // factor that only extreme counts notice.
        let one = fft_error * norm + 4.0 * f64::EPSILON * norm;
        rounding += count * one * libm::exp((count * one * (length as f64).sqrt()).min(600.0));
        total_count += count;
        // An exponential's relative error is its argument's absolute one.
        let (loss, _) = &upper.parts[part];
        let reach =
            tilt * (upper.interval * (loss.first.unsigned_abs() as f64 + loss.masses.len() as f64) + loss.offset.abs());
        // A block of factors and a handful of additions come on top of the mass's own error.
        relative += count * (loss.relative + f64::EPSILON * (128.0 + 4.0 * reach));
    }
    // The window begins at index `low`, not 0: turn each coefficient by its phase there.
    let low = windows[0].low.min(windows[1].low);
    let shift = low.rem_euclid(length as f64);
    buffer.fill(Complex64::new(0.0, 0.0));
    let (mut energy, mut log_largest) = (0.0, 0.0_f64);
    for (j, sum) in spectra.iter().enumerate() {
        if sum[0].re.max(sum[1].re) < -80.0 {
            continue;
        }
        // The product of two exact integers, reduced before it becomes an angle.
        let turn = 2.0 * std::f64::consts::PI * ((j as f64 * shift) % length as f64) / length as f64;
        let value = |log: Complex64| {
            if log.re < -80.0 { Complex64::new(0.0, 0.0) } else { exponential(log.re, log.im + turn) }
        };
        let (a, b) = (value(sum[0]), value(sum[1]));
        log_largest = log_largest.max(sum[0].re).max(sum[1].re);
        energy += 2.0 * (a.norm_sqr() + b.norm_sqr());
        let i = Complex64::new(0.0, 1.0);
        buffer[j] = a + i * b;
        if j > 0 && j < length - j {
            buffer[length - j] = a.conj() + i * b.conj();
        } else {
            // Self-conjugate frequencies of a real sequence are real.
            buffer[j] = Complex64::new(a.re, b.re);
        }
    }
    inverse.process_with_scratch(&mut buffer, &mut scratch);
    let scale = 1.0 / length as f64;
    // Parseval: the masses' norm is the spectrum's over √length. Coefficients below e^-80 were left
    // out.
    rounding = rounding * libm::exp(log_largest)
        + (fft_error + 8.0 * f64::EPSILON * (1.0 + total_count)) * (energy * scale).sqrt()
        + 1e-34;
    let finish = |summands: &Summands, window: &Window, masses: Vec<f64>| {
        let log_moment = summands.log_moment(tilt);
        let (above, below) = summands.outside(tilt, log_moment, window, low, length as f64);
        TiltedSum {
            interval: summands.interval,
            tilt,
            log_moment,
            offset: summands.offset(),
            first: low as i64,
            masses,
            rounding,
            above,
            below,
            relative: libm::expm1(relative),
        }
    };
    // True masses are not negative, so clamping only removes error.
    let upper = finish(upper, &windows[0], buffer.iter().map(|z| (z.re * scale).max(0.0)).collect());
    let lower = finish(lower, &windows[1], buffer.iter().map(|z| (z.im * scale).max(0.0)).collect());
    (upper, lower)
}

/// `e^(re + i·im)`.
pub(super) fn exponential(re: f64, im: f64) -> Complex64 {
    let (modulus, (sin, cos)) = (libm::exp(re), libm::sincos(im));
    Complex64::new(modulus * cos, modulus * sin)
}

/// `ln max over t ≥ 0 of e^(-λt)(1 - e^-t)`: the largest weight that a mass can have in δ.
pub(super) fn log_largest_weight(tilt: f64) -> f64 {
    if tilt == 0.0 { 0.0 } else { -tilt * libm::log1p(1.0 / tilt) - libm::log1p(tilt) }
}

/// Which bound a profile is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Upper,
    Lower,
}

impl TiltedSum {
    /// Upper bound on δ at an ε above the window: the mass up there, at its largest weight.
    pub(super) fn beyond(&self, epsilon: f64) -> f64 {
        let log_bound = self.log_moment - self.tilt * (epsilon - self.offset)
            + log_largest_weight(self.tilt)
            + libm::log(self.above)
            + libm::log1p(self.relative);
        libm::exp(log_bound).min(1.0)
    }

    /// How far rounding may have moved the losses near an ε: the offset of each step, and the point
    /// on the grid.
    pub(super) fn rounding_of_losses(&self, epsilon: f64) -> f64 {
        4.0 * f64::EPSILON * (2.0 * self.offset.abs() + epsilon.abs() + self.interval)
    }

    /// Visits `(ε, ln of δ's bound)` at grid points from the top of the window down to the first at
    /// or below `floor`, until `visit` returns false.
    ///
    /// `δ(ε) = e^(K - λε) Σ g·e^(-λ(x-ε))(1 - e^-(x-ε))` over `x > ε`, with `g` the tilted masses;
    /// the sum is carried from one grid point to the next by two positive recurrences.
    pub(super) fn scan(&self, side: Side, floor: f64, mut visit: impl FnMut(f64, f64) -> bool) {
        let (fade, discount) = (libm::exp(-self.tilt * self.interval), libm::exp(-self.interval));
        // Not 1 - discount: on fine grids the difference would have few digits.
        let gap = -libm::expm1(-self.interval);
        let weight = libm::exp(log_largest_weight(self.tilt));
        // Euclidean norm of the weights, Σ e^(-2λt)(1-e^-t)² over the grid, at most over the
        // window: Cauchy–Schwarz against the rounding.
        let norm = (0..self.masses.len())
            .scan((1.0, 0.0), |(slow, rise), _| {
                let value = *slow * *rise;
                *slow *= fade;
                *rise = *rise * discount + gap;
                Some(value * value)
            })
            .sum::<f64>()
            .sqrt();
        let error = match side {
            Side::Upper => self.rounding * norm + self.above * weight,
            Side::Lower => -(self.rounding * norm + (self.above + self.below) * weight),
        };
        let relative = match side {
            Side::Upper => libm::log1p(self.relative),
            Side::Lower => -libm::log1p(self.relative),
        };
        let (mut delta, mut discounted, mut above_here) = (0.0, 0.0, 0.0);
        for (i, mass) in self.masses.iter().enumerate().rev() {
            delta = fade * (delta + gap * discounted);
            discounted = mass + fade * discount * discounted;
            let above_offset = (self.first + i as i64) as f64 * self.interval;
            // A mass k points above has been through k roundings of both factors, 4 ulp each, and
            // counts at most e^(-λhk): k·e^(-λhk) ≤ 1/(eλh).
            above_here += mass;
            let turns = (self.masses.len() - i) as f64;
            let fading = 4.0
                * f64::EPSILON
                * (turns * delta).min(above_here / (std::f64::consts::E * self.tilt * self.interval));
            let error = match side {
                Side::Upper => error + fading,
                Side::Lower => error - fading,
            };
            let log_delta = self.log_moment - self.tilt * above_offset + libm::log((delta + error).max(0.0)) + relative;
            let epsilon = self.offset + above_offset;
            if !visit(epsilon, log_delta) || epsilon <= floor {
                return;
            }
        }
    }
}
