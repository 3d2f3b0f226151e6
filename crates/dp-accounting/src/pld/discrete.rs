//! Discrete privacy losses that bound the true one from above and from below.

use super::cells::Cells;
use crate::log_sum::LogSum;

/// Probability by grid index. May sum to less than one: what is missing is accounted for elsewhere.
#[derive(Debug, Clone, Default)]
pub(super) struct DiscreteLoss {
    /// Loss at grid index 0.
    pub(super) offset: f64,
    pub(super) first: i64,
    pub(super) masses: Vec<f64>,
    /// Bound on the relative rounding error of every mass.
    pub(super) relative: f64,
}

impl DiscreteLoss {
    /// Connect-the-dots: dominates the true loss (Doroshenko, Ghazi, Kamath, Kumar & Manurangsi
    /// 2022).
    pub(super) fn upper(cells: &Cells) -> Self {
        Self::dots(cells, 1.0)
    }

    /// The dots at the cells' ends, with rounding resolved upwards (1) or downwards (-1).
    fn dots(cells: &Cells, direction: f64) -> Self {
        let mut masses = vec![0.0; cells.low.len() + 1];
        for (i, ((low, high), rounding)) in cells.low.iter().zip(&cells.high).zip(&cells.rounding).enumerate() {
            // No more than there is.
            let moved = direction * rounding.min(if direction > 0.0 { *low } else { *high });
            masses[i] += low - moved;
            masses[i + 1] += high + moved;
        }
        if let Some(zero) =
            usize::try_from(-cells.first).ok().filter(|zero| *zero < masses.len() && cells.at_zero > 0.0)
        {
            masses[zero] += cells.at_zero;
        }
        Self { offset: cells.offset, first: cells.first, masses, relative: cells.relative }
    }

    /// Candidates for a loss that the true one dominates; there is always one.
    ///
    /// Where the cell that holds most of the probability is wider than the loss of most steps, as
    /// with a small sampling rate, contraction would spend the rare large losses on it; then it is
    /// better to round the losses up to there down, at unchanged probability, and to contract only
    /// what lies above. The cells are divided by the event that the loss is above, so both rules
    /// stay valid.
    pub(super) fn lower(cells: &Cells, interval: f64) -> Vec<Self> {
        let mut candidates: Vec<Self> = Self::contracted(cells, interval).into_iter().collect();
        let zero = usize::try_from(-cells.first).ok();
        let probability = |k: usize| cells.low[k] + cells.high[k] + if zero == Some(k) { cells.at_zero } else { 0.0 };
        let fullest = (0..cells.low.len()).max_by(|&i, &j| probability(i).total_cmp(&probability(j))).unwrap_or(0);
        let mut above = cells.clone();
        let mut rounded = Self {
            offset: cells.offset,
            first: cells.first,
            masses: vec![0.0; cells.low.len() + 1],
            relative: cells.relative,
        };
        for k in 0..=fullest.min(cells.low.len().saturating_sub(1)) {
            rounded.masses[k] += probability(k);
            (above.low[k], above.high[k], above.rounding[k]) = (0.0, 0.0, 0.0);
        }
        if zero.is_some_and(|zero| zero <= fullest) {
            above.at_zero = 0.0;
        }
        if let Some(above) = Self::contracted(&above, interval) {
            rounded.masses.iter_mut().zip(&above.masses).for_each(|(sum, mass)| *sum += mass);
        }
        candidates.push(rounded);
        candidates
    }

    /// Dominated by the true loss, and as close to it, to second order in the interval, as
    /// connect-the-dots is from above.
    ///
    /// In `γ = e^x` the profile `v(γ) = E[(L - γ)⁺]` is convex, and connect-the-dots has its
    /// chords. A chord exceeds the curve by at most its distance to the two tangents at its ends,
    /// `sag`, which the division of a cell's probability gives. Lowering each dot by the larger sag
    /// beside it puts every chord below the curve; the lower convex hull of the dots is then the
    /// profile of a pair that the true one dominates. All of this is done on probabilities (second
    /// differences), where nothing cancels.
    ///
    /// `None` when the grid is too coarse for any such pair.
    fn contracted(cells: &Cells, interval: f64) -> Option<Self> {
        let upper = Self::dots(cells, -1.0).masses;
        let n = upper.len();
        let (up, growth) = (libm::exp(interval), libm::expm1(interval));
        // The sag of a cell whose division is rounded as much as it may be.
        let of_cell = |((&low, &high), &rounding): ((&f64, &f64), &f64)| {
            let total = low + high;
            sag((low + rounding).min(total), (high + rounding).min(total) / up, growth)
        };
        let sag: Vec<f64> = cells.low.iter().zip(&cells.high).zip(&cells.rounding).map(of_cell).collect();
        let lowering = |k: usize| {
            let (left, right) = (if k > 0 { sag[k - 1] } else { 0.0 }, if k + 1 < n { sag[k] } else { 0.0 });
            left.max(right)
        };
        let lowered: Vec<f64> = (0..n).map(lowering).collect();
        // On the left the profile cannot fall below the line 1 - γ (of what is on the grid): `put`
        // is its distance to it.
        let (mut put, mut cumulative) = (vec![0.0; n], vec![0.0; n]);
        for k in 0..n {
            if k > 0 {
                put[k] = put[k - 1] + cumulative[k - 1] * growth;
                cumulative[k] = up * cumulative[k - 1];
            }
            cumulative[k] += upper[k];
        }
        // On the right it cannot fall below 0: `call` is the profile itself.
        let (mut call, mut remaining) = (vec![0.0; n], vec![0.0; n]);
        for k in (0..n).rev() {
            if k + 1 < n {
                call[k] = call[k + 1] + remaining[k + 1] * growth / up;
                remaining[k] = remaining[k + 1] / up;
            }
            remaining[k] += upper[k];
        }
        let begin = (0..n).rfind(|&k| put[k] < lowered[k]).map_or(0, |k| k + 1);
        let end = (0..n).find(|&k| call[k] < lowered[k]).map_or(n, |k| k);
        if begin + 1 >= end {
            return None;
        }
        let last = end - 1;
        let distance = |k: usize| match k {
            k if k == begin => put[k],
            k if k == last => call[k],
            k => lowered[k],
        };
        let mut masses = vec![0.0; n];
        masses[begin] = cumulative[begin] - (distance(begin + 1) - put[begin]) / growth;
        masses[last] = remaining[last] + up * (call[last] - distance(last - 1)) / growth;
        for k in begin + 1..last {
            masses[k] =
                upper[k] - (distance(k + 1) - distance(k)) / growth + up * (distance(k) - distance(k - 1)) / growth;
        }
        convex_hull(&mut masses[begin..=last], interval);
        let sound = masses.iter().all(|mass| *mass >= 0.0 && *mass <= 1.0 + 1e-9);
        sound.then_some(Self { offset: cells.offset, first: cells.first, masses, relative: cells.relative })
    }

    /// About the same loss on a grid `factor` times as wide: every mass is divided between the two
    /// points beside it.
    pub(super) fn coarsened(&self, factor: usize) -> Self {
        let wide = factor as i64;
        let first = self.first.div_euclid(wide);
        let last = (self.first + self.masses.len() as i64).div_euclid(wide) + 1;
        let mut masses = vec![0.0; (last - first + 1) as usize];
        for (index, mass) in (self.first..).zip(&self.masses) {
            let share = index.rem_euclid(wide) as f64 / factor as f64;
            let cell = (index.div_euclid(wide) - first) as usize;
            masses[cell] += mass * (1.0 - share);
            masses[cell + 1] += mass * share;
        }
        Self { offset: self.offset, first, masses, relative: self.relative }
    }

    /// `ln E[e^(λ(x - offset))]`.
    pub(super) fn log_moment(&self, tilt: f64, interval: f64) -> f64 {
        let step = tilt * interval;
        let (ratio, block) = (libm::exp(step), block_length(step));
        let mut sum = LogSum::default();
        for (i, masses) in self.masses.chunks(block).enumerate() {
            // Alone in its block, a mass needs no ratio, which may be infinite.
            let value = match masses {
                [mass] => *mass,
                _ => masses.iter().rev().fold(0.0, |sum, mass| sum * ratio + mass),
            };
            if value > 0.0 {
                sum.add(libm::log(value) + step * (self.first + (i * block) as i64) as f64);
            }
        }
        sum.value()
    }

    /// Calls `visit(index, mass·e^(λ(x - offset) - log_moment))` for every mass.
    pub(super) fn tilted(&self, tilt: f64, interval: f64, log_moment: f64, mut visit: impl FnMut(i64, f64)) {
        let step = tilt * interval;
        let (ratio, block) = (libm::exp(step), block_length(step));
        for (i, masses) in self.masses.chunks(block).enumerate() {
            let start = self.first + (i * block) as i64;
            let log_start = step * start as f64 - log_moment;
            let mut factor = libm::exp(log_start);
            for (j, mass) in masses.iter().enumerate() {
                // A block may start where the factor underflows or overflows although some product
                // does not.
                let value = if factor.is_finite() && factor > 1e-290 {
                    mass * factor
                } else {
                    libm::exp(libm::log(*mass) + log_start + step * j as f64)
                };
                if value > 0.0 {
                    visit(start + j as i64, value);
                }
                factor *= ratio;
            }
        }
    }
}

/// So many steps that a geometric factor stays within e^±250 and gathers no rounding that matters.
fn block_length(step: f64) -> usize {
    if step == 0.0 { 64 } else { ((250.0 / step.abs()) as usize).clamp(1, 64) }
}

/// Largest distance of a chord to the tangents at its ends, a little enlarged for rounding.
fn sag(low: f64, high_discounted: f64, growth: f64) -> f64 {
    let total = low + high_discounted;
    if total > 0.0 { growth * low * (high_discounted / total) * (1.0 + 1e-6) } else { 0.0 }
}

/// Removes negative masses by moving each to its neighbours so that both distributions keep their
/// mass: the lower convex hull.
fn convex_hull(masses: &mut [f64], interval: f64) {
    let mut hull: Vec<usize> = Vec::with_capacity(masses.len());
    for k in 0..masses.len() {
        hull.push(k);
        // A negative mass is removed when its right neighbour is known, and may turn its left
        // neighbour negative.
        while let [.., left, middle, right] = hull[..] {
            if masses[middle] >= 0.0 {
                break;
            }
            let (before, after) = ((middle - left) as f64 * interval, (right - middle) as f64 * interval);
            let to_right = -libm::expm1(-before) / -libm::expm1(-before - after);
            masses[left] += masses[middle] * (1.0 - to_right);
            masses[right] += masses[middle] * to_right;
            masses[middle] = 0.0;
            hull.truncate(hull.len() - 2);
            hull.push(right);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::base_loss::BaseLoss;
    use super::super::cells::{Anchor, LossGrid, cut};
    use super::*;
    use crate::normal::survival;

    fn profile(loss: &DiscreteLoss, interval: f64, epsilon: f64) -> f64 {
        let x = |k: usize| loss.offset + (loss.first + k as i64) as f64 * interval;
        loss.masses.iter().enumerate().map(|(k, mass)| mass * -libm::expm1((epsilon - x(k)).min(0.0))).sum()
    }

    /// `P(x > ε) - e^ε Q(x > ε)` of one Poisson-sampled Gaussian, by distribution functions.
    fn exact(q: f64, sigma: f64, epsilon: f64, add: bool) -> f64 {
        let x = if add { -epsilon } else { epsilon };
        let above = (libm::expm1(x) + q) / q;
        let u = if above > 0.0 { sigma * above.ln() + 0.5 / sigma } else { f64::NEG_INFINITY };
        let (absent, present) = (survival(u), survival(u - 1.0 / sigma));
        if add {
            let (absent, present) = (survival(-u), survival(1.0 / sigma - u));
            (absent - epsilon.exp() * ((1.0 - q) * absent + q * present)).max(0.0)
        } else {
            ((1.0 - q) * absent + q * present - epsilon.exp() * absent).max(0.0)
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

        /// The profiles of both discretisations enclose the exact one everywhere, in both
        /// directions, on any grid.
        #[test]
        fn discretisations_enclose_the_exact_profile(
            log_q in -9.0_f64..-1e-3,
            log_sigma in -1.2_f64..3.0,
            log_interval in -5.0_f64..0.5,
            at in -3.0_f64..3.0,
        ) {
            let (q, sigma, interval) = (log_q.exp(), log_sigma.exp(), log_interval.exp());
            let base = BaseLoss::Gaussian { mu: sigma.recip() };
            let both = cut(base, LossGrid::new(base, q, Anchor::Infimum, -60.0, interval), -60.0);
            for (cells, add) in [(&both.remove, false), (&both.add, true)] {
                for epsilon in [0.0, at, at / 30.0, at / 1000.0, (1.0 - q).ln() + 1e-3] {
                    let truth = exact(q, sigma, epsilon, add);
                    let upper = profile(&DiscreteLoss::upper(cells), interval, epsilon);
                    prop_assert!(upper >= truth - 2e-14, "{epsilon} {add}: {upper} < {truth}");
                    for lower in DiscreteLoss::lower(cells, interval) {
                        let lower = profile(&lower, interval, epsilon);
                        prop_assert!(lower <= truth + 2e-14, "{epsilon} {add}: {lower} > {truth}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_fine_grid_is_close_from_both_sides() {
        // Errors are of second order: a tenth of the interval, a hundredth of the width.
        let base = BaseLoss::Gaussian { mu: 1.0 };
        let width = |interval: f64| {
            let both = cut(base, LossGrid::new(base, 0.1, Anchor::Infimum, -60.0, interval), -60.0);
            let (upper, lower) = (DiscreteLoss::upper(&both.remove), DiscreteLoss::lower(&both.remove, interval));
            profile(&upper, interval, 0.1) - profile(&lower[0], interval, 0.1)
        };
        let ratio = width(0.01) / width(0.001);
        assert!(ratio > 60.0 && ratio < 150.0, "{ratio}");
    }

    #[test]
    fn probability_is_conserved() {
        let base = BaseLoss::Gaussian { mu: 0.7 };
        let both = cut(base, LossGrid::new(base, 0.02, Anchor::Infimum, -60.0, 0.003), -60.0);
        for cells in [&both.remove, &both.add] {
            let total: f64 = DiscreteLoss::upper(cells).masses.iter().sum();
            // For the other distribution too: E[e^-x] = 1.
            let other = DiscreteLoss::upper(cells).log_moment(-1.0, 0.003) - cells.offset;
            assert!((total - 1.0).abs() < 1e-14 && other.abs() < 1e-12, "{total} {other}");
        }
    }

    #[test]
    fn the_hull_moves_negative_masses_to_their_neighbours() {
        // Interval ln 2: γ = 1, 2, 4. A mass of -0.1 at γ = 2 goes to the right in the share (1 -
        // 1/2)/(1 - 1/4) = 2/3.
        let mut masses = [0.5, -0.1, 0.6];
        convex_hull(&mut masses, 2.0_f64.ln());
        let expected = [0.5 - 0.1 / 3.0, 0.0, 0.6 - 0.2 / 3.0];
        assert!(masses.iter().zip(expected).all(|(mass, expected)| (mass - expected).abs() < 1e-15), "{masses:?}");
    }
}
