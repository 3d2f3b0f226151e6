//! An attack on what is released before a training: does anybody learn more of a record than the
//! ledger says?
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::num::NonZeroUsize;

use dp_accounting::{Ledger, NeighbouringRelation, NoiseMultiplier};

use dp_audit::privacy::mu_of_many_runs;
use dp_linear::conditioning::{ColumnBlock, Conditioning, ConditioningConfig};
use dp_linear::{ClassCounts, ConditionedSettings, Priors, SparseBlock, Spread, Streams, WhitenedBlocks, unit_rows};
use dp_train::{Purpose, RandomStream, Randomness};

const N_FEATURES: usize = 3;
/// Blanked records beside the canary: the attacker knows all of them.
const OTHERS: usize = 40;
const RUNS: u32 = 30_000;
/// Probability that a bound found here is wrong.
const FAILURE: f64 = 1e-6;

/// Noise multipliers of mean, covariance and counts, or of mean, covariance and lengths.
type Noise = [f64; 3];
/// A test of whether the canary is there.
type Evidence = fn(Noise, bool, &mut RandomStream) -> f64;

/// The logarithm of how much likelier mean, covariance and counts are with the canary than without,
/// up to a constant: the best test there is.
fn evidence(noise: Noise, is_there: bool, rng: &mut RandomStream) -> f64 {
    let [mean, covariance, counts] = noise.map(|sigma| NoiseMultiplier::new(sigma).unwrap());
    let config = ConditioningConfig { mean: Some(mean), covariance: Some(covariance), ..ConditioningConfig::default() };
    let mut canary = [0.6, -0.64, 0.48_f32];
    unit_rows(&mut canary, N_FEATURES);
    let mut rows = vec![0.0; OTHERS * N_FEATURES];
    let mut labels = vec![0; OTHERS];
    rows.extend(if is_there { canary } else { [0.0; N_FEATURES] });
    if is_there {
        labels.push(1);
    }
    let mut ledger = Ledger::new(NeighbouringRelation::ZeroOut);
    let fitted = Conditioning::fit(&config, &rows, N_FEATURES, NonZeroUsize::MIN, rng, &mut ledger).unwrap();
    let counted = ClassCounts::fit(&labels, 2, counts, rng, &mut ledger).unwrap();

    let n = (OTHERS + 1) as f64;
    let released = fitted.mean().unwrap();
    let of_mean: f64 = released.iter().zip(&canary).map(|(m, x)| n * m * f64::from(*x)).sum();
    // The row that a covariance with the canary holds is known: it is centred by what was just
    // released.
    let mut centred: [f32; N_FEATURES] = std::array::from_fn(|i| (f64::from(canary[i]) - released[i]) as f32);
    unit_rows(&mut centred, N_FEATURES);
    let factor = fitted.covariance_factor().unwrap();
    // ⟨L Lᵀ, v vᵀ⟩ = ‖Lᵀ v‖²; the ridge adds a constant.
    let of_covariance: f64 = (0..N_FEATURES)
        .map(|column| {
            let along = (0..N_FEATURES).map(|row| factor[row * N_FEATURES + column] * f64::from(centred[row]));
            along.sum::<f64>().powi(2)
        })
        .sum();
    let [mean, covariance, counts] = noise.map(|sigma| sigma * sigma);
    of_mean / mean + n * of_covariance / covariance + counted.counts()[1] / counts
}

/// A lower bound on μ from guesses about many runs, half of them with the canary.
fn audited(evidence: Evidence, noise: Noise, seed: u64) -> f64 {
    let mut rng = Randomness::from_seed(seed).stream(Purpose::Conditioning, 0, 0).unwrap();
    let mut evidences = |is_there| -> Vec<f64> { (0..RUNS).map(|_| evidence(noise, is_there, &mut rng)).collect() };
    let (with, without) = (evidences(true), evidences(false));
    // The first half of the runs sets the threshold, the second is judged by it.
    let (learnt, judged) = (RUNS as usize / 2, RUNS / 2);
    let mut all = [&with[..learnt], &without[..learnt]].concat();
    all.sort_by(f64::total_cmp);
    let threshold = all[learnt];
    let count = |evidences: &[f64], alarm: bool| {
        evidences[learnt..].iter().filter(|&&evidence| (evidence > threshold) == alarm).count() as u32
    };
    mu_of_many_runs((count(&without, true), judged), (count(&with, false), judged), FAILURE)
}

/// Three releases of μ² = 3/4 each, μ = 1.5 together. The attack finds nearly all of it and no
/// more; if any of the three has half the noise that its ledger says, it finds more than is
/// claimed.
#[test]
fn an_attack_finds_what_is_claimed_and_no_more() {
    let claimed = [(0.75_f64).sqrt().recip(); 3];
    let mu = 1.5;
    let found = audited(evidence, claimed, 1);
    assert!(found <= mu && found > 0.8 * mu, "{found}");
    for place in 0..claimed.len() {
        let mut planted = claimed;
        planted[place] /= 2.0;
        let found = audited(evidence, planted, 2);
        assert!(found > mu, "release {place}: {found}");
    }
}

/// Noise of one run after another.
struct OfRun(u64);

impl Streams for OfRun {
    fn stream(&self, purpose: &str, step: u64) -> rand_chacha::ChaCha20Rng {
        let purpose = purpose.bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        rand_chacha::rand_core::SeedableRng::seed_from_u64(self.0 ^ purpose.rotate_left(17) ^ step)
    }
}

/// The same of a table's block: mean, covariance and the length of the whitened row.
fn evidence_of_block(noise: Noise, is_there: bool, rng: &mut RandomStream) -> f64 {
    let [means, covariances, lengths] = noise.map(|sigma| NoiseMultiplier::new(sigma).unwrap());
    let settings = ConditionedSettings { means, covariances, lengths, gradients: means, steps: 1, records_per_unit: 1 };
    let mut canary = [0.6, -0.64, 0.48_f32];
    unit_rows(&mut canary, N_FEATURES);
    let mut block = SparseBlock::default();
    block.clear();
    for record in 0..=OTHERS {
        block.push_row(0, 1.0, |push| {
            if record == OTHERS && is_there {
                canary.iter().enumerate().for_each(|(column, &value)| push(column, value));
            }
        });
    }
    let n = (OTHERS + 1) as f64;
    let columns = ColumnBlock { name: "x".into(), columns: (0..N_FEATURES).collect(), norm: 1.0 };
    let streams = OfRun(dp_clipping::rand::Rng::random(rng));
    let rows = (block, N_FEATURES);
    let fitted =
        WhitenedBlocks::fit(&rows, Priors::of_classes(vec![0.5; 2], n), &[columns], &settings, &streams).unwrap();
    let released = fitted.released().next().unwrap();
    let of_mean: f64 = released.mean.iter().zip(&canary).map(|(m, x)| n * m * f64::from(*x)).sum();
    let mut centred: [f64; N_FEATURES] =
        std::array::from_fn(|i| (f64::from(canary[i]) - released.mean[i]) / released.radius);
    let length = centred.iter().map(|value| value * value).sum::<f64>().sqrt();
    // How long the whitened row is, before it is shortened for the covariance: L w = v.
    let factor = released.covariance_factor.unwrap();
    let mut whitened = [0.0; N_FEATURES];
    for i in 0..N_FEATURES {
        let known: f64 = (0..i).map(|j| factor[i * N_FEATURES + j] * whitened[j]).sum();
        whitened[i] = (centred[i] - known) / factor[i * N_FEATURES + i];
    }
    let share = (whitened.iter().map(|value| value * value).sum::<f64>() / released.longest).min(1.0);
    centred = centred.map(|value| value / length.max(1.0));
    let of_covariance: f64 = (0..N_FEATURES)
        .map(|column| {
            let along = (0..N_FEATURES).map(|row| factor[row * N_FEATURES + column] * centred[row]);
            along.sum::<f64>().powi(2)
        })
        .sum();
    // Each less half of what the canary would add.
    let [mean, covariance, lengths] = noise.map(|sigma| sigma * sigma);
    let norm = length.min(1.0).powi(4);
    let ridge = centred.iter().map(|value| value * value).sum::<f64>() / released.longest;
    (of_mean - 0.5) / mean
        + (n * (of_covariance - ridge) - 0.5 * norm) / covariance
        + share * (n * released.square_length / released.longest - 0.5 * share) / lengths
}

/// The same of the two sums of a number to predict: the canary is at the end of its range.
fn evidence_of_number(noise: Noise, is_there: bool, rng: &mut RandomStream) -> f64 {
    let mut block = SparseBlock::default();
    for record in 0..=OTHERS {
        let target = if record == OTHERS { 1.0 } else { [-0.8, 0.8][record % 2] };
        block.push_number(target, 1.0, |push| {
            if record < OTHERS || is_there {
                push(0, 1.0);
            }
        });
    }
    let streams = OfRun(dp_clipping::rand::Rng::random(rng));
    let moments = NoiseMultiplier::new(noise[0]).unwrap();
    let (spread, n) = Spread::fit(&(block, 1), moments, 1, &streams).unwrap();
    // The canary adds 1 to both sums.
    n * (spread.mean + spread.mean.powi(2) + spread.deviation.powi(2))
}

/// Both sums with noise for the canary, and with half of it.
#[test]
fn an_attack_on_a_number_finds_what_is_claimed_and_no_more() {
    let found = audited(evidence_of_number, [1.0; 3], 1);
    assert!(found <= 1.0 && found > 0.8, "{found}");
    let found = audited(evidence_of_number, [0.5; 3], 2);
    assert!(found > 1.0, "{found}");
}

/// As above, of mean, covariance and lengths of a block of columns.
#[test]
fn an_attack_on_blocks_finds_what_is_claimed_and_no_more() {
    let claimed = [(0.75_f64).sqrt().recip(); 3];
    let mu = 1.5;
    let found = audited(evidence_of_block, claimed, 1);
    assert!(found <= mu && found > 0.6 * mu, "{found}");
    for place in 0..2 {
        let mut planted = claimed;
        planted[place] /= 2.0;
        let found = audited(evidence_of_block, planted, 2);
        assert!(found > mu, "release {place}: {found}");
    }
}
