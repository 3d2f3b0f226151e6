//! Two groups, one private release of their scores, and the price of every notion of fairness.

use fair_decisions::rand::rand_core::UnwrapErr;
use fair_decisions::rand::rngs::OsRng;
use fair_decisions::{Aim, CumulativeCounts, DecisionError, Mode, PrefixSums, ScoreCells, ScoreGrid, choose};

pub(crate) fn main() -> Result<(), DecisionError> {
    // Alike people, whose scores are lower by 1 in the second group.
    let (grid, mut cells) = (ScoreGrid::around(0.0), ScoreCells::new(2));
    for i in 0..40_000_u32 {
        let (group, class) = (i % 2, i / 2 % 2);
        let place = (f64::from(i / 4 % 997) + 0.5) / 997.0;
        let score = (place / (1.0 - place)).ln() + 3.0 * f64::from(class) - 1.5 - f64::from(group);
        cells.add(group as usize, class as usize, grid.cell(|edge| score > edge));
    }
    let sums = PrefixSums::new();
    // A tenth of the budget of ε = 1 at δ = 1e-5.
    let counts = CumulativeCounts::release(&sums, &cells, 11.8, 1, &mut UnwrapErr(OsRng))?;
    for group in 0..2 {
        println!("group {group}: AUC {:?}", counts.auc(&sums, group, 0.95));
    }
    for mode in Mode::ALL {
        let choice = choose(&sums, &counts, &Aim::of(mode), 0.5);
        let thresholds =
            choice.thresholds.iter().map(|threshold| grid.edges()[threshold.likeliest()]).collect::<Vec<_>>();
        println!(
            "{:<20} gap {:.3} → {:.3}, balanced accuracy {:.3} → {:.3}, thresholds {thresholds:.2?}, {:?}",
            mode.name(),
            choice.before.gap,
            choice.after.gap,
            choice.before.balanced_accuracy,
            choice.after.balanced_accuracy,
            choice.kept,
        );
        assert!(mode == Mode::None || choice.after.balanced_accuracy > choice.before.balanced_accuracy - 0.02);
    }
    Ok(())
}
