//! The second stream of settings: one direction alone, batches cut to a physical size, random
//! allocation.

use super::ball::Ball;
use super::check::AuditCase;
use super::inversion::Inversion;
use super::settings::{Random, RandomComposition, Steps};
use super::truth::Truth;
use crate::{AccountingError, DpEvent, NeighbouringRelation, NoiseMultiplier, SamplingRate};

/// Distinguishes this stream's seeds from the seeds of the first.
const STREAM: u64 = 0x5851_f42d_4c95_7f2d;

/// The `index`-th setting of a seed.
pub(super) fn random(seed: u64, index: u64) -> Result<AuditCase, AccountingError> {
    let random = &mut Random::of(seed ^ STREAM, index);
    let relations = [NeighbouringRelation::AddRemove, NeighbouringRelation::Remove, NeighbouringRelation::Add];
    let relation = relations[(random.next() % 3) as usize];
    match random.next() % 3 {
        0 => {
            let relation = relations[1 + (random.next() % 2) as usize];
            let setting = RandomComposition::random(random.next(), index);
            let case = setting.case(relation)?;
            Ok(AuditCase { kind: format!("{relation} alone"), setting: format!("{setting}, {relation}"), ..case })
        }
        1 => truncated(random, relation),
        _ => allocated(random, relation),
    }
}

fn truncated(random: &mut Random, relation: NeighbouringRelation) -> Result<AuditCase, AccountingError> {
    let n_records = random.scale(2.0, 3_000.0) as u64;
    let mut steps = Steps { q: random.scale(1e-3, 0.9), sigma: random.scale(0.3, 10.0), count: 1 };
    let mean = n_records as f64 * steps.q;
    // Up to ten standard deviations of room, or less than none.
    let room = (random.scale(1e-2, 10.0) - 1.0) * (mean * (1.0 - steps.q)).sqrt();
    let max_batch_size = ((mean + room) as u64).clamp(1, n_records);
    let full = tail(n_records - 1, steps.q, max_batch_size);
    if random.one_in(2) {
        steps.count = random.scale(4.0, 2_000.0) as u64;
    }
    let delta = random.scale(1e-12, 1e-2);
    let Steps { q, sigma, count } = steps;
    let event = DpEvent::TruncatedPoissonGaussian {
        noise_multiplier: NoiseMultiplier::new(sigma)?,
        sampling_rate: SamplingRate::new(q)?,
        n_records,
        max_batch_size,
    };
    Ok(AuditCase {
        kind: "batches cut to a size".to_owned(),
        setting: format!(
            "{count} × (q {q:?}, σ {sigma:?}, {n_records} records, at most {max_batch_size}), {relation}, δ {delta:?}"
        ),
        parts: vec![(event, count)],
        relation,
        delta,
        truth: Some(Truth::Truncated { q, sigma, full, count, inversion: Inversion::new(&[steps]) }),
    })
}

/// Probability that at least `least` of `n` records are drawn at a rate.
fn tail(n: u64, q: f64, at_least: u64) -> Ball {
    let q = Ball::exact(q);
    let odds = q.clone() / (Ball::exact(1.0) - q.clone());
    let mut term = (Ball::from_count(n) * (Ball::exact(1.0) - q).ln()).exp();
    let mut sum = Ball::exact(0.0);
    for k in 0..=n {
        if k >= at_least {
            sum = sum + term.clone();
        }
        term = term * odds.clone() * Ball::from_count(n - k) / Ball::from_count(k + 1);
    }
    sum
}

fn allocated(random: &mut Random, relation: NeighbouringRelation) -> Result<AuditCase, AccountingError> {
    let (sigma, delta) = (random.scale(0.2, 5.0), random.scale(1e-8, 1e-2));
    let steps = if random.one_in(2) { 2 } else { random.scale(1.0, 2_000.0) as u64 };
    let event = DpEvent::RandomAllocation { noise_multiplier: NoiseMultiplier::new(sigma)?, steps, participations: 1 };
    Ok(AuditCase {
        kind: "random allocation".to_owned(),
        setting: format!("one of {steps} steps, σ {sigma:?}, {relation}, δ {delta:?}"),
        parts: vec![(event, 1)],
        relation,
        delta,
        truth: Some(Truth::Allocated { sigma, steps }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_by_hand() {
        // Three of three at 1/2; at least two of three: (3 + 1)/8.
        for (at_least, exact) in [(0, 1.0), (2, 0.5), (3, 0.125), (4, 0.0)] {
            assert!((tail(3, 0.5, at_least).to_f64() - exact).abs() < 1e-15);
        }
    }
}
