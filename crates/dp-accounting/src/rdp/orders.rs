//! Which Rényi orders are tried.

use serde::{Deserialize, Serialize};

/// Orders at which the conversion is minimised. Every order gives a valid bound, so more orders can
/// only tighten it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Orders {
    /// Searched continuously, from just above 1 to far beyond any list.
    Adaptive,
    /// A fixed list, to reproduce a published figure.
    Fixed(Vec<f64>),
}

/// `α - 1` for the adaptive search: from the near-KL end (ε in the millions) to ε ≈ 1e-7 at δ =
/// 1e-5.
pub(crate) const PLAUSIBLE_RANGE: (f64, f64) = (1e-7, 1e9);

/// `α - 1` at which the adaptive search starts.
const SCAN_START: f64 = 0.1;

/// Ratio of neighbouring `α - 1` in the coarse scan.
const SCAN_RATIO: f64 = 1.6;

/// The best order with the value there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Best {
    pub(crate) order: f64,
    pub(crate) value: f64,
}

impl Best {
    pub(crate) const fn is_finite(self) -> bool {
        self.value.is_finite()
    }

    pub(super) fn improve(&mut self, order: f64, value: f64) {
        // A NaN is not smaller: it is never the best.
        if value < self.value {
            *self = Self { order, value };
        }
    }
}

impl Orders {
    /// Integers 2 to 64, the moments accountant's (Abadi et al. 2016; Xu et al. 2021).
    pub fn moments_accountant() -> Self {
        Self::Fixed((2..=64).map(f64::from).collect())
    }

    /// The default list of Opacus 1.x: 1.1 to 10.9 in tenths, then the integers 12 to 63.
    pub fn opacus() -> Self {
        let tenths = (1..100).map(|i| 1.0 + f64::from(i) / 10.0);
        Self::Fixed(tenths.chain((12..64).map(f64::from)).collect())
    }

    /// The default list of dp_accounting 0.6: 1.1 to 10.9 in tenths, the integers 11 to 63, then
    /// 128, 256, 512, 1024.
    pub fn dp_accounting() -> Self {
        let tenths = (1..100).map(|i| 1.0 + f64::from(i) / 10.0);
        let powers = [128.0, 256.0, 512.0, 1024.0];
        Self::Fixed(tenths.chain((11..64).map(f64::from)).chain(powers).collect())
    }

    /// The list of TensorFlow Privacy 0.8: 1.25, 1.5, 1.75, 2, 2.25, 2.5, 3, 3.5, 4, 4.5, 5 to 63,
    /// 128, 256, 512.
    pub fn tensorflow_privacy() -> Self {
        let low = [1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 3.0, 3.5, 4.0, 4.5];
        Self::Fixed(low.into_iter().chain((5..64).map(f64::from)).chain([128.0, 256.0, 512.0]).collect())
    }

    /// Minimises over the orders. `objective` returns the value and a lower bound on the values at
    /// all larger orders.
    pub(crate) fn minimise(&self, objective: impl Fn(f64) -> (f64, f64), range: (f64, f64)) -> Best {
        let mut best = Best { order: f64::NAN, value: f64::INFINITY };
        match self {
            Self::Fixed(orders) => {
                for &order in orders.iter().filter(|order| **order > 1.0) {
                    best.improve(order, objective(order).0);
                }
            }
            Self::Adaptive => {
                // The objective can have several local minima: a scan finds the basins, a descent
                // each of the best two.
                let mut scan: Vec<(f64, f64)> = Vec::new();
                let mut excess = SCAN_START.clamp(range.0, range.1);
                while excess <= range.1 {
                    let (value, rest) = objective(1.0 + excess);
                    best.improve(1.0 + excess, value);
                    scan.push((excess, value));
                    if rest > best.value {
                        break;
                    }
                    excess *= SCAN_RATIO;
                }
                // Downwards only while that helps, or nothing was finite yet: orders this low
                // matter for very large ε.
                excess = scan[0].0 / SCAN_RATIO;
                while excess >= range.0 && scan[0].1 <= best.value {
                    let (value, _) = objective(1.0 + excess);
                    best.improve(1.0 + excess, value);
                    scan.insert(0, (excess, value));
                    excess /= SCAN_RATIO;
                }
                let is_basin = |i: usize| {
                    let here = scan[i].1;
                    here.is_finite()
                        && (i == 0 || here <= scan[i - 1].1)
                        && (i + 1 == scan.len() || here <= scan[i + 1].1)
                };
                let mut basins: Vec<usize> = (0..scan.len()).filter(|&i| is_basin(i)).collect();
                basins.sort_by(|&i, &j| scan[i].1.total_cmp(&scan[j].1));
                for &basin in basins.iter().take(2) {
                    descend(libm::log(scan[basin].0), libm::log(SCAN_RATIO), |log_excess| {
                        let order = 1.0 + libm::exp(log_excess);
                        let value = objective(order).0;
                        best.improve(order, value);
                        value
                    });
                }
            }
        }
        best
    }
}

/// Minimises `value(order, divergence(order))`, which grows with the divergence, over a list.
///
/// Divergences grow with the order, so that of a lower one bounds all values above it from below:
/// where that is beyond the best value, nothing more is asked.
pub(crate) fn least_of(orders: &[f64], divergence: impl Fn(f64) -> f64, value: impl Fn(f64, f64) -> f64) -> Best {
    let mut sorted: Vec<f64> = orders.iter().copied().filter(|order| *order > 1.0).collect();
    sorted.sort_by(f64::total_cmp);
    let mut best = Best { order: f64::NAN, value: f64::INFINITY };
    let mut ranges = vec![(0, sorted.len(), 0.0)];
    while let Some((start, end, at_least)) = ranges.pop() {
        // Divergences are bounds, which rounding keeps from growing in every digit.
        let is_plausible = |order: &f64| value(*order, at_least * (1.0 - 1e-9)) <= best.value;
        if !sorted[start..end].iter().any(is_plausible) {
            continue;
        }
        let middle = start + (end - start) / 2;
        let here = divergence(sorted[middle]);
        best.improve(sorted[middle], value(sorted[middle], here));
        ranges.push((start, middle, at_least));
        ranges.push((middle + 1, end, here));
    }
    best
}

/// Minimises within `centre ± radius` by parabolas through the last three points, and by golden
/// sections where those lead astray; the caller keeps the best value.
///
/// **Source.** Brent 1973, Chapter 5.
fn descend(centre: f64, radius: f64, mut objective: impl FnMut(f64) -> f64) {
    const GOLDEN: f64 = 0.381_966_011_250_105_1;
    // At a minimum the value is flat: an order known to 1e-6 gives ε to 1e-12.
    const TOLERANCE: f64 = 1e-6;
    let (mut low, mut high) = (centre - radius, centre + radius);
    // The best three points, the best first.
    let mut points = [(centre, objective(centre)); 3];
    let (mut step, mut step_before) = (0.0_f64, 0.0_f64);
    for _ in 0..60 {
        let [(x, at_x), (w, at_w), (v, at_v)] = points;
        let middle = 0.5 * (low + high);
        if (x - middle).abs() <= 2.0 * TOLERANCE - 0.5 * (high - low) {
            break;
        }
        let (r, q) = ((x - w) * (at_x - at_v), (x - v) * (at_x - at_w));
        let (p, q) = ((x - v) * q - (x - w) * r, 2.0 * (q - r));
        let parabolic = -p / q;
        // False where anything is not a number.
        let is_sound = step_before.abs() > TOLERANCE
            && parabolic.abs() < 0.5 * step_before.abs()
            && x + parabolic > low
            && x + parabolic < high;
        let golden_from = if x >= middle { low - x } else { high - x };
        step_before = if is_sound { step } else { golden_from };
        step = if is_sound { parabolic } else { GOLDEN * golden_from };
        let next = x + if step.abs() < TOLERANCE { TOLERANCE.copysign(step) } else { step };
        let at_next = objective(next);
        if at_next <= at_x {
            if next >= x {
                low = x;
            } else {
                high = x;
            }
            points = [(next, at_next), points[0], points[1]];
        } else {
            if next < x {
                low = next;
            } else {
                high = next;
            }
            if at_next <= at_w || w == x {
                points = [points[0], (next, at_next), points[1]];
            } else if at_next <= at_v || v == x || v == w {
                points[2] = (next, at_next);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_searched_as_if_every_order_were_tried() {
        for (slope, log_delta) in [(1e-3, -11.5), (0.05, -11.5), (0.5, -2.0), (3.0, -30.0), (1e-9, -5.0)] {
            let divergence = |order: f64| slope * order + 0.01 * (order / 7.0).powi(3);
            let value = |order: f64, rdp: f64| rdp - log_delta / (order - 1.0);
            let Orders::Fixed(list) = Orders::dp_accounting() else { panic!("a list") };
            let all = list.iter().map(|&order| value(order, divergence(order))).fold(f64::INFINITY, f64::min);
            let asked = std::cell::Cell::new(0);
            let found = least_of(
                &list,
                |order| {
                    asked.set(asked.get() + 1);
                    divergence(order)
                },
                value,
            );
            assert_eq!(found.value, all);
            assert!(asked.get() < list.len() / 2, "{} of {}", asked.get(), list.len());
        }
        assert!(!least_of(&[], |_| 1.0, |_, rdp| rdp).is_finite());
    }
}
