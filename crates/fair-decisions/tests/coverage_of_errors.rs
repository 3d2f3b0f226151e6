//! Whether intervals of the errors of numbers hold what they say.

use fair_decisions::ErrorCells;
use fair_metrics::noisy::NoisyErrors;
use rand::Rng;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;

const RELEASES: usize = 2_000;
const LEVEL: f64 = 0.95;
/// Misses of 2,000 at 5 % are above this with a probability of 1e-4: 100 and 3.72 standard deviations.
const MOST_MISSES: usize = 137;

/// A record of a population: a label and a prediction that explains most of it, with skewed errors.
fn record(rng: &mut ChaCha20Rng, group: usize) -> (f64, f64) {
    let known: f64 = rng.random_range(-0.35..0.35);
    let unknown = -0.04 * (1.0 + rng.random::<f64>().ln().max(-5.0));
    (known + 0.02 * group as f64, (known + unknown * (1 + group) as f64).clamp(-0.5, 0.5))
}

/// Figures of the population: R², mean absolute error, root mean squared error, mean error.
fn truth(group: usize) -> [f64; 4] {
    let mut rng = ChaCha20Rng::seed_from_u64(99 + group as u64);
    let n = 2_000_000;
    let (mut absolute, mut square, mut mean, mut sum, mut squares) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for _ in 0..n {
        let (prediction, label) = record(&mut rng, group);
        let error = prediction - label;
        absolute += error.abs();
        square += error * error;
        mean += error;
        sum += label;
        squares += label * label;
    }
    let n = f64::from(n);
    let variance = squares / n - (sum / n).powi(2);
    [1.0 - square / n / variance, absolute / n, (square / n).sqrt(), mean / n]
}

/// Two groups, one of few records, at a noise that hides much and at one that hides little.
#[test]
fn intervals_of_errors_hold_at_their_level() {
    let truths = [0, 1].map(truth);
    let difference = (truths[0][3] - truths[1][3]).abs();
    for (case, (sizes, sigma)) in [([1_500, 250], 3.73), ([400, 60], 0.3)].into_iter().enumerate() {
        let (mut misses, mut of_difference, mut of_largest) = ([[0_usize; 4]; 2], 0, 0);
        let largest = usize::from(truths[1][1] > truths[0][1]);
        let mut rng = ChaCha20Rng::seed_from_u64(case as u64);
        for _ in 0..RELEASES {
            let mut cells = ErrorCells::new(2);
            for (group, n) in sizes.into_iter().enumerate() {
                for _ in 0..n {
                    let (prediction, label) = record(&mut rng, group);
                    cells.add(group, prediction, label);
                }
            }
            let found = NoisyErrors::of(&cells.release(sigma, 1, &mut rng).unwrap(), LEVEL).unwrap();
            for (group, misses) in misses.iter_mut().enumerate() {
                let figures = found.groups[group];
                let all =
                    [figures.r2, figures.mean_absolute_error, figures.root_mean_squared_error, figures.mean_error];
                for ((figure, truth), misses) in all.iter().zip(truths[group]).zip(misses) {
                    *misses += usize::from(!figure.contains(truth));
                }
            }
            of_difference += usize::from(!found.mean_error_difference.contains(difference));
            of_largest += usize::from(!found.largest.contains(&largest));
        }
        println!("case {case}: of {RELEASES}, misses {misses:?}, difference {of_difference}, largest {of_largest}");
        assert!(misses.iter().flatten().all(|&misses| misses <= MOST_MISSES), "case {case}: {misses:?}");
        assert!(of_difference <= MOST_MISSES && of_largest <= MOST_MISSES, "{of_difference} {of_largest}");
    }
}
