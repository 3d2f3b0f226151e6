//! An audit: how well can whoever sees the parameters tell whether one record was there?
//!
//! The record, a canary whose gradient reaches the clipping norm, is all the data there is, which
//! is the worst case: nothing else hides it. A run without it holds a record that is not a number
//! instead, which contributes nothing. The attacker projects the parameters on the canary's
//! gradient and says "there" above a threshold that was fixed beforehand. Of `n` runs each, false
//! alarms and hits give Clopper and Pearson bounds on both rates, hence a lower bound on ε:
//! `ln((hits − δ) / false alarms)`.

use dp_accounting::{Accountant, Delta, PldAccountant};
use dp_clipping::PresetParams;
use dp_train::{
    DType, Device, Engine, Execution, LearningRate, Loss, ModelConfig, Plan, PrivacyConfig, PublicFacts, Randomness,
    Records, TrainConfig, Trainer, Unobserved,
};

use crate::support::{batches, config, norm, parameters, privacy_with};

const FACTS: PublicFacts = PublicFacts { n_records: 1, n_inputs: 3, n_classes: 2, n_groups: 2 };
const RATE: f64 = 1e-6;
const DELTA: f64 = 0.05;
/// Probability that one of the two bounds of an audit fails.
const FAILURE: f64 = 1e-4;
const RUNS: u32 = 3_000;

fn plan(method: &str, noise_multiplier: f64, sampling_rate: f64, steps: u64) -> Plan {
    let privacy = PrivacyConfig {
        delta: Delta::new(DELTA).unwrap(),
        ..privacy_with(method, noise_multiplier, &PresetParams { clip_norm: 0.5, ..PresetParams::default() })
    };
    let config = config(ModelConfig::LogisticRegression, batches(sampling_rate, steps), Some(privacy));
    Plan::new(TrainConfig { learning_rate: LearningRate::Constant(RATE), ..config }, FACTS).unwrap()
}

/// ε that an accountant finds for the plan: what is claimed.
fn claimed(plan: &Plan) -> f64 {
    let mut accountant = PldAccountant::new(Plan::RELATION);
    accountant.compose(&plan.event(), 1).unwrap();
    accountant.epsilon(Delta::new(DELTA).unwrap()).unwrap().epsilon.get()
}

fn record(x: f32) -> Records {
    Records::new(&[x, 0.0, 0.0], &[0], &[0], FACTS, DType::F32, &Device::Cpu).unwrap()
}

/// In how many of the runs on these records the projection exceeds the threshold, in units of the
/// clipping norm.
fn says_there(plan: &Plan, records: &Records, variant: u16, threshold: f64) -> u32 {
    let direction = {
        let canary = record(1_000.0);
        let model = ModelConfig::LogisticRegression;
        let mut engine = Engine::new(&model, Loss::SoftmaxCrossEntropy, &canary, &Device::Cpu).unwrap();
        engine.differentiate(&canary, &[0], &[]).unwrap();
        let gradient = engine.zero_gradient().unwrap();
        engine.weighted_sum(&[1.0], &gradient, false).unwrap();
        let gradient = gradient.to_vec().unwrap();
        let length = norm(&gradient);
        gradient.into_iter().map(|g| g / length).collect::<Vec<f64>>()
    };
    let randomness = Randomness::from_seed(1);
    let unit = RATE * 0.5 / plan.expected_batch_size();
    let says = (0..RUNS).filter(|&run| {
        let streams = randomness.streams(run, variant).unwrap();
        let mut trainer = Trainer::new(plan, records, streams, Execution::default()).unwrap();
        let start = vec![0.0; direction.len()];
        trainer.model().parameters().set(&start).unwrap();
        trainer.run(&mut Unobserved).unwrap();
        let end = parameters(&mut trainer);
        let projection: f64 = end.iter().zip(&direction).map(|(p, d)| -p * d).sum();
        projection / unit > threshold
    });
    says.count() as u32
}

/// `ln P(X ≤ k)` of `X ~ Binomial(n, p)`, by its terms.
fn log_binomial_cdf(k: u32, n: u32, p: f64) -> f64 {
    let choose = |j: u32| {
        let lgamma = |x: u32| libm::lgamma(f64::from(x) + 1.0);
        lgamma(n) - lgamma(j) - lgamma(n - j)
    };
    let term = |j: u32| choose(j) + f64::from(j) * p.ln() + f64::from(n - j) * (-p).ln_1p();
    let terms: Vec<f64> = (0..=k).map(term).collect();
    let largest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    largest + terms.iter().map(|t| (t - largest).exp()).sum::<f64>().ln()
}

/// Clopper and Pearson's upper bound on a probability after `k` of `n`, wrong with probability
/// `failure` at most.
fn upper_bound(k: u32, n: u32, failure: f64) -> f64 {
    if k == n {
        return 1.0;
    }
    let (mut low, mut high) = (f64::from(k) / f64::from(n), 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if log_binomial_cdf(k, n, middle) > failure.ln() { low = middle } else { high = middle }
    }
    high
}

/// A lower bound on ε at δ that holds for the mechanism of `plan` with probability 1 − 1e-4.
fn audited(plan: &Plan, threshold: f64) -> f64 {
    let false_alarms = says_there(plan, &record(f32::NAN), 1, threshold);
    let hits = says_there(plan, &record(1_000.0), 2, threshold);
    let most_false_alarms = upper_bound(false_alarms, RUNS, FAILURE / 2.0);
    let fewest_hits = 1.0 - upper_bound(RUNS - hits, RUNS, FAILURE / 2.0);
    ((fewest_hits - DELTA) / most_false_alarms).ln()
}

/// 0 of 20: `1 − a^(1/20)`. 10 of 20 at 2.5 %: 0.7280, by R 4.3's `binom.test(10, 20)`.
#[test]
fn bounds_on_a_probability_by_hand() {
    assert!((upper_bound(0, 20, 0.05) - (1.0 - 0.05_f64.powf(0.05))).abs() < 1e-9);
    assert!((upper_bound(10, 20, 0.025) - 0.728_0).abs() < 1e-4);
    assert_eq!(upper_bound(20, 20, 0.05), 1.0);
}

/// Five audits, each above its claim by chance with probability 1e-4 at most (the seed is fixed).
/// Thresholds are one and a half standard deviations of the noise, or two and a half. That an audit
/// reaches a share of what is claimed shows that it would see a breach.
#[test]
fn no_audit_exceeds_what_is_claimed() {
    for (method, sigma, sampling_rate, steps, threshold, share) in [
        ("dpsgd", 1.0, 1.0, 1, 1.5, 0.4),
        ("dpsgd", 0.5, 1.0, 1, 1.0, 0.4),
        ("dpsgd", 2.0, 1.0, 4, 6.0, 0.4),
        ("dpsgd-global-adapt", 1.0, 1.0, 1, 1.5, 0.4),
        ("dpsgd", 0.7, 0.5, 8, 5.0, 0.3),
    ] {
        let plan = plan(method, sigma, sampling_rate, steps);
        let (bound, claim) = (audited(&plan, threshold), claimed(&plan));
        assert!(bound <= claim, "{method} {sigma} {sampling_rate} {steps}: {bound} > {claim}");
        assert!(bound >= share * claim, "{method} {sigma} {sampling_rate} {steps}: {bound} of {claim}");
    }
}

/// A trainer that adds half the noise it should is exposed, in one step and in four; so is one that
/// samples, with a third.
#[test]
fn too_little_noise_is_caught() {
    for (claim, broken, threshold) in [
        (plan("dpsgd", 1.0, 1.0, 1), plan("dpsgd", 0.5, 1.0, 1), 1.0),
        (plan("dpsgd", 2.0, 1.0, 4), plan("dpsgd", 1.0, 1.0, 4), 4.0),
        (plan("dpsgd", 2.0, 0.5, 8), plan("dpsgd", 0.7, 0.5, 8), 5.0),
    ] {
        let (bound, claim) = (audited(&broken, threshold), claimed(&claim));
        assert!(bound > claim, "{bound} within {claim}");
    }
}
