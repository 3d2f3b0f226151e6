//! Answers.

use dp_accounting::{Certainty, Epsilon, Mark, MarkedEpsilon, Rounding, Scope, decimal};
use pyo3::prelude::*;

use crate::names::name_of;

/// Python's word for a certainty, and the reason of a fall-back.
fn of_certainty(certainty: &Certainty) -> (&'static str, Option<String>) {
    match certainty {
        Certainty::Bound => ("bound", None),
        Certainty::FallBack { reason } => ("fall-back", Some(reason.clone())),
        _ => ("estimate", None),
    }
}

/// How an answer was found, in words.
fn how(accountant: &str, method: Option<dp_accounting::Method>, order: Option<f64>) -> String {
    match (method, order) {
        (Some(method), _) => method.to_string(),
        (None, Some(order)) => format!("{accountant}, order {order:.6}"),
        (None, None) => accountant.to_owned(),
    }
}

/// An answer to "which epsilon at this delta?".
#[pyclass(frozen, eq, get_all, module = "fairdp.accounting")]
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EpsilonBound {
    /// A proven lower bound on the smallest possible epsilon, or None where there is none.
    lower: Option<f64>,
    /// The answer: an upper bound unless `certainty` is "estimate".
    upper: f64,
    /// The delta that was asked for.
    delta: f64,
    /// How it was found.
    how: String,
    /// "certified", or "nominal" for a number without a proof.
    mark: String,
    /// "bound"; "fall-back", a proven bound that is coarser than asked for; or "estimate".
    certainty: &'static str,
    /// Why it fell back.
    reason: Option<String>,
    /// The accountant's name.
    accountant: String,
    /// The Rényi order of the answer, for an accountant that has one.
    order: Option<f64>,
    text: String,
}

impl EpsilonBound {
    pub(crate) fn new(accountant: String, delta: f64, bound: &dp_accounting::EpsilonBound) -> Self {
        let (certainty, reason) = of_certainty(&bound.certainty);
        let marked = MarkedEpsilon::new(bound, &Scope::of("one record", ["what was composed"]));
        Self {
            lower: bound.lower.map(Epsilon::get),
            upper: bound.epsilon.get(),
            delta,
            how: how(&accountant, bound.method, bound.order),
            mark: name_of(&marked.mark()),
            certainty,
            reason,
            accountant,
            order: bound.order,
            text: format!("{marked:.4}"),
        }
    }
}

#[pymethods]
impl EpsilonBound {
    fn __float__(&self) -> f64 {
        self.upper
    }

    fn __str__(&self) -> String {
        let relation = if self.certainty == "estimate" { "about" } else { "at most" };
        let lower = self.lower.filter(|lower| *lower > 0.0);
        let lower = lower.map_or_else(String::new, |lower| format!(", at least {}", decimal(lower, 4, Rounding::Down)));
        format!("epsilon {relation} {}{lower}, at delta {:e}, by {}", self.text, self.delta, self.how)
    }

    fn __repr__(&self) -> String {
        let Self { lower, upper, delta, how, mark, .. } = self;
        let lower = lower.map_or_else(|| "None".to_owned(), |lower| lower.to_string());
        format!("EpsilonBound(lower={lower}, upper={upper}, delta={delta:e}, how='{how}', mark='{mark}')")
    }
}

/// An answer to "which delta at this epsilon?".
#[pyclass(frozen, eq, get_all, module = "fairdp.accounting")]
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DeltaBound {
    /// A proven lower bound on the smallest possible delta, or None where there is none.
    lower: Option<f64>,
    /// The answer: an upper bound unless `certainty` is "estimate".
    upper: f64,
    /// The epsilon that was asked for.
    epsilon: f64,
    /// How it was found.
    how: String,
    /// "certified", or "nominal" for a number without a proof and for a delta of 1, which promises
    /// nothing.
    mark: String,
    /// "bound"; "fall-back", a proven bound that is coarser than asked for; or "estimate".
    certainty: &'static str,
    /// Why it fell back.
    reason: Option<String>,
    /// The accountant's name.
    accountant: String,
    /// The Rényi order of the answer, for an accountant that has one.
    order: Option<f64>,
}

impl DeltaBound {
    pub(crate) fn new(accountant: String, epsilon: f64, bound: &dp_accounting::DeltaBound) -> Self {
        let (certainty, reason) = of_certainty(&bound.certainty);
        let is_proven = certainty != "estimate" && bound.delta < 1.0;
        Self {
            lower: bound.lower,
            upper: bound.delta,
            epsilon,
            how: how(&accountant, bound.method, bound.order),
            mark: name_of(if is_proven { &Mark::Certified } else { &Mark::Nominal }),
            certainty,
            reason,
            accountant,
            order: bound.order,
        }
    }
}

#[pymethods]
impl DeltaBound {
    fn __float__(&self) -> f64 {
        self.upper
    }

    fn __repr__(&self) -> String {
        let Self { lower, upper, epsilon, how, mark, .. } = self;
        let lower = lower.map_or_else(|| "None".to_owned(), |lower| format!("{lower:e}"));
        format!("DeltaBound(lower={lower}, upper={upper:e}, epsilon={epsilon}, how='{how}', mark='{mark}')")
    }
}

/// An upper bound on every attack, and a lower bound that some attack reaches.
#[pyclass(frozen, eq, get_all, module = "fairdp.accounting")]
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AttackBound {
    /// No attack does better, unless `certainty` is "estimate".
    guaranteed: f64,
    /// An attack does at least this well, where the accountant has lower bounds.
    possible: Option<f64>,
    /// "bound", "fall-back" or "estimate".
    certainty: &'static str,
}

impl From<dp_accounting::AttackBound> for AttackBound {
    fn from(bound: dp_accounting::AttackBound) -> Self {
        let (certainty, _) = of_certainty(&bound.certainty);
        Self { guaranteed: bound.guaranteed, possible: bound.possible, certainty }
    }
}

#[pymethods]
impl AttackBound {
    fn __repr__(&self) -> String {
        let Self { guaranteed, possible, certainty } = self;
        let possible = possible.map_or_else(|| "None".to_owned(), |possible| possible.to_string());
        format!("AttackBound(guaranteed={guaranteed}, possible={possible}, certainty='{certainty}')")
    }
}
