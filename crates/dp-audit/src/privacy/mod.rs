//! Audits of the guarantee itself: lower bounds on ε from attacks on the real trainer.
//!
//! An attacker who knows everything but whether one record, a *canary*, was there or blanked runs
//! the trainer many times in either world, and guesses. False alarms and misses bound ε from below,
//! with confidence. A bound above the claimed ε refutes the claim: there is a fault. A bound far
//! below says little; so it is reported how much of the claim an audit finds, and that it finds
//! faults which are planted ([`Plant`]).
//!
//! Two designs:
//!
//! - *Many small runs* against one canary of each group, with 50 others of which the attacker knows
//!   everything. Full batches, so that what is claimed is exactly a Gaussian mechanism's, and its
//!   trade-off function bounds ε from few runs.
//! - *One run* with hundreds of canaries, each there with probability ½, whose scores give the bounds of
//!   [`one_run`](crate::one_run).
//!
//! ```
//! use dp_audit::privacy::{AuditSettings, audit};
//! use dp_train::Randomness;
//! let settings = AuditSettings { runs: 200, canaries: 50, ..AuditSettings::quick() };
//! let outcome = audit("dpsgd", &settings, None, &Randomness::from_seed(1))?;
//! assert!(!outcome.refuted() && outcome.groups.len() == 2);
//! # Ok::<(), dp_train::TrainError>(())
//! ```

mod estimate;
mod mechanism;
mod plant;

use std::num::NonZeroUsize;

use dp_accounting::{Delta, DpEvent};
use dp_clipping::registry;
use dp_train::{Purpose, Randomness, Result, TrainError};
use serde::Serialize;

pub use self::estimate::mu_of_many_runs;
pub(crate) use self::estimate::{epsilon_of_mu, epsilon_of_one_run, mu_of_one_run};
use self::mechanism::{ManyCanaries, N_GROUPS, OneCanary, Statistics};
pub use self::plant::Plant;
use crate::one_run::EpsilonBounds;

/// How long an audit looks.
///
/// **Example**
/// ```
/// use dp_audit::privacy::AuditSettings;
/// let settings = AuditSettings { runs: 8_000, ..AuditSettings::quick() };
/// assert_eq!((settings.canaries, settings.delta), (300, 1e-5));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AuditSettings {
    /// Runs in either world, for each group; at least 8, of which a quarter teaches the attacker.
    pub runs: u32,
    /// Canaries of the one run, at least 10.
    pub canaries: usize,
    /// δ at which ε is claimed and bounded.
    pub delta: f64,
    /// Probability that any bound of the audit of one method is above the true ε.
    pub failure: f64,
    /// Ranks, threads of this process, that share every run ([`ranks`](dp_train::ranks)).
    pub ranks: NonZeroUsize,
}

impl AuditSettings {
    /// Seconds a method.
    pub fn quick() -> Self {
        Self { runs: 4_000, canaries: 300, delta: 1e-5, failure: 1e-3, ranks: NonZeroUsize::MIN }
    }

    /// Minutes a method.
    pub fn full() -> Self {
        Self { runs: 20_000, canaries: 1_000, ..Self::quick() }
    }
}

/// The outcome of an audit of a method.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AuditOutcome {
    /// Registry name.
    pub method: String,
    /// The ε that is claimed for the audited runs: a certified upper bound.
    pub claimed_epsilon: f64,
    /// A lower bound on the ε of the claimed mechanism in the worst case: what a perfect attacker
    /// with endless runs would find.
    pub true_epsilon: f64,
    /// The largest lower bound of all attacks.
    pub audited_lower: f64,
    /// Probability with which all lower bounds hold.
    pub confidence: f64,
    /// By group of the canary.
    pub groups: Vec<GroupOutcome>,
    /// From one run with many canaries.
    pub one_run: EpsilonBounds,
}

/// The outcome for canaries of one group.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct GroupOutcome {
    /// 0-based.
    pub group: usize,
    /// The claim, which is the same for all groups in advance, and nearly the same where they are drawn at
    /// rates of their own.
    pub claimed_epsilon: f64,
    /// The largest lower bound of the attacks on this group.
    pub audited_lower: f64,
}

impl AuditOutcome {
    /// Whether a lower bound is above what is claimed.
    pub fn refuted(&self) -> bool {
        self.audited_lower > self.claimed_epsilon
            || self.groups.iter().any(|group| group.audited_lower > group.claimed_epsilon)
    }
}

/// Audits a method of the registry, with a fault planted or without.
///
/// # Errors
/// [`TrainError::Clipping`] for an unknown name; [`TrainError::InvalidParameter`] for a method
/// without a claim, a fault that the method cannot have, and settings out of range; the errors of
/// the trainer.
pub fn audit(
    method: &str,
    settings: &AuditSettings,
    plant: Option<Plant>,
    randomness: &Randomness,
) -> Result<AuditOutcome> {
    let entry = registry::find(method)?;
    let config = entry.config(&mechanism::params())?;
    if !config.certified() {
        return Err(TrainError::invalid("method", method, "a certified method: this one claims nothing"));
    }
    if let Some(plant) = plant.filter(|plant| !plant.applies_to(&config)) {
        let expected = format!("a fault that {method} can have: `{}` does not apply to it", plant.name());
        return Err(TrainError::invalid("plant", plant.name(), expected));
    }
    if let Some(plant) = plant.filter(|plant| plant.of_ranks().is_some() && settings.ranks == NonZeroUsize::MIN) {
        return Err(TrainError::invalid("plant", plant.name(), "2 ranks or more: one alone cannot have this fault"));
    }
    if settings.runs < 8 || settings.canaries < 10 {
        let value = format!("{} runs and {} canaries", settings.runs, settings.canaries);
        return Err(TrainError::invalid("audit settings", value, "at least 8 runs and 10 canaries"));
    }
    let delta = Delta::new(settings.delta)?;
    // Attacks by group and statistic, and the three bounds of the one run share what may go wrong.
    let failure = settings.failure / (N_GROUPS * size_of::<Statistics>() / size_of::<f64>() + 3) as f64;
    let audited = Audited { settings, failure, delta, randomness: randomness.derived(method) };

    let (mut groups, mut claim) = (Vec::new(), (0.0, 0.0));
    for group in 0..N_GROUPS {
        let canary = OneCanary::new(entry, group, plant, settings.ranks, delta)?;
        claim = if let Some(event) = canary.claim_with_noise(1.0)? {
            let of_group = estimate::claim(&event, 1, delta)?;
            // The claim of rates that follow losses is that of all of them.
            match canary.plan.config().rates_by_loss {
                Some(_) => (estimate::claim(&canary.plan.event(), 1, delta)?.0, of_group.1),
                None => of_group,
            }
        } else if plant == Some(Plant::SeedReuse) {
            estimate::claim(&DpEvent::Composed(vec![canary.plan.event(), canary.second.event()]), 1, delta)?
        } else {
            estimate::claim(&canary.plan.event(), 1, delta)?
        };
        let audited_lower = audited.many_runs(&canary, group)?;
        groups.push(GroupOutcome { group, claimed_epsilon: claim.0, audited_lower });
    }
    let one_run = audited.one_run(&ManyCanaries::new(entry, settings.canaries, plant, settings.ranks, delta)?)?;
    let lower = groups.iter().map(|group| group.audited_lower);
    let audited_lower = lower.fold(one_run.without_assumption().max(one_run.gaussian), f64::max);
    Ok(AuditOutcome {
        method: method.to_owned(),
        claimed_epsilon: claim.0,
        true_epsilon: claim.1,
        audited_lower,
        confidence: 1.0 - settings.failure,
        groups,
        one_run,
    })
}

/// An audit under way.
struct Audited<'a> {
    settings: &'a AuditSettings,
    /// Probability that one bound fails.
    failure: f64,
    delta: Delta,
    randomness: Randomness,
}

impl Audited<'_> {
    /// The largest lower bound of all statistics: a quarter of the runs says where to cut and which
    /// side is which, the rest is counted.
    fn many_runs(&self, canary: &OneCanary<'_>, group: usize) -> Result<f64> {
        let runs = self.settings.runs;
        let mut worlds: [Vec<Statistics>; 2] = [Vec::new(), Vec::new()];
        for (world, statistics) in worlds.iter_mut().enumerate() {
            let randomness = self.randomness.derived(&format!("group {group}, world {world}"));
            for run in 0..runs {
                statistics.push(canary.attack(world == 1, randomness.streams(run, 0)?)?);
            }
        }
        let [absent, present] = worlds;
        let learned = (runs / 4) as usize;
        let mut best = (0.0_f64, [(0, 1), (1, 1)]);
        for i in 0..absent[0].len() {
            let of = |runs: &[Statistics]| runs.iter().map(|statistics| statistics[i]).collect::<Vec<f64>>();
            let cut = Cut::learn(&of(&absent[..learned]), &of(&present[..learned]));
            let (absent, present) = (of(&absent[learned..]), of(&present[learned..]));
            let alarms = absent.iter().filter(|&&value| cut.says_there(value)).count() as u32;
            let misses = present.iter().filter(|&&value| !cut.says_there(value)).count() as u32;
            let n = absent.len() as u32;
            let mu = estimate::mu_of_many_runs((alarms, n), (misses, n), self.failure);
            if mu > best.0 {
                best = (mu, [(alarms, n), (misses, n)]);
            }
        }
        let (mu, [alarms, misses]) = best;
        if canary.plan.rates_at(None).is_none() {
            return estimate::epsilon_of_mu(mu, self.delta);
        }
        estimate::epsilon_of_family(
            &|factor| canary.claim_with_noise(factor),
            (alarms, misses),
            self.failure,
            self.delta,
        )
    }

    fn one_run(&self, canaries: &ManyCanaries<'_>) -> Result<EpsilonBounds> {
        let randomness = self.randomness.derived("one run");
        let mut coins = randomness.stream(Purpose::Split, 0, 0)?;
        let scores = canaries.attack(&mut coins, randomness.streams(0, 0)?)?;
        canaries.claim.bounds(&scores, self.failure)
    }
}

/// A threshold on a statistic, and on which side of it the canary is.
struct Cut {
    at: f64,
    there_above: bool,
}

impl Cut {
    /// The threshold with the fewest mistakes.
    fn learn(absent: &[f64], present: &[f64]) -> Self {
        let mut values: Vec<(f64, bool)> = absent.iter().map(|&value| (value, false)).collect();
        values.extend(present.iter().map(|&value| (value, true)));
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        // Present ones less absent ones below each value: as far from 0 as can be.
        let (mut balance, mut best) = (0_i64, (0, f64::NEG_INFINITY));
        for pair in values.windows(2) {
            balance += if pair[0].1 { 1 } else { -1 };
            if pair[0].0 < pair[1].0 && balance.abs() > i64::abs(best.0) {
                best = (balance, pair[0].0.midpoint(pair[1].0));
            }
        }
        Self { at: best.1, there_above: best.0 < 0 }
    }

    fn says_there(&self, value: f64) -> bool {
        (value > self.at) == self.there_above
    }
}

#[cfg(test)]
mod tests {
    use dp_clipping::{ClipConfig, Controller, MethodEntry, Own, OwnBound, OwnRule, ScaleRule, Weights};

    use super::*;

    #[test]
    fn a_cut_separates_whichever_way_round() {
        for sign in [1.0, -1.0] {
            let cut = Cut::learn(&[0.0, sign, 2.0 * sign], &[3.0 * sign, 4.0 * sign, 5.0 * sign]);
            assert!(!cut.says_there(2.0 * sign) && cut.says_there(3.0 * sign));
        }
    }

    /// Honest methods are not refuted, every fault that applies is, and another one is an error.
    /// Seeds are fixed.
    #[test]
    fn honest_code_stands_and_faults_are_found() {
        let settings = AuditSettings { runs: 800, canaries: 40, ..AuditSettings::quick() };
        let randomness = Randomness::from_seed(15);
        for method in ["dpsgd", "dpsgd-f", "group-dro", "asc", "asc-by-loss", "bounded-adaptive"] {
            let honest = audit(method, &settings, None, &randomness).unwrap();
            assert!(!honest.refuted(), "{honest:?}");
            // Full batches of plain DPSGD: most of the claim is found. Where a bound follows noisy
            // counts, the canary rarely attains it.
            let share = if method == "dpsgd" { 0.5 } else { 0.2 };
            assert!(honest.audited_lower > share * honest.claimed_epsilon, "{honest:?}");
        }
        let config = registry::find("dpsgd-f").unwrap().default_config();
        let has = |plant: &Plant| plant.of_ranks().is_none() && plant.applies_to(&config);
        let of_one = Plant::ALL.iter().copied().filter(has).collect::<Vec<_>>();
        for (method, plants) in [
            ("dpsgd-f", &of_one[..]),
            ("dpsgd", &[Plant::NoCap, Plant::SeedReuse]),
            ("group-dro", &[Plant::SilentCount, Plant::NoCap]),
            ("asc", &[Plant::UnchargedRate, Plant::OtherThreshold]),
            ("asc-by-loss", &[Plant::UnchargedRate, Plant::OtherThreshold]),
        ] {
            for &plant in plants {
                let planted = audit(method, &settings, Some(plant), &randomness).unwrap();
                assert!(planted.refuted(), "{method}, {}: {planted:?}", plant.name());
            }
        }
        let error = audit("dpsgd", &settings, Some(Plant::SilentCount), &randomness).unwrap_err().to_string();
        assert!(error.contains("does not apply"), "{error}");
        assert!(audit("fairlens", &settings, None, &randomness).is_err());
        assert!(Plant::find("no-cap").is_ok() && Plant::find("x").is_err());
    }

    /// Three times its bound, at every norm that is not small.
    #[derive(Debug)]
    struct Threefold;

    impl OwnRule for Threefold {
        fn name(&self) -> &'static str {
            "threefold"
        }

        fn scale(&self, norm: f64, threshold: f64, _: &[f64]) -> f64 {
            3.0 * (threshold / norm).min(1.0)
        }
    }

    /// A wrong rule of one's own is named by the check and held by the cap; without the cap the attacks
    /// refute it.
    #[test]
    fn a_wrong_rule_is_held_by_the_cap() {
        let rule = ScaleRule::Own { rule: Own::rule(&Threefold, &[]), bound: OwnBound::Threshold };
        assert!(dp_clipping::check(&rule)[0].contains("adds 3.000e0 times the bound"));
        registry::register(MethodEntry {
            name: "threefold",
            label: "Threefold",
            summary: "a wrong rule",
            source: "a test",
            differs: "",
            preset: |params| {
                let rule = ScaleRule::Own { rule: Own::rule(&Threefold, &[]), bound: OwnBound::Threshold };
                ClipConfig::new(rule, Controller::Constant { threshold: params.clip_norm }, Weights::Uniform)
            },
        })
        .unwrap();
        let settings = AuditSettings { runs: 800, canaries: 40, ..AuditSettings::quick() };
        let randomness = Randomness::from_seed(17);
        let held = audit("threefold", &settings, None, &randomness).unwrap();
        assert!(!held.refuted() && held.audited_lower > 0.5 * held.claimed_epsilon, "{held:?}");
        let planted = audit("threefold", &settings, Some(Plant::NoCap), &randomness).unwrap();
        assert!(planted.refuted(), "{planted:?}");
    }

    /// The same under ranks, with the faults that only they can have.
    #[test]
    fn ranks_stand_and_their_faults_are_found() {
        let on = |n| AuditSettings {
            runs: 800,
            canaries: 40,
            ranks: NonZeroUsize::new(n).unwrap(),
            ..AuditSettings::quick()
        };
        let randomness = Randomness::from_seed(16);
        for method in ["dpsgd", "dpsgd-f"] {
            let honest = audit(method, &on(2), None, &randomness).unwrap();
            assert!(!honest.refuted() && honest.audited_lower > 0.2 * honest.claimed_epsilon, "{honest:?}");
            // But for the last digits of scores, which are read off differences of weights.
            let alone = audit(method, &on(1), None, &randomness).unwrap();
            assert_eq!((&honest.groups, honest.one_run.right), (&alone.groups, alone.one_run.right), "{method}");
        }
        for (plant, n) in [(Plant::RankNoise, 4), (Plant::RankStream, 2)] {
            let planted = audit("dpsgd", &on(n), Some(plant), &randomness).unwrap();
            assert!(planted.refuted(), "{}: {planted:?}", plant.name());
            let error = audit("dpsgd", &on(1), Some(plant), &randomness).unwrap_err().to_string();
            assert!(error.contains("2 ranks or more"), "{error}");
        }
    }
}
