//! The parameter that just meets a target.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use dp_accounting::{
    AccountingError, Calibration as Inner, Delta, DpEvent as Event, Epsilon, NeighbouringRelation, PldAccountant,
};
use pyo3::prelude::*;

use super::accountants::{Accountant, Kind};
use super::events::DpEvent;
use crate::count::Count;
use crate::{errors, interruptible};

/// The smallest noise multiplier of one Gaussian release that is (epsilon, delta)-differentially
/// private.
#[pyfunction]
pub(crate) fn analytic_gaussian_noise_multiplier(epsilon: f64, delta: f64) -> PyResult<f64> {
    Epsilon::new(epsilon)
        .and_then(|epsilon| dp_accounting::analytic_gaussian_noise_multiplier(epsilon, Delta::new(delta)?))
        .map(dp_accounting::NoiseMultiplier::get)
        .map_err(errors::accounting_error)
}

/// Finds parameters that keep a target epsilon at a delta, rounded towards privacy.
#[pyclass(frozen, module = "fairdp.accounting")]
pub(crate) struct Calibration(Inner<Kind>);

impl Calibration {
    /// Searches, with the event of a parameter from a Python function, on a thread that asks for
    /// the interpreter when it calls it. What the function raises is raised.
    fn search<T: Send + 'static>(
        &self,
        py: Python<'_>,
        event: Py<PyAny>,
        progress: Option<&Bound<'_, PyAny>>,
        search: impl FnOnce(&Inner<Kind>, &dyn Fn(f64) -> Event) -> Result<T, AccountingError> + Send + 'static,
    ) -> PyResult<T> {
        let inner = self.0.clone();
        let raised = Arc::new(Mutex::new(None));
        let stopped = Arc::new(AtomicBool::new(false));
        let (raised_there, stopped_there) = (Arc::clone(&raised), Arc::clone(&stopped));
        let found = interruptible::run(py, progress, move || {
            let of = |parameter: f64| {
                let mut raised = raised_there.lock().unwrap_or_else(PoisonError::into_inner);
                if raised.is_some() || stopped_there.load(Ordering::Relaxed) {
                    return Event::NonPrivate;
                }
                let event =
                    Python::attach(|py| Ok(event.bind(py).call1((parameter,))?.cast::<DpEvent>()?.get().0.clone()));
                event.unwrap_or_else(|error: PyErr| {
                    *raised = Some(error);
                    Event::NonPrivate
                })
            };
            search(&inner, &of)
        })
        // After an interrupt the function is not called any more.
        .inspect_err(|_| stopped.store(true, Ordering::Relaxed))?;
        let raised = raised.lock().unwrap_or_else(PoisonError::into_inner).take();
        raised.map_or_else(|| found.map_err(errors::accounting_error), Err)
    }
}

#[pymethods]
impl Calibration {
    /// A budget; with `spent`, what is left of it after everything that accountant composed, by the
    /// same accountant.
    #[new]
    #[pyo3(signature = (*, target_epsilon, delta, spent = None, relative_tolerance = 1e-9))]
    fn new(target_epsilon: f64, delta: f64, spent: Option<&Accountant>, relative_tolerance: f64) -> PyResult<Self> {
        let spent =
            spent.map_or_else(|| Kind::Pld(PldAccountant::new(NeighbouringRelation::AddRemove)), Accountant::kind);
        Epsilon::new(target_epsilon)
            .and_then(|target| Inner::of_remaining_budget(spent, target, Delta::new(delta)?))
            .and_then(|calibration| calibration.with_relative_tolerance(relative_tolerance))
            .map(Self)
            .map_err(errors::accounting_error)
    }

    /// The smallest noise multiplier whose `event(noise_multiplier)` meets the target, rounded up.
    #[pyo3(signature = (event, *, progress = None))]
    fn noise_multiplier(&self, py: Python<'_>, event: Py<PyAny>, progress: Option<&Bound<'_, PyAny>>) -> PyResult<f64> {
        self.search(py, event, progress, |calibration, event: &dyn Fn(f64) -> Event| {
            calibration.noise_multiplier(|sigma| event(sigma.get())).map(dp_accounting::NoiseMultiplier::get)
        })
    }

    /// The largest sampling rate whose `event(sampling_rate)` meets the target, rounded down.
    #[pyo3(signature = (event, *, progress = None))]
    fn sampling_rate(&self, py: Python<'_>, event: Py<PyAny>, progress: Option<&Bound<'_, PyAny>>) -> PyResult<f64> {
        self.search(py, event, progress, |calibration, event: &dyn Fn(f64) -> Event| {
            calibration.sampling_rate(|rate| event(rate.get())).map(dp_accounting::SamplingRate::get)
        })
    }

    /// The largest expected batch size out of `n_records` whose `event(sampling_rate)` meets the
    /// target.
    #[pyo3(signature = (n_records, event, *, progress = None))]
    fn batch_size(
        &self,
        py: Python<'_>,
        n_records: Count,
        event: Py<PyAny>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        self.search(py, event, progress, move |calibration, event: &dyn Fn(f64) -> Event| {
            calibration.batch_size(n_records.0, |rate| event(rate.get()))
        })
    }

    /// The largest number of times that the event can still be composed.
    #[pyo3(signature = (event, *, progress = None))]
    fn steps(&self, py: Python<'_>, event: &DpEvent, progress: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
        let (inner, event) = (self.0.clone(), event.0.clone());
        interruptible::run(py, progress, move || inner.steps(&event))?.map_err(errors::accounting_error)
    }
}
