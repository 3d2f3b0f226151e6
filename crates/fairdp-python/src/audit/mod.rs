//! The base of `fairdp.audit`: attacks on runs, and bounds from scores of canaries.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use dp_accounting::{Delta, NoiseMultiplier, SamplingRate};
use fairdp::one_run::{Claim, Score};
use fairdp::{AuditOptions, AuditReport};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde_json::json;

use crate::errors;
use crate::estimator::columns::{Column, table};
use crate::running::listening;

#[pymodule]
pub(crate) mod audit {
    #[pymodule_export]
    use super::{bounds, of_columns, of_files};
}

/// What Python says of an audit.
#[derive(FromPyObject)]
struct Options {
    #[pyo3(item)]
    canaries: usize,
    #[pyo3(item)]
    repeats: Option<u32>,
    #[pyo3(item)]
    plant: Option<String>,
    #[pyo3(item)]
    start_from: Option<PathBuf>,
    #[pyo3(item)]
    seed: Option<u64>,
    #[pyo3(item)]
    threads: usize,
    #[pyo3(item)]
    out: Option<PathBuf>,
}

impl Options {
    fn checked(self) -> PyResult<AuditOptions> {
        Ok(AuditOptions {
            canaries: self.canaries,
            repeats: self.repeats,
            fault: self.plant.map(|name| name.parse()).transpose().map_err(errors::fairdp_error)?,
            from: self.start_from,
            seed: self.seed,
            threads: NonZeroUsize::new(self.threads).unwrap_or(NonZeroUsize::MIN),
            out: self.out,
            release: None,
        })
    }
}

/// The report as JSON, and as text.
fn told(report: &AuditReport) -> PyResult<(String, String)> {
    let json = serde_json::to_string(report).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    Ok((json, report.markdown()))
}

/// Attacks a run of a configuration on its files.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over")]
fn of_files(
    py: Python<'_>,
    config: PathBuf,
    options: Options,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, String)> {
    let options = options.checked()?;
    told(&listening(py, progress.as_ref(), |told| fairdp::audit(&config, &options, told))?)
}

/// Attacks a run of a configuration on a table in memory.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over")]
fn of_columns(
    py: Python<'_>,
    config: &str,
    columns: Vec<(String, Column<'_>)>,
    options: Options,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, String)> {
    let (table, options) = (table(columns)?, options.checked()?);
    told(&listening(py, progress.as_ref(), |told| fairdp::audit_table(config, table, &options, told))?)
}

/// Bounds from the scores of canaries of one run, as JSON: each wrong with probability `failure` at
/// most.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "called by one Python function")]
fn bounds(
    py: Python<'_>,
    scores: Vec<f64>,
    present: Vec<bool>,
    noise_multiplier: f64,
    sampling_rate: f64,
    steps: u64,
    delta: f64,
    failure: f64,
) -> PyResult<String> {
    let scores: Vec<Score> =
        scores.into_iter().zip(present).map(|(score, present)| Score { score, present, kind: 0 }).collect();
    let noise = NoiseMultiplier::new(noise_multiplier).map_err(errors::accounting_error)?;
    let rate = SamplingRate::new(sampling_rate).map_err(errors::accounting_error)?;
    let delta = Delta::new(delta).map_err(errors::accounting_error)?;
    let found = py.detach(|| {
        let claim = Claim::new(noise, rate, steps, delta)?;
        let bounds = claim.bounds(&scores, failure)?;
        let refuted = claim.refuted(&scores, failure);
        Ok((claim, bounds, refuted))
    });
    let (claim, bounds, refuted) =
        found.map_err(|error: fairdp::one_run::TrainError| errors::fairdp_error(error.into()))?;
    Ok(json!({ "claim": claim, "bounds": bounds, "refuted": refuted }).to_string())
}
