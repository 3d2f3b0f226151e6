//! What a method costs, from the plan it was trained with.

use dp_accounting::{
    Accountant, Certainty, Conversion, Delta, DpEvent, GroupAccounting, Ledger, NeighbouringRelation, NoiseMultiplier,
    Orders, PldAccountant, RdpAccountant, SamplingRate,
};
use dp_train::Plan;

use super::experiment::{PublishedAccountant, PublishedBudget};
use super::random_search::SearchPlan;
use crate::results::{EpsilonRecord, PrivacyRecord, SearchPrivacyRecord};

/// What a run of this plan leaves in its ledger.
///
/// # Errors
/// If there are more steps than a ledger counts.
pub(crate) fn ledger(plan: &Plan) -> anyhow::Result<Ledger> {
    let mut ledger = Ledger::new(NeighbouringRelation::AddRemove);
    ledger.record(plan.step_event(), plan.config().batches.steps)?;
    Ok(ledger)
}

/// What a search leaves in its ledger: one event.
///
/// # Errors
/// Never, as far as is known: the ledger is empty before.
pub(crate) fn ledger_of_search(search: &SearchPlan) -> anyhow::Result<Ledger> {
    let mut ledger = Ledger::new(NeighbouringRelation::AddRemove);
    ledger.record(&search.event(), 1)?;
    Ok(ledger)
}

/// The privacy record of a plan; `None` without privacy, and for analyses that add no noise.
///
/// # Errors
/// If an accountant refuses the plan's event.
pub(crate) fn record(plan: &Plan, published: Option<&PublishedBudget>) -> anyhow::Result<Option<PrivacyRecord>> {
    let Some(privacy) = plan.config().privacy.as_ref().filter(|_| *plan.step_event() != DpEvent::NonPrivate) else {
        return Ok(None);
    };
    let ledger = ledger(plan)?;
    Ok(Some(PrivacyRecord {
        certified: plan.certified(),
        scope: plan.scope("one record of the training data"),
        delta: privacy.delta.get(),
        sampling_rate: Some(plan.config().batches.sampling_rate.get()),
        noise_multiplier: Some(privacy.noise_multiplier.get()),
        count_noise_multipliers: plan.count_noise_multipliers(),
        steps: Some(plan.config().batches.steps),
        search: None,
        epsilons: epsilons(&ledger, privacy.delta)?,
        as_published: published
            .map(|published| as_published(published, privacy.noise_multiplier, privacy.delta))
            .transpose()?,
        published: published.map(|published| published.epsilon),
        ledger: serde_json::to_value(ledger)?,
    }))
}

/// The privacy record of a search: of all its trials and of the choice among them.
///
/// # Errors
/// If an accountant refuses its event.
pub(crate) fn record_of_search(search: &SearchPlan, delta: Delta) -> anyhow::Result<PrivacyRecord> {
    let ledger = ledger_of_search(search)?;
    Ok(PrivacyRecord {
        certified: search.certified(),
        scope: None,
        delta: delta.get(),
        sampling_rate: None,
        noise_multiplier: None,
        count_noise_multipliers: Vec::new(),
        steps: None,
        search: Some(SearchPrivacyRecord {
            epsilon_of_a_trial: search.epsilon_of_a_trial(),
            mean_trials: search.mean_trials(),
            n_points: search.n_points(),
            score_noise_multiplier: search.score_noise().get(),
        }),
        epsilons: epsilons(&ledger, delta)?,
        as_published: None,
        published: None,
        ledger: serde_json::to_value(ledger)?,
    })
}

/// ε of everything in a ledger, by accountant.
fn epsilons(ledger: &Ledger, delta: Delta) -> anyhow::Result<Vec<EpsilonRecord>> {
    let mut epsilons = vec![tight_epsilon(ledger, delta)?];
    let rdp = RdpAccountant::new(NeighbouringRelation::AddRemove);
    for mut accountant in [rdp.clone(), rdp.with_conversion(Conversion::Classic)] {
        ledger.compose_into(&mut accountant)?;
        epsilons.push(epsilon(&accountant, delta)?);
    }
    Ok(epsilons)
}

/// The certified upper bound that no analysis can improve by more than its bracket's width.
fn tight_epsilon(ledger: &Ledger, delta: Delta) -> anyhow::Result<EpsilonRecord> {
    let mut accountant = PldAccountant::new(NeighbouringRelation::AddRemove);
    ledger.compose_into(&mut accountant)?;
    let bound = accountant.epsilon(delta)?;
    let name = match (&bound.certainty, bound.lower) {
        (Certainty::FallBack { reason }, _) => format!("PLD fell back: {reason}"),
        (_, Some(lower)) => format!("PLD; not below {:.3} by any analysis", lower.get()),
        (_, None) => accountant.name(),
    };
    Ok(EpsilonRecord { accountant: name, epsilon: bound.epsilon.get() })
}

/// ε of each group from the bounds a run applied to it at every step; empty for methods that treat all groups alike.
///
/// # Errors
/// If a bound is not positive and finite.
pub(crate) fn group_epsilons(plan: &Plan, group_bounds: &[Vec<f64>]) -> anyhow::Result<Vec<f64>> {
    let Some(privacy) = plan.config().privacy.as_ref().filter(|privacy| privacy.clipping.needs_groups()) else {
        return Ok(Vec::new());
    };
    let counts = plan.count_noise_multipliers().into_iter().map(NoiseMultiplier::new).collect::<Result<Vec<_>, _>>()?;
    let n_groups = plan.facts().n_groups;
    let rate = plan.config().batches.sampling_rate;
    let mut groups = GroupAccounting::new(n_groups, rate, privacy.noise_multiplier, &counts);
    for bounds in group_bounds {
        groups.record_step(bounds)?;
    }
    (0..n_groups)
        .map(|group| {
            let mut accountant = RdpAccountant::new(NeighbouringRelation::AddRemove);
            groups.compose_into(group, &mut accountant)?;
            Ok(accountant.epsilon(privacy.delta)?.epsilon.get())
        })
        .collect()
}

/// ε as the paper computed it: its accountant and conversion, its sampling rate and steps, the gradient alone.
pub(crate) fn as_published(
    published: &PublishedBudget,
    noise_multiplier: NoiseMultiplier,
    delta: Delta,
) -> anyhow::Result<EpsilonRecord> {
    let rdp = RdpAccountant::new(NeighbouringRelation::AddRemove);
    let (name, mut accountant) = match published.accountant {
        PublishedAccountant::Moments => (
            "moments accountant (classic conversion, orders 2 to 64)",
            rdp.with_orders(Orders::moments_accountant()).with_conversion(Conversion::Classic),
        ),
        PublishedAccountant::Opacus => ("Opacus (improved conversion, its orders)", rdp.with_orders(Orders::opacus())),
    };
    let rate = SamplingRate::new(published.sampling_rate)?;
    accountant.compose(&DpEvent::gaussian(noise_multiplier).poisson_sampled(rate), published.steps)?;
    Ok(EpsilonRecord {
        accountant: format!("{name}, q = {:.6}, T = {}, gradient only", rate.get(), published.steps),
        ..epsilon(&accountant, delta)?
    })
}

fn epsilon(accountant: &impl Accountant, delta: Delta) -> anyhow::Result<EpsilonRecord> {
    Ok(EpsilonRecord { accountant: accountant.name(), epsilon: accountant.epsilon(delta)?.epsilon.get() })
}
