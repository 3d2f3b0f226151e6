//! From what an attacker got right to lower bounds on ε.

use dp_accounting::{Accountant, Delta, DpEvent, Epsilon, NoiseMultiplier, PldAccountant, TradeOff, normal_quantile};

use dp_train::{Plan, Result};

/// Standard normal distribution function.
fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
}

/// The largest number of an interval for which a property holds that fails from somewhere on.
fn largest((mut low, mut high): (f64, f64), holds: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..80 {
        let middle = low.midpoint(high);
        if holds(middle) { low = middle } else { high = middle }
    }
    low
}

/// `P(X = k)` of `X ~ Binomial(n, p)`, for `0 < p < 1`.
fn binomial(k: u32, n: u32, p: f64) -> f64 {
    let lgamma = |x: u32| libm::lgamma(f64::from(x) + 1.0);
    (lgamma(n) - lgamma(k) - lgamma(n - k) + f64::from(k) * p.ln() + f64::from(n - k) * (-p).ln_1p()).exp()
}

/// Clopper and Pearson's upper bound on a probability after `k` of `n`, wrong with probability
/// `failure` at most.
pub(super) fn upper_bound(k: u32, n: u32, failure: f64) -> f64 {
    if k >= n {
        return 1.0;
    }
    let start = f64::from(k) / f64::from(n);
    largest((start.max(1e-12), 1.0 - 1e-12), |p| (0..=k).map(|j| binomial(j, n, p)).sum::<f64>() > failure)
}

/// A lower bound on μ of Gaussian differential privacy from many runs in either world: false alarms
/// where the record was not there, and misses where it was. Wrong with probability `failure` at
/// most; 0 if nothing can be said.
///
/// A μ-Gaussian mechanism leaves every test with `Φ⁻¹(1 − false alarms) − Φ⁻¹(misses) ≤ μ` (Dong et
/// al. 2022).
pub fn mu_of_many_runs(false_alarms: (u32, u32), misses: (u32, u32), failure: f64) -> f64 {
    let alarms = upper_bound(false_alarms.0, false_alarms.1, failure / 2.0);
    let misses = upper_bound(misses.0, misses.1, failure / 2.0);
    (normal_quantile(1.0 - alarms) - normal_quantile(misses)).max(0.0)
}

/// ε of the Gaussian mechanism with this μ at δ.
pub(crate) fn epsilon_of_mu(mu: f64, delta: Delta) -> Result<f64> {
    if mu < 1e-6 {
        return Ok(0.0);
    }
    let mut accountant = PldAccountant::new(Plan::RELATION);
    accountant.compose(&DpEvent::gaussian(NoiseMultiplier::new((1.0 / mu).max(1e-6))?), 1)?;
    let bound = accountant.epsilon(delta)?;
    Ok(bound.lower.unwrap_or(bound.epsilon).get())
}

/// A lower bound on ε at δ among mechanisms that differ in the factor on their noise alone: that of the
/// largest factor at which the attack is possible. From false alarms and misses as
/// [`mu_of_many_runs`]; 0 if the attack is possible with four times the noise.
pub(super) fn epsilon_of_family(
    claim: &dyn Fn(f64) -> Result<Option<DpEvent>>,
    (false_alarms, misses): ((u32, u32), (u32, u32)),
    failure: f64,
    delta: Delta,
) -> Result<f64> {
    let alarms = upper_bound(false_alarms.0, false_alarms.1, failure / 2.0);
    let misses = upper_bound(misses.0, misses.1, failure / 2.0);
    let with = |log_factor: f64| -> Result<Option<PldAccountant>> {
        let Some(event) = claim(2_f64.powf(log_factor))? else { return Ok(None) };
        let mut accountant = PldAccountant::new(Plan::RELATION);
        accountant.compose(&event, 1)?;
        Ok(Some(accountant))
    };
    let is_possible = |log_factor: f64| -> Result<bool> {
        let Some(accountant) = with(log_factor)? else { return Ok(true) };
        Ok(misses >= TradeOff::new(&accountant).false_negative_rate(alarms)?.guaranteed)
    };
    let (mut low, mut high) = (-2.0_f64, 2.0);
    if is_possible(high)? {
        return Ok(0.0);
    }
    for _ in 0..8 {
        let middle = low.midpoint(high);
        if is_possible(middle)? { low = middle } else { high = middle }
    }
    // The true noise is below that of `high`.
    let bound = with(high)?.map(|accountant| accountant.epsilon(delta)).transpose()?;
    Ok(bound.map_or(0.0, |bound| bound.lower.unwrap_or(bound.epsilon).get()))
}

/// A lower bound on ε at δ from one run with `n_canaries`, each there with probability ½: of
/// `n_guesses`, `n_right` are right. Wrong with probability `failure` at most.
///
/// **Source.** Steinke, Nasr & Jagielski 2023, Theorem 5.2.
pub(crate) fn epsilon_of_one_run(n_canaries: u32, n_guesses: u32, n_right: u32, delta: f64, failure: f64) -> f64 {
    // An upper bound on the probability of `n_right` right guesses or more under (ε, δ).
    let p_value = |epsilon: f64| {
        let right = 1.0 / (1.0 + (-epsilon).exp());
        let beyond: f64 = (n_right..=n_guesses).map(|k| binomial(k, n_guesses, right)).sum();
        let (mut below, mut alpha) = (0.0, 0.0_f64);
        for i in 1..=n_right {
            below += binomial(n_right - i, n_guesses, right);
            alpha = alpha.max(below / f64::from(i));
        }
        beyond + 2.0 * alpha * delta * f64::from(n_canaries)
    };
    if p_value(0.0) >= failure { 0.0 } else { largest((0.0, 30.0), |epsilon| p_value(epsilon) < failure) }
}

/// A lower bound on μ of Gaussian differential privacy from one run with `n_canaries`, each there
/// with probability ½: of `n_guesses`, `n_right` are right. Wrong with probability `failure` at
/// most.
///
/// Were the mechanism μ-private and the number of right guesses at least `n_right` with probability
/// `failure`, the mass of outcomes with `i` right guesses and more would be bounded from below all
/// the way to 0, where it cannot exceed the share of canaries that are guessed.
///
/// **Source.** Mahloujifar, Melis & Chaudhuri 2024, the recursion of their Algorithm for a
/// trade-off function.
pub(crate) fn mu_of_one_run(n_canaries: u32, n_guesses: u32, n_right: u32, failure: f64) -> f64 {
    let (m, guesses) = (f64::from(n_canaries), f64::from(n_guesses));
    let contradicts = |mu: f64| {
        let mut right = failure * f64::from(n_right) / m;
        let mut wrong = failure * (guesses - f64::from(n_right)) / m;
        for i in (0..n_right).rev() {
            let least = normal_cdf(normal_quantile(right) - mu).max(wrong);
            let i = f64::from(i);
            (right, wrong) = (right + i / (guesses - i) * (least - wrong), least);
        }
        right + wrong > guesses / m
    };
    if contradicts(0.0) { largest((0.0, 20.0), contradicts) } else { 0.0 }
}

/// The claim for a plan: an upper bound on ε at δ, and a lower bound on that of the same mechanism.
pub(super) fn claim(event: &DpEvent, times: u64, delta: Delta) -> Result<(f64, f64)> {
    let mut accountant = PldAccountant::new(Plan::RELATION);
    accountant.compose(event, times)?;
    let bound = accountant.epsilon(delta)?;
    Ok((bound.epsilon.get(), bound.lower.map_or(0.0, Epsilon::get)))
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha20Rng;

    use super::*;

    /// 0 of 20: `1 − a^(1/20)`. 10 of 20 at 2.5 %: 0.7280, by R 4.3's `binom.test(10, 20)`.
    #[test]
    fn bounds_on_a_probability_by_hand() {
        assert!((upper_bound(0, 20, 0.05) - (1.0 - 0.05_f64.powf(0.05))).abs() < 1e-9);
        assert!((upper_bound(10, 20, 0.025) - 0.728_0).abs() < 1e-4);
        assert_eq!(upper_bound(20, 20, 0.05), 1.0);
    }

    /// Randomised response of ε = 1 for each of 1,000 canaries is right in 73.1 %: the bound is
    /// below 1, and not far.
    #[test]
    fn one_run_of_randomised_response() {
        let right = (1_000.0 / (1.0 + (-1.0_f64).exp())).round() as u32;
        let bound = epsilon_of_one_run(1_000, 1_000, right, 0.0, 0.05);
        assert!(bound < 1.0 && bound > 0.8, "{bound}");
        // By hand: of 10 guesses all are right with probability (1 + e^−ε)^−10 = 0.05 at ε = 1.052.
        assert!((epsilon_of_one_run(10, 10, 10, 0.0, 0.05) - (1.0 / (0.05_f64.powf(-0.1) - 1.0)).ln()).abs() < 1e-6);
        assert_eq!(epsilon_of_one_run(100, 100, 50, 0.0, 0.05), 0.0);
    }

    /// Independent Gaussian canaries of μ = 1, simulated, of which the surest fifth is guessed: no
    /// bound above 1 in 10 runs (each wrong with probability 1e-3), and a good part of it found.
    #[test]
    fn one_run_and_many_of_gaussian_canaries() {
        let mut rng = ChaCha20Rng::seed_from_u64(4);
        let mut normal = || -> f64 { (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0 };
        let mut largest = 0.0_f64;
        for _ in 0..10 {
            let mut scores: Vec<f64> = (0..1_000).map(|_| normal() + 0.5).collect();
            scores.sort_by(|a, b| b.abs().total_cmp(&a.abs()));
            let right = scores[..200].iter().filter(|&&score| score > 0.0).count() as u32;
            largest = largest.max(mu_of_one_run(1_000, 200, right, 1e-3));
        }
        assert!(largest <= 1.0 && largest > 0.25, "{largest}");
        let alarms = (0..4_000).filter(|_| normal() > 0.5).count() as u32;
        let misses = (0..4_000).filter(|_| normal() + 1.0 <= 0.5).count() as u32;
        let mu = mu_of_many_runs((alarms, 4_000), (misses, 4_000), 1e-4);
        assert!(mu <= 1.0 && mu > 0.8, "{mu}");
        let epsilon = epsilon_of_mu(1.0, Delta::new(1e-5).unwrap()).unwrap();
        assert!((epsilon - 4.377).abs() < 0.01, "{epsilon}");
    }
}
