//! Events reduced to the mechanisms that can be analysed, with counts; every refusal happens here.

use std::collections::HashMap;

use crate::pair::Pair;
use crate::{AccountingError, DpEvent, NeighbouringRelation, TrialCount};

/// Largest number of compositions of one mechanism: beyond it a count is no longer exact as a
/// float.
const MAX_COUNT: u64 = 1 << 53;

const COUNT_OVERFLOW: AccountingError = AccountingError::CountOverflow { limit: MAX_COUNT };

/// A mechanism with its noise in units of the sensitivity under the relation of the accountant.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Mechanism {
    NonPrivate,
    /// Standard deviation over sensitivity.
    Gaussian {
        sigma: f64,
    },
    /// Poisson sampling with rate `q < 1`.
    SampledGaussian {
        q: f64,
        sigma: f64,
    },
    /// Sampling without replacement of a share `q < 1`, replace-one neighbours; `sigma` is over the
    /// doubled sensitivity.
    FixedSizeGaussian {
        q: f64,
        sigma: f64,
    },
    /// Scale over sensitivity.
    Laplace {
        scale: f64,
    },
    /// Poisson sampling with rate `q < 1`.
    SampledLaplace {
        q: f64,
        scale: f64,
    },
    RandomisedResponse {
        epsilon: f64,
        n_outcomes: u32,
    },
    ZeroConcentrated {
        rho: f64,
    },
    /// A divergence at one order is all that is known.
    RenyiAtOrder {
        order: f64,
        divergence: f64,
    },
    /// Everything is revealed with probability `delta`, else nothing.
    Failing {
        delta: f64,
    },
    /// A record is used in one of these steps, drawn at random.
    RandomAllocation {
        sigma: f64,
        steps: u64,
    },
    /// Known by a dominating pair.
    Pair(Pair),
    /// Each record meets one of them at most.
    OneOf {
        alternatives: Vec<Composition>,
    },
    RepeatAndSelect {
        inner: Composition,
        trials: TrialCount,
    },
}

impl Mechanism {
    /// ε at δ = 0. No lower bound is known of mechanisms of which a curve is all that is known.
    fn pure_epsilon(&self, relation: NeighbouringRelation) -> Interval {
        let around = |value: f64| Interval::around(value, 8.0 * f64::EPSILON);
        match *self {
            Self::Gaussian { sigma } if sigma == f64::INFINITY => Interval::exactly(0.0),
            // Whoever is absent may have been left out of the batch: the ratio is at least 1 - q.
            Self::SampledGaussian { q, .. } if relation == NeighbouringRelation::Add => around(-libm::log1p(-q)),
            Self::SampledLaplace { q, scale } if relation == NeighbouringRelation::Add => {
                around(-libm::log1p(q * libm::expm1(-scale.recip())))
            }
            Self::Pair(ref pair) if relation == NeighbouringRelation::Remove => around(pair.largest_losses()[0]),
            Self::Pair(ref pair) if relation == NeighbouringRelation::Add => around(pair.largest_losses()[1]),
            Self::NonPrivate
            | Self::Failing { .. }
            | Self::Gaussian { .. }
            | Self::SampledGaussian { .. }
            | Self::RandomAllocation { .. }
            | Self::FixedSizeGaussian { .. } => Interval::exactly(f64::INFINITY),
            Self::Laplace { scale } => around(scale.recip()),
            Self::SampledLaplace { q, scale } => around(if scale.recip() < 700.0 {
                libm::log1p(q * libm::expm1(scale.recip()))
            } else {
                scale.recip() + libm::log(q)
            }),
            Self::RandomisedResponse { epsilon, .. } => Interval::exactly(epsilon),
            Self::ZeroConcentrated { rho: known } | Self::RenyiAtOrder { divergence: known, .. } => {
                Interval { lower: 0.0, upper: if known > 0.0 { f64::INFINITY } else { 0.0 } }
            }
            Self::Pair(ref pair) => around(pair.pure_epsilon()),
            Self::OneOf { ref alternatives } => {
                alternatives.iter().map(Composition::pure_epsilon).fold(Interval::exactly(0.0), |a, b| Interval {
                    lower: a.lower.max(b.lower),
                    upper: a.upper.max(b.upper),
                })
            }
            Self::RepeatAndSelect { ref inner, trials } => {
                Interval { lower: 0.0, upper: trials.pure_epsilon(inner.pure_epsilon().upper) }
            }
        }
    }
}

/// Two bounds on one number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Interval {
    pub(crate) lower: f64,
    pub(crate) upper: f64,
}

impl Interval {
    pub(crate) const fn exactly(value: f64) -> Self {
        Self { lower: value, upper: value }
    }

    /// A value that is at least 0, with a relative error.
    pub(crate) fn around(value: f64, error: f64) -> Self {
        Self { lower: value * (1.0 - error), upper: value * (1.0 + error) }
    }
}

/// Mechanisms with counts, in order of first appearance; equal ones are counted together.
#[derive(Clone)]
pub(crate) struct Composition {
    relation: NeighbouringRelation,
    parts: Vec<(Mechanism, u64)>,
    /// Where in `parts` mechanisms of a digest are, so that long lists take linear time. It follows
    /// from `parts`.
    positions: HashMap<u64, Vec<usize>>,
}

impl PartialEq for Composition {
    fn eq(&self, other: &Self) -> bool {
        self.relation == other.relation && self.parts == other.parts
    }
}

impl std::fmt::Debug for Composition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Composition")
            .field("relation", &self.relation)
            .field("parts", &self.parts)
            .finish_non_exhaustive()
    }
}

impl Composition {
    pub(crate) fn new(relation: NeighbouringRelation) -> Self {
        Self { relation, parts: Vec::new(), positions: HashMap::new() }
    }

    pub(crate) const fn relation(&self) -> NeighbouringRelation {
        self.relation
    }

    /// The same with the two neighbours exchanged.
    pub(crate) fn exchanged(&self) -> Self {
        Self { relation: self.relation.exchanged(), ..self.clone() }
    }

    pub(crate) fn parts(&self) -> &[(Mechanism, u64)] {
        &self.parts
    }

    /// The parts in an order that does not depend on the order in which they were composed, so that
    /// sums over them do not, either.
    pub(crate) fn sorted_parts(&self) -> Vec<&(Mechanism, u64)> {
        let mut parts: Vec<_> = self.parts.iter().collect();
        if parts.len() > 1 {
            parts.sort_by_cached_key(|(mechanism, _)| format!("{mechanism:?}"));
        }
        parts
    }

    pub(crate) fn is_non_private(&self) -> bool {
        self.parts.iter().any(|(mechanism, _)| *mechanism == Mechanism::NonPrivate)
    }

    /// The composition without the mechanisms that may fail altogether, and the logarithm of the
    /// probability that none of them fails.
    pub(crate) fn without_failures(&self) -> (Self, f64) {
        let mut rest = Self::new(self.relation);
        let mut log_survival = 0.0;
        for (mechanism, count) in &self.parts {
            match mechanism {
                Mechanism::Failing { delta } => log_survival += *count as f64 * libm::log1p(-delta),
                other => rest.append(digest(other), other.clone(), *count),
            }
        }
        (rest, log_survival)
    }

    /// ε at δ = 0: the sum of the largest losses.
    pub(crate) fn pure_epsilon(&self) -> Interval {
        self.parts.iter().fold(Interval::exactly(0.0), |sum, (mechanism, count)| {
            let one = mechanism.pure_epsilon(self.relation);
            let count = *count as f64;
            Interval {
                lower: (sum.lower + count * one.lower) * (1.0 - 4.0 * f64::EPSILON),
                upper: (sum.upper + count * one.upper) * (1.0 + 4.0 * f64::EPSILON),
            }
        })
    }

    /// Adds `count` times an event; on an error nothing is added.
    pub(crate) fn add(&mut self, event: &DpEvent, count: u64) -> Result<(), AccountingError> {
        event.check_levels()?;
        let mut addition = Self::new(self.relation);
        addition.add_event(event, count)?;
        self.merge(addition)
    }

    /// Adds all parts of another composition; on an error nothing is added.
    pub(crate) fn merge(&mut self, other: Self) -> Result<(), AccountingError> {
        if other.relation != self.relation {
            return Err(AccountingError::RelationMismatch { left: self.relation, right: other.relation });
        }
        let count_of =
            |mechanism: &Mechanism| self.position_of(digest(mechanism), mechanism).map_or(0, |i| self.parts[i].1);
        if other.parts.iter().any(|(mechanism, n)| count_of(mechanism).saturating_add(*n) > MAX_COUNT) {
            return Err(COUNT_OVERFLOW);
        }
        other.parts.into_iter().try_for_each(|(mechanism, n)| self.push(mechanism, n))
    }

    fn add_event(&mut self, event: &DpEvent, count: u64) -> Result<(), AccountingError> {
        match event {
            DpEvent::Composed(events) => {
                // An empty composition or a zero count releases nothing, but its contents must
                // still be sound.
                events.iter().try_for_each(|event| self.add_event(event, count))
            }
            DpEvent::SelfComposed { event, count: inner } => {
                let total = inner.checked_mul(count).ok_or(COUNT_OVERFLOW)?;
                self.add_event(event, total)
            }
            DpEvent::EpsilonDelta { epsilon, delta } => {
                // The worst (ε, δ) mechanism is a failure with probability δ beside a response that
                // is private with ε (Kairouz, Oh & Viswanath 2015, Theorem 3.3).
                if delta.get() >= 1.0 || !epsilon.is_finite() {
                    return self.push(Mechanism::NonPrivate, count);
                }
                if epsilon.get() > 0.0 {
                    self.push(Mechanism::RandomisedResponse { epsilon: epsilon.get(), n_outcomes: 2 }, count)?;
                }
                if delta.get() > 0.0 { self.push(Mechanism::Failing { delta: delta.get() }, count) } else { Ok(()) }
            }
            DpEvent::OneOf(events) => self.add_one_of(events, count),
            DpEvent::RandomAllocation { noise_multiplier, steps, participations } => {
                if *participations == 0 || participations > steps {
                    return Err(AccountingError::invalid(
                        "participations",
                        participations,
                        "at least 1 and at most the number of steps",
                    ));
                }
                if self.relation == NeighbouringRelation::ReplaceOne {
                    return Err(self.refuse(event, "random allocation is analysed under add-remove and zero-out"));
                }
                // k of t steps cost no more than one of ⌊t/k⌋, k times (Feldman & Shenfeld 2025,
                // Lemma 3.2).
                let (sigma, steps) = (noise_multiplier.get(), steps / participations);
                let one = if steps == 1 {
                    Mechanism::Gaussian { sigma }
                } else {
                    Mechanism::RandomAllocation { sigma, steps }
                };
                self.push(one, participations.checked_mul(count).ok_or(COUNT_OVERFLOW)?)
            }
            DpEvent::BandedMatrixFactorisation(banded) => {
                let event = banded.event_of_one_round();
                self.add_event(&event, banded.rounds().checked_mul(count).ok_or(COUNT_OVERFLOW)?)
            }
            _ => {
                let mechanism = self.reduce(event)?;
                self.push(mechanism, count)
            }
        }
    }

    /// Reduces alternatives to the one that dominates all others, if there is one.
    fn add_one_of(&mut self, events: &[DpEvent], count: u64) -> Result<(), AccountingError> {
        if events.is_empty() {
            return Err(AccountingError::invalid("length of one-of", 0, "at least 1"));
        }
        let alternative = |event| {
            let mut composition = Self::new(self.relation);
            composition.add_event(event, 1)?;
            Ok(composition)
        };
        let alternatives = events.iter().map(alternative).collect::<Result<Vec<_>, AccountingError>>()?;
        if alternatives.iter().any(Self::is_non_private) {
            return self.push(Mechanism::NonPrivate, count);
        }
        match alternatives.iter().find(|one| alternatives.iter().all(|other| one.dominates(other))) {
            Some(worst) => worst.parts.iter().try_for_each(|(mechanism, n)| {
                self.push(mechanism.clone(), n.checked_mul(count).ok_or(COUNT_OVERFLOW)?)
            }),
            None => self.push(Mechanism::OneOf { alternatives }, count),
        }
    }

    /// Orders at which alone something is known of a mechanism: where a search over orders must look.
    pub(crate) fn known_orders(&self) -> Vec<f64> {
        let of_part = |(mechanism, _): &(Mechanism, u64)| match mechanism {
            Mechanism::RenyiAtOrder { order, .. } => vec![*order],
            Mechanism::OneOf { alternatives } => alternatives.iter().flat_map(Self::known_orders).collect(),
            _ => Vec::new(),
        };
        self.parts.iter().flat_map(of_part).collect()
    }

    /// One composition for each of the alternatives that a record may meet, with everything else, where
    /// alternatives are met once. `None` without alternatives, and where a record meets some several
    /// times, each time perhaps another one.
    pub(crate) fn choices(&self) -> Option<Vec<Self>> {
        let mut others = Self::new(self.relation);
        let mut found: Option<&[Self]> = None;
        for (mechanism, count) in &self.parts {
            match mechanism {
                Mechanism::OneOf { alternatives } if *count == 1 && found.is_none() => found = Some(alternatives),
                Mechanism::OneOf { .. } => return None,
                other => others.push(other.clone(), *count).ok()?,
            }
        }
        let mut choices = Vec::new();
        for alternative in found? {
            for inner in alternative.choices().unwrap_or_else(|| vec![alternative.clone()]) {
                choices.push(others.clone().with_parts(&inner).ok()?);
            }
        }
        Some(choices)
    }

    fn with_parts(mut self, other: &Self) -> Result<Self, AccountingError> {
        other.parts.iter().try_for_each(|(mechanism, n)| self.push(mechanism.clone(), *n))?;
        Ok(self)
    }

    /// Whether this composition dominates another, as far as that follows from parts alone: less
    /// noise, a larger rate or more repetitions of the same kind never hide more.
    fn dominates(&self, other: &Self) -> bool {
        let precision = |of: &Self| -> f64 {
            let one = |(mechanism, n): &(Mechanism, u64)| match mechanism {
                Mechanism::Gaussian { sigma } => *n as f64 / (sigma * sigma),
                _ => 0.0,
            };
            of.parts.iter().map(one).sum()
        };
        if precision(self) < precision(other) {
            return false;
        }
        let mut left: Vec<(&Mechanism, u64)> = self.parts.iter().map(|(mechanism, n)| (mechanism, *n)).collect();
        other.parts.iter().filter(|(mechanism, _)| !matches!(mechanism, Mechanism::Gaussian { .. })).all(
            |(theirs, n)| {
                let is_worse = |ours: &Mechanism| match (ours, theirs) {
                    (Mechanism::SampledGaussian { q, sigma }, Mechanism::SampledGaussian { q: rate, sigma: noise }) => {
                        q >= rate && sigma <= noise
                    }
                    _ => ours == theirs,
                };
                left.iter_mut().find(|(ours, m)| is_worse(ours) && m >= n).map(|(_, m)| *m -= n).is_some()
            },
        )
    }

    fn push(&mut self, mechanism: Mechanism, count: u64) -> Result<(), AccountingError> {
        if count == 0 {
            return Ok(());
        }
        // Gaussians compose exactly: μ² = Σ 1/σ². Kept by count as well, so that they still compare
        // as equal.
        let digest = digest(&mechanism);
        let known = self.position_of(digest, &mechanism);
        let total = known.map_or(0, |i| self.parts[i].1).checked_add(count).filter(|n| *n <= MAX_COUNT);
        let total = total.ok_or(COUNT_OVERFLOW)?;
        match known {
            Some(i) => self.parts[i].1 = total,
            None => self.append(digest, mechanism, total),
        }
        Ok(())
    }

    /// Where a mechanism is among the parts.
    fn position_of(&self, digest: u64, mechanism: &Mechanism) -> Option<usize> {
        self.positions.get(&digest)?.iter().copied().find(|&i| self.parts[i].0 == *mechanism)
    }

    /// A mechanism that is not among the parts yet.
    fn append(&mut self, digest: u64, mechanism: Mechanism, count: u64) {
        self.positions.entry(digest).or_default().push(self.parts.len());
        self.parts.push((mechanism, count));
    }

    fn reduce(&self, event: &DpEvent) -> Result<Mechanism, AccountingError> {
        let contributions = self.relation.contributions();
        Ok(match event {
            DpEvent::NonPrivate => Mechanism::NonPrivate,
            DpEvent::Gaussian { .. } | DpEvent::JointGaussian { .. } => {
                Mechanism::Gaussian { sigma: joint_noise_multiplier(event)?.unwrap_or(f64::INFINITY) / contributions }
            }
            DpEvent::Laplace { noise_multiplier } => {
                Mechanism::Laplace { scale: noise_multiplier.get() / contributions }
            }
            DpEvent::RandomisedResponse { epsilon, n_outcomes } => {
                if self.relation != NeighbouringRelation::ReplaceOne {
                    return Err(self.refuse(event, "a local report only hides its value; use replace-one"));
                }
                Mechanism::RandomisedResponse { epsilon: epsilon.get(), n_outcomes: n_outcomes.get() }
            }
            DpEvent::ZeroConcentrated { rho } => Mechanism::ZeroConcentrated { rho: rho.get() },
            DpEvent::RenyiAtOrder { order, divergence } => {
                Mechanism::RenyiAtOrder { order: order.get(), divergence: divergence.get() }
            }
            DpEvent::MixtureOfGaussians(_)
            | DpEvent::DiscreteLaplace { .. }
            | DpEvent::DiscreteGaussian { .. }
            | DpEvent::TruncatedPoissonGaussian { .. } => return self.reduce_to_pair(event),
            DpEvent::TreeAggregation(tree) => {
                Mechanism::Gaussian { sigma: tree.noise_over_one_record() / contributions }
            }
            DpEvent::PoissonSampled { sampling_rate, event: inner } => {
                let q = sampling_rate.get();
                if q >= 1.0 {
                    return self.reduce_sampled_everything(inner);
                }
                if self.relation == NeighbouringRelation::ReplaceOne {
                    return match joint_noise_multiplier(inner)? {
                        Some(sigma) => Ok(Mechanism::Pair(Pair::replaced_in_poisson_batch(q, sigma))),
                        None if **inner == DpEvent::NonPrivate => Ok(Mechanism::NonPrivate),
                        None => Err(self.refuse(
                            event,
                            "under replace-one, a Poisson batch can be used by Gaussian queries (jointly)",
                        )),
                    };
                }
                if let DpEvent::DiscreteGaussian { sigma, sensitivity } = inner.as_ref() {
                    return self.discrete_gaussian(sigma.get(), *sensitivity, q);
                }
                if matches!(**inner, DpEvent::DiscreteLaplace { .. })
                    && let Mechanism::Pair(pair) = self.reduce(inner)?
                {
                    return Ok(pair.poisson_sampled(q).map_or(Mechanism::NonPrivate, Mechanism::Pair));
                }
                if let Some(sigma) = joint_noise_multiplier(inner)? {
                    Mechanism::SampledGaussian { q, sigma }
                } else if let DpEvent::Laplace { noise_multiplier } = inner.as_ref() {
                    Mechanism::SampledLaplace { q, scale: noise_multiplier.get() }
                } else if **inner == DpEvent::NonPrivate {
                    Mechanism::NonPrivate
                } else {
                    return Err(self.refuse(
                        event,
                        "a Poisson batch can be used by Gaussian queries (jointly), or by one Laplace or discrete query",
                    ));
                }
            }
            DpEvent::FixedSizeSampled { event: inner, .. } => {
                let q = event.fixed_size_rate()?.get();
                if q >= 1.0 {
                    return self.reduce_sampled_everything(inner);
                }
                if self.relation != NeighbouringRelation::ReplaceOne {
                    return Err(self.refuse(
                        event,
                        "sampling of fixed size is analysed under replace-one, Poisson sampling under add-remove and zero-out",
                    ));
                }
                if let Some(sigma) = joint_noise_multiplier(inner)? {
                    Mechanism::FixedSizeGaussian { q, sigma: sigma / contributions }
                } else if **inner == DpEvent::NonPrivate {
                    Mechanism::NonPrivate
                } else {
                    return Err(self.refuse(event, "a batch of fixed size can be used by Gaussian queries (jointly)"));
                }
            }
            DpEvent::RepeatAndSelect { event: inner, trials } => {
                let mut composition = Self::new(self.relation);
                composition.add_event(inner, 1)?;
                if composition.is_non_private() {
                    Mechanism::NonPrivate
                } else {
                    Mechanism::RepeatAndSelect { inner: composition, trials: *trials }
                }
            }
            DpEvent::Composed(_)
            | DpEvent::SelfComposed { .. }
            | DpEvent::EpsilonDelta { .. }
            | DpEvent::RandomAllocation { .. }
            | DpEvent::OneOf(_)
            | DpEvent::BandedMatrixFactorisation(_) => {
                return Err(self.refuse(event, "compose the parts one by one"));
            }
        })
    }

    /// Events that are known by a dominating pair.
    fn reduce_to_pair(&self, event: &DpEvent) -> Result<Mechanism, AccountingError> {
        Ok(match event {
            DpEvent::MixtureOfGaussians(mixture) => {
                let new = match self.relation {
                    NeighbouringRelation::ReplaceOne => Pair::replaced_mixture,
                    _ => Pair::mixture_of_gaussians,
                };
                Mechanism::Pair(new(mixture.noise_multiplier().get(), mixture.amounts(), mixture.probabilities()))
            }
            DpEvent::DiscreteLaplace { scale, sensitivity } => {
                Mechanism::Pair(Pair::discrete_laplace(scale.get(), self.integer_sensitivity(*sensitivity)?)?)
            }
            DpEvent::DiscreteGaussian { sigma, sensitivity } => {
                self.discrete_gaussian(sigma.get(), *sensitivity, 1.0)?
            }
            DpEvent::TruncatedPoissonGaussian { noise_multiplier, sampling_rate, n_records, max_batch_size } => {
                if *max_batch_size == 0 || *n_records == 0 {
                    let parameter = if *n_records == 0 { "n_records" } else { "max_batch_size" };
                    return Err(AccountingError::invalid(parameter, 0, "at least 1"));
                }
                let (q, sigma) = (sampling_rate.get(), noise_multiplier.get());
                Mechanism::Pair(Pair::truncated_poisson(q, sigma, *n_records, *max_batch_size, self.relation))
            }
            _ => return Err(self.refuse(event, "it has no dominating pair")),
        })
    }

    /// Discrete Gaussian noise on Poisson batches; of more outcomes than can be listed, only that
    /// they are as concentrated as continuous noise is without sampling (Canonne, Kamath & Steinke
    /// 2020, Theorem 4).
    fn discrete_gaussian(&self, sigma: f64, sensitivity: u32, q: f64) -> Result<Mechanism, AccountingError> {
        let sensitivity = self.integer_sensitivity(sensitivity)?;
        let ratio = f64::from(sensitivity) / sigma;
        let rho = 0.5 * ratio * ratio * (1.0 + 4.0 * f64::EPSILON);
        Ok(Pair::discrete_gaussian(sigma, sensitivity, q).map_or(Mechanism::ZeroConcentrated { rho }, Mechanism::Pair))
    }

    /// A batch that is always the whole data set is no sampling at all.
    fn reduce_sampled_everything(&self, inner: &DpEvent) -> Result<Mechanism, AccountingError> {
        match joint_noise_multiplier(inner)? {
            Some(sigma) => Ok(Mechanism::Gaussian { sigma: sigma / self.relation.contributions() }),
            None => self.reduce(inner),
        }
    }

    /// A sum of integers changes by a whole number.
    fn integer_sensitivity(&self, sensitivity: u32) -> Result<u32, AccountingError> {
        let times = if self.relation == NeighbouringRelation::ReplaceOne { 2 } else { 1 };
        sensitivity.checked_mul(times).filter(|total| *total > 0).ok_or_else(|| {
            let expected = "at least 1 and at most 2^32 - 1, 2^31 - 1 where a record is replaced";
            AccountingError::invalid("sensitivity", sensitivity, expected)
        })
    }

    fn refuse(&self, event: &DpEvent, possible: &'static str) -> AccountingError {
        AccountingError::NoSoundAnalysis { event: event.to_string(), relation: self.relation, possible }
    }
}

/// Equal for equal mechanisms.
fn digest(mechanism: &Mechanism) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    std::mem::discriminant(mechanism).hash(&mut hasher);
    let numbers = match *mechanism {
        Mechanism::Gaussian { sigma: a }
        | Mechanism::Laplace { scale: a }
        | Mechanism::ZeroConcentrated { rho: a }
        | Mechanism::Failing { delta: a } => [a, 0.0],
        Mechanism::SampledGaussian { q, sigma: a } | Mechanism::FixedSizeGaussian { q, sigma: a } => [q, a],
        Mechanism::SampledLaplace { q, scale } => [q, scale],
        Mechanism::RenyiAtOrder { order, divergence } => [order, divergence],
        Mechanism::RandomisedResponse { epsilon, n_outcomes } => [epsilon, f64::from(n_outcomes)],
        Mechanism::RandomAllocation { sigma, steps } => [sigma, steps as f64],
        Mechanism::Pair(ref pair) => pair.numbers(),
        // Few, and compared one by one.
        Mechanism::NonPrivate | Mechanism::OneOf { .. } | Mechanism::RepeatAndSelect { .. } => [0.0; 2],
    };
    // A zero may have a sign.
    numbers.map(|number| (number + 0.0).to_bits()).hash(&mut hasher);
    hasher.finish()
}

/// `(Σ σ_i⁻²)^(-1/2)` of an event made only of Gaussian queries on the same records, else `None`;
/// right to 4 ulp.
fn joint_noise_multiplier(event: &DpEvent) -> Result<Option<f64>, AccountingError> {
    let mut precisions = Vec::new();
    Ok(match (collect_precisions(event, 1.0, &mut precisions)?, &precisions[..]) {
        (false, _) => None,
        // One query is itself, to the last bit.
        (true, [(sigma, 1.0)]) => Some(*sigma),
        (true, _) => Some(root_of_precisions(&precisions).recip()),
    })
}

/// `√(Σ n/σ²)` of pairs `(σ, n)`, right to 3 ulp however many there are: in units of the smallest
/// σ, summed with compensation.
pub(crate) fn root_of_precisions(parts: &[(f64, f64)]) -> f64 {
    let unit = parts.iter().map(|(sigma, _)| *sigma).fold(f64::INFINITY, f64::min);
    let (mut sum, mut compensation) = (0.0_f64, 0.0);
    for (sigma, count) in parts {
        let ratio = unit / sigma;
        let term = count * (ratio * ratio);
        let total = sum + term;
        compensation += if sum >= term { (sum - total) + term } else { (term - total) + sum };
        sum = total;
    }
    (sum + compensation).sqrt() / unit
}

/// Appends `(σ, n)` for every query; false where something else is among them.
fn collect_precisions(event: &DpEvent, count: f64, into: &mut Vec<(f64, f64)>) -> Result<bool, AccountingError> {
    match event {
        DpEvent::Gaussian { noise_multiplier } => into.push((noise_multiplier.get(), count)),
        DpEvent::JointGaussian { noise_multipliers } => {
            if noise_multipliers.is_empty() {
                return Err(AccountingError::invalid("length of noise_multipliers", 0, "at least 1"));
            }
            into.extend(noise_multipliers.iter().map(|sigma| (sigma.get(), count)));
        }
        DpEvent::Composed(events) if !events.is_empty() => {
            let mut all = true;
            for event in events {
                all &= collect_precisions(event, count, into)?;
            }
            return Ok(all);
        }
        DpEvent::SelfComposed { event, count: inner } if *inner > 0 => {
            return collect_precisions(event, count * *inner as f64, into);
        }
        _ => return Ok(false),
    }
    Ok(true)
}
