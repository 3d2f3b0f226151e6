//! Questions by their fields, as on the command line.

use dp_accounting::Delta;
use dp_accounting::case::{Answers, Bound as Either, Case, OrdersChoice, Outcome, Parameter};
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::bounds::{DeltaBound, EpsilonBound};
use super::events::DpEvent;
use crate::count::Count;
use crate::names::named;
use crate::{errors, interruptible};

/// A question and its answers.
#[pyclass(frozen, get_all, module = "fairdp.accounting")]
pub(crate) struct Answered {
    /// The question in words, with the parameter that was found in its place.
    question: String,
    /// Name and value of the parameter that was sought, or None.
    found: Option<(&'static str, Py<PyAny>)>,
    /// One `EpsilonBound` or `DeltaBound` per accountant.
    answers: Py<PyList>,
}

#[pymethods]
impl Answered {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let answers = self.answers.bind(py).repr()?;
        Ok(match &self.found {
            Some((name, value)) => {
                format!("<Answered: {}: {name} {}: {answers}>", self.question, value.bind(py).str()?)
            }
            None => format!("<Answered: {}: {answers}>", self.question),
        })
    }
}

/// Orders of the Rényi accountant, by name or as a list.
#[derive(FromPyObject)]
pub(crate) enum Orders {
    Named(String),
    List(Vec<f64>),
}

/// Answers a question that is given by its fields.
#[pyfunction]
#[pyo3(signature = (*, sampler = None, sampling_rate = None, records = None, batch_size = None, steps = None,
    epochs = None, noise_multiplier = None, count_noise_multipliers = None, event = None, user_records = None,
    relation = None, delta = None, epsilon = None, target_epsilon = None, accountant = None, orders = None,
    conversion = None, relative_width = None, progress = None))]
#[expect(clippy::too_many_arguments, reason = "they are the fields of a question")]
pub(crate) fn answer(
    py: Python<'_>,
    sampler: Option<&str>,
    sampling_rate: Option<f64>,
    records: Option<Count>,
    batch_size: Option<Count>,
    steps: Option<Count>,
    epochs: Option<f64>,
    noise_multiplier: Option<f64>,
    count_noise_multipliers: Option<Vec<f64>>,
    event: Option<DpEvent>,
    user_records: Option<u32>,
    relation: Option<&str>,
    delta: Option<f64>,
    epsilon: Option<f64>,
    target_epsilon: Option<f64>,
    accountant: Option<&str>,
    orders: Option<Orders>,
    conversion: Option<&str>,
    relative_width: Option<f64>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Answered> {
    let case = Case {
        id: None,
        sampler: sampler.map(|name| named("sampler", name)).transpose()?,
        sampling_rate,
        records: records.map(|count| count.0),
        batch_size: batch_size.map(|count| count.0),
        steps: steps.map(|count| count.0),
        epochs,
        noise_multiplier,
        count_noise_multipliers,
        event: event.map(|event| event.0),
        user_records,
        relation: relation.map(|name| named("relation", name)).transpose()?,
        delta,
        epsilon,
        target_epsilon,
        accountant: accountant.map(|name| named("accountant", name)).transpose()?,
        orders: orders.map(|orders| match orders {
            Orders::Named(name) => OrdersChoice::Named(name),
            Orders::List(list) => OrdersChoice::List(list),
        }),
        conversion: conversion.map(|name| named("conversion", name)).transpose()?,
        relative_width,
    };
    let case = case.check().map_err(errors::accounting_error)?;
    let answers = interruptible::run(py, progress, move || case.answer())?.map_err(errors::accounting_error)?;
    python(py, answers)
}

fn python(py: Python<'_>, all: Answers) -> PyResult<Answered> {
    let found = all.parameter.map(|parameter| match parameter {
        Parameter::NoiseMultiplier(value) => Ok(("noise_multiplier", value.into_pyobject(py)?.into_any().unbind())),
        Parameter::SamplingRate(value) => Ok(("sampling_rate", value.into_pyobject(py)?.into_any().unbind())),
        Parameter::BatchSize(value) => Ok(("batch_size", value.into_pyobject(py)?.into_any().unbind())),
        Parameter::Steps(value) => Ok::<_, PyErr>(("steps", value.into_pyobject(py)?.into_any().unbind())),
    });
    let at = all.case.epsilon().or_else(|| all.case.delta().map(Delta::get)).unwrap_or(f64::NAN);
    let answers = PyList::empty(py);
    for answer in all.by_accountant {
        match answer.bound {
            Either::Epsilon(bound) => {
                answers.append(Bound::new(py, EpsilonBound::new(answer.accountant, at, &bound))?)?;
            }
            Either::Delta(bound) => answers.append(Bound::new(py, DeltaBound::new(answer.accountant, at, &bound))?)?,
        }
    }
    let question = all.case.to_string();
    Ok(Answered { question, found: found.transpose()?, answers: answers.unbind() })
}

/// Answers JSON lines, one question in each: the lines of `fairdp account`. What is wrong with a
/// line is its note.
#[pyfunction]
#[pyo3(signature = (lines, *, progress = None))]
pub(crate) fn answer_lines(
    py: Python<'_>,
    lines: Vec<String>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<String>> {
    interruptible::run(py, progress, move || {
        let outcomes = lines.iter().map(|line| Outcome::of_line(line.as_bytes(), &Case::default()));
        outcomes.map(|outcome| serde_json::to_string(&outcome)).collect::<Result<Vec<_>, _>>()
    })?
    .map_err(|error| errors::AccountingError::new_err(error.to_string()))
}
