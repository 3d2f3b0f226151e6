//! How often thresholds move where there is nothing to gain, and whether what moves gains.
//!
//! False-alarm rate: none; seeds are fixed, and limits are far from what was found.

use fair_decisions::{Aim, CumulativeCounts, Mode, PrefixSums, ScoreCells, ScoreGrid, choose};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

/// Noise multiplier of a tenth of the budget at ε = 1.
const NOISE: f64 = 11.8;
const TABLES: usize = 20;

/// Groups of so many records of each class, whose scores are logistic around ∓1.3 and a shift.
fn draw(shifts: &[f64], n: usize, grid: &ScoreGrid, rng: &mut ChaCha20Rng) -> ScoreCells {
    let mut cells = ScoreCells::new(shifts.len());
    for (group, shift) in shifts.iter().enumerate() {
        for class in 0..2 {
            for _ in 0..n {
                let u: f64 = rng.random_range(1e-12..1.0);
                let score = shift + 2.6 * class as f64 - 1.3 + (u / (1.0 - u)).ln();
                cells.add(group, class, grid.cell(|edge| score > edge));
            }
        }
    }
    cells
}

/// The true gap of a mode, or 1 less the least balanced accuracy.
fn left(mode: Mode, shifts: &[f64], thresholds: &[f64]) -> f64 {
    let rates: Vec<[f64; 2]> = shifts
        .iter()
        .zip(thresholds)
        .map(|(shift, threshold)| {
            [0, 1].map(|class| 1.0 / (1.0 + (threshold - shift - 2.6 * f64::from(class) + 1.3).exp()))
        })
        .collect();
    let gap = |of: &dyn Fn(&[f64; 2]) -> f64| {
        let all: Vec<f64> = rates.iter().map(of).collect();
        all.iter().fold(0.0, |a: f64, b| a.max(*b)) - all.iter().fold(1.0, |a: f64, b| a.min(*b))
    };
    match mode {
        Mode::EqualizedOdds => gap(&|rate| rate[0]).max(gap(&|rate| rate[1])),
        Mode::EqualOpportunity => gap(&|rate| rate[1]),
        Mode::DemographicParity => gap(&|rate| 0.5 * (rate[0] + rate[1])),
        _ => rates.iter().map(|rate| 0.5 * (1.0 + rate[0] - rate[1])).fold(0.0, f64::max),
    }
}

/// What thresholds did on some tables.
#[derive(Default)]
struct Moves {
    moved: usize,
    for_the_worse: usize,
    true_gains: Vec<f64>,
    told: Vec<f64>,
}

fn moves(shifts: &[f64], n: usize, mode: Mode, rng: &mut ChaCha20Rng) -> Moves {
    let (sums, grid, mut moves) = (PrefixSums::new(), ScoreGrid::around(0.0), Moves::default());
    let common = vec![grid.edges()[ScoreGrid::common()]; shifts.len()];
    for _ in 0..TABLES {
        let cells = draw(shifts, n, &grid, rng);
        let counts = CumulativeCounts::release(&sums, &cells, NOISE, 1, rng).expect("counts that can be released");
        let choice = choose(&sums, &counts, &Aim::of(mode), 0.5);
        let Some(gain) = choice.gain else { continue };
        let thresholds: Vec<f64> =
            choice.thresholds.iter().map(|threshold| grid.edges()[threshold.likeliest()]).collect();
        let true_gain = left(mode, shifts, &common) - left(mode, shifts, &thresholds);
        moves.moved += 1;
        moves.for_the_worse += usize::from(true_gain < 0.0);
        moves.true_gains.push(true_gain);
        moves.told.push(gain.value);
    }
    moves
}

#[test]
fn what_moves_gains() {
    let mut rng = ChaCha20Rng::seed_from_u64(75);
    let modes = [Mode::EqualizedOdds, Mode::DemographicParity, Mode::WorstGroup];
    let mut of_alike = 0;
    for shifts in [&[0.0, 0.0][..], &[0.0; 4]] {
        for n in [400, 2_000] {
            of_alike += modes.iter().map(|&mode| moves(shifts, n, mode, &mut rng).moved).sum::<usize>();
        }
    }
    // 240 choices among alike groups: one in twenty may move.
    assert!(of_alike <= 12, "{of_alike}");
    for mode in modes {
        let Moves { moved, for_the_worse, true_gains, told } =
            moves(&[0.0, 0.1, 0.0, -0.1, -0.8], 2_000, mode, &mut rng);
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        assert!(moved >= 5 && for_the_worse == 0, "{mode:?}: {moved} moved, {for_the_worse} for the worse");
        // What is told is the truth within a hundredth.
        let (gain, told) = (mean(&true_gains), mean(&told));
        assert!((gain - told).abs() < 0.015, "{mode:?}: {gain} {told}");
    }
}
