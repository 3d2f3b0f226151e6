//! Groups that are drawn at rates of their own.

use dp_accounting::{Accountant, Delta, DpEvent, NoiseMultiplier, SamplingRate};
use dp_clipping::{ClipConfig, Controller, PublicContext};
use serde::{Deserialize, Serialize};

use crate::error::{Result, TrainError};

/// Rates at which the records of each group are drawn, and how much of the bound each may reach.
///
/// Candidates are drawn over all record numbers at the largest rate. A candidate of group `g` stays
/// in the batch with probability `q_g / max q`, by a coin that belongs to its number: otherwise its
/// scale is 0, and no count has it. Who shares a piece of the sum with whom thus depends on the
/// draw alone.
///
/// A group's threshold is its share `t_g` of the method's: the method sees `‖g_i‖ / t_g`, and the
/// noise remains in proportion to the method's bound. To a record of group `g` the step is a
/// Gaussian query with noise multiplier `σ/t_g`, and the method's counts, all sampled at rate `q_g`.
///
/// **Guarantee.** A record is in one group, so [`event`](Self::event) has one alternative for each
/// group, which a record meets in every step (docs/accounting.md).
///
/// **Source.** Cairney-Leeming, Sanyal & Lampert 2026, with public rates.
///
/// **Example**
/// ```
/// use dp_accounting::{Delta, NoiseMultiplier, SamplingRate};
/// use dp_clipping::registry;
/// use dp_train::{BatchPlan, GroupSampling, LearningRate, Loss, ModelConfig, Plan, PrivacyConfig, PublicFacts, TrainConfig};
/// let facts = PublicFacts { n_records: 1_000, n_inputs: 4, n_classes: 2, n_groups: 2 };
/// let rates = [0.1, 0.2].map(SamplingRate::new).into_iter().collect::<Result<Vec<_>, _>>()?;
/// let clipping = registry::find("asc")?.default_config();
/// let batches = BatchPlan::new(SamplingRate::new(0.2)?, 100, 1);
/// let config = TrainConfig {
///     group_sampling: Some(GroupSampling::new(rates)),
///     privacy: Some(PrivacyConfig::new(clipping, NoiseMultiplier::new(2.0)?, Delta::new(1e-5)?)),
///     ..TrainConfig::new(ModelConfig::LogisticRegression, Loss::BceWithLogits, batches, LearningRate::Constant(0.1))
/// };
/// let plan = Plan::new(config, facts)?;
/// // The second group is drawn twice as often: about half of the threshold has the same guarantee.
/// let shares = plan.config().group_sampling.as_ref().unwrap().all_shares();
/// assert!(shares[0] == 1.0 && (0.5..0.55).contains(&shares[1]), "{shares:?}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupSampling {
    /// Probability with which a record of each group enters a batch, `[n_groups]`; the largest is the rate of the batches.
    pub rates: Vec<SamplingRate>,
    /// Each group's share of the method's threshold, `[n_groups]`, above 0 and at most 1. Unless
    /// given: those that make the guarantee of every group the same if the method's controller is
    /// [`Controller::ByRate`], and 1 otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<Vec<f64>>,
}

/// Relative width to which a share is found; ε is about in proportion to it.
const SHARE_WIDTH: f64 = 1e-4;

/// Smallest share: below it a group would hardly count.
pub(crate) const LEAST_SHARE: f64 = 1e-6;

impl GroupSampling {
    /// Shares that follow from the method.
    pub fn new(rates: Vec<SamplingRate>) -> Self {
        Self { rates, shares: None }
    }

    /// The largest rate: that of the candidates.
    pub fn largest_rate(&self) -> f64 {
        self.rates.iter().map(|rate| rate.get()).fold(0.0, f64::max)
    }

    /// Each group's share of the method's threshold, `[n_groups]`; 1 where it was not given or found.
    pub fn all_shares(&self) -> Vec<f64> {
        self.shares.clone().unwrap_or_else(|| vec![1.0; self.rates.len()])
    }

    /// Checks rates and shares against the number of groups.
    pub(crate) fn validate(&self, n_groups: usize) -> Result<()> {
        if self.rates.len() != n_groups {
            let expected = format!("one for each of {n_groups} groups");
            return Err(TrainError::invalid("batches.sampling.rates", format!("{} rates", self.rates.len()), expected));
        }
        let Some(shares) = &self.shares else { return Ok(()) };
        if shares.len() != n_groups {
            let expected = format!("one for each of {n_groups} groups");
            return Err(TrainError::invalid("group_sampling.shares", format!("{} shares", shares.len()), expected));
        }
        match shares.iter().find(|share| !(LEAST_SHARE..=1.0).contains(*share)) {
            Some(share) => Err(TrainError::invalid("group_sampling.shares", share, format!("{LEAST_SHARE:e} to 1"))),
            None => Ok(()),
        }
    }

    /// The releases of this many steps: an alternative for each group, which a record meets in every
    /// step. `context`'s noise multiplier is that of the method's bound.
    ///
    /// # Errors
    /// [`TrainError::Accounting`] if the noise of a group or of a count is out of range.
    pub fn event(&self, clipping: &ClipConfig, context: &PublicContext, steps: u64) -> Result<DpEvent> {
        let shares = self.all_shares();
        let of = |group: usize| Ok(times(query(clipping, context, self.rates[group], shares[group])?, steps));
        Ok(DpEvent::OneOf((0..self.rates.len()).map(of).collect::<Result<_>>()?))
    }

    /// The steps for a record of the group that is drawn least often, which has the whole threshold.
    ///
    /// # Errors
    /// As [`Self::event`]; [`TrainError::InvalidParameter`] without rates.
    pub fn least_drawn(&self, clipping: &ClipConfig, context: &PublicContext, steps: u64) -> Result<DpEvent> {
        let rate = self.rates.iter().copied().min_by(|a, b| a.get().total_cmp(&b.get()));
        let rate = rate.ok_or_else(|| TrainError::invalid("batches.sampling.rates", "none", "one for each group"))?;
        Ok(times(query(clipping, context, rate, 1.0)?, steps))
    }

    /// Whether shares are to be found: they were not given, and the method's follow from the rates.
    pub fn wants_shares(&self, clipping: &ClipConfig) -> bool {
        self.shares.is_none() && matches!(clipping.controller, Controller::ByRate { .. })
    }

    /// The same rates with the largest shares that keep the ε of every group, after what the
    /// accountant has seen, within that of the group drawn least often.
    ///
    /// Bounds on ε are compared, and a share is rounded down: no group's certified ε is above that
    /// of the group drawn least often.
    ///
    /// # Errors
    /// [`TrainError::InvalidParameter`] if a group's counts alone exceed it; [`TrainError::Accounting`]
    /// as [`Self::event`].
    pub fn with_equal_epsilon(
        self,
        clipping: &ClipConfig,
        context: &PublicContext,
        steps: u64,
        spent: &(impl Accountant + Clone),
        delta: Delta,
    ) -> Result<Self> {
        let epsilon = |event: &DpEvent| -> Result<f64> {
            let mut accountant = spent.clone();
            accountant.compose(event, 1)?;
            Ok(accountant.epsilon(delta)?.epsilon.get())
        };
        let least = self.rates.iter().map(|rate| rate.get()).fold(1.0, f64::min);
        let target = epsilon(&self.least_drawn(clipping, context, steps)?)?;
        let mut known: Vec<(SamplingRate, f64)> = Vec::new();
        for &rate in &self.rates {
            if known.iter().any(|(of, _)| *of == rate) {
                continue;
            }
            let fits = |share: f64| Ok(epsilon(&query(clipping, context, rate, share)?.repeated(steps))? <= target);
            let Some(share) = largest_share(least / rate.get(), fits)? else {
                let expected = format!(
                    "closer to each other: a group would have less than {LEAST_SHARE:e} of the threshold, or the counts of the method \
                     alone cost it more than the others have"
                );
                let value = format!("{} and {}", least, rate.get());
                return Err(TrainError::invalid("batches.sampling.rates", value, expected));
            };
            known.push((rate, share));
        }
        let share = |rate: &SamplingRate| known.iter().find(|(of, _)| of == rate).map_or(LEAST_SHARE, |(_, s)| *s);
        let shares = self.rates.iter().map(share).collect();
        Ok(Self { shares: Some(shares), ..self })
    }
}

/// The largest share that fits, rounded down, in a search from a guess; the cost grows with the share.
/// `None` if it is below the least share.
pub(crate) fn largest_share(guess: f64, fits: impl Fn(f64) -> Result<bool>) -> Result<Option<f64>> {
    if fits(1.0)? {
        return Ok(Some(1.0));
    }
    let (mut low, mut high) = (guess, 1.0);
    let mut factor = 0.98;
    while !fits(low)? {
        high = low;
        low *= factor;
        factor *= factor;
        if low < LEAST_SHARE {
            return Ok(None);
        }
    }
    // From below towards a bound that a guess is close to.
    let mut step = 1.005;
    while low * step < high && fits(low * step)? {
        low *= step;
        step *= step;
    }
    high = high.min(low * step);
    while high > low * (1.0 + SHARE_WIDTH) {
        let middle = low.midpoint(high);
        if fits(middle)? {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok((low >= LEAST_SHARE).then_some(low))
}

/// An event as often; once is the event itself.
pub(crate) fn times(event: DpEvent, count: u64) -> DpEvent {
    if count == 1 { event } else { event.repeated(count) }
}

/// A step to a record that is drawn at this rate and reaches this share of the bound: the gradient
/// has the noise `σ/t` for it, and the counts have theirs.
pub(crate) fn query(clipping: &ClipConfig, context: &PublicContext, rate: SamplingRate, share: f64) -> Result<DpEvent> {
    let mut multipliers = vec![NoiseMultiplier::new(context.noise_multiplier / share)?];
    for multiplier in clipping.count_noise_multipliers(context) {
        multipliers.push(NoiseMultiplier::new(multiplier)?);
    }
    let query = match multipliers[..] {
        [gradient] => DpEvent::gaussian(gradient),
        _ => DpEvent::joint_gaussian(multipliers),
    };
    Ok(query.poisson_sampled(rate))
}

#[cfg(test)]
mod tests {
    use dp_accounting::PldAccountant;
    use dp_clipping::registry;

    use super::*;
    use crate::plan::Plan;

    fn rates(rates: &[f64]) -> GroupSampling {
        GroupSampling::new(rates.iter().map(|&rate| SamplingRate::new(rate).unwrap()).collect())
    }

    fn context(sigma: f64) -> PublicContext {
        PublicContext { n_groups: 2, expected_batch_size: 100.0, noise_multiplier: sigma }
    }

    /// σ = 2, shares 1 and ½: noise 2 and 4 over what a record of the group can change.
    #[test]
    fn the_event_by_hand() {
        let sampling = GroupSampling { shares: Some(vec![1.0, 0.5]), ..rates(&[0.1, 0.25]) };
        let clipping = registry::find("asc").unwrap().default_config();
        assert_eq!(
            sampling.event(&clipping, &context(2.0), 30).unwrap().to_string(),
            "one of [30 × Poisson-sampled (rate 0.1) Gaussian (noise multiplier 2); \
             30 × Poisson-sampled (rate 0.25) Gaussian (noise multiplier 4)] for each record"
        );
    }

    /// Without sampling a share is in proportion to 1/√steps: rates of 1 are equal, whatever else.
    #[test]
    fn the_guarantee_of_groups_is_the_same_to_a_hundredth() {
        let clipping = registry::find("asc").unwrap().default_config();
        let delta = Delta::new(1e-5).unwrap();
        let mut spent = PldAccountant::new(Plan::RELATION);
        spent.compose(&DpEvent::gaussian_at(20.0).unwrap(), 1).unwrap();
        for (of_groups, sigma, steps) in [([0.05, 0.2], 1.0, 200), ([1.0, 0.3], 8.0, 50), ([0.01, 0.0125], 0.7, 1_000)]
        {
            for spent in [PldAccountant::new(Plan::RELATION), spent.clone()] {
                let context = context(sigma);
                let found = rates(&of_groups).with_equal_epsilon(&clipping, &context, steps, &spent, delta).unwrap();
                let shares = found.shares.clone().unwrap();
                let event = found.event(&clipping, &context, steps).unwrap();
                let DpEvent::OneOf(of_group) = &event else { panic!("{found:?}") };
                let bounds: Vec<_> = of_group
                    .iter()
                    .map(|event| {
                        let mut accountant = spent.clone();
                        accountant.compose(event, 1).unwrap();
                        accountant.epsilon(delta).unwrap()
                    })
                    .collect();
                let full = usize::from(of_groups[1] < of_groups[0]);
                let (reference, other) = (&bounds[full], &bounds[1 - full]);
                assert_eq!(shares[full], 1.0);
                assert!(other.epsilon <= reference.epsilon, "{bounds:?}");
                assert!(other.lower.unwrap().get() > 0.99 * reference.epsilon.get(), "{bounds:?}");
                // At least the ratio of the rates: a smaller threshold hides more than a smaller rate.
                assert!(shares[1 - full] >= of_groups[full] / of_groups[1 - full], "{shares:?}");
            }
        }
    }

    #[test]
    fn rates_that_cannot_be_are_refused() {
        let error = |sampling: GroupSampling| sampling.validate(2).unwrap_err().to_string();
        assert_eq!(error(rates(&[0.5])), "batches.sampling.rates = 1 rates: expected one for each of 2 groups");
        let shares = |shares| GroupSampling { shares: Some(shares), ..rates(&[0.5, 1.0]) };
        assert_eq!(error(shares(vec![1.0])), "group_sampling.shares = 1 shares: expected one for each of 2 groups");
        assert_eq!(error(shares(vec![1.0, 1.5])), "group_sampling.shares = 1.5: expected 1e-6 to 1");
        // Counts with the noise of the gradients cost a group that is drawn nine times as often too much.
        let clipping = registry::find("dpsgd-f").unwrap().default_config();
        let counts = clipping.with_count_noise(dp_clipping::CountNoise::Multiplier(1.0));
        let spent = PldAccountant::new(Plan::RELATION);
        let delta = Delta::new(1e-5).unwrap();
        let refused = rates(&[0.1, 0.9]).with_equal_epsilon(&counts, &context(1.0), 10, &spent, delta).unwrap_err();
        assert!(refused.to_string().contains("the counts of the method alone"), "{refused}");
        // A record that is never drawn, but for a chance below δ, costs nothing: nor may the other.
        let clipping = registry::find("asc").unwrap().default_config();
        let refused = rates(&[1e-7, 1.0]).with_equal_epsilon(&clipping, &context(0.03), 1, &spent, delta).unwrap_err();
        assert!(refused.to_string().contains("less than 1e-6 of the threshold"), "{refused}");
    }
}
