//! The noisy score of a trial: of its own answers alone, so that the best of many can be charged.

use dp_engine::Grid;
use dp_linear::sum_rows;
use rand_chacha::ChaCha20Rng;

use crate::config::{Config, TuningGoal};
use crate::error::Result;
use crate::model::FittedModel;
use crate::subsets::{GroupedRows, features};

/// Records that every recall is drawn by, in standard deviations of their noise.
const FEW: f64 = 5.0;

/// What trials are compared by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ScoreGoal {
    /// The sum over records of 1 less the Brier score.
    Probabilities,
    /// The balanced accuracy of the group that is served worst, less what accuracy lacks to a floor.
    WorstGroup { min_accuracy: f64 },
}

impl ScoreGoal {
    pub(super) fn of(config: &Config) -> Self {
        match &config.tuning {
            Some(tuning) if tuning.goal == TuningGoal::WorstGroup => {
                Self::WorstGroup { min_accuracy: tuning.min_accuracy.unwrap_or(0.0) }
            }
            _ => Self::Probabilities,
        }
    }

    /// Scores a model on records, with noise of this standard deviation on what is summed.
    ///
    /// **Guarantee.** A record adds a number between 0 and 1 to one of the sums, so they move by at most 1 together;
    /// one that was blanked adds nothing. The score is a function of the noisy sums.
    pub(super) fn score(
        self,
        model: &FittedModel,
        rows: &impl GroupedRows,
        std: f64,
        rng: &mut ChaCha20Rng,
    ) -> Result<f64> {
        let noisy = self.released(model, rows, std, rng)?;
        Ok(match self {
            Self::Probabilities => noisy[0],
            Self::WorstGroup { min_accuracy } => of_worst_group(&noisy, model.classes().len(), std, min_accuracy),
        })
    }

    /// The sums with noise.
    pub(super) fn released(
        self,
        model: &FittedModel,
        rows: &impl GroupedRows,
        std: f64,
        rng: &mut ChaCha20Rng,
    ) -> Result<Vec<f64>> {
        #[cfg(test)]
        let std = if crate::hook::HALF_THE_NOISE.get() { 0.5 * std } else { std };
        let (grid, sums) = self.sums(model, rows)?;
        Ok(grid.release(sums, std, rng))
    }

    /// Exact sums in steps of their grid. **Not private.**
    pub(super) fn sums(self, model: &FittedModel, rows: &impl GroupedRows) -> Result<(Grid, Vec<f64>)> {
        match self {
            Self::Probabilities => Ok((Grid::for_values(1.0, rows.len()), vec![brier(model, rows)?])),
            Self::WorstGroup { .. } => Ok((Grid::for_counts(), answers(model, rows)?)),
        }
    }
}

/// `Σ w (1 − ½ Σ_c (p_c − y_c)²)` over records of weight `w`, in steps of the grid: 1 less the Brier
/// score, a proper one.
fn brier(model: &FittedModel, rows: &impl GroupedRows) -> Result<f64> {
    let grid = Grid::for_values(1.0, rows.len());
    let scratch = || vec![0.0; model.classes().len()];
    let sum = sum_rows(rows, 1, scratch, |probabilities, _, row, sum| {
        model.probabilities(features(row), probabilities);
        let square = |(class, p): (usize, &f64)| (p - if class == row.label { 1.0 } else { 0.0 }).powi(2);
        let brier: f64 = probabilities.iter().enumerate().map(square).sum();
        sum[0] += grid.place(f64::from(row.weight) * (1.0 - 0.5 * brier).clamp(0.0, 1.0));
    })?;
    Ok(sum[0])
}

/// Numbers of records by group, class and whether the answer is right: `[groups, classes, 2]`, wrong first.
fn answers(model: &FittedModel, rows: &impl GroupedRows) -> Result<Vec<f64>> {
    let (n_groups, n_classes) = (model.encoding().groups().len(), model.classes().len());
    let scratch = || vec![0.0; n_classes];
    let counts = sum_rows(rows, 2 * n_groups * n_classes, scratch, |probabilities, index, row, sum| {
        if row.is_blank() {
            return;
        }
        let group = rows.groups(index..index + 1)[0];
        model.probabilities(features(row), probabilities);
        let answer = model.decide(probabilities, features(row), group);
        sum[2 * (group * n_classes + row.label) + usize::from(answer == row.label)] += 1.0;
    })?;
    #[cfg(test)]
    if crate::hook::ANSWERS_TWICE.get() {
        let mut twice = counts.clone();
        for (place, count) in counts.iter().enumerate().skip(2 * n_classes) {
            twice[place % (2 * n_classes)] += count;
        }
        return Ok(twice);
    }
    Ok(counts)
}

/// The lowest mean recall of a group, less what accuracy lacks to the floor. Recalls are drawn to those of all
/// records, as if the group had a few more of these: one without records has these alone.
fn of_worst_group(counts: &[f64], n_classes: usize, std: f64, min_accuracy: f64) -> f64 {
    let further = FEW * std;
    let recall = |wrong: f64, right: f64, of_all: f64| {
        ((right.max(0.0) + further * of_all) / (wrong.max(0.0) + right.max(0.0) + further)).clamp(0.0, 1.0)
    };
    let mut of_all = vec![[0.0; 2]; n_classes];
    for (place, cell) in counts.chunks_exact(2).enumerate() {
        let all = &mut of_all[place % n_classes];
        *all = [all[0] + cell[0], all[1] + cell[1]];
    }
    let of_classes: Vec<f64> = of_all.iter().map(|&[wrong, right]| recall(wrong, right, 0.5)).collect();
    let balanced = |group: &[f64]| {
        let recalls = group.chunks_exact(2).zip(&of_classes).map(|(cell, &of_all)| recall(cell[0], cell[1], of_all));
        recalls.sum::<f64>() / n_classes as f64
    };
    let worst = counts.chunks_exact(2 * n_classes).map(balanced).fold(1.0, f64::min);
    let [wrong, right] = of_all.iter().fold([0.0; 2], |sum, cell| [sum[0] + cell[0], sum[1] + cell[1]]);
    worst - (min_accuracy - recall(wrong, right, 0.5)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_group_counts_and_accuracy_below_a_floor_is_taken_off() {
        // Recalls of the first group 0.9 and 0.8, of the second 0.6 and 0.9; 1,600 of 2,000 are right.
        let counts = [50.0, 450.0, 100.0, 400.0, 200.0, 300.0, 50.0, 450.0];
        let score = |floor: f64| of_worst_group(&counts, 2, 1e-12, floor);
        for (floor, expected) in [(0.0, 0.75), (0.8, 0.75), (0.85, 0.70)] {
            assert!((score(floor) - expected).abs() < 1e-9, "{floor}");
        }
        // A group that is noise alone has the recalls of all, 0.9 and 0.8.
        let few = [500.0, 4_500.0, 1_000.0, 4_000.0, -3.0, 1.0, 2.0, -4.0];
        assert!((of_worst_group(&few, 2, 20.0, 0.0) - 0.85).abs() < 0.02);
    }
}
