//! Releases as plain data. Events describe mechanisms; accountants analyse them.

use serde::{Deserialize, Serialize};

use crate::{
    AccountingError, BandedMatrixFactorisation, Delta, Divergence, Epsilon, MixtureOfGaussians, NoiseMultiplier,
    OutcomeCount, PositiveEpsilon, RenyiOrder, Rho, SamplingRate, TreeAggregation, TrialCount, nesting,
};

/// One privacy-relevant thing that a program did, or a composition of such things.
///
/// **Units.** Noise multipliers divide the noise scale by the bound on one record's contribution,
/// see [`NeighbouringRelation`](crate::NeighbouringRelation).
///
/// **Edge cases.** Events may be nested 64 levels deep. Accountants, ledgers and serialisation refuse
/// more, and texts show less.
///
/// **Example**
/// ```
/// use dp_accounting::{DpEvent, NoiseMultiplier, SamplingRate};
/// let step = DpEvent::gaussian(NoiseMultiplier::new(1.0)?).poisson_sampled(SamplingRate::new(0.01)?);
/// assert_eq!(step.to_string(), "Poisson-sampled (rate 0.01) Gaussian (noise multiplier 1)");
/// # Ok::<(), dp_accounting::AccountingError>(())
/// ```
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum DpEvent {
    /// Something without any guarantee: every accountant answers ε = ∞.
    NonPrivate,
    /// A sum released with Gaussian noise.
    Gaussian {
        /// Standard deviation over the bound on one record's contribution.
        noise_multiplier: NoiseMultiplier,
    },
    /// A scalar sum released with Laplace noise.
    Laplace {
        /// Scale over the bound on one record's contribution.
        noise_multiplier: NoiseMultiplier,
    },
    /// Several Gaussian queries on one and the same batch, for example a gradient and counts.
    ///
    /// Together they are one Gaussian query with noise multiplier `(Σ σ_i⁻²)^(-1/2)`. Sampled, they
    /// must be sampled together: two separately sampled events are a different, more expensive
    /// thing.
    JointGaussian {
        /// One noise multiplier per query; at least one.
        noise_multipliers: Vec<NoiseMultiplier>,
    },
    /// Each record reports its value, or another one, out of `n_outcomes`, with likelihood ratio
    /// `e^epsilon`.
    RandomisedResponse {
        /// Pure ε of one report.
        epsilon: PositiveEpsilon,
        /// Number of possible values, at least 2.
        n_outcomes: OutcomeCount,
    },
    /// Anything for which only zero-concentrated differential privacy is known.
    ZeroConcentrated {
        /// ρ ≥ 0: the Rényi divergence of order α is at most `ρ·α`.
        rho: Rho,
    },
    /// Anything for which only a bound on the Rényi divergence of one order is known, in both directions
    /// of the accountant's relation and whatever was released before.
    ///
    /// It is the event of a step whose parameters follow from earlier releases: bounds at one order, fixed
    /// beforehand, add up although each mechanism is chosen after the earlier answers (Mironov 2017,
    /// Proposition 1).
    RenyiAtOrder {
        /// α > 1.
        order: RenyiOrder,
        /// The divergence of order α, and so of every smaller order, is at most this.
        divergence: Divergence,
    },
    /// Anything for which only (ε, δ)-differential privacy is known.
    ///
    /// PLD composes these optimally (Kairouz, Oh & Viswanath 2015), which advanced composition
    /// bounds.
    EpsilonDelta {
        /// ε ≥ 0.
        epsilon: Epsilon,
        /// δ in [0, 1].
        delta: Delta,
    },
    /// Training with noise from a banded strategy matrix.
    BandedMatrixFactorisation(BandedMatrixFactorisation),
    /// Noisy sums over the nodes of a binary tree of steps.
    TreeAggregation(TreeAggregation),
    /// A sum to which a record adds one of several amounts, drawn with public probabilities, with
    /// Gaussian noise.
    MixtureOfGaussians(MixtureOfGaussians),
    /// A scalar sum of integers released with noise on the integers, `P(x) ∝ e^(-|x|/scale)`.
    DiscreteLaplace {
        /// Scale of the noise, in the units of the sum.
        scale: NoiseMultiplier,
        /// Bound on one record's contribution.
        sensitivity: u32,
    },
    /// A scalar sum of integers released with noise on the integers, `P(x) ∝ e^(-x²/2σ²)`.
    DiscreteGaussian {
        /// σ, in the units of the sum: a little more than the noise's standard deviation.
        sigma: NoiseMultiplier,
        /// Bound on one record's contribution.
        sensitivity: u32,
    },
    /// A sum with Gaussian noise over a Poisson batch that is cut to a physical size at random.
    TruncatedPoissonGaussian {
        /// Standard deviation over the bound on one record's contribution.
        noise_multiplier: NoiseMultiplier,
        /// Probability of entering the batch before it is cut.
        sampling_rate: SamplingRate,
        /// Records in the larger of two neighbouring data sets.
        n_records: u64,
        /// Largest batch that is processed.
        max_batch_size: u64,
    },
    /// A run of steps, each a sum with Gaussian noise, in which every record is used in some of the
    /// steps drawn at random: random allocation; with one participation, balls and bins.
    RandomAllocation {
        /// Standard deviation of one step's noise over the bound on one record's contribution.
        noise_multiplier: NoiseMultiplier,
        /// Steps of the run.
        steps: u64,
        /// In how many of them a record is used.
        participations: u64,
    },
    /// The inner event on a batch that each record enters independently.
    PoissonSampled {
        /// Probability of entering.
        sampling_rate: SamplingRate,
        /// The mechanism on the batch.
        #[serde(serialize_with = "nesting::serialize_part")]
        event: Box<DpEvent>,
    },
    /// The inner event on a uniformly random subset of fixed size, drawn without replacement.
    FixedSizeSampled {
        /// Records in the data set.
        n_records: u64,
        /// Records in the batch, at most `n_records`.
        sample_size: u64,
        /// The mechanism on the batch.
        #[serde(serialize_with = "nesting::serialize_part")]
        event: Box<DpEvent>,
    },
    /// Several events, possibly chosen adaptively.
    Composed(#[serde(serialize_with = "nesting::serialize_parts")] Vec<DpEvent>),
    /// The same event several times.
    SelfComposed {
        /// The event.
        #[serde(serialize_with = "nesting::serialize_part")]
        event: Box<DpEvent>,
        /// How many times.
        count: u64,
    },
    /// Alternatives of which each record meets one at most: they act on disjoint parts of the
    /// records, or one of them is drawn without a look at the data. Which part a record is in, too,
    /// must not depend on any data: under replace-one neighbours not on its own.
    OneOf(#[serde(serialize_with = "nesting::serialize_parts")] Vec<DpEvent>),
    /// The event is run a random number of times and only the best result is released.
    RepeatAndSelect {
        /// One run.
        #[serde(serialize_with = "nesting::serialize_part")]
        event: Box<DpEvent>,
        /// Distribution of the number of runs.
        trials: TrialCount,
    },
}

impl DpEvent {
    /// A sum with Gaussian noise.
    pub const fn gaussian(noise_multiplier: NoiseMultiplier) -> Self {
        Self::Gaussian { noise_multiplier }
    }

    /// Nothing: (0, 0)-differentially private.
    pub const fn nothing() -> Self {
        Self::Composed(Vec::new())
    }

    /// A sum with Gaussian noise, with the limits as values: without noise it is
    /// [`NonPrivate`](Self::NonPrivate), with infinite noise [`nothing`](Self::nothing).
    ///
    /// # Errors
    /// [`AccountingError::InvalidParameter`] unless the value is 0, infinite or a
    /// [`NoiseMultiplier`].
    pub fn gaussian_at(noise_multiplier: f64) -> Result<Self, AccountingError> {
        Ok(match noise_multiplier {
            0.0 => Self::NonPrivate,
            f64::INFINITY => Self::nothing(),
            _ => Self::gaussian(NoiseMultiplier::new(noise_multiplier).map_err(|_| {
                let expected = "0, infinity, or a number of at least 1e-6";
                AccountingError::invalid("noise_multiplier", noise_multiplier, expected)
            })?),
        })
    }

    /// This event on Poisson batches, with the limits as values: at rate 0 it is
    /// [`nothing`](Self::nothing), at rate 1 the event itself.
    ///
    /// # Errors
    /// [`AccountingError::InvalidParameter`] for a rate outside [0, 1].
    pub fn poisson_sampled_at(self, sampling_rate: f64) -> Result<Self, AccountingError> {
        if !(0.0..=1.0).contains(&sampling_rate) {
            return Err(AccountingError::invalid("sampling_rate", sampling_rate, "a number in [0, 1]"));
        }
        Ok(match sampling_rate {
            0.0 => Self::nothing(),
            _ if self == Self::nothing() => self,
            _ => self.poisson_sampled(SamplingRate::new(sampling_rate)?),
        })
    }

    /// A scalar sum with Laplace noise.
    pub const fn laplace(noise_multiplier: NoiseMultiplier) -> Self {
        Self::Laplace { noise_multiplier }
    }

    /// Several Gaussian queries on the same records.
    pub fn joint_gaussian(noise_multipliers: impl Into<Vec<NoiseMultiplier>>) -> Self {
        Self::JointGaussian { noise_multipliers: noise_multipliers.into() }
    }

    /// This event on Poisson batches.
    #[must_use]
    pub fn poisson_sampled(self, sampling_rate: SamplingRate) -> Self {
        Self::PoissonSampled { sampling_rate, event: Box::new(self) }
    }

    /// This event on batches of fixed size.
    ///
    /// # Errors
    /// [`AccountingError::InvalidParameter`] unless `1 ≤ sample_size ≤ n_records`.
    pub fn fixed_size_sampled(self, n_records: u64, sample_size: u64) -> Result<Self, AccountingError> {
        let event = Self::FixedSizeSampled { n_records, sample_size, event: Box::new(self) };
        event.fixed_size_rate().map(|_| event)
    }

    /// This event `count` times.
    #[must_use]
    pub fn repeated(self, count: u64) -> Self {
        Self::SelfComposed { event: Box::new(self), count }
    }

    /// This event as one trial of a search that releases only the best result.
    #[must_use]
    pub fn best_of(self, trials: TrialCount) -> Self {
        Self::RepeatAndSelect { event: Box::new(self), trials }
    }

    /// Share of the records in a fixed-size batch.
    pub(crate) fn fixed_size_rate(&self) -> Result<SamplingRate, AccountingError> {
        match self {
            Self::FixedSizeSampled { n_records, sample_size, .. } => {
                if *sample_size == 0 || sample_size > n_records {
                    return Err(AccountingError::invalid(
                        "sample_size",
                        sample_size,
                        "at least 1 and at most the number of records",
                    ));
                }
                SamplingRate::new(*sample_size as f64 / *n_records as f64)
            }
            _ => SamplingRate::new(1.0),
        }
    }
}

impl std::fmt::Display for DpEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(text) = self.instead_of_text() {
            return f.write_str(&text);
        }
        match self {
            Self::NonPrivate => f.write_str("non-private release"),
            Self::Gaussian { noise_multiplier } => write!(f, "Gaussian (noise multiplier {noise_multiplier})"),
            Self::Laplace { noise_multiplier } => write!(f, "Laplace (noise multiplier {noise_multiplier})"),
            Self::JointGaussian { noise_multipliers } => {
                f.write_str("joint Gaussian (noise multipliers ")?;
                for (i, sigma) in noise_multipliers.iter().enumerate() {
                    write!(f, "{}{sigma}", if i == 0 { "" } else { ", " })?;
                }
                f.write_str(")")
            }
            Self::RandomisedResponse { epsilon, n_outcomes } => {
                write!(f, "randomised response (epsilon {epsilon}, {n_outcomes} outcomes)")
            }
            Self::ZeroConcentrated { rho } => write!(f, "zero-concentrated mechanism (rho {rho})"),
            Self::RenyiAtOrder { order, divergence } => {
                write!(f, "mechanism of Rényi divergence {divergence} at order {order}")
            }
            Self::EpsilonDelta { epsilon, delta } => {
                write!(f, "(epsilon {}, delta {delta}) mechanism", epsilon.get())
            }
            Self::BandedMatrixFactorisation(banded) => banded.fmt(f),
            Self::TreeAggregation(tree) => tree.fmt(f),
            Self::MixtureOfGaussians(mixture) => mixture.fmt(f),
            Self::RandomAllocation { noise_multiplier, steps, participations } => write!(
                f,
                "random allocation ({participations} of {steps} steps) of Gaussians (noise multiplier {noise_multiplier})"
            ),
            Self::DiscreteLaplace { scale, sensitivity } => {
                write!(f, "discrete Laplace (scale {scale}, sensitivity {sensitivity})")
            }
            Self::DiscreteGaussian { sigma, sensitivity } => {
                write!(f, "discrete Gaussian (sigma {sigma}, sensitivity {sensitivity})")
            }
            Self::TruncatedPoissonGaussian { noise_multiplier, sampling_rate, n_records, max_batch_size } => write!(
                f,
                "Poisson-sampled (rate {sampling_rate} of {n_records}, at most {max_batch_size}) Gaussian \
                 (noise multiplier {noise_multiplier})"
            ),
            Self::PoissonSampled { sampling_rate, event } => {
                write!(f, "Poisson-sampled (rate {sampling_rate}) {event}")
            }
            Self::FixedSizeSampled { n_records, sample_size, event } => {
                write!(f, "fixed-size-sampled ({sample_size} of {n_records}) {event}")
            }
            Self::Composed(events) if events.is_empty() => f.write_str("nothing"),
            Self::Composed(events) => {
                f.write_str("composition of [")?;
                for (i, event) in events.iter().enumerate() {
                    write!(f, "{}{event}", if i == 0 { "" } else { "; " })?;
                }
                f.write_str("]")
            }
            Self::SelfComposed { event, count } => write!(f, "{count} × {event}"),
            Self::OneOf(events) => {
                f.write_str("one of [")?;
                for (i, event) in events.iter().enumerate() {
                    write!(f, "{}{event}", if i == 0 { "" } else { "; " })?;
                }
                f.write_str("] for each record")
            }
            Self::RepeatAndSelect { event, trials } => write!(f, "best of {trials} runs of {event}"),
        }
    }
}
