//! Events: the releases of a program.

use std::hash::{DefaultHasher, Hash, Hasher};

use dp_accounting::{
    AccountingError, BandedMatrixFactorisation, Delta, Divergence, DpEvent as Event, Epsilon, MixtureOfGaussians,
    NoiseMultiplier, OutcomeCount, PositiveEpsilon, RenyiOrder, Rho, SamplingRate, TreeAggregation,
};
use pyo3::prelude::*;

use super::trials::TrialCount;
use crate::count::Count;
use crate::{errors, json};

/// One privacy-relevant thing that a program did, or a composition of such things.
///
/// Noise multipliers divide the noise's standard deviation by the bound on one record's
/// contribution.
#[pyclass(frozen, eq, from_py_object, module = "fairdp.accounting")]
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DpEvent(pub(crate) Event);

impl DpEvent {
    pub(crate) const fn of(event: Event) -> Self {
        Self(event)
    }

    /// Gaussian queries on one Poisson batch; a single one is a plain Gaussian.
    pub(crate) fn of_queries(multipliers: &[f64], sampling_rate: f64) -> PyResult<Self> {
        event(noises(multipliers).and_then(|multipliers| {
            let queries = match multipliers.as_slice() {
                [one] => Event::gaussian(*one),
                _ => Event::joint_gaussian(multipliers),
            };
            queries.poisson_sampled_at(sampling_rate)
        }))
    }
}

/// An event, or the exception.
fn event(result: Result<Event, AccountingError>) -> PyResult<DpEvent> {
    result.map(DpEvent).map_err(errors::accounting_error)
}

fn noises(multipliers: &[f64]) -> Result<Vec<NoiseMultiplier>, AccountingError> {
    multipliers.iter().map(|sigma| NoiseMultiplier::new(*sigma)).collect()
}

fn unwrapped(events: Vec<DpEvent>) -> Vec<Event> {
    events.into_iter().map(|event| event.0).collect()
}

#[pymethods]
impl DpEvent {
    /// Something without any guarantee.
    #[staticmethod]
    fn non_private() -> Self {
        Self(Event::NonPrivate)
    }

    /// Nothing: (0, 0)-differentially private.
    #[staticmethod]
    fn nothing() -> Self {
        Self(Event::nothing())
    }

    /// A sum released with Gaussian noise; a multiplier of 0 is a release without privacy, infinity
    /// is nothing.
    #[staticmethod]
    fn gaussian(noise_multiplier: f64) -> PyResult<Self> {
        event(Event::gaussian_at(noise_multiplier))
    }

    /// A scalar sum released with Laplace noise.
    #[staticmethod]
    fn laplace(noise_multiplier: f64) -> PyResult<Self> {
        event(NoiseMultiplier::new(noise_multiplier).map(Event::laplace))
    }

    /// Several Gaussian queries on one and the same batch.
    #[staticmethod]
    #[expect(clippy::needless_pass_by_value, reason = "Python hands over a list of its own")]
    fn joint_gaussian(noise_multipliers: Vec<f64>) -> PyResult<Self> {
        event(noises(&noise_multipliers).map(Event::joint_gaussian))
    }

    /// Each record reports its value or another one out of `n_outcomes`, with likelihood ratio
    /// e^epsilon.
    #[staticmethod]
    fn randomised_response(epsilon: f64, n_outcomes: u32) -> PyResult<Self> {
        event(
            PositiveEpsilon::new(epsilon).and_then(|epsilon| {
                Ok(Event::RandomisedResponse { epsilon, n_outcomes: OutcomeCount::new(n_outcomes)? })
            }),
        )
    }

    /// Anything for which only zero-concentrated differential privacy is known.
    #[staticmethod]
    fn zero_concentrated(rho: f64) -> PyResult<Self> {
        event(Rho::new(rho).map(|rho| Event::ZeroConcentrated { rho }))
    }

    /// Anything for which only the Rényi divergence of one order is known.
    #[staticmethod]
    fn renyi_at_order(order: f64, divergence: f64) -> PyResult<Self> {
        event(
            RenyiOrder::new(order)
                .and_then(|order| Ok(Event::RenyiAtOrder { order, divergence: Divergence::new(divergence)? })),
        )
    }

    /// Anything for which only (epsilon, delta)-differential privacy is known.
    #[staticmethod]
    fn epsilon_delta(epsilon: f64, delta: f64) -> PyResult<Self> {
        event(Epsilon::new(epsilon).and_then(|epsilon| Ok(Event::EpsilonDelta { epsilon, delta: Delta::new(delta)? })))
    }

    /// Training with noise from a banded strategy matrix under cyclic Poisson sampling.
    #[staticmethod]
    fn banded_matrix_factorisation(
        noise_multiplier: f64,
        sampling_rate: f64,
        bands: Count,
        steps: Count,
    ) -> PyResult<Self> {
        event(NoiseMultiplier::new(noise_multiplier).and_then(|sigma| {
            let rate = SamplingRate::new(sampling_rate)?;
            BandedMatrixFactorisation::new(sigma, rate, bands.0, steps.0).map(Event::BandedMatrixFactorisation)
        }))
    }

    /// Noisy sums over the nodes of a binary tree whose leaves are steps: over those that the steps
    /// complete, or with `incomplete_nodes` over all, up to a root over all steps.
    #[staticmethod]
    #[pyo3(signature = (noise_multiplier, leaves, participations = Count(1), separation = Count(1), *, incomplete_nodes = false),
           text_signature = "(noise_multiplier, leaves, participations=1, separation=1, *, incomplete_nodes=False)")]
    fn tree_aggregation(
        noise_multiplier: f64,
        leaves: Count,
        participations: Count,
        separation: Count,
        incomplete_nodes: bool,
    ) -> PyResult<Self> {
        event(NoiseMultiplier::new(noise_multiplier).and_then(|sigma| {
            let tree = TreeAggregation::new(sigma, leaves.0)?;
            let tree = tree.with_participations(participations.0, separation.0)?;
            Ok(Event::TreeAggregation(if incomplete_nodes { tree.with_incomplete_nodes() } else { tree }))
        }))
    }

    /// A sum to which a record adds one of several amounts, drawn with public probabilities, with
    /// Gaussian noise.
    #[staticmethod]
    fn mixture_of_gaussians(noise_multiplier: f64, amounts: Vec<f64>, probabilities: Vec<f64>) -> PyResult<Self> {
        event(
            NoiseMultiplier::new(noise_multiplier).and_then(|sigma| {
                MixtureOfGaussians::new(sigma, amounts, probabilities).map(Event::MixtureOfGaussians)
            }),
        )
    }

    /// A Poisson-sampled Gaussian for a user with several records, each of which is drawn on its
    /// own.
    #[staticmethod]
    fn mixture_of_user(noise_multiplier: f64, sampling_rate: f64, records: u32) -> PyResult<Self> {
        event(NoiseMultiplier::new(noise_multiplier).and_then(|sigma| {
            let rate = SamplingRate::new(sampling_rate)?;
            MixtureOfGaussians::of_user(sigma, rate, records).map(Event::MixtureOfGaussians)
        }))
    }

    /// A sum of integers released with discrete Laplace noise.
    #[staticmethod]
    fn discrete_laplace(scale: f64, sensitivity: u32) -> PyResult<Self> {
        event(NoiseMultiplier::new(scale).map(|scale| Event::DiscreteLaplace { scale, sensitivity }))
    }

    /// A sum of integers released with discrete Gaussian noise.
    #[staticmethod]
    fn discrete_gaussian(sigma: f64, sensitivity: u32) -> PyResult<Self> {
        event(NoiseMultiplier::new(sigma).map(|sigma| Event::DiscreteGaussian { sigma, sensitivity }))
    }

    /// A Gaussian sum over a Poisson batch that is cut to a physical size at random.
    #[staticmethod]
    fn truncated_poisson_gaussian(
        noise_multiplier: f64,
        sampling_rate: f64,
        n_records: Count,
        max_batch_size: Count,
    ) -> PyResult<Self> {
        event(NoiseMultiplier::new(noise_multiplier).and_then(|noise_multiplier| {
            Ok(Event::TruncatedPoissonGaussian {
                noise_multiplier,
                sampling_rate: SamplingRate::new(sampling_rate)?,
                n_records: n_records.0,
                max_batch_size: max_batch_size.0,
            })
        }))
    }

    /// A run of steps in which every record is used in some, drawn at random: with one
    /// participation, balls and bins.
    #[staticmethod]
    #[pyo3(signature = (noise_multiplier, steps, participations = Count(1)),
           text_signature = "(noise_multiplier, steps, participations=1)")]
    fn random_allocation(noise_multiplier: f64, steps: Count, participations: Count) -> PyResult<Self> {
        event(NoiseMultiplier::new(noise_multiplier).map(|noise_multiplier| Event::RandomAllocation {
            noise_multiplier,
            steps: steps.0,
            participations: participations.0,
        }))
    }

    /// Several events, possibly chosen adaptively.
    #[staticmethod]
    fn composed(events: Vec<Self>) -> Self {
        Self(Event::Composed(unwrapped(events)))
    }

    /// Alternatives of which each record meets one at most.
    #[staticmethod]
    fn one_of(events: Vec<Self>) -> Self {
        Self(Event::OneOf(unwrapped(events)))
    }

    /// This event on a batch that each record enters independently; a rate of 0 is nothing.
    fn poisson_sampled(&self, sampling_rate: f64) -> PyResult<Self> {
        event(self.0.clone().poisson_sampled_at(sampling_rate))
    }

    /// This event on a random subset of fixed size.
    fn fixed_size_sampled(&self, n_records: Count, sample_size: Count) -> PyResult<Self> {
        event(self.0.clone().fixed_size_sampled(n_records.0, sample_size.0))
    }

    /// This event `count` times.
    fn repeated(&self, count: Count) -> Self {
        Self(self.0.clone().repeated(count.0))
    }

    /// This event as one run of a search that releases only the best result.
    fn best_of(&self, trials: TrialCount) -> Self {
        Self(self.0.clone().best_of(trials.0))
    }

    /// This event as it is for a user with at most `records` records.
    fn for_user(&self, records: u32) -> PyResult<Self> {
        event(self.0.for_user(records))
    }

    /// As JSON.
    pub(crate) fn to_json(&self) -> PyResult<String> {
        json::to_json(&self.0)
    }

    /// From JSON; numbers out of range are errors.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Self> {
        json::from_json(text).map(Self)
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<json::Reduced> {
        json::reduce(slf, slf.get().to_json()?)
    }

    fn __hash__(&self) -> PyResult<u64> {
        let mut hasher = DefaultHasher::new();
        self.to_json()?.hash(&mut hasher);
        Ok(hasher.finish())
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<DpEvent: {}>", self.0)
    }
}
