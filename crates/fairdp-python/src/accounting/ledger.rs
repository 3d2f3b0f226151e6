//! The record of what was released.

use std::sync::{Mutex, MutexGuard, PoisonError};

use dp_accounting::{Accountant as Interface, AccountingError, Delta, Ledger as Inner};
use pyo3::prelude::*;

use super::accountants::{Accountant, Kind};
use super::bounds::{DeltaBound, EpsilonBound};
use super::events::DpEvent;
use crate::count::Count;
use crate::names::{name_of, named};
use crate::{errors, interruptible, json};

/// Events with counts in the order of their release, chained by SHA-256.
#[pyclass(frozen, module = "fairdp.accounting")]
pub(crate) struct Ledger(Mutex<Inner>);

impl Ledger {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // The value behind the lock changes in one assignment, so a panic elsewhere leaves it
        // whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn inner(&self) -> Inner {
        self.lock().clone()
    }

    /// The accountant that the caller brings, or one of that name.
    pub(crate) fn kind(&self, accountant: &Bound<'_, PyAny>) -> PyResult<Kind> {
        match accountant.cast::<Accountant>() {
            Ok(accountant) => Ok(accountant.get().kind()),
            Err(_) => Kind::of(accountant.extract()?, self.inner().relation()),
        }
    }

    /// The same with the whole ledger in it.
    fn composed(&self, accountant: &Bound<'_, PyAny>) -> PyResult<Kind> {
        let mut kind = self.kind(accountant)?;
        self.inner().compose_into(&mut kind).map_err(errors::accounting_error)?;
        Ok(kind)
    }
}

#[pymethods]
impl Ledger {
    /// An empty ledger.
    #[new]
    #[pyo3(signature = (relation = "add-remove"))]
    fn new(relation: &str) -> PyResult<Self> {
        Ok(Self(Mutex::new(Inner::new(named("relation", relation)?))))
    }

    /// Appends `count` releases of an event; equal events in a row are one entry.
    #[pyo3(signature = (event, count = Count(1)), text_signature = "(self, event, count=1)")]
    fn record(&self, event: &DpEvent, count: Count) -> PyResult<()> {
        self.lock().record(&event.0, count.0).map_err(errors::accounting_error)
    }

    /// Appends all entries of another ledger under the same relation.
    fn merge(&self, other: &Self) -> PyResult<()> {
        let other = other.inner();
        self.lock().merge(&other).map_err(errors::accounting_error)
    }

    /// Events with their counts, oldest first.
    #[getter]
    fn entries(&self) -> Vec<(DpEvent, u64)> {
        self.lock().entries().iter().map(|entry| (DpEvent(entry.event().clone()), entry.count())).collect()
    }

    /// Digest of the whole ledger: published elsewhere, it pins every entry.
    #[getter]
    fn digest(&self) -> String {
        self.lock().digest()
    }

    /// The neighbouring relation.
    #[getter]
    fn relation(&self) -> String {
        name_of(&self.lock().relation())
    }

    /// Checks every digest.
    fn verify(&self) -> PyResult<()> {
        self.lock().verify().map_err(errors::accounting_error)
    }

    /// As JSON, with digests.
    fn to_json(&self) -> PyResult<String> {
        json::to_json(&*self.lock())
    }

    /// From JSON; entries that do not match their digests are an error.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Self> {
        Ok(Self(Mutex::new(json::from_json(text)?)))
    }

    /// Epsilon of the whole ledger at a delta; `accountant` is a name, or an accountant that
    /// composed something before.
    #[pyo3(signature = (delta, *, accountant = None, progress = None), text_signature = "(self, delta, *, accountant='pld', progress=None)")]
    fn epsilon(
        &self,
        py: Python<'_>,
        delta: f64,
        accountant: Option<&Bound<'_, PyAny>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<EpsilonBound> {
        let pld = "pld".into_pyobject(py)?.into_any();
        let kind = self.composed(accountant.unwrap_or(&pld))?;
        let name = kind.name();
        let answer = interruptible::run(py, progress, move || kind.epsilon(Delta::new(delta)?))?;
        Ok(EpsilonBound::new(name, delta, &answer.map_err(errors::accounting_error)?))
    }

    /// Delta of the whole ledger at an epsilon; `accountant` as for `epsilon`.
    #[pyo3(signature = (epsilon, *, accountant = None, progress = None), text_signature = "(self, epsilon, *, accountant='pld', progress=None)")]
    fn delta(
        &self,
        py: Python<'_>,
        epsilon: f64,
        accountant: Option<&Bound<'_, PyAny>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<DeltaBound> {
        let pld = "pld".into_pyobject(py)?.into_any();
        let kind = self.composed(accountant.unwrap_or(&pld))?;
        let name = kind.name();
        let answer = interruptible::run(py, progress, move || kind.privacy_profile(epsilon))?;
        Ok(DeltaBound::new(name, epsilon, &answer.map_err(errors::accounting_error)?))
    }

    /// Composes every entry into an accountant.
    fn compose_into(&self, accountant: &Accountant) -> PyResult<()> {
        accountant.compose_ledger(&self.inner()).map_err(errors::accounting_error)
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.inner() == other.inner()
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<json::Reduced> {
        json::reduce(slf, slf.get().to_json()?)
    }

    fn __copy__(&self) -> Self {
        Self(Mutex::new(self.inner()))
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        self.__copy__()
    }

    fn __repr__(&self) -> String {
        let ledger = self.lock();
        let entries: Vec<_> =
            ledger.entries().iter().map(|entry| format!("{} × {}", entry.count(), entry.event())).collect();
        format!("<Ledger under {} neighbours: [{}]>", ledger.relation(), entries.join("; "))
    }
}

impl Accountant {
    /// Composes a whole ledger, or nothing.
    fn compose_ledger(&self, ledger: &Inner) -> Result<(), AccountingError> {
        self.update(|kind| ledger.compose_into(kind))
    }
}
