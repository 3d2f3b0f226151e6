//! Which Rényi orders are tried.

use serde::{Deserialize, Serialize};

/// Orders at which the conversion is minimised. Every order gives a valid bound, so more orders can only tighten it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Orders {
    /// Searched continuously, from just above 1 to far beyond any list.
    Adaptive,
    /// A fixed list, to reproduce a published figure.
    Fixed(Vec<f64>),
}

/// `α - 1` for the adaptive search: from the near-KL end (ε in the millions) to ε ≈ 1e-7 at δ = 1e-5.
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

    fn improve(&mut self, order: f64, value: f64) {
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

    /// The default list of dp_accounting 0.6: 1.1 to 10.9 in tenths, the integers 11 to 63, then 128, 256, 512, 1024.
    pub fn dp_accounting() -> Self {
        let tenths = (1..100).map(|i| 1.0 + f64::from(i) / 10.0);
        let powers = [128.0, 256.0, 512.0, 1024.0];
        Self::Fixed(tenths.chain((11..64).map(f64::from)).chain(powers).collect())
    }

    /// The list of TensorFlow Privacy 0.8: 1.25, 1.5, 1.75, 2, 2.25, 2.5, 3, 3.5, 4, 4.5, 5 to 63, 128, 256, 512.
    pub fn tensorflow_privacy() -> Self {
        let low = [1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 3.0, 3.5, 4.0, 4.5];
        Self::Fixed(low.into_iter().chain((5..64).map(f64::from)).chain([128.0, 256.0, 512.0]).collect())
    }

    /// Minimises over the orders. `objective` returns the value and a lower bound on the values at all larger orders.
    pub(crate) fn minimise(&self, objective: impl Fn(f64) -> (f64, f64), range: (f64, f64)) -> Best {
        let mut best = Best { order: f64::NAN, value: f64::INFINITY };
        match self {
            Self::Fixed(orders) => {
                for &order in orders.iter().filter(|order| **order > 1.0) {
                    best.improve(order, objective(order).0);
                }
            }
            Self::Adaptive => {
                // The objective can have several local minima: a scan finds the basins, a golden section each of the best two.
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
                // Downwards only while that helps, or nothing was finite yet: orders this low matter for very large ε.
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
                    golden_section(scan[basin].0.ln(), SCAN_RATIO.ln(), |log_excess| {
                        let order = 1.0 + log_excess.exp();
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

/// Golden-section search within `centre ± radius`; the caller keeps the best value.
fn golden_section(centre: f64, radius: f64, mut objective: impl FnMut(f64) -> f64) {
    const RATIO: f64 = 0.618_033_988_749_894_9;
    let (mut low, mut high) = (centre - radius, centre + radius);
    let (mut left, mut right) = (high - RATIO * (high - low), low + RATIO * (high - low));
    let (mut at_left, mut at_right) = (objective(left), objective(right));
    // At a minimum the value is flat: an order known to 3e-4 gives ε to 1e-7.
    while high - low > 3e-4 {
        if at_left <= at_right {
            (high, right, at_right) = (right, left, at_left);
            left = high - RATIO * (high - low);
            at_left = objective(left);
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + RATIO * (high - low);
            at_right = objective(right);
        }
    }
}
