//! Events reduced to the mechanisms that can be analysed, with counts; every refusal happens here.

use crate::{AccountingError, DpEvent, NeighbouringRelation, TrialCount};

/// Largest number of compositions of one mechanism: beyond it a count is no longer exact as a float.
const MAX_COUNT: u64 = 1 << 53;

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
    /// Sampling without replacement of a share `q < 1`, replace-one neighbours; `sigma` is over the doubled sensitivity.
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
    /// Each record meets one of them at most.
    OneOf {
        alternatives: Vec<Composition>,
    },
    RepeatAndSelect {
        inner: Composition,
        trials: TrialCount,
    },
}

/// Mechanisms with counts, in order of first appearance; equal ones are counted together.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Composition {
    relation: NeighbouringRelation,
    parts: Vec<(Mechanism, u64)>,
}

impl Composition {
    pub(crate) const fn new(relation: NeighbouringRelation) -> Self {
        Self { relation, parts: Vec::new() }
    }

    pub(crate) const fn relation(&self) -> NeighbouringRelation {
        self.relation
    }

    pub(crate) fn parts(&self) -> &[(Mechanism, u64)] {
        &self.parts
    }

    pub(crate) fn is_non_private(&self) -> bool {
        self.parts.iter().any(|(mechanism, _)| *mechanism == Mechanism::NonPrivate)
    }

    /// Adds `count` times an event; on an error nothing is added.
    pub(crate) fn add(&mut self, event: &DpEvent, count: u64) -> Result<(), AccountingError> {
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
            |mechanism: &Mechanism| self.parts.iter().find(|(known, _)| known == mechanism).map_or(0, |(_, n)| *n);
        if other.parts.iter().any(|(mechanism, n)| count_of(mechanism).saturating_add(*n) > MAX_COUNT) {
            return Err(AccountingError::CountOverflow { limit: MAX_COUNT });
        }
        other.parts.into_iter().try_for_each(|(mechanism, n)| self.push(mechanism, n))
    }

    fn add_event(&mut self, event: &DpEvent, count: u64) -> Result<(), AccountingError> {
        match event {
            DpEvent::Composed(events) => {
                // An empty composition or a zero count releases nothing, but its contents must still be sound.
                events.iter().try_for_each(|event| self.add_event(event, count))
            }
            DpEvent::SelfComposed { event, count: inner } => {
                let total = inner.checked_mul(count).ok_or(AccountingError::CountOverflow { limit: MAX_COUNT })?;
                self.add_event(event, total)
            }
            _ => {
                let mechanism = self.reduce(event)?;
                self.push(mechanism, count)
            }
        }
    }

    fn push(&mut self, mechanism: Mechanism, count: u64) -> Result<(), AccountingError> {
        if count == 0 {
            return Ok(());
        }
        // Gaussians compose exactly: μ² = Σ 1/σ². Kept by count as well, so that they still compare as equal.
        let known = self.parts.iter_mut().find(|(known, _)| *known == mechanism);
        let total = known.as_ref().map_or(0, |(_, n)| *n).checked_add(count).filter(|n| *n <= MAX_COUNT);
        let total = total.ok_or(AccountingError::CountOverflow { limit: MAX_COUNT })?;
        match known {
            Some((_, n)) => *n = total,
            None => self.parts.push((mechanism, total)),
        }
        Ok(())
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
            DpEvent::PoissonSampled { sampling_rate, event: inner } => {
                let q = sampling_rate.get();
                if q >= 1.0 {
                    return self.reduce_sampled_everything(inner);
                }
                if self.relation == NeighbouringRelation::ReplaceOne {
                    return Err(self.refuse(
                        event,
                        "Poisson sampling is analysed under add-remove and zero-out, sampling of fixed size under replace-one",
                    ));
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
                        "a Poisson batch can be used by Gaussian queries (jointly) or by one Laplace query",
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
            DpEvent::OneOf(events) => {
                if events.is_empty() {
                    return Err(AccountingError::OutOfRange {
                        parameter: "number of alternatives",
                        value: 0.0,
                        accepted: "at least 1",
                    });
                }
                let alternative = |event| {
                    let mut composition = Self::new(self.relation);
                    composition.add_event(event, 1)?;
                    Ok(composition)
                };
                let alternatives = events.iter().map(alternative).collect::<Result<Vec<_>, AccountingError>>()?;
                if alternatives.iter().any(Self::is_non_private) {
                    Mechanism::NonPrivate
                } else {
                    Mechanism::OneOf { alternatives }
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
            DpEvent::Composed(_) | DpEvent::SelfComposed { .. } => {
                return Err(self.refuse(event, "compose the parts one by one"));
            }
        })
    }

    /// A batch that is always the whole data set is no sampling at all.
    fn reduce_sampled_everything(&self, inner: &DpEvent) -> Result<Mechanism, AccountingError> {
        match joint_noise_multiplier(inner)? {
            Some(sigma) => Ok(Mechanism::Gaussian { sigma: sigma / self.relation.contributions() }),
            None => self.reduce(inner),
        }
    }

    fn refuse(&self, event: &DpEvent, possible: &'static str) -> AccountingError {
        AccountingError::NoSoundAnalysis { event: event.to_string(), relation: self.relation, possible }
    }
}

/// `(Σ σ_i⁻²)^(-1/2)` of an event made only of Gaussian queries on the same records, else `None`.
fn joint_noise_multiplier(event: &DpEvent) -> Result<Option<f64>, AccountingError> {
    Ok(sum_of_precisions(event)?.map(|precision| precision.sqrt().recip()))
}

fn sum_of_precisions(event: &DpEvent) -> Result<Option<f64>, AccountingError> {
    let precision = |sigma: f64| (sigma * sigma).recip();
    Ok(match event {
        DpEvent::Gaussian { noise_multiplier } => Some(precision(noise_multiplier.get())),
        DpEvent::JointGaussian { noise_multipliers } => {
            if noise_multipliers.is_empty() {
                return Err(AccountingError::OutOfRange {
                    parameter: "number of joint Gaussian queries",
                    value: 0.0,
                    accepted: "at least 1",
                });
            }
            Some(noise_multipliers.iter().map(|sigma| precision(sigma.get())).sum())
        }
        DpEvent::Composed(events) if !events.is_empty() => {
            let mut total = Some(0.0);
            for event in events {
                total = total.zip(sum_of_precisions(event)?).map(|(a, b)| a + b);
            }
            total
        }
        DpEvent::SelfComposed { event, count } if *count > 0 => {
            sum_of_precisions(event)?.map(|precision| precision * *count as f64)
        }
        _ => None,
    })
}
