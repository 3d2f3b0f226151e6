//! The accountants.

use std::sync::{Mutex, MutexGuard, PoisonError};

use dp_accounting::{
    Accountant as Interface, AccountingError, AttackBound, Delta, DeltaBound, DpEvent as Event, Epsilon, EpsilonBound,
    GdpAccountant, NeighbouringRelation, Orders, PldAccountant, RdpAccountant,
};
use pyo3::prelude::*;

use super::{bounds, events::DpEvent, trade_off::TradeOff};
use crate::count::Count;
use crate::names::{name_of, named};
use crate::{errors, interruptible};

/// An accountant of one of the three kinds.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Rdp(RdpAccountant),
    Pld(PldAccountant),
    Gdp(GdpAccountant),
}

macro_rules! each {
    ($kind:expr, $accountant:ident => $result:expr) => {
        match $kind {
            Kind::Rdp($accountant) => $result,
            Kind::Pld($accountant) => $result,
            Kind::Gdp($accountant) => $result,
        }
    };
}

impl Kind {
    /// An accountant of this name that has seen nothing, as it is unless configured.
    pub(crate) fn of(name: &str, relation: NeighbouringRelation) -> PyResult<Self> {
        match name {
            "rdp" => Ok(Self::Rdp(RdpAccountant::new(relation))),
            "pld" => Ok(Self::Pld(PldAccountant::new(relation))),
            "gdp" => Ok(Self::Gdp(GdpAccountant::new(relation))),
            _ => Err(errors::AccountingError::new_err(format!("accountant is `{name}`, expected rdp, pld or gdp"))),
        }
    }
}

impl Interface for Kind {
    fn name(&self) -> String {
        each!(self, accountant => accountant.name())
    }

    fn relation(&self) -> NeighbouringRelation {
        each!(self, accountant => accountant.relation())
    }

    fn compose(&mut self, event: &Event, count: u64) -> Result<(), AccountingError> {
        each!(self, accountant => accountant.compose(event, count))
    }

    fn epsilon(&self, delta: Delta) -> Result<EpsilonBound, AccountingError> {
        each!(self, accountant => accountant.epsilon(delta))
    }

    fn delta(&self, epsilon: Epsilon) -> Result<DeltaBound, AccountingError> {
        each!(self, accountant => accountant.delta(epsilon))
    }

    fn false_negative_rate_by_formula(&self, false_positive_rate: f64) -> Option<AttackBound> {
        each!(self, accountant => accountant.false_negative_rate_by_formula(false_positive_rate))
    }

    fn exchanged_delta(&self, epsilon: Epsilon) -> Result<DeltaBound, AccountingError> {
        each!(self, accountant => accountant.exchanged_delta(epsilon))
    }
}

/// Turns a composition of events into a guarantee.
#[pyclass(frozen, module = "fairdp.accounting")]
pub(crate) struct Accountant(Mutex<Kind>);

impl Accountant {
    fn new(kind: Kind) -> Self {
        Self(Mutex::new(kind))
    }

    fn lock(&self) -> MutexGuard<'_, Kind> {
        // The value behind the lock changes in one assignment, so a panic elsewhere leaves it
        // whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes it, or leaves it as it was.
    pub(crate) fn update(
        &self,
        change: impl FnOnce(&mut Kind) -> Result<(), AccountingError>,
    ) -> Result<(), AccountingError> {
        let mut kind = self.lock();
        let mut changed = kind.clone();
        change(&mut changed)?;
        *kind = changed;
        Ok(())
    }

    /// The events that it has composed so far.
    pub(crate) fn kind(&self) -> Kind {
        self.lock().clone()
    }
}

#[pymethods]
impl Accountant {
    /// Rényi differential privacy: an upper bound for every event.
    #[staticmethod]
    #[pyo3(signature = (relation = "add-remove", *, orders = None, conversion = "improved"))]
    fn rdp(relation: &str, orders: Option<Vec<f64>>, conversion: &str) -> PyResult<Self> {
        let mut accountant = RdpAccountant::new(named("relation", relation)?);
        if let Some(orders) = orders {
            if let Some(bad) = orders.iter().find(|order| !(**order > 1.0 && order.is_finite())) {
                return Err(errors::accounting_error(AccountingError::invalid(
                    "orders",
                    bad,
                    "a finite number above 1",
                )));
            }
            accountant = accountant.with_orders(Orders::Fixed(orders));
        }
        Ok(Self::new(Kind::Rdp(accountant.with_conversion(named("conversion", conversion)?))))
    }

    /// Privacy loss distributions: a certified bracket.
    #[staticmethod]
    #[pyo3(signature = (relation = "add-remove", *, relative_width = 1e-3, max_points = None))]
    fn pld(relation: &str, relative_width: f64, max_points: Option<usize>) -> PyResult<Self> {
        let accountant = PldAccountant::new(named("relation", relation)?).with_relative_width(relative_width);
        let accountant = accountant.and_then(|accountant| match max_points {
            Some(max_points) => accountant.with_max_points(max_points),
            None => Ok(accountant),
        });
        Ok(Self::new(Kind::Pld(accountant.map_err(errors::accounting_error)?)))
    }

    /// The central-limit estimate: no guarantee where anything is sampled.
    #[staticmethod]
    #[pyo3(signature = (relation = "add-remove"))]
    fn gdp(relation: &str) -> PyResult<Self> {
        Ok(Self::new(Kind::Gdp(GdpAccountant::new(named("relation", relation)?))))
    }

    /// Adds `count` times an event; on an error nothing was added.
    #[pyo3(signature = (event, count = Count(1)), text_signature = "(self, event, count=1)")]
    fn compose(&self, event: &DpEvent, count: Count) -> PyResult<()> {
        self.lock().compose(&event.0, count.0).map_err(errors::accounting_error)
    }

    /// Epsilon at a delta.
    #[pyo3(signature = (delta, *, progress = None))]
    fn epsilon(
        &self,
        py: Python<'_>,
        delta: f64,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bounds::EpsilonBound> {
        let kind = self.kind();
        let name = kind.name();
        let answer = interruptible::run(py, progress, move || kind.epsilon(Delta::new(delta)?))?;
        Ok(bounds::EpsilonBound::new(name, delta, &answer.map_err(errors::accounting_error)?))
    }

    /// Delta at an epsilon, which may be negative.
    #[pyo3(signature = (epsilon, *, progress = None))]
    fn delta(&self, py: Python<'_>, epsilon: f64, progress: Option<&Bound<'_, PyAny>>) -> PyResult<bounds::DeltaBound> {
        let kind = self.kind();
        let name = kind.name();
        let answer = interruptible::run(py, progress, move || kind.privacy_profile(epsilon))?;
        Ok(bounds::DeltaBound::new(name, epsilon, &answer.map_err(errors::accounting_error)?))
    }

    /// Rényi divergence of everything composed, at one order.
    fn rdp_at(&self, py: Python<'_>, order: f64) -> PyResult<f64> {
        let kind = self.kind();
        match kind {
            Kind::Rdp(accountant) => {
                interruptible::run(py, None, move || accountant.rdp(order))?.map_err(errors::accounting_error)
            }
            other => Err(errors::AccountingError::new_err(format!(
                "the {} accountant has no Rényi divergence: use Accountant.rdp()",
                other.name()
            ))),
        }
    }

    /// The trade-off curve of everything composed so far.
    fn trade_off(&self) -> TradeOff {
        TradeOff::of(self.kind())
    }

    /// Its name, for tables.
    #[getter]
    fn name(&self) -> String {
        self.lock().name()
    }

    /// The neighbouring relation.
    #[getter]
    fn relation(&self) -> String {
        name_of(&self.lock().relation())
    }

    fn __copy__(&self) -> Self {
        Self::new(self.kind())
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        Self::new(self.kind())
    }

    fn __repr__(&self) -> String {
        let kind = self.lock();
        format!("<Accountant: {}, {} neighbours>", kind.name(), kind.relation())
    }
}
