//! A search within one guarantee: the best of a random number of trials.

use dp_accounting::TrialCount;
use dp_clipping::rand::Rng;

/// A trial of a search that came to an end.
///
/// A trial draws what it tries without a look at the records, trains it, and gives it a score that
/// is private, too. The number of trials is drawn first ([`Self::number_of`]) and is not released;
/// of all trials the [better](Self::better) one alone is. A trial that diverged has the least score,
/// and is left out.
///
/// **Guarantee.** [`DpEvent::best_of`](dp_accounting::DpEvent::best_of) of one trial with its score,
/// which is dearer than the trial and does not grow with the number that were made.
///
/// **Source.** Papernot and Steinke 2022, Theorem 2.
///
/// **Example**
/// ```
/// use dp_linear::Trial;
/// let scores = [0.7, 0.9, 0.9];
/// let trials = (0..).zip(scores).map(|(number, score)| Trial { number, score, made: () });
/// assert_eq!(trials.reduce(Trial::better).map(|best| best.number), Some(1));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial<T> {
    /// Trials are numbered from 0 as they are drawn.
    pub number: u64,
    /// Its score, with noise.
    pub score: f64,
    /// What it made.
    pub made: T,
}

impl<T> Trial<T> {
    /// The one with the larger score; of equals the one that was drawn first.
    #[must_use]
    pub fn better(self, other: Self) -> Self {
        let order = self.score.total_cmp(&other.score);
        if order.then(other.number.cmp(&self.number)).is_lt() { other } else { self }
    }
}

impl Trial<()> {
    /// Draws how many trials there are.
    pub fn number_of(trials: TrialCount, rng: &mut impl Rng) -> u64 {
        trials.quantile(rng.random())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dp_clipping::rand::SeedableRng as _;
    use rand_chacha::ChaCha20Rng;

    fn trial(number: u64, score: f64) -> Trial<()> {
        Trial { number, score, made: () }
    }

    #[test]
    fn the_best_does_not_depend_on_the_order() {
        let trials = [trial(0, -1.0), trial(1, 3.0), trial(2, 3.0), trial(3, 2.0)];
        for start in 0..trials.len() {
            let turned = trials.iter().cycle().skip(start).take(trials.len()).copied();
            assert_eq!(turned.reduce(Trial::better), Some(trial(1, 3.0)), "from {start}");
        }
    }

    /// Of a geometric distribution the mean is 1/γ: 4 here, and that of 2,000 draws has a standard
    /// deviation of √12/√2000 = 0.077. Six of them are exceeded once in 5·10⁸.
    #[test]
    fn the_number_of_trials_follows_its_distribution() {
        let trials = TrialCount::negative_binomial(1.0, 0.25).unwrap();
        let mut rng = ChaCha20Rng::seed_from_u64(5);
        let drawn: Vec<u64> = (0..2_000).map(|_| Trial::number_of(trials, &mut rng)).collect();
        let mean = drawn.iter().sum::<u64>() as f64 / 2_000.0;
        assert!(drawn.iter().all(|&n| n >= 1) && (mean - 4.0).abs() < 6.0 * 0.077, "{mean}");
    }
}
