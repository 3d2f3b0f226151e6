//! What a method costs, from the plan it was trained with.

use anyhow::Context;
use dp_accounting::{
    Accountant, Conversion, Delta, DpEvent, Ledger, NeighbouringRelation, NoiseMultiplier, Orders, RdpAccountant,
    SamplingRate,
};
use dp_train::Plan;

use super::experiment::{PublishedAccountant, PublishedBudget};
use crate::results::{EpsilonRecord, PrivacyRecord};

/// The privacy record of a plan whose run left `ledger`; `None` without privacy.
///
/// # Errors
/// If the ledger does not hold exactly what the plan announced.
pub(crate) fn record(
    plan: &Plan,
    ledger: &Ledger,
    published: &PublishedBudget,
) -> anyhow::Result<Option<PrivacyRecord>> {
    let Some(privacy) = &plan.config().privacy else { return Ok(None) };
    ledger.verify().context("the run's ledger")?;
    let rdp = RdpAccountant::new(NeighbouringRelation::AddRemove);
    let accountants = [rdp.clone(), rdp.with_conversion(Conversion::Classic)];
    let epsilons = accountants
        .into_iter()
        .map(|mut accountant| {
            ledger.compose_into(&mut accountant)?;
            epsilon(&accountant, privacy.delta)
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    Ok(Some(PrivacyRecord {
        certified: plan.certified(),
        delta: privacy.delta.get(),
        sampling_rate: plan.config().batches.sampling_rate.get(),
        noise_multiplier: privacy.noise_multiplier.get(),
        count_noise_multipliers: plan.count_noise_multipliers(),
        steps: plan.config().batches.steps,
        epsilons,
        as_published: Some(as_published(published, privacy.noise_multiplier, privacy.delta)?),
        published: Some(published.epsilon),
        ledger: serde_json::to_value(ledger)?,
    }))
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
