//! Groups that are drawn at rates which follow their losses.

use dp_accounting::{Accountant, Delta, Divergence, DpEvent, RdpAccountant, RenyiOrder, SamplingRate};
use dp_clipping::{ClipConfig, PublicContext};
use serde::{Deserialize, Serialize};

use crate::error::{Result, TrainError};
use crate::group_sampling::{LEAST_SHARE, largest_share, query, times};
use crate::plan::Plan;

/// A rate at which a group may be drawn, and the share of the bound that its records may then reach.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLevel {
    /// Probability with which a record enters a batch.
    pub rate: SamplingRate,
    /// Share of the method's threshold, above 0 and at most 1.
    pub share: f64,
}

/// The levels that rates move on, and the order of the Rényi divergence by which they cost the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLevels {
    /// α > 1, fixed before the run.
    pub order: RenyiOrder,
    /// At least one, by rate in ascending order; the last rate is that of the candidates.
    pub levels: Vec<RateLevel>,
}

/// Limits of rates that follow the weights of groups, and these the noisy losses of earlier steps
/// ([`Weights::RatesByLoss`](dp_clipping::Weights::RatesByLoss)).
///
/// Candidates are drawn over all record numbers at the largest rate, and thinned as under
/// [`GroupSampling`](crate::GroupSampling). A group of weight `w`, the mean of the groups being 1, is
/// drawn at `w·√(least·largest)` within the limits, rounded down to a level. At the least rate a group
/// has the whole threshold, at a larger one less.
///
/// **Guarantee.** Rates and thresholds of a step follow from releases of earlier steps. To a record of
/// a group at `(q, t)` the step is a Gaussian query with noise multiplier `σ/t`, and the method's counts,
/// all sampled at rate `q`: its Rényi divergence at the order is at most that of [`event`](Self::event),
/// the largest of all levels. Bounds at one order add up under adaptive composition (Mironov 2017,
/// Proposition 1), so that every group has the same guarantee (docs/accounting.md).
///
/// **Source.** Cairney-Leeming, Sanyal & Lampert 2026.
///
/// **Example**
/// ```
/// use dp_accounting::{Delta, NoiseMultiplier, SamplingRate};
/// use dp_clipping::registry;
/// use dp_train::{BatchPlan, LearningRate, Loss, ModelConfig, Plan, PrivacyConfig, PublicFacts, RatesByLoss, TrainConfig};
/// let facts = PublicFacts { n_records: 1_000, n_inputs: 4, n_classes: 2, n_groups: 2 };
/// let (least, largest) = (SamplingRate::new(0.05)?, SamplingRate::new(0.2)?);
/// let clipping = registry::find("asc-by-loss")?.default_config();
/// let batches = BatchPlan::new(largest, 100, 1);
/// let config = TrainConfig {
///     rates_by_loss: Some(RatesByLoss::new(least, largest)),
///     privacy: Some(PrivacyConfig::new(clipping, NoiseMultiplier::new(2.0)?, Delta::new(1e-5)?)),
///     ..TrainConfig::new(ModelConfig::LogisticRegression, Loss::BceWithLogits, batches, LearningRate::Constant(0.1))
/// };
/// let plan = Plan::new(config, facts)?;
/// // Four times the rate: a little more than a quarter of the threshold has the same guarantee.
/// let levels = &plan.config().rates_by_loss.as_ref().unwrap().levels.as_ref().unwrap().levels;
/// assert!(levels[0].share == 1.0 && (0.25..0.3).contains(&levels.last().unwrap().share), "{levels:?}");
/// // Weights of 1: both are drawn at about √(0.05·0.2).
/// let rates = plan.rates_at(Some(&[1.0, 1.0])).unwrap();
/// assert!(rates.iter().all(|level| (0.095..=0.1).contains(&level.rate.get())), "{rates:?}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RatesByLoss {
    /// The least rate of a group.
    pub least: SamplingRate,
    /// The largest, which is the rate of the batches.
    pub largest: SamplingRate,
    /// Found by [`Plan::new`] unless given: 33 rates from the least to the largest, each with the
    /// largest share that costs no more than the least rate and the whole threshold do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levels: Option<RateLevels>,
}

/// Steps between the limits: of 4 % each where the largest rate is four times the least.
const N_STEPS: u32 = 32;

impl RatesByLoss {
    /// Levels that follow from the method and its noise.
    pub fn new(least: SamplingRate, largest: SamplingRate) -> Self {
        Self { least, largest, levels: None }
    }

    /// Checks limits, and levels where they are given.
    pub(crate) fn validate(&self) -> Result<()> {
        let (least, largest) = (self.least.get(), self.largest.get());
        if least >= largest {
            let expected = format!("below {largest}, the largest rate of a group");
            return Err(TrainError::invalid("batches.sampling.least", least, expected));
        }
        let Some(RateLevels { levels, .. }) = &self.levels else { return Ok(()) };
        if let Some(level) = levels.iter().find(|level| !(LEAST_SHARE..=1.0).contains(&level.share)) {
            return Err(TrainError::invalid(
                "rates_by_loss.levels",
                level.share,
                format!("shares of {LEAST_SHARE:e} to 1"),
            ));
        }
        let ascend = levels.windows(2).all(|pair| pair[0].rate <= pair[1].rate);
        if !ascend || levels.last().is_none_or(|level| level.rate != self.largest) {
            let expected = format!("rates in ascending order, of which the last is {largest}");
            return Err(TrainError::invalid("rates_by_loss.levels", format!("{} levels", levels.len()), expected));
        }
        Ok(())
    }

    /// The order at which a run of this many steps costs the least, and the divergence of a step there,
    /// at the least rate and with the whole threshold.
    ///
    /// # Errors
    /// [`TrainError::Accounting`] if the noise of a count is out of range.
    pub fn budget(
        &self,
        clipping: &ClipConfig,
        context: &PublicContext,
        steps: u64,
        delta: Delta,
    ) -> Result<(RenyiOrder, Divergence)> {
        let step = query(clipping, context, self.least, 1.0)?;
        let mut run = RdpAccountant::new(Plan::RELATION);
        run.compose(&times(step.clone(), steps), 1)?;
        // No order where nothing is to be charged: any will do.
        let order = run.epsilon(delta)?.order.unwrap_or(2.0);
        Ok((RenyiOrder::new(order)?, divergence(&step, order)?))
    }

    /// The same limits with the levels of [`Self::levels`].
    ///
    /// # Errors
    /// [`TrainError::InvalidParameter`] if the method's counts alone exceed the budget at the largest
    /// rate; those of [`Self::budget`].
    pub fn with_levels(self, clipping: &ClipConfig, context: &PublicContext, steps: u64, delta: Delta) -> Result<Self> {
        let (order, budget) = self.budget(clipping, context, steps, delta)?;
        let (least, ratio) = (self.least.get(), self.largest.get() / self.least.get());
        let level = |step: u32| -> Result<RateLevel> {
            let rate = match step {
                0 => self.least,
                N_STEPS => self.largest,
                _ => SamplingRate::new((least * root_power(ratio, step)).min(self.largest.get()))?,
            };
            let fits = |share: f64| Ok(divergence(&query(clipping, context, rate, share)?, order.get())? <= budget);
            let Some(share) = largest_share(least / rate.get(), fits)? else {
                let expected = format!(
                    "closer to the least rate, {least}, or more noise for counts: at a rate of {:.4} the counts of the method alone cost \
                     more than all does at the least",
                    rate.get()
                );
                return Err(TrainError::invalid("batches.sampling.largest", self.largest, expected));
            };
            Ok(RateLevel { rate, share })
        };
        let levels = (0..=N_STEPS).map(level).collect::<Result<_>>()?;
        Ok(Self { levels: Some(RateLevels { order, levels }), ..self })
    }

    /// The releases of a step, whatever the rates: the largest divergence of all levels.
    ///
    /// # Errors
    /// [`TrainError::InvalidParameter`] without levels; [`TrainError::Accounting`] if the noise of a level
    /// or of a count is out of range.
    pub fn event(&self, clipping: &ClipConfig, context: &PublicContext) -> Result<DpEvent> {
        let Some(RateLevels { order, levels }) = &self.levels else {
            return Err(TrainError::invalid("rates_by_loss.levels", "none", "the levels of a plan"));
        };
        let mut largest = Divergence::new(0.0)?;
        for level in levels {
            let of_level = divergence(&query(clipping, context, level.rate, level.share)?, order.get())?;
            largest = if of_level > largest { of_level } else { largest };
        }
        Ok(DpEvent::RenyiAtOrder { order: *order, divergence: largest })
    }

    /// The level of each group at these weights, `[n_groups]`.
    pub(crate) fn at(&self, weights: &[f64]) -> Vec<RateLevel> {
        let middle = (self.least.get() * self.largest.get()).sqrt();
        let levels = self.levels.as_ref().map_or(&[][..], |levels| &levels.levels);
        let of_weight = |weight: &f64| {
            let wanted = weight * middle;
            let below = levels.partition_point(|level| level.rate.get() <= wanted);
            levels.get(below.saturating_sub(1)).copied()
        };
        weights.iter().filter_map(of_weight).collect()
    }
}

/// `ratio^(step/32)` by square roots and products alone, whose last digit is the same everywhere.
fn root_power(ratio: f64, step: u32) -> f64 {
    let (mut power, mut root) = (1.0, ratio);
    for bit in (0..N_STEPS.ilog2()).rev() {
        root = root.sqrt();
        if step & (1 << bit) != 0 {
            power *= root;
        }
    }
    power
}

/// Rényi divergence of one release about a record, in the larger direction.
fn divergence(event: &DpEvent, order: f64) -> Result<Divergence> {
    let mut one = RdpAccountant::new(Plan::RELATION);
    one.compose(event, 1)?;
    Ok(Divergence::new(one.rdp(order)?)?)
}

#[cfg(test)]
mod tests {
    use dp_accounting::NoiseMultiplier;
    use dp_clipping::{CountNoise, registry};

    use super::*;

    fn rate(rate: f64) -> SamplingRate {
        SamplingRate::new(rate).unwrap()
    }

    fn planned(counts: f64) -> Result<(RatesByLoss, ClipConfig, PublicContext)> {
        let clipping = registry::find("asc-by-loss").unwrap().default_config();
        let clipping = clipping.with_count_noise(CountNoise::Multiplier(counts));
        let context = PublicContext { n_groups: 2, expected_batch_size: 100.0, noise_multiplier: 1.5 };
        let limits = RatesByLoss::new(rate(0.02), rate(0.08));
        let found = limits.with_levels(&clipping, &context, 200, Delta::new(1e-5).unwrap())?;
        Ok((found, clipping, context))
    }

    /// Every level costs what the first does, to a hundredth, and no more.
    #[test]
    fn levels_cost_the_same() {
        let (found, clipping, context) = planned(15.0).unwrap();
        let RateLevels { order, levels } = found.levels.clone().unwrap();
        let DpEvent::RenyiAtOrder { divergence: budget, .. } = found.event(&clipping, &context).unwrap() else {
            panic!("another event")
        };
        assert_eq!(
            (levels.len(), levels[0], levels[32].rate),
            (33, RateLevel { rate: rate(0.02), share: 1.0 }, rate(0.08))
        );
        for level in &levels {
            // By hand: σ/t, and two counts with noise of their own, in one Gaussian.
            let sigma = ((level.share / 1.5).powi(2) + 2.0 * 15.0_f64.powi(-2)).sqrt().recip();
            let step = DpEvent::gaussian(NoiseMultiplier::new(sigma).unwrap()).poisson_sampled(level.rate);
            let cost = divergence(&step, order.get()).unwrap().get();
            assert!(cost <= budget.get() * (1.0 + 1e-9) && cost > 0.99 * budget.get(), "{level:?}: {cost} {budget}");
        }
        // Twice the rate is worth a little more than half of the threshold.
        let twice = found.at(&[1.0, 0.0, 1e9, 0.5]);
        assert!((0.0385..=0.04).contains(&twice[0].rate.get()) && (0.5..0.6).contains(&twice[0].share), "{twice:?}");
        assert_eq!((twice[1], twice[2], twice[3].rate), (levels[0], levels[32], rate(0.02)));
    }

    /// The event of a run is at most 1 % more ε than loss distributions give at the least rate and the
    /// whole threshold, plus what Rényi divergences lose.
    #[test]
    fn the_order_is_that_of_the_whole_run() {
        let (found, clipping, context) = planned(15.0).unwrap();
        let delta = Delta::new(1e-5).unwrap();
        let epsilon = |event: &DpEvent, by: &mut dyn Accountant| {
            by.compose(event, 200).unwrap();
            by.epsilon(delta).unwrap().epsilon.get()
        };
        let one = query(&clipping, &context, rate(0.02), 1.0).unwrap();
        let by_rdp = epsilon(&one, &mut RdpAccountant::new(Plan::RELATION));
        let known = epsilon(&found.event(&clipping, &context).unwrap(), &mut RdpAccountant::new(Plan::RELATION));
        assert!((known / by_rdp - 1.0).abs() < 1e-9, "{known} {by_rdp}");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        // Counts with as much noise as the gradient cost more at four times the rate than all costs at the least.
        let error = planned(1.5).unwrap_err().to_string();
        assert!(error.contains("batches.sampling.largest") && error.contains("counts of the method"), "{error}");
        let refusal = |limits: RatesByLoss| limits.validate().unwrap_err().to_string();
        insta::assert_snapshot!(
            refusal(RatesByLoss::new(rate(0.2), rate(0.2))),
            @"batches.sampling.least = 0.2: expected below 0.2, the largest rate of a group"
        );
        let with = |levels: &[(f64, f64)]| {
            let levels = levels.iter().map(|&(q, share)| RateLevel { rate: rate(q), share }).collect();
            let levels = Some(RateLevels { order: RenyiOrder::new(2.0).unwrap(), levels });
            refusal(RatesByLoss { levels, ..RatesByLoss::new(rate(0.1), rate(0.2)) })
        };
        insta::assert_snapshot!(with(&[(0.1, 1.0), (0.2, 2.0)]), @"rates_by_loss.levels = 2: expected shares of 1e-6 to 1");
        insta::assert_snapshot!(
            with(&[(0.1, 1.0)]),
            @"rates_by_loss.levels = 1 levels: expected rates in ascending order, of which the last is 0.2"
        );
    }
}
