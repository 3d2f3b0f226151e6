//! The paragraph an auditor needs.

use dp_accounting::{Delta, Scope, Statement as Inner};
use pyo3::prelude::*;

use super::ledger::Ledger;
use crate::count::Count;
use crate::names::name_of;
use crate::{errors, interruptible, json};

/// A statement: unit of privacy, coverage, ε and δ.
#[pyclass(frozen, eq, module = "fairdp.accounting")]
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Statement(pub(crate) Inner);

#[pymethods]
impl Statement {
    /// States what an accountant says of a ledger, which it composes itself: `accountant` is a
    /// name, or an accountant that composed nothing yet. `n_records` is the number of units of
    /// privacy, if that is public: a delta of 1/n or more is named.
    #[new]
    #[pyo3(signature = (ledger, delta, *, unit_of_privacy, covered, not_covered = Vec::new(), given = Vec::new(), n_records = None, accountant = None),
           text_signature = "(ledger, delta, *, unit_of_privacy, covered, not_covered=(), given=(), n_records=None, accountant='pld')")]
    #[expect(clippy::too_many_arguments, reason = "Python's keywords")]
    fn new(
        ledger: &Bound<'_, Ledger>,
        delta: f64,
        unit_of_privacy: String,
        covered: Vec<String>,
        not_covered: Vec<String>,
        given: Vec<String>,
        n_records: Option<Count>,
        accountant: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = ledger.py();
        let pld = "pld".into_pyobject(py)?.into_any();
        let kind = ledger.get().kind(accountant.unwrap_or(&pld))?;
        let ledger = ledger.get().inner();
        let scope =
            Scope { unit_of_privacy, covered, not_covered, conditions: given, n_records: n_records.map(|n| n.0) };
        let statement = interruptible::run(py, None, move || Inner::by(kind, &ledger, Delta::new(delta)?, scope))?;
        statement.map(Self).map_err(errors::accounting_error)
    }

    /// Epsilon, an upper bound unless `mark` is "nominal".
    #[getter]
    fn epsilon(&self) -> f64 {
        self.0.epsilon.epsilon().get()
    }

    /// A proven lower bound on epsilon, or None.
    #[getter]
    fn epsilon_lower(&self) -> Option<f64> {
        self.0.epsilon_lower.map(dp_accounting::Epsilon::get)
    }

    /// Delta.
    #[getter]
    fn delta(&self) -> f64 {
        self.0.delta.get()
    }

    /// "certified", "conditional" or "nominal".
    #[getter]
    fn mark(&self) -> String {
        name_of(&self.0.epsilon.mark())
    }

    /// The conditions of ε.
    #[getter]
    fn given(&self) -> Vec<String> {
        self.0.epsilon.conditions().to_vec()
    }

    /// The releases that ε covers.
    #[getter]
    fn covers(&self) -> Vec<String> {
        self.0.epsilon.covers().to_vec()
    }

    /// Facts that ε does not cover.
    #[getter]
    fn not_covered(&self) -> Vec<String> {
        self.0.epsilon.not_covered().to_vec()
    }

    /// Digest of the ledger.
    #[getter]
    fn ledger_digest(&self) -> &str {
        &self.0.ledger_digest
    }

    /// As JSON.
    fn to_json(&self) -> PyResult<String> {
        json::to_json(&self.0)
    }

    /// From JSON.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Self> {
        json::from_json(text).map(Self)
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<json::Reduced> {
        json::reduce(slf, slf.get().to_json()?)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<Statement: epsilon {:.4} at delta {:e}>", self.0.epsilon, self.0.delta.get())
    }
}
