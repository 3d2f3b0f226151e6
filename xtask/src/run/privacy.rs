//! What a method costs, from the plan it was trained with.

use dp_accounting::{
    Accountant, Certainty, Conversion, Delta, DpEvent, EpsilonBound, GroupAccounting, Ledger, Mark, MarkedEpsilon,
    NoiseMultiplier, Orders, PldAccountant, RdpAccountant, Rounding, SamplingRate, Scope, decimal,
};
use dp_train::Plan;
use run_records::{EpsilonRecord, NO_PROOF, PrivacyRecord, RecomputedEpsilon, SearchPrivacyRecord, group_epsilon};

use super::experiment::{PublishedAccountant, PublishedBudget};
use super::random_search::SearchPlan;

/// What a run of this plan leaves in its ledger.
///
/// # Errors
/// If there are more steps than a ledger counts.
pub(crate) fn ledger(plan: &Plan) -> anyhow::Result<Ledger> {
    Ok(plan.ledger(plan.config().batches.steps)?)
}

/// What a search leaves in its ledger: one event.
///
/// # Errors
/// Never, as far as is known: the ledger is empty before.
pub(crate) fn ledger_of_search(search: &SearchPlan) -> anyhow::Result<Ledger> {
    let mut ledger = Ledger::new(Plan::RELATION);
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
    // Of the mechanism: whether its noise follows from a seed is known of a study, not of a method.
    let scope = plan.scope(UNIT, true);
    Ok(Some(PrivacyRecord {
        certified: plan.certified(),
        delta: privacy.delta.get(),
        sampling_rate: Some(plan.config().batches.sampling_rate.get()),
        noise_multiplier: Some(privacy.noise_multiplier.get()),
        count_noise_multipliers: plan.count_noise_multipliers(),
        steps: Some(plan.config().batches.steps),
        search: None,
        epsilons: epsilons(&ledger, privacy.delta, scope.as_ref())?,
        scope,
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
    let scope = search.certified().then(|| Scope {
        not_covered: vec![
            "the number of trials, which must stay hidden, and the trials that were not released".to_owned(),
            "running time and memory".to_owned(),
        ],
        conditions: search.conditions().to_vec(),
        ..Scope::of(UNIT, ["the parameters of the best trial, its point of the grid and its noisy score"])
    });
    Ok(PrivacyRecord {
        certified: search.certified(),
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
        epsilons: epsilons(&ledger, delta, scope.as_ref())?,
        scope,
        as_published: None,
        published: None,
        ledger: serde_json::to_value(ledger)?,
    })
}

/// Whose privacy it is.
const UNIT: &str = "one record of the training data";

/// ε of everything in a ledger, by accountant; nominal without a scope.
fn epsilons(ledger: &Ledger, delta: Delta, scope: Option<&Scope>) -> anyhow::Result<Vec<EpsilonRecord>> {
    let mut epsilons = vec![tight_epsilon(ledger, delta, scope)?];
    let rdp = RdpAccountant::new(Plan::RELATION);
    for mut accountant in [rdp.clone(), rdp.with_conversion(Conversion::Classic)] {
        ledger.compose_into(&mut accountant)?;
        epsilons.push(epsilon(&accountant, delta, scope)?);
    }
    Ok(epsilons)
}

/// The certified upper bound that no analysis can improve by more than its bracket's width.
fn tight_epsilon(ledger: &Ledger, delta: Delta, scope: Option<&Scope>) -> anyhow::Result<EpsilonRecord> {
    let mut accountant = PldAccountant::new(Plan::RELATION);
    ledger.compose_into(&mut accountant)?;
    let bound = accountant.epsilon(delta)?;
    let name = match (&bound.certainty, bound.lower) {
        (Certainty::FallBack { reason }, _) => format!("PLD fell back: {reason}"),
        (_, Some(lower)) => {
            format!("PLD; not below {} by any analysis", decimal(lower.get(), 3, Rounding::Down))
        }
        (_, None) => accountant.name(),
    };
    Ok(EpsilonRecord { accountant: name, epsilon: marked(&bound, scope) })
}

/// With its mark: nominal without a scope.
fn marked(bound: &EpsilonBound, scope: Option<&Scope>) -> MarkedEpsilon {
    scope.map_or_else(|| MarkedEpsilon::nominal(bound.epsilon, [NO_PROOF]), |scope| MarkedEpsilon::new(bound, scope))
}

/// ε of each group from the bounds a run applied to it at every step; empty for methods that treat
/// all groups alike, for those without a proof, and for groups drawn at rates of their own, each of
/// which has the run's own ε.
///
/// **No guarantee** ([`EX_POST`](run_records::EX_POST)). The Rényi order is that of the plan, fixed
/// before the run. Steps that an early stop left out are charged as if every group had the largest
/// threshold.
///
/// # Errors
/// If a bound is not positive and finite.
pub(crate) fn group_epsilons(plan: &Plan, group_bounds: &[Vec<f64>]) -> anyhow::Result<Vec<MarkedEpsilon>> {
    let config = plan.config();
    let privacy = config.privacy.as_ref().filter(|_| plan.certified() && plan.rates_at(None).is_none());
    let Some(privacy) = privacy.filter(|privacy| privacy.clipping.needs_groups()) else {
        return Ok(Vec::new());
    };
    let mut accountant = RdpAccountant::new(Plan::RELATION);
    accountant.compose(&plan.event(), 1)?;
    let order = accountant.epsilon(privacy.delta)?.order.unwrap_or(2.0);
    let counts = plan.count_noise_multipliers().into_iter().map(NoiseMultiplier::new).collect::<Result<Vec<_>, _>>()?;
    let n_groups = plan.facts().n_groups;
    let rate = config.batches.sampling_rate;
    let mut groups = GroupAccounting::new(n_groups, rate, privacy.noise_multiplier, &counts);
    for bounds in group_bounds {
        groups.record_step(bounds)?;
    }
    for _ in group_bounds.len() as u64..config.batches.steps {
        groups.record_step(&vec![1.0; n_groups])?;
    }
    (0..n_groups)
        .map(|group| {
            let mut accountant = RdpAccountant::new(Plan::RELATION).with_orders(Orders::Fixed(vec![order]));
            groups.compose_into(group, &mut accountant)?;
            Ok(group_epsilon(accountant.epsilon(privacy.delta)?.epsilon.get()))
        })
        .collect()
}

/// ε as the paper computed it: its accountant and conversion, its sampling rate and steps, the
/// gradient alone.
pub(crate) fn as_published(
    published: &PublishedBudget,
    noise_multiplier: NoiseMultiplier,
    delta: Delta,
) -> anyhow::Result<RecomputedEpsilon> {
    let rdp = RdpAccountant::new(Plan::RELATION);
    let (name, mut accountant) = match published.accountant {
        PublishedAccountant::Moments => (
            "moments accountant (classic conversion, orders 2 to 64)",
            rdp.with_orders(Orders::moments_accountant()).with_conversion(Conversion::Classic),
        ),
        PublishedAccountant::Opacus => ("Opacus (improved conversion, its orders)", rdp.with_orders(Orders::opacus())),
    };
    let rate = SamplingRate::new(published.sampling_rate)?;
    accountant.compose(&DpEvent::gaussian(noise_multiplier).poisson_sampled(rate), published.steps)?;
    Ok(RecomputedEpsilon {
        accountant: format!("{name}, q = {:.6}, T = {}, gradient only", rate.get(), published.steps),
        epsilon: accountant.epsilon(delta)?.epsilon.get(),
        mark: Mark::Nominal,
    })
}

fn epsilon(accountant: &impl Accountant, delta: Delta, scope: Option<&Scope>) -> anyhow::Result<EpsilonRecord> {
    Ok(EpsilonRecord { accountant: accountant.name(), epsilon: marked(&accountant.epsilon(delta)?, scope) })
}
