//! The guarantee of each group where the groups' clipping thresholds differ.

use std::collections::BTreeMap;

use crate::{Accountant, AccountingError, DpEvent, NoiseMultiplier, SamplingRate};

/// Effective noise multipliers are rounded down to a power of this, so that a run of thousands of
/// different steps has a few hundred different events; it costs at most this ratio in noise.
const ROUNDING_RATIO: f64 = 1.001;

/// Per-group privacy of a run in which group `k`'s gradients were clipped at `C_k` and the noise
/// was scaled with `max C`.
///
/// A record of group `k` changes the clipped sum by at most `C_k`, so for it the noise multiplier
/// of the gradient query is `σ · max_j C_j / C_k`; the count queries of the step are the same for
/// every group. Naive re-weighting is the same with `C_k = C₀ θ_k`.
///
/// **Guarantee.** *Ex post*: against changes of one record of group `k`, for the realised sequence
/// of released thresholds, and known only after the run. It takes thresholds that were *fixed before
/// each step*, as by counts of the step before: then the Rényi losses of the steps add up whatever
/// the thresholds were (Feldman & Zrnic 2021), at an order that was fixed before the run. Compose
/// into an accountant with one order, [`Orders::Fixed`](crate::Orders::Fixed). Steps that an early
/// stop left out are to be recorded with equal thresholds. In advance, the guarantee for all groups
/// alike is that of the group with the largest threshold in every step.
///
/// **Not covered.** Thresholds that follow from counts of the *same* batch, as in DPSGD-F and
/// Naive: a record above the threshold raises its group's count, and with it the loss that it is
/// charged. In simulations of DPSGD-F at `q` = 0.007, `σ` = 1 a record of a small group needs 1.1
/// to 1.5 times the Rényi ε that it is charged. Nor is the rounding of a sum, which is that of the
/// largest threshold: `C_k` must be what a record of the group moves of the sum as it is computed.
///
/// **Source.** Replaces the heuristic `(C_k/max C)·ε` of Xu et al. 2021, Section 5.3.
///
/// **Example**
/// ```
/// use dp_accounting::{Accountant, Delta, GroupAccounting, NeighbouringRelation, NoiseMultiplier, Orders, RdpAccountant, SamplingRate};
/// let mut groups = GroupAccounting::new(2, SamplingRate::new(0.007)?, NoiseMultiplier::new(1.0)?, &[NoiseMultiplier::new(10.0)?]);
/// for step in 0..2_000 {
///     groups.record_step(&[1.0, 0.5 + f64::from(step % 3) / 10.0])?;
/// }
/// let mut epsilons = Vec::new();
/// for group in 0..2 {
///     let accountant = RdpAccountant::new(NeighbouringRelation::AddRemove);
///     let mut accountant = accountant.with_orders(Orders::Fixed(vec![12.0]));
///     groups.compose_into(group, &mut accountant)?;
///     epsilons.push(accountant.epsilon(Delta::new(1e-6)?)?.epsilon);
/// }
/// assert!(epsilons[1].get() < 0.6 * epsilons[0].get());
/// # Ok::<(), dp_accounting::AccountingError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct GroupAccounting {
    sampling_rate: SamplingRate,
    gradient: NoiseMultiplier,
    counts: Vec<NoiseMultiplier>,
    /// For each group, number of steps by rounded multiplier: its exponent of [`ROUNDING_RATIO`].
    steps: Vec<BTreeMap<i64, u64>>,
}

impl GroupAccounting {
    /// Nothing recorded yet, for groups `0..n_groups`.
    pub fn new(
        n_groups: usize,
        sampling_rate: SamplingRate,
        gradient: NoiseMultiplier,
        counts: &[NoiseMultiplier],
    ) -> Self {
        Self { sampling_rate, gradient, counts: counts.to_vec(), steps: vec![BTreeMap::new(); n_groups] }
    }

    /// Records a step with one threshold per group.
    ///
    /// # Errors
    /// [`AccountingError::InvalidParameter`] for another number of thresholds, or one that is not
    /// positive and finite; then nothing was recorded.
    pub fn record_step(&mut self, thresholds: &[f64]) -> Result<(), AccountingError> {
        if thresholds.len() != self.steps.len() {
            return Err(AccountingError::invalid(
                "length of thresholds",
                thresholds.len(),
                format!("the number of groups, {}", self.steps.len()),
            ));
        }
        if let Some(&bad) = thresholds.iter().find(|threshold| !(**threshold > 0.0 && threshold.is_finite())) {
            return Err(AccountingError::invalid("thresholds", bad, "a finite number above 0"));
        }
        let largest = thresholds.iter().copied().fold(0.0, f64::max);
        for (steps, threshold) in self.steps.iter_mut().zip(thresholds) {
            // The largest threshold's ratio is exactly 1 and stays exact; all others are rounded
            // down, towards more cost.
            let exponent = (libm::log(largest / threshold) / libm::log(ROUNDING_RATIO)).floor().min(1e6) as i64;
            *steps.entry(exponent).or_insert(0) += 1;
        }
        Ok(())
    }

    /// Number of groups.
    pub fn n_groups(&self) -> usize {
        self.steps.len()
    }

    /// The group's events with their counts.
    ///
    /// # Errors
    /// [`AccountingError::InvalidParameter`] for a group that does not exist.
    pub fn events(&self, group: usize) -> Result<Vec<(DpEvent, u64)>, AccountingError> {
        let steps = self.steps.get(group).ok_or_else(|| {
            AccountingError::invalid("group", group, format!("below the number of groups, {}", self.steps.len()))
        })?;
        steps
            .iter()
            .map(|(&exponent, &count)| {
                let ratio = libm::exp(exponent as f64 * libm::log(ROUNDING_RATIO));
                let gradient = NoiseMultiplier::new((self.gradient.get() * ratio).min(1e300))?;
                let queries: Vec<_> = std::iter::once(gradient).chain(self.counts.iter().copied()).collect();
                Ok((DpEvent::joint_gaussian(queries).poisson_sampled(self.sampling_rate), count))
            })
            .collect()
    }

    /// Composes the group's events into an accountant.
    ///
    /// # Errors
    /// As [`events`](Self::events) and [`Accountant::compose`].
    pub fn compose_into(&self, group: usize, accountant: &mut impl Accountant) -> Result<(), AccountingError> {
        self.events(group)?.iter().try_for_each(|(event, count)| accountant.compose(event, *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Delta, NeighbouringRelation, RdpAccountant};

    fn epsilon(thresholds: &[f64], group: usize) -> f64 {
        let (rate, sigma) = (SamplingRate::new(0.01).unwrap(), NoiseMultiplier::new(1.0).unwrap());
        let mut groups = GroupAccounting::new(thresholds.len(), rate, sigma, &[]);
        for _ in 0..1_000 {
            groups.record_step(thresholds).unwrap();
        }
        let mut accountant = RdpAccountant::new(NeighbouringRelation::AddRemove);
        groups.compose_into(group, &mut accountant).unwrap();
        accountant.epsilon(Delta::new(1e-5).unwrap()).unwrap().epsilon.get()
    }

    #[test]
    fn equal_thresholds_cost_every_group_the_same_as_plain_dpsgd() {
        let mut plain = RdpAccountant::new(NeighbouringRelation::AddRemove);
        let step =
            DpEvent::gaussian(NoiseMultiplier::new(1.0).unwrap()).poisson_sampled(SamplingRate::new(0.01).unwrap());
        plain.compose(&step, 1_000).unwrap();
        let plain = plain.epsilon(Delta::new(1e-5).unwrap()).unwrap().epsilon.get();
        assert_eq!(epsilon(&[0.3, 0.3], 0), plain);
        assert_eq!(epsilon(&[0.3, 0.3], 1), plain);
    }

    #[test]
    fn half_the_threshold_is_twice_the_noise_rounded_down() {
        let mut doubled = RdpAccountant::new(NeighbouringRelation::AddRemove);
        let step =
            DpEvent::gaussian(NoiseMultiplier::new(2.0).unwrap()).poisson_sampled(SamplingRate::new(0.01).unwrap());
        doubled.compose(&step, 1_000).unwrap();
        let doubled = doubled.epsilon(Delta::new(1e-5).unwrap()).unwrap().epsilon.get();
        let group = epsilon(&[1.0, 0.5], 1);
        assert!(group >= doubled && group < doubled * 1.005, "{group} {doubled}");
    }

    #[test]
    fn bad_thresholds_record_nothing() {
        let (rate, sigma) = (SamplingRate::new(0.01).unwrap(), NoiseMultiplier::new(1.0).unwrap());
        let mut groups = GroupAccounting::new(2, rate, sigma, &[]);
        let untouched = groups.clone();
        insta::assert_snapshot!(groups.record_step(&[1.0]).unwrap_err(), @"length of thresholds = 1: expected the number of groups, 2");
        insta::assert_snapshot!(groups.record_step(&[1.0, 0.0]).unwrap_err(), @"thresholds = 0: expected a finite number above 0");
        assert_eq!(groups, untouched);
    }
}
