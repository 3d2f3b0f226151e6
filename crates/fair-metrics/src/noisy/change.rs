//! A figure on two sets of records that share nobody: how far it moved, and whether that is more than
//! sampling and noise.

use serde::{Deserialize, Serialize};

use crate::special::normal_quantile;

/// How far a figure moved.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The figure afterwards less the figure before.
    pub value: f64,
    /// Lower end of its interval, at the level of the figures' own.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Whether it is more than sampling and noise, as one of all figures that are compared.
    pub is_told_from_noise: bool,
}

impl Change {
    /// From a figure with its interval, `[value, low, high]`, before and afterwards, which are independent.
    /// `wide` are the same two at a higher level, by which the change is told from noise: of `n` figures
    /// that are compared at 95 %, that of 1 − 0.05/n (Bonferroni).
    ///
    /// The ends of the difference are at `√(a² + b²)` from it, where `a` and `b` are the halves of the two
    /// intervals on the sides that matter.
    ///
    /// **Source.** Newcombe 1998, method 10; Zou and Donner 2008.
    ///
    /// ```
    /// use fair_metrics::noisy::Change;
    ///
    /// let figures = [[0.80, 0.77, 0.83], [0.70, 0.66, 0.74]];
    /// let change = Change::between(figures, figures);
    /// assert!((change.value + 0.10).abs() < 1e-12 && (change.low + 0.15).abs() < 1e-12);
    /// assert!(change.is_told_from_noise);
    /// // Among a thousand figures one may well move as far.
    /// let wide = figures.map(|figure| Change::widened(figure, 0.95, 1_000));
    /// assert!(!Change::between(figures, wide).is_told_from_noise);
    /// ```
    pub fn between(figures: [[f64; 3]; 2], wide: [[f64; 3]; 2]) -> Self {
        let [value, low, high] = difference(figures);
        let [_, least, most] = difference(wide);
        Self { value, low, high, is_told_from_noise: least > 0.0 || most < 0.0 }
    }

    /// The interval of one of `n` figures that are compared, from that of one alone at this level, in the
    /// proportion of normal quantiles: an approximation, where the interval cannot be computed anew.
    pub fn widened([value, low, high]: [f64; 3], level: f64, n: usize) -> [f64; 3] {
        let tail = 0.5 * (1.0 - level);
        let wider = normal_quantile(tail / n.max(1) as f64) / normal_quantile(tail);
        [value, value - wider * (value - low), value + wider * (high - value)]
    }
}

/// The difference of two figures and its ends.
fn difference([before, after]: [[f64; 3]; 2]) -> [f64; 3] {
    let value = after[0] - before[0];
    let down = (after[0] - after[1]).hypot(before[2] - before[0]);
    let up = (after[2] - after[0]).hypot(before[0] - before[1]);
    [value, value - down, value + up]
}
