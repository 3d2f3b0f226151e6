//! A method at work.

use std::sync::{Mutex, PoisonError};

use dp_clipping::kernels::{GradientFloat, Gradients, KernelExecution, norms};
use dp_clipping::{ClipBatch, ClipConfig, ClipMethod, CountNoise, Coupling, PresetParams, PublicContext, registry};
use numpy::ndarray::ArrayView2;
use numpy::{PyArray1, PyReadonlyArray2, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::arrays;
use super::clipped::{Clipped, CountQuery};
use super::random::Stream;
use crate::accounting::DpEvent;
use crate::errors;

/// A clipping method with its state: norms and groups in; scales, their bound and every noisy count
/// out.
#[pyclass(frozen, module = "fairdp.clipping")]
pub(crate) struct Method {
    name: String,
    config: ClipConfig,
    context: PublicContext,
    is_private: bool,
    state: Mutex<State>,
}

struct State {
    method: Box<dyn ClipMethod>,
    stream: Stream,
}

impl State {
    /// One step of the method.
    fn clip(&mut self, batch: &ClipBatch<'_>) -> PyResult<dp_clipping::Clipped> {
        self.method.clip(batch, self.stream.rng()?).map_err(errors::clip_error)
    }
}

impl Method {
    fn build(name: String, config: ClipConfig, context: PublicContext, seed: Option<u64>) -> PyResult<Self> {
        let method = config.build(&context).map_err(errors::clip_error)?;
        let state = Mutex::new(State { method, stream: Stream::new(seed)? });
        Ok(Self { name, config, context, is_private: seed.is_none(), state })
    }

    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut State) -> T + Send) -> T {
        // The lock is taken without the interpreter's: two threads could otherwise wait for each
        // other.
        py.detach(|| work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    fn sum<'py, T: GradientFloat + numpy::Element>(
        &self,
        py: Python<'py>,
        gradients: &PyReadonlyArray2<'py, T>,
        groups: Option<&Bound<'py, PyArray1<i64>>>,
    ) -> PyResult<(Bound<'py, PyAny>, Clipped)> {
        let view = gradients.as_array();
        let groups = arrays::groups(groups, view.nrows())?;
        let (sum, clipped) = self.with(py, |state| {
            let gradients = Gradients::from_view(view).map_err(errors::clip_error)?;
            let norms = norms(&gradients, &KernelExecution::default());
            let clipped = state.clip(&ClipBatch::new(&norms, &groups))?;
            PyResult::Ok((weighted_sum(&view, &clipped.scales), clipped))
        })?;
        Ok((PyArray1::from_vec(py, sum).into_any(), Clipped::of(py, clipped)))
    }
}

/// The sum of the scaled rows, in f64 also where they are f32: rounding a sum of thousands of rows
/// to f32 moves it by more than the bound leaves free. A row with scale 0 is not read.
fn weighted_sum<T: GradientFloat>(rows: &ArrayView2<'_, T>, scales: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; rows.ncols()];
    for (row, &scale) in rows.rows().into_iter().zip(scales).filter(|&(_, &scale)| scale != 0.0) {
        for (sum, &value) in sum.iter_mut().zip(row) {
            *sum += scale * value.into();
        }
    }
    sum
}

/// A method of the registry by its name, at its first step.
#[pyfunction]
#[pyo3(signature = (name, *, noise_multiplier, expected_batch_size, groups = 1, clip_norm = 1.0, upper_bound = None,
    tolerance = None, rate = None, target = None, lower_bound = None, loss_bound = None, count_noise_multiplier = None,
    count_noise_times_gradient = None, fairlens_weights = None, seed = None))]
#[expect(clippy::too_many_arguments, reason = "they are the settings that a study varies")]
pub(crate) fn method(
    name: &str,
    noise_multiplier: f64,
    expected_batch_size: f64,
    groups: usize,
    clip_norm: f64,
    upper_bound: Option<f64>,
    tolerance: Option<f64>,
    rate: Option<f64>,
    target: Option<f64>,
    lower_bound: Option<f64>,
    loss_bound: Option<f64>,
    count_noise_multiplier: Option<f64>,
    count_noise_times_gradient: Option<f64>,
    fairlens_weights: Option<[f64; 2]>,
    seed: Option<u64>,
) -> PyResult<Method> {
    let count_noise = match (count_noise_multiplier, count_noise_times_gradient) {
        (Some(_), Some(_)) => {
            return Err(errors::ClipError::new_err(
                "count_noise_multiplier and count_noise_times_gradient cannot be given together",
            ));
        }
        (Some(multiplier), None) => CountNoise::Multiplier(multiplier),
        (None, Some(factor)) => CountNoise::TimesGradient(factor),
        (None, None) => CountNoise::default(),
    };
    let params = PresetParams {
        clip_norm,
        upper_bound,
        tolerance,
        rate,
        target,
        lower_bound,
        loss_bound,
        count_noise,
        fairlens_weights,
        ..PresetParams::default()
    };
    let config = registry::find(name).and_then(|entry| entry.config(&params)).map_err(errors::clip_error)?;
    let context = PublicContext { n_groups: groups, expected_batch_size, noise_multiplier };
    Method::build(name.to_owned(), config, context, seed)
}

/// Any cell of the grid of rules, controllers and weights, from JSON.
#[pyfunction]
#[pyo3(signature = (config, *, noise_multiplier, expected_batch_size, groups = 1, seed = None))]
pub(crate) fn method_of_config(
    config: &str,
    noise_multiplier: f64,
    expected_batch_size: f64,
    groups: usize,
    seed: Option<u64>,
) -> PyResult<Method> {
    let config = serde_json::from_str(config).map_err(|error| errors::ClipError::new_err(error.to_string()))?;
    let context = PublicContext { n_groups: groups, expected_batch_size, noise_multiplier };
    Method::build("custom".to_owned(), config, context, seed)
}

/// Scales of one's own, each lowered until the bound holds for its record.
#[pyfunction]
pub(crate) fn capped(
    py: Python<'_>,
    scales: &Bound<'_, PyArray1<f64>>,
    norms: &Bound<'_, PyArray1<f64>>,
    groups: &Bound<'_, PyArray1<i64>>,
    bound: f64,
    n_groups: usize,
) -> PyResult<Clipped> {
    let (scales, norms) = (arrays::values(scales)?, arrays::values(norms)?);
    let groups = arrays::groups(Some(groups), norms.len())?;
    let clipped = dp_clipping::Clipped::new(&ClipBatch::new(&norms, &groups), scales, vec![bound; n_groups]);
    Ok(Clipped::of(py, clipped.map_err(errors::clip_error)?))
}

#[pymethods]
impl Method {
    /// Scales for one batch; thresholds move on to the next step.
    #[pyo3(signature = (norms, groups = None))]
    fn clip(
        &self,
        py: Python<'_>,
        norms: &Bound<'_, PyArray1<f64>>,
        groups: Option<&Bound<'_, PyArray1<i64>>>,
    ) -> PyResult<Clipped> {
        let norms = arrays::values(norms)?;
        let groups = arrays::groups(groups, norms.len())?;
        let clipped = self.with(py, |state| state.clip(&ClipBatch::new(&norms, &groups)))?;
        Ok(Clipped::of(py, clipped))
    }

    /// Clips per-sample gradients `[batch, params]` and sums them; no copy is made of them.
    #[pyo3(signature = (gradients, groups = None))]
    fn clip_and_sum<'py>(
        &self,
        gradients: &Bound<'py, PyUntypedArray>,
        groups: Option<&Bound<'py, PyArray1<i64>>>,
    ) -> PyResult<(Bound<'py, PyAny>, Clipped)> {
        let py = gradients.py();
        if let Ok(gradients) = gradients.extract::<PyReadonlyArray2<'_, f32>>() {
            return self.sum(py, &gradients, groups);
        }
        if let Ok(gradients) = gradients.extract::<PyReadonlyArray2<'_, f64>>() {
            return self.sum(py, &gradients, groups);
        }
        Err(PyTypeError::new_err(format!(
            "gradients are {} of {} dimensions, expected float32 or float64 of shape [batch, params]",
            gradients.dtype(),
            gradients.ndim()
        )))
    }

    /// The scale that the next step gives to a record, or None where it depends on the batch.
    #[pyo3(signature = (norm, group = 0))]
    fn scale_in_advance(&self, py: Python<'_>, norm: f64, group: usize) -> Option<f64> {
        self.with(py, |state| state.method.scale_in_advance(group).map(|advance| advance.scale(norm)))
    }

    /// The clipped sum as methods train with it that have a coupling but FairLens's, given the sum
    /// without clipping.
    fn recombine<'py>(
        &self,
        clipped_sum: &Bound<'py, PyArray1<f64>>,
        plain_sum: &Bound<'py, PyArray1<f64>>,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let (mut clipped, plain) = (arrays::values(clipped_sum)?, arrays::values(plain_sum)?);
        if clipped.len() != plain.len() {
            return Err(errors::clip_error(dp_clipping::ClipError::LengthMismatch {
                parameter: "clipped_sum",
                length: clipped.len(),
                reference: "plain_sum",
                expected: plain.len(),
            }));
        }
        self.config.coupling.recombine(&mut clipped, &plain);
        Ok(PyArray1::from_vec(py, clipped))
    }

    /// The state for a checkpoint, as JSON, without the random stream.
    fn state(&self, py: Python<'_>) -> PyResult<String> {
        let state = self.with(py, |state| state.method.state());
        serde_json::to_string(&state).map_err(|error| errors::ClipError::new_err(error.to_string()))
    }

    /// Continues from a checkpoint of the same configuration.
    fn restore(&self, py: Python<'_>, state: &str) -> PyResult<()> {
        let saved = serde_json::from_str(state).map_err(|error| errors::ClipError::new_err(error.to_string()))?;
        self.with(py, |state| state.method.restore(&saved)).map_err(errors::clip_error)
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Its configuration, as JSON.
    #[getter]
    fn config(&self) -> PyResult<String> {
        serde_json::to_string(&self.config).map_err(|error| errors::ClipError::new_err(error.to_string()))
    }

    /// Number of groups.
    #[getter]
    fn groups(&self) -> usize {
        self.context.n_groups
    }

    /// Noise multiplier of the gradient query.
    #[getter]
    fn noise_multiplier(&self) -> f64 {
        self.context.noise_multiplier
    }

    /// Expected size of a batch.
    #[getter]
    fn expected_batch_size(&self) -> f64 {
        self.context.expected_batch_size
    }

    /// Whether the bound is a proven sensitivity; if not, an epsilon is nominal.
    #[getter]
    fn certified(&self) -> bool {
        self.config.certified()
    }

    /// Whether group labels influence training.
    #[getter]
    fn needs_groups(&self) -> bool {
        self.config.needs_groups()
    }

    /// Whether it asks for the losses of records: it then takes no bare gradients.
    #[getter]
    fn needs_losses(&self) -> bool {
        self.config.needs_losses()
    }

    /// "none", "fairlens", "magnitude-only" or "direction-only": how the records of a batch act on
    /// each other.
    #[getter]
    fn coupling(&self) -> &'static str {
        match self.config.coupling {
            Coupling::None => "none",
            Coupling::Fairlens { .. } => "fairlens",
            Coupling::MagnitudeOnly => "magnitude-only",
            Coupling::DirectionOnly => "direction-only",
        }
    }

    /// Whether random bits come from the operating system: with a seed, nothing is private.
    #[getter]
    fn is_private(&self) -> bool {
        self.is_private
    }

    /// The count queries of every step, known before the first one.
    #[getter]
    fn queries(&self) -> Vec<CountQuery> {
        self.config.queries(&self.context).iter().map(CountQuery::of).collect()
    }

    /// Noise multipliers of a step's queries: the gradient's, then the counts'.
    #[getter]
    fn step_noise_multipliers(&self) -> Vec<f64> {
        let counts = self.config.count_noise_multipliers(&self.context);
        std::iter::once(self.context.noise_multiplier).chain(counts).collect()
    }

    /// A step's event on Poisson batches, counts included. Without a certificate it is non-private.
    fn event(&self, sampling_rate: f64) -> PyResult<DpEvent> {
        let multipliers = self.step_noise_multipliers();
        if !self.config.certified() || multipliers.contains(&0.0) {
            return Ok(DpEvent::of(dp_accounting::DpEvent::NonPrivate));
        }
        DpEvent::of_queries(&multipliers, sampling_rate)
    }

    fn __repr__(&self) -> String {
        let seeded = if self.is_private { "" } else { ", seeded, not private" };
        format!(
            "<Method: {}, {} groups, noise multiplier {}{seeded}>",
            self.name, self.context.n_groups, self.context.noise_multiplier
        )
    }
}
