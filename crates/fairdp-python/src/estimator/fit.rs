//! Training on a table in memory.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use dp_accounting::Delta;
use fairdp::fair_decisions::{Aim, Mode};
use fairdp::{Account, FitOptions, Release};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::columns::{Column, table};
use crate::errors;
use crate::running::listening;

/// Trains on a table in memory and leaves the run's folder in `out`. `ledger` is a file that
/// several fits share, `start_from` a run or a release that is corrected; `known` says how settings were chosen. The GIL is free meanwhile.
#[pyfunction]
#[pyo3(signature = (config, columns, out, seed, n_threads, program, ledger, start_from, known, progress))]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over")]
#[expect(clippy::too_many_arguments, reason = "called by one Python function")]
pub(super) fn fit(
    py: Python<'_>,
    config: &str,
    columns: Vec<(String, Column<'_>)>,
    out: PathBuf,
    seed: Option<u64>,
    n_threads: usize,
    program: Option<PathBuf>,
    ledger: Option<PathBuf>,
    start_from: Option<PathBuf>,
    known: String,
    progress: Option<Py<PyAny>>,
) -> PyResult<()> {
    let table = table(columns)?;
    let threads = NonZeroUsize::new(n_threads).unwrap_or(NonZeroUsize::MIN);
    let options = FitOptions {
        seed,
        threads,
        program,
        ledger,
        from: start_from,
        settings_note: Some(known),
        ..FitOptions::new(out)
    };
    listening(py, progress.as_ref(), |told| fairdp::fit_table(config, table, &options, told)).map(drop)
}

/// ε at a δ of several fits on the same records, by the `events` of their statements as JSON.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over")]
pub(super) fn total_epsilon(py: Python<'_>, events: Vec<String>, delta: f64) -> PyResult<f64> {
    let runs = events.iter().map(|text| {
        let releases: Vec<Release> =
            serde_json::from_str(text).map_err(|error| PyValueError::new_err(format!("events: {error}")))?;
        Account::of(releases).map_err(errors::fairdp_error)
    });
    let runs = runs.collect::<PyResult<Vec<_>>>()?;
    let delta = Delta::new(delta).map_err(errors::accounting_error)?;
    py.detach(|| Account::epsilon_together(&runs, delta)).map_err(errors::fairdp_error)
}

/// Another release with the decisions of a mode, from the files of a release by name.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over")]
pub(super) fn with_fairness<'py>(
    py: Python<'py>,
    release: BTreeMap<String, Vec<u8>>,
    mode: &str,
    max_loss: f64,
    max_gap: f64,
    one_threshold: bool,
    coins: bool,
) -> PyResult<BTreeMap<String, Bound<'py, PyBytes>>> {
    let aim = Mode::find(mode).and_then(|mode| Aim::with_limits(mode, max_loss, max_gap));
    let aim = aim.map_err(|error| errors::fairdp_error(error.into()))?;
    let aim = aim.with_one_threshold(one_threshold).with_coins(coins);
    let files = py.detach(|| fairdp::with_fairness(&release, &aim)).map_err(errors::fairdp_error)?;
    Ok(files.into_iter().map(|(name, bytes)| (name, PyBytes::new(py, &bytes))).collect())
}

/// Checks a release, or a run's folder, with a public key also its signature, and returns its statement as JSON.
#[pyfunction]
#[pyo3(signature = (folder, public_key = None))]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over")]
pub(super) fn verify(py: Python<'_>, folder: PathBuf, public_key: Option<PathBuf>) -> PyResult<String> {
    let check = || match &public_key {
        None => fairdp::verify(&folder),
        Some(key) => fairdp::verify_author(&folder, key),
    };
    let verified = py.detach(check).map_err(errors::fairdp_error)?;
    serde_json::to_string(&verified.statement).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}
