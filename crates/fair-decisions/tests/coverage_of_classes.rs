//! How often intervals hold the truth of a population of three classes that is known, with and without coins.
//!
//! False-alarm rate: each figure fails if its misses are above the binomial quantile of 5 % at a level of 1 %
//! divided by the number of figures.

use std::collections::BTreeMap;

use fair_decisions::{Aim, CumulativeCounts, Mixture, Mode, PrefixSums, ScoreCells, ScoreGrid, choose};
use fair_metrics::noisy::{GroupShares, NoisyFigures, NoisyRate, PositiveShares, Share};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

const LEVEL: f64 = 0.95;
const RELEASES: usize = 400;
/// Noise multipliers of ε = 1 at δ = 1e-5: of all of the test part's budget, and of a third of the training part's.
const TEST: f64 = 3.73;
const TRAINING: f64 = 6.5;

/// Scores of a group's records: logistic around these middles, of the positive class last.
const MIDDLES: [[f64; 3]; 2] = [[-1.6, -0.9, 1.4], [-2.2, -1.7, 0.5]];
/// Share of each other class that is answered right where the positive class is not.
const RIGHT: [[f64; 2]; 2] = [[0.9, 0.7], [0.8, 0.75]];
/// Test records by group and class; training has five times as many.
const RECORDS: [[usize; 3]; 2] = [[1_500, 1_000, 1_000], [1_800, 1_200, 1_000]];

fn draw(times: usize, grid: &ScoreGrid, rng: &mut ChaCha20Rng) -> ScoreCells {
    let mut cells = ScoreCells::of_classes(2, 3);
    for group in 0..2 {
        for class in 0..3 {
            for _ in 0..times * RECORDS[group][class] {
                let u: f64 = rng.random_range(1e-12..1.0);
                let score = MIDDLES[group][class] + (u / (1.0 - u)).ln();
                let is_right = class < 2 && rng.random::<f64>() < RIGHT[group][class];
                cells.add_of_many(group, class, is_right, grid.cell(|edge| score > edge));
            }
        }
    }
    cells
}

/// The true share of a group's class above a threshold.
fn above(group: usize, class: usize, threshold: f64) -> f64 {
    1.0 / (1.0 + (threshold - MIDDLES[group][class]).exp())
}

/// True recalls, the false-positive rate, and accuracy.
struct Truth {
    recall: [f64; 3],
    false_positive: f64,
    accuracy: f64,
}

fn truth(grid: &ScoreGrid, group: usize, threshold: &Mixture) -> Truth {
    let mean = |class: usize| threshold.mean(|edge| above(group, class, grid.edges()[edge]));
    let recall = [0, 1, 2].map(|class| if class == 2 { mean(2) } else { (1.0 - mean(class)) * RIGHT[group][class] });
    let [a, b, c] = RECORDS[group].map(|n| n as f64);
    Truth {
        recall,
        false_positive: (a * mean(0) + b * mean(1)) / (a + b),
        accuracy: (a * recall[0] + b * recall[1] + c * recall[2]) / (a + b + c),
    }
}

fn shares(sums: &PrefixSums, counts: &CumulativeCounts, group: usize, threshold: &Mixture) -> GroupShares {
    let recall: Vec<Share> = (0..3).map(|class| counts.recall(sums, group, class, threshold)).collect();
    let [f, t] = [0, 1].map(|side| counts.share_above(sums, group, side, threshold));
    GroupShares::of_recalls(recall, PositiveShares::of(f, t))
}

#[test]
fn intervals_of_many_classes_hold() {
    let (sums, grid, mut rng) = (PrefixSums::new(), ScoreGrid::around(0.0), ChaCha20Rng::seed_from_u64(58));
    let mut missed: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    let training = draw(5, &grid, &mut rng);
    let (mut before, mut after) = (0.0, 0.0);
    for release in 0..RELEASES {
        let counts = CumulativeCounts::release(&sums, &training, TRAINING, 1, &mut rng).unwrap();
        let aim = Aim::with_limits(Mode::EqualizedOdds, 0.05, 0.0).unwrap().with_coins(release % 2 == 1);
        let choice = choose(&sums, &counts, &aim, 0.5);
        assert!(choice.kept.is_none(), "{choice:?}");
        let test = CumulativeCounts::release(&sums, &draw(1, &grid, &mut rng), TEST, 1, &mut rng).unwrap();
        let common = vec![Mixture::at(ScoreGrid::common()); 2];
        for (when, thresholds) in [("before", &common), ("after", &choice.thresholds)] {
            let truths = [0, 1].map(|group| truth(&grid, group, &thresholds[group]));
            let groups = [0, 1].map(|group| shares(&sums, &test, group, &thresholds[group]));
            let figures = NoisyFigures::of_shares(&groups[0], &groups, LEVEL).unwrap();
            let mut check = |what: &str, rate: NoisyRate, truth: f64| {
                let tally = missed.entry(format!("{what}, {when}")).or_default();
                tally[0] += usize::from(!rate.contains(truth));
                tally[1] += 1;
            };
            for (found, truth) in figures.groups.iter().zip(&truths) {
                check("accuracy", found.accuracy, truth.accuracy);
                check("balanced accuracy", found.balanced_accuracy, truth.recall.iter().sum::<f64>() / 3.0);
                check("true-positive rate", found.true_positive_rate.unwrap(), truth.recall[2]);
                check("false-positive rate", found.false_positive_rate.unwrap(), truth.false_positive);
                (0..3).for_each(|class| check(&format!("recall of {class}"), found.recall[class], truth.recall[class]));
            }
            let [a, b] = &truths;
            let gap = (a.recall[2] - b.recall[2]).abs().max((a.false_positive - b.false_positive).abs());
            check("gap of equalised odds", figures.equalized_odds_difference.unwrap().all, gap);
            *(if when == "before" { &mut before } else { &mut after }) += gap / RELEASES as f64;
        }
    }
    for (what, [missed, n]) in &missed {
        let (n, missed) = (*n as f64, *missed as f64);
        // 1 % over 16 figures: 3.2 standard deviations.
        let most = 0.05 * n + 3.2 * (0.05 * 0.95 * n).sqrt();
        assert!(missed <= most, "{what}: {missed} of {n}, at most {most:.0}");
    }
    assert!(before > 0.15 && after < 0.25 * before, "{before} {after}");
    println!("missed {missed:?}; gap {before:.3} to {after:.3}");
}
