//! Lower bounds on ε from scores.

use dp_accounting::Delta;
use dp_train::Result;
use serde::Serialize;

use super::claim::Claim;
use super::difference::lower_bound;
use crate::privacy::{epsilon_of_mu, epsilon_of_one_run, mu_of_one_run};

/// Share of the canaries that is guessed: those whose scores are farthest from 0. It was fixed on
/// simulated Gaussian pairs of μ = 1.
const GUESSED: f64 = 0.15;

/// A canary after a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// Above 0 the attacker says that it was in, and is the surer the farther it is from 0.
    pub score: f64,
    /// Whether it was.
    pub present: bool,
    /// Its group, class or both: as the caller numbers them.
    pub kind: usize,
}

/// What one run shows of a claim: lower bounds, each with its confidence.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct EpsilonBounds {
    /// Canaries, of which about half were in.
    pub canaries: usize,
    /// Canaries that were guessed, the surest ones.
    pub guesses: u32,
    /// Guesses that were right.
    pub right: u32,
    /// ε from the guesses, without an assumption (Steinke et al. 2023).
    pub one_run: f64,
    /// μ from the guesses, if the trade-off function is that of a Gaussian mechanism (Mahloujifar et
    /// al. 2024); no assumption on the scores.
    pub f_dp_mu: f64,
    /// Its ε at δ.
    pub f_dp: f64,
    /// How far apart the scores of either kind are at least, over their standard deviation, if they are
    /// normal with one spread: without sampling μ.
    pub separation: f64,
    /// ε at δ of the noise under which they would be as far apart.
    pub gaussian: f64,
}

/// The surest guesses.
pub(super) struct Guesses {
    canaries: u32,
    made: u32,
    right: u32,
}

impl Guesses {
    pub(super) fn of(scores: &[Score]) -> Self {
        let mut guessed: Vec<&Score> = scores.iter().collect();
        guessed.sort_by(|a, b| b.score.abs().total_cmp(&a.score.abs()));
        guessed.truncate((scores.len() as f64 * GUESSED).ceil() as usize);
        let right = guessed.iter().filter(|score| (score.score > 0.0) == score.present).count() as u32;
        Self { canaries: scores.len() as u32, made: guessed.len() as u32, right }
    }

    pub(super) fn one_run(&self, delta: f64, failure: f64) -> f64 {
        epsilon_of_one_run(self.canaries, self.made, self.right, delta, failure)
    }

    pub(super) fn f_dp_mu(&self, failure: f64) -> f64 {
        mu_of_one_run(self.canaries, self.made, self.right, failure)
    }
}

/// How far apart the scores of either kind are at least.
pub(super) fn separation(scores: &[Score], failure: f64) -> f64 {
    let kind = |present: bool| -> Vec<f64> {
        scores.iter().filter(|score| score.present == present).map(|score| score.score).collect()
    };
    lower_bound(&kind(true), &kind(false), failure)
}

impl EpsilonBounds {
    pub(super) fn of(scores: &[Score], claim: &Claim, failure: f64) -> Result<Self> {
        let guesses = Guesses::of(scores);
        let separation = separation(scores, failure);
        let f_dp_mu = guesses.f_dp_mu(failure);
        Ok(Self {
            canaries: scores.len(),
            guesses: guesses.made,
            right: guesses.right,
            one_run: guesses.one_run(claim.delta, failure),
            f_dp_mu,
            f_dp: epsilon_of_mu(f_dp_mu, Delta::new(claim.delta)?)?,
            separation,
            gaussian: claim.epsilon_of(separation)?,
        })
    }

    /// The largest ε that needs no assumption on the scores.
    pub fn without_assumption(&self) -> f64 {
        self.one_run.max(self.f_dp)
    }
}
