//! How wide the intervals of groups' figures will be, from public numbers alone.

use dp_accounting::{Delta, Epsilon};
use dp_linear::GaussianBudget;
use fair_decisions::{CumulativeCounts, N_CELLS, N_EDGES, PrefixSums, ScoreCells, ScoreGrid};
use fair_metrics::noisy::{Share, largest_difference, mean_of_shares};
use serde::Serialize;

use crate::config::Config;
use crate::error::Result;
use crate::fairness::CONFIDENCE;

/// A typical rate of the two classes above the common threshold.
const RATES: [f64; 2] = [0.2, 0.7];

/// Half-widths of intervals in a group with so many test records of the positive class and of all others, whose
/// false-positive rate is .2 and whose true-positive rate is .7.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PlannedWidths {
    /// ε.
    pub epsilon: f64,
    /// Test records of each class.
    pub records: f64,
    /// Of the true-positive rate.
    pub rate: f64,
    /// Of the area under the ROC curve.
    pub auc: f64,
    /// Of the gap of equalised odds between two such groups: from the estimate to the upper end.
    pub gap: f64,
}

/// For the declared size and ε, then for half and twice of each; none without a test part or scores.
pub(super) fn widths(config: &Config) -> Result<Vec<PlannedWidths>> {
    let share = match &config.test.files {
        Some(_) => 1.0,
        None => config.test.fraction.unwrap_or(0.0),
    };
    if share <= 0.0 || !config.has_scores() {
        return Ok(Vec::new());
    }
    let (epsilon, records) = (config.privacy.epsilon, config.fairness.smallest as f64 * share);
    let cases = [(1.0, 1.0), (0.5, 1.0), (2.0, 1.0), (1.0, 0.5), (1.0, 2.0)];
    cases
        .into_iter()
        .map(|(of_epsilon, of_records)| width(config, epsilon * of_epsilon, records * of_records))
        .collect()
}

fn width(config: &Config, epsilon: f64, records: f64) -> Result<PlannedWidths> {
    let budget = GaussianBudget::new(Epsilon::new(epsilon)?, Delta::new(config.privacy.delta)?)?;
    let sums = PrefixSums::new();
    let std = sums.noise_std(budget.noise_multiplier(1.0, 1)?.get(), config.counted_per_unit());
    let counts = CumulativeCounts::expected(&typical(records, config.label.classes.len()), std);
    let shares: [Share; 2] = [0, 1].map(|class| counts.share_above(&sums, 0, class, ScoreGrid::common()));
    let half = |low: f64, high: f64| 0.5 * (high - low);
    let rate = mean_of_shares(&shares[1..], CONFIDENCE);
    let auc = counts.auc(&sums, 0, CONFIDENCE);
    let figures = [1, 0].map(|class| vec![vec![shares[class]], vec![shares[class]]]);
    let gap = largest_difference(&figures, CONFIDENCE).all;
    Ok(PlannedWidths {
        epsilon,
        records,
        rate: half(rate.low, rate.high),
        auc: half(auc.low, auc.high),
        gap: gap.high - gap.value.unwrap_or(0.0),
    })
}

/// Records of one group: each side spread evenly over its blocks, and over the cells on either side of the common
/// threshold.
fn typical(records: f64, n_classes: usize) -> ScoreCells {
    let n_others = CumulativeCounts::blocks_of_group(n_classes) - 1;
    let blocks = std::iter::repeat_n((RATES[0], records / n_others as f64), n_others).chain([(RATES[1], records)]);
    let cells = blocks.flat_map(|(rate, records)| {
        (0..N_CELLS).map(move |cell| {
            let is_above = cell > ScoreGrid::common();
            let (share, n) =
                if is_above { (rate, N_EDGES - ScoreGrid::common()) } else { (1.0 - rate, ScoreGrid::common() + 1) };
            records * share / n as f64
        })
    });
    ScoreCells::of_classes(1, n_classes).with_values(cells.collect())
}
