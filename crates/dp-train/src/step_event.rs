//! What a step releases, and how its batch is drawn.

use dp_accounting::{Accountant, DpEvent, NoiseMultiplier, SamplingRate};
use dp_clipping::{ClipConfig, PublicContext, Weights};
use dp_engine::PublicFacts;

use crate::batch_plan::BatchPlan;
use crate::error::{Result, TrainError};
use crate::group_sampling::{GroupSampling, times};
use crate::rates_by_loss::RatesByLoss;
use crate::train_config::{PrivacyConfig, TrainConfig};
use crate::trainer::{adds_noise, check_coupling};

/// The public facts that a clipping method may use.
pub(crate) fn context(privacy: Option<&PrivacyConfig>, rate: SamplingRate, facts: PublicFacts) -> PublicContext {
    PublicContext {
        n_groups: facts.n_groups,
        expected_batch_size: rate.get() * facts.n_records as f64,
        noise_multiplier: privacy.map_or(0.0, |privacy| privacy.noise_multiplier.get()),
    }
}

/// An event of one step, as often: a record that meets one of several alternatives meets the same
/// every time.
pub(crate) fn repeated(step: &DpEvent, steps: u64) -> DpEvent {
    match step {
        DpEvent::OneOf(of_groups) => {
            DpEvent::OneOf(of_groups.iter().map(|event| times(event.clone(), steps)).collect())
        }
        step => step.clone().repeated(steps),
    }
}

/// Refuses rates by group that cannot be, or cannot be accounted for.
pub(crate) fn check_group_sampling(config: &TrainConfig, facts: PublicFacts) -> Result<()> {
    let follows_losses =
        config.privacy.as_ref().is_some_and(|privacy| matches!(privacy.clipping.weights, Weights::RatesByLoss { .. }));
    let largest = match (&config.group_sampling, &config.rates_by_loss) {
        (None, None) => return Ok(()),
        (Some(_), Some(_)) => {
            return Err(TrainError::invalid("batches.sampling", "by group and by loss", "one of the two"));
        }
        (Some(_), None) if follows_losses => {
            let expected = "by loss, which the weights `rates-by-loss` of the method are for";
            return Err(TrainError::invalid("batches.sampling", "by group", expected));
        }
        (Some(sampling), None) => {
            sampling.validate(facts.n_groups)?;
            sampling.largest_rate()
        }
        (None, Some(limits)) => {
            limits.validate()?;
            if config.privacy.is_some() && !follows_losses {
                let expected = "by group, or a method with the weights `rates-by-loss`, such as asc-by-loss";
                return Err(TrainError::invalid("batches.sampling", "by loss", expected));
            }
            limits.largest.get()
        }
    };
    let by = if config.rates_by_loss.is_some() { "by loss" } else { "by group" };
    let rate = config.batches.sampling_rate.get();
    if largest.to_bits() != rate.to_bits() {
        let expected = format!("{largest}, the largest rate of a group");
        return Err(TrainError::invalid("batches.sampling_rate", rate, expected));
    }
    match &config.privacy {
        Some(privacy) if privacy.clipping.certified() => Ok(()),
        Some(_) => Err(TrainError::invalid(
            "batches.sampling",
            by,
            "none: records influence each other's gradients, and no rate could be accounted for",
        )),
        None => Err(TrainError::invalid("batches.sampling", by, "none without privacy")),
    }
}

/// The rates of the groups with a share for each.
pub(crate) fn with_shares(
    config: &TrainConfig,
    facts: PublicFacts,
    spent: &(impl Accountant + Clone),
) -> Result<Option<GroupSampling>> {
    let (Some(sampling), Some(privacy)) = (config.group_sampling.clone(), &config.privacy) else {
        return Ok(config.group_sampling.clone());
    };
    if !sampling.wants_shares(&privacy.clipping) {
        let shares = Some(sampling.all_shares());
        return Ok(Some(GroupSampling { shares, ..sampling }));
    }
    let BatchPlan { sampling_rate, steps, .. } = config.batches;
    let context = context(Some(privacy), sampling_rate, facts);
    let found = sampling.with_equal_epsilon(&privacy.clipping, &context, steps, spent, privacy.delta)?;
    Ok(Some(found))
}

/// The limits of rates with levels between them.
pub(crate) fn with_levels(config: &TrainConfig, facts: PublicFacts) -> Result<Option<RatesByLoss>> {
    let limits = config.rates_by_loss.clone();
    let Some(privacy) = &config.privacy else { return Ok(limits) };
    let BatchPlan { sampling_rate, steps, .. } = config.batches;
    let context = context(Some(privacy), sampling_rate, facts);
    let found = |limits: RatesByLoss| match limits.levels {
        Some(_) => Ok(limits),
        None => limits.with_levels(&privacy.clipping, &context, steps, privacy.delta),
    };
    limits.map(found).transpose()
}

/// The event of one step; `config` says how batches are drawn.
pub(crate) fn step_event(privacy: &PrivacyConfig, config: &TrainConfig, facts: PublicFacts) -> Result<DpEvent> {
    let rate = config.batches.sampling_rate;
    let limit = 1.0 / facts.n_records as f64;
    if privacy.delta.get() >= limit && !privacy.allow_large_delta {
        let expected = format!("less than 1/n = {limit:.3e}");
        return Err(TrainError::invalid("privacy.delta", privacy.delta.get(), expected));
    }
    if privacy.require_guarantee && !privacy.clipping.certified() {
        let coupling = format!("{:?}", privacy.clipping.coupling);
        let expected =
            "None: a guarantee is required, and there is none where records influence each other's gradients";
        return Err(TrainError::invalid("privacy.clipping.coupling", coupling, expected));
    }
    let context = context(Some(privacy), rate, facts);
    check_coupling(&privacy.clipping, facts.n_classes)?;
    // Refuses parameters out of range before there is a run.
    privacy.clipping.build(&context)?;
    if !adds_noise(privacy.clipping.coupling) {
        return Ok(DpEvent::NonPrivate);
    }
    if let Some(sampling) = &config.group_sampling {
        return sampling.event(&privacy.clipping, &context, 1);
    }
    if let Some(limits) = &config.rates_by_loss {
        return limits.event(&privacy.clipping, &context);
    }
    Ok(step_query(&privacy.clipping, privacy.noise_multiplier, &context, 1)?.poisson_sampled(rate))
}

/// The releases of one step about a drawn unit of privacy: the clipped gradient and the method's
/// counts, which see the same batch and so are one Gaussian (Zhao 2025, Lemma 3.1 and Theorem 3.2).
///
/// `noise_multiplier` is the gradient's, over what a unit of `records_per_unit` records can change,
/// which is as many times what one can; the `context`'s noise multiplier is replaced by the one
/// that a run must have for it, `noise_multiplier · records_per_unit`.
///
/// # Errors
/// [`TrainError::Accounting`] if the noise of a count is out of range.
pub fn step_query(
    clipping: &ClipConfig,
    noise_multiplier: NoiseMultiplier,
    context: &PublicContext,
    records_per_unit: u64,
) -> Result<DpEvent> {
    let units = records_per_unit as f64;
    let context = PublicContext { noise_multiplier: noise_multiplier.get() * units, ..*context };
    let mut multipliers = vec![noise_multiplier];
    for multiplier in clipping.count_noise_multipliers(&context) {
        multipliers.push(NoiseMultiplier::new(multiplier / units)?);
    }
    Ok(match multipliers[..] {
        [gradient] => DpEvent::gaussian(gradient),
        _ => DpEvent::joint_gaussian(multipliers),
    })
}
