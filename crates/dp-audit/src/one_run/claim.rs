//! What a run says of itself, and what scores make of it.

use dp_accounting::{
    Accountant, Delta, DpEvent, Epsilon, NoiseMultiplier, PldAccountant, SamplingRate, normal_quantile,
};
use dp_train::{Plan, RateLevel, Result};
use serde::Serialize;

use super::bounds::{EpsilonBounds, Guesses, Score, separation};
use super::pair::Pair;

/// The releases that are attacked, as the ledger has them: sums of sampled records with noise.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Claim {
    /// Standard deviation of the noise over what a record adds at most.
    pub noise_multiplier: f64,
    /// Probability with which a step draws a record.
    pub sampling_rate: f64,
    /// Steps.
    pub steps: u64,
    /// δ.
    pub delta: f64,
    /// ε of these releases at δ: an upper bound.
    pub epsilon: f64,
    /// How far apart the scores of canaries that are in and that are not can be, over their standard
    /// deviation: without sampling μ of the releases.
    pub separation: f64,
    /// The claims of all levels, where rates follow losses.
    #[serde(skip)]
    levels: Vec<Self>,
}

impl Claim {
    /// The claim of `steps` sums of records that are each drawn at this rate.
    ///
    /// # Errors
    /// The accountant's.
    pub fn new(noise: NoiseMultiplier, rate: SamplingRate, steps: u64, delta: Delta) -> Result<Self> {
        let mut claim = Self {
            noise_multiplier: noise.get(),
            sampling_rate: rate.get(),
            steps,
            delta: delta.get(),
            epsilon: 0.0,
            separation: 0.0,
            levels: Vec::new(),
        };
        claim.epsilon = claim.epsilon_at(1.0)?.0;
        claim.separation = claim.pair().separation(1.0, steps as f64);
        Ok(claim)
    }

    /// The claim about records of which each is in one group, of the claims about the groups: what holds
    /// for all of them.
    ///
    /// Releases, noise and rate are those of the group with the largest ε.
    pub fn of_any(groups: &[Self]) -> Option<Self> {
        let largest = groups.iter().max_by(|a, b| a.epsilon.total_cmp(&b.epsilon))?;
        let separation = groups.iter().map(|claim| claim.separation).fold(0.0, f64::max);
        Some(Self { separation, ..largest.clone() })
    }

    /// The claim of `steps` sums whose rates and thresholds are those of any level of a list, as earlier
    /// releases have it: the largest separation of all levels, and the ε of `event`, which is a step's
    /// whatever its level.
    ///
    /// # Errors
    /// The accountant's.
    pub fn of_any_level(
        noise: NoiseMultiplier,
        levels: &[RateLevel],
        event: &DpEvent,
        steps: u64,
        delta: Delta,
    ) -> Result<Option<Self>> {
        let of_level =
            |level: &RateLevel| Self::new(NoiseMultiplier::new(noise.get() / level.share)?, level.rate, steps, delta);
        let levels = levels.iter().map(of_level).collect::<Result<Vec<_>>>()?;
        let Some(claim) = Self::of_any(&levels) else { return Ok(None) };
        let mut accountant = PldAccountant::new(Plan::RELATION);
        accountant.compose(event, steps)?;
        Ok(Some(Self { epsilon: accountant.epsilon(delta)?.epsilon.get(), levels, ..claim }))
    }

    /// The claim with the least noise, of these and their levels: that of a record which reaches the
    /// whole bound, by which scores are formed.
    pub fn with_least_noise(claims: &[Self]) -> Option<&Self> {
        let all = claims.iter().flat_map(|claim| std::iter::once(claim).chain(&claim.levels));
        all.min_by(|a, b| a.noise_multiplier.total_cmp(&b.noise_multiplier))
    }

    pub(crate) fn pair(&self) -> Pair {
        Pair { rate: self.sampling_rate, shift: self.noise_multiplier.recip() }
    }

    /// ε at δ with this many times the noise: an upper and a lower bound.
    pub(super) fn epsilon_at(&self, noise: f64) -> Result<(f64, f64)> {
        let sigma = NoiseMultiplier::new(self.noise_multiplier * noise)?;
        let gaussian = DpEvent::gaussian(sigma);
        let event = if self.sampling_rate >= 1.0 {
            gaussian
        } else {
            gaussian.poisson_sampled(SamplingRate::new(self.sampling_rate)?)
        };
        let mut accountant = PldAccountant::new(Plan::RELATION);
        accountant.compose(&event, self.steps)?;
        let bound = accountant.epsilon(Delta::new(self.delta)?)?;
        Ok((bound.epsilon.get(), bound.lower.map_or(0.0, Epsilon::get)))
    }

    /// A lower bound on ε under the noise with which scores would be as far apart as this; where rates
    /// follow losses, the least of all levels.
    pub(super) fn epsilon_of(&self, separation: f64) -> Result<f64> {
        let of = |claim: &Self| {
            let noise = claim.pair().noise_of(separation, claim.steps as f64);
            if noise.is_finite() { Ok(claim.epsilon_at(noise)?.1) } else { Ok(0.0) }
        };
        if self.levels.is_empty() {
            return of(self);
        }
        self.levels.iter().map(of).try_fold(f64::INFINITY, |least, one| Ok(least.min(one?)))
    }

    /// Lower bounds from these scores. Each is wrong with probability `failure` at most.
    ///
    /// # Errors
    /// The accountant's.
    pub fn bounds(&self, scores: &[Score], failure: f64) -> Result<EpsilonBounds> {
        EpsilonBounds::of(scores, self, failure)
    }

    /// Whether this many canaries would refute a run with `noise` times the noise that is claimed, in
    /// nineteen of twenty audits, by the difference of normal scores.
    pub fn would_refute(&self, noise: f64, canaries: usize, failure: f64) -> bool {
        let found = self.pair().separation(noise, self.steps as f64);
        // Of two samples of m/2: 4/m for the means, and d²/2m for the spread.
        let error = ((4.0 + 0.5 * found * found) / canaries.max(1) as f64).sqrt();
        let quantile = |rate: f64| normal_quantile(1.0 - rate);
        found - (quantile(failure) + quantile(0.05)) * error > self.separation
    }

    /// Whether every step has every record.
    fn is_unsampled(&self) -> bool {
        self.sampling_rate >= 1.0 && self.levels.iter().all(|level| level.sampling_rate >= 1.0)
    }

    /// Whether these scores refute the claim: by any of the three bounds, which together are wrong with
    /// probability `failure` at most. The one for trade-off functions speaks of claims without sampling.
    pub fn refuted(&self, scores: &[Score], failure: f64) -> bool {
        let guesses = Guesses::of(scores);
        let each = failure / 3.0;
        let above = self.separation * (1.0 + 1e-6);
        separation(scores, each) > above
            || guesses.one_run(self.delta, each) > self.epsilon
            || (self.is_unsampled() && guesses.f_dp_mu(each) > above)
    }
}

#[cfg(test)]
mod tests {
    use dp_engine::noise::StepNoise;
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::super::attack::{Attack, AttackSettings, Fault, Participation};
    use super::*;

    const WEIGHTS: usize = 80;

    /// Scores of one run of noisy sums, with the noise that trains.
    fn scores(claim: &Claim, fault: Option<Fault>, seed: u64) -> Vec<Score> {
        let settings = AttackSettings { canaries: WEIGHTS, kinds: 1, fault };
        let attack = Attack::new(claim.clone(), settings, ChaCha20Rng::seed_from_u64(seed));
        let mut rng = ChaCha20Rng::seed_from_u64(!seed);
        let participation = Participation { rate: claim.sampling_rate, share: 1.0 };
        for _ in 0..claim.steps {
            let mut sum = vec![0.0; WEIGHTS];
            for (weight, value) in attack.before_noise(&sum, 1.0, &|_| participation) {
                sum[weight] += value * 2_f64.powi(20);
            }
            let std = Fault::std(fault, claim.noise_multiplier);
            StepNoise::draw(&mut rng, std * 2_f64.powi(20)).add_f64(0, &mut sum);
            let noisy: Vec<f64> = sum.iter().map(|value| value * 2_f64.powi(-20)).collect();
            attack.after_noise(&noisy, claim.noise_multiplier);
        }
        attack.scores()
    }

    fn claim(sigma: f64, rate: f64, steps: u64) -> Claim {
        let (sigma, rate) = (NoiseMultiplier::new(sigma).unwrap(), SamplingRate::new(rate).unwrap());
        Claim::new(sigma, rate, steps, Delta::new(1e-5).unwrap()).unwrap()
    }

    /// Of 1,000 audits of honest runs, at most 66 refute at 95 %: more has a probability of 1.2 % if one
    /// in twenty does. Seeds are fixed.
    #[test]
    fn honest_runs_are_refuted_no_more_often_than_is_said() {
        for (claim, audits) in [(claim(2.0, 1.0, 4), 1_000), (claim(1.0, 0.3, 12), 300)] {
            let refuted = (0..audits).filter(|&seed| claim.refuted(&scores(&claim, None, seed), 0.05)).count();
            assert!(refuted as f64 <= 0.066 * audits as f64, "{refuted} of {audits}");
        }
    }

    /// Half of the noise is refuted, and so is a rate that is twice what is charged.
    #[test]
    fn faults_are_found() {
        for claim in [claim(2.0, 1.0, 4), claim(1.0, 0.3, 12)] {
            for fault in [Fault::Noise, Fault::Rate] {
                let found = (0..20).filter(|&seed| claim.refuted(&scores(&claim, Some(fault), seed), 0.05)).count();
                assert!(found >= 15, "{claim:?}, {fault:?}: {found} of 20");
            }
        }
    }

    /// With a thousand canaries most of an ε of 4.4 is found: of simulated scores, whose medians were
    /// 3.84 and 2.4.
    #[test]
    fn most_of_a_claim_is_found() {
        let claim = claim(1.0 / 1.0045, 1.0, 1);
        assert!((claim.epsilon - 4.4).abs() < 0.01, "{}", claim.epsilon);
        let mut rng = ChaCha20Rng::seed_from_u64(5);
        let mut noise = vec![0.0; 1_000];
        StepNoise::draw(&mut rng, 2_f64.powi(20)).add_f64(0, &mut noise);
        let score = |(i, noise): (usize, &f64)| {
            let present = i % 2 == 0;
            let projection = noise * 2_f64.powi(-20) + if present { 1.0045 } else { 0.0 };
            Score { score: claim.pair().score(projection), present, kind: 0 }
        };
        let scores: Vec<Score> = noise.iter().enumerate().map(score).collect();
        let bounds = claim.bounds(&scores, 0.05).unwrap();
        assert!(bounds.gaussian > 3.3 && bounds.without_assumption() > 1.5, "{bounds:?}");
        assert!(claim.would_refute(0.5, 1_000, 0.05) && !claim.would_refute(1.0, 1_000, 0.05));
    }
}
