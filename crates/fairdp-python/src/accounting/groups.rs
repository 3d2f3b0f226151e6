//! The guarantee of each group when thresholds differ.

use std::sync::{Mutex, PoisonError};

use dp_accounting::{GroupAccounting as Inner, NoiseMultiplier, SamplingRate};
use pyo3::prelude::*;

use super::accountants::Accountant;
use super::events::DpEvent;
use crate::errors;

/// Per-group privacy, ex post, of a run in which each group was clipped at its own threshold, fixed
/// before each step. Of thresholds from counts of the same batch it is no guarantee.
#[pyclass(frozen, module = "fairdp.accounting")]
pub(crate) struct GroupAccounting(Mutex<Inner>);

impl GroupAccounting {
    fn inner(&self) -> Inner {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[pymethods]
impl GroupAccounting {
    /// Nothing recorded yet.
    #[new]
    #[pyo3(signature = (n_groups, *, sampling_rate, noise_multiplier, count_noise_multipliers = Vec::new()))]
    fn new(
        n_groups: usize,
        sampling_rate: f64,
        noise_multiplier: f64,
        count_noise_multipliers: Vec<f64>,
    ) -> PyResult<Self> {
        let rate = SamplingRate::new(sampling_rate).map_err(errors::accounting_error)?;
        let gradient = NoiseMultiplier::new(noise_multiplier).map_err(errors::accounting_error)?;
        let counts = count_noise_multipliers.into_iter().map(NoiseMultiplier::new).collect::<Result<Vec<_>, _>>();
        Ok(Self(Mutex::new(Inner::new(n_groups, rate, gradient, &counts.map_err(errors::accounting_error)?))))
    }

    /// Records a step with one threshold per group.
    #[expect(clippy::needless_pass_by_value, reason = "Python hands over a list of its own")]
    fn record_step(&self, thresholds: Vec<f64>) -> PyResult<()> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.record_step(&thresholds).map_err(errors::accounting_error)
    }

    /// Number of groups.
    #[getter]
    fn n_groups(&self) -> usize {
        self.inner().n_groups()
    }

    /// The group's events with their counts.
    fn events(&self, group: usize) -> PyResult<Vec<(DpEvent, u64)>> {
        let events = self.inner().events(group).map_err(errors::accounting_error)?;
        Ok(events.into_iter().map(|(event, count)| (DpEvent(event), count)).collect())
    }

    /// Composes the group's events into an accountant, which should have one Rényi order that was
    /// fixed before the run.
    fn compose_into(&self, group: usize, accountant: &Accountant) -> PyResult<()> {
        let inner = self.inner();
        accountant.update(|kind| inner.compose_into(group, kind)).map_err(errors::accounting_error)
    }
}
