//! Groups that are drawn at rates of their own.

use dp_accounting::Delta;
use serde::Serialize;

use super::candidates::Candidate;
use crate::account::Account;
use crate::bounds;
use crate::config::Config;
use crate::error::Result;
use crate::recipe::Method;

/// How the records of a group enter the steps, where groups have rates of their own.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PlannedGroup {
    /// The group.
    pub group: String,
    /// Probability with which a step draws each of its records.
    pub sampling_rate: f64,
    /// Its threshold over that of the method, above 0 and at most 1.
    pub threshold_share: f64,
    /// ε of each of its training records: an upper bound.
    pub epsilon: f64,
}

/// The groups in the order of their rates; none where all records are drawn alike.
pub(super) fn planned_groups(
    config: &Config,
    candidates: &[Candidate],
    account: &Account,
    delta: Delta,
) -> Result<Vec<PlannedGroup>> {
    let of_groups = candidates.iter().find_map(|candidate| match &candidate.recipe.method {
        Method::Sgd(named) => named.group_sampling.as_ref(),
        Method::FullDescent(_) | Method::Conditioned { .. } => None,
    });
    let Some(sampling) = of_groups else { return Ok(Vec::new()) };
    let encoding = bounds::widest(config)?;
    let rates = sampling.rates.iter().zip(sampling.all_shares()).zip(account.epsilon_by_group(delta)?);
    let planned = encoding.groups().iter().zip(rates).map(|(group, ((rate, threshold_share), epsilon))| PlannedGroup {
        group: group.to_string(),
        sampling_rate: rate.get(),
        threshold_share,
        epsilon,
    });
    Ok(planned.collect())
}
