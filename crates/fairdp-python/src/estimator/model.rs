//! A released model.

use dp_table::TableFiles;
use fairdp::Predictor;
use numpy::{PyArray1, PyArray2, PyArrayMethods as _};
use pyo3::prelude::*;

use super::columns::{Column, table};
use crate::errors;

/// Answers of a model: each record's class, as a position; the probabilities of all classes; and
/// remarks on values that the model does not know.
type Answers<'py> = (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray2<f64>>, Vec<String>);

/// A model's numbers, and remarks.
type Numbers<'py> = (Bound<'py, PyArray1<f64>>, Vec<String>);

/// For each record the columns that moved its answer most, and how much each did.
type Reasons = Vec<Vec<(String, f64)>>;

/// A model from the bytes of a release's `pipeline.json` and `model.safetensors`.
#[pyclass(frozen, module = "fairdp._fairdp.estimator")]
pub(crate) struct Model(fairdp::FittedModel);

#[pymethods]
impl Model {
    #[new]
    fn new(pipeline: &[u8], weights: &[u8]) -> PyResult<Self> {
        fairdp::FittedModel::from_bytes(pipeline, weights).map(Self).map_err(errors::fairdp_error)
    }

    /// The classes, in the order of the probabilities.
    fn classes(&self) -> Vec<String> {
        self.0.classes().to_vec()
    }

    /// Whether decisions depend on the group.
    fn needs_groups(&self) -> bool {
        self.0.needs_groups()
    }

    /// Whether every column acts for itself, so that there are reasons for an answer.
    fn is_additive(&self) -> bool {
        self.0.is_additive()
    }

    /// The model's answer for every record.
    fn answers<'py>(&self, py: Python<'py>, columns: Vec<(String, Column<'py>)>) -> PyResult<Answers<'py>> {
        let files = TableFiles::in_memory(table(columns)?);
        let answers = || -> fairdp::Result<_> {
            let mut predictor = Predictor::new(&self.0, &files)?;
            let (mut classes, mut probabilities) = (Vec::new(), Vec::new());
            while let Some((class, row)) = predictor.answer()? {
                classes.push(class as u64);
                probabilities.extend_from_slice(row);
            }
            Ok((classes, probabilities, predictor.remarks()))
        };
        let (classes, probabilities, remarks) = py.detach(answers).map_err(errors::fairdp_error)?;
        let shape = [classes.len(), self.0.classes().len()];
        Ok((PyArray1::from_vec(py, classes), PyArray1::from_vec(py, probabilities).reshape(shape)?, remarks))
    }

    /// The number that is predicted for every record, and remarks.
    fn numbers<'py>(&self, py: Python<'py>, columns: Vec<(String, Column<'py>)>) -> PyResult<Numbers<'py>> {
        let files = TableFiles::in_memory(table(columns)?);
        let numbers = || -> fairdp::Result<_> {
            let mut predictor = Predictor::new(&self.0, &files)?;
            let mut numbers = Vec::new();
            while let Some(number) = predictor.number()? {
                numbers.push(number);
            }
            Ok((numbers, predictor.remarks()))
        };
        let (numbers, remarks) = py.detach(numbers).map_err(errors::fairdp_error)?;
        Ok((PyArray1::from_vec(py, numbers), remarks))
    }

    /// The columns that moved each record's answer most, at most so many of them.
    fn reasons(&self, py: Python<'_>, columns: Vec<(String, Column<'_>)>, most: usize) -> PyResult<Reasons> {
        let files = TableFiles::in_memory(table(columns)?);
        let reasons = || -> fairdp::Result<_> {
            let mut predictor = Predictor::new(&self.0, &files)?;
            let mut reasons = Vec::new();
            let is_number = self.0.number().is_some();
            loop {
                // A number is the one answer that there is.
                let answer = if is_number {
                    predictor.number()?.map(|_| 0)
                } else {
                    predictor.answer()?.map(|(class, _)| class)
                };
                let Some(class) = answer else { break };
                let of_row = predictor.reasons(class, most).into_iter();
                reasons.push(of_row.map(|(column, change)| (column.to_owned(), change)).collect());
            }
            Ok(reasons)
        };
        py.detach(reasons).map_err(errors::fairdp_error)
    }
}
