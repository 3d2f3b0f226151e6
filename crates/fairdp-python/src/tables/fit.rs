//! Training on the files that a configuration names.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use fairdp::{FitOptions, FitPlan};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde_json::json;

use crate::errors;
use crate::running::listening;

/// Trains, leaves the run's folder in `out`, and returns remarks on the table: values that the
/// schema does not foresee. `known` says how settings were chosen, after earlier fits.
#[pyfunction]
#[pyo3(signature = (
    config, out, *, program, n_threads, known = None, seed = None, ledger = None, start_from = None, resume = false,
    reference = false, keep_encoded = false, progress = None))]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over")]
#[expect(clippy::too_many_arguments, reason = "keywords of one Python function")]
pub(super) fn fit(
    py: Python<'_>,
    config: PathBuf,
    out: PathBuf,
    program: Option<PathBuf>,
    n_threads: usize,
    known: Option<String>,
    seed: Option<u64>,
    ledger: Option<PathBuf>,
    start_from: Option<PathBuf>,
    resume: bool,
    reference: bool,
    keep_encoded: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<String>> {
    let threads = NonZeroUsize::new(n_threads).unwrap_or(NonZeroUsize::MIN);
    let options = FitOptions {
        seed,
        threads,
        program,
        ledger,
        from: start_from,
        resume,
        reference,
        keep_encoded,
        settings_note: known,
        ..FitOptions::new(out)
    };
    let fitted = listening(py, progress.as_ref(), |told| fairdp::fit(&config, &options, told))?;
    Ok(fitted.diagnostics.remarks)
}

/// Every release that a fit would make, as JSON; nothing is drawn and nothing is written. Without a
/// table what depends on it is not known.
#[pyfunction]
#[pyo3(signature = (config, *, n_threads, out = None, ledger = None, start_from = None, no_data = false, progress = None))]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over")]
#[expect(clippy::too_many_arguments, reason = "keywords of one Python function")]
pub(super) fn plan(
    py: Python<'_>,
    config: PathBuf,
    n_threads: usize,
    out: Option<PathBuf>,
    ledger: Option<PathBuf>,
    start_from: Option<PathBuf>,
    no_data: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let threads = NonZeroUsize::new(n_threads).unwrap_or(NonZeroUsize::MIN);
    let options = FitOptions { threads, ledger, from: start_from, ..FitOptions::new(out.unwrap_or_default()) };
    let plan = if no_data {
        fairdp::plan_without_data(&config, &options).map_err(errors::fairdp_error)?
    } else {
        listening(py, progress.as_ref(), |told| fairdp::plan(&config, &options, told))?
    };
    in_json(&plan).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

fn in_json(plan: &FitPlan) -> serde_json::Result<String> {
    let candidates: Vec<_> =
        plan.candidates().map(|(model, method)| json!({ "model": model, "method": method })).collect();
    let table = plan.table.map(
        |table| json!({ "records": table.records, "test_records": table.test_records, "features": table.features }),
    );
    serde_json::to_string(&json!({
        "epsilon": plan.epsilon, "delta": plan.delta, "mark": plan.mark(), "uncovered": plan.uncovered, "table": table,
        "training_records": plan.n_training, "candidates": candidates, "releases": serde_json::to_value(&plan.releases)?,
        "started_from": plan.started_from,
    }))
}
