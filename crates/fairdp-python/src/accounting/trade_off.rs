//! Bounds on the success of an attacker.

use dp_accounting::AccountingError;
use pyo3::prelude::*;

use super::accountants::Kind;
use super::bounds::AttackBound;
use crate::{errors, interruptible};

/// The trade-off between the error rates of every test for one record.
#[pyclass(frozen, module = "fairdp.accounting")]
pub(crate) struct TradeOff(Kind);

impl TradeOff {
    pub(crate) fn of(kind: Kind) -> Self {
        Self(kind)
    }

    fn ask(
        &self,
        py: Python<'_>,
        question: impl FnOnce(dp_accounting::TradeOff<'_>) -> Result<dp_accounting::AttackBound, AccountingError>
        + Send
        + 'static,
    ) -> PyResult<AttackBound> {
        let kind = self.0.clone();
        let answer = interruptible::run(py, None, move || question(dp_accounting::TradeOff::new(&kind)))?;
        answer.map(AttackBound::from).map_err(errors::accounting_error)
    }
}

#[pymethods]
impl TradeOff {
    /// The smallest false-negative rate of any test with this false-positive rate.
    fn false_negative_rate(&self, py: Python<'_>, false_positive_rate: f64) -> PyResult<AttackBound> {
        self.ask(py, move |curve| curve.false_negative_rate(false_positive_rate))
    }

    /// The largest difference between true-positive and false-positive rate.
    fn advantage(&self, py: Python<'_>) -> PyResult<AttackBound> {
        self.ask(py, |curve| curve.advantage())
    }

    /// The smallest probability of error of an attacker who knows that the record is in with
    /// probability `prior`.
    fn bayes_risk(&self, py: Python<'_>, prior: f64) -> PyResult<AttackBound> {
        self.ask(py, move |curve| curve.bayes_risk(prior))
    }

    /// The smallest mu whose Gaussian is no more private, for tests with error rates of at least
    /// `smallest_rate`.
    fn gaussian_mu(&self, py: Python<'_>, smallest_rate: f64) -> PyResult<AttackBound> {
        self.ask(py, move |curve| curve.gaussian_mu(smallest_rate))
    }
}
