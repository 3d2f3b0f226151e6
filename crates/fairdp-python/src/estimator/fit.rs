//! Training on a second thread, while the calling thread listens for Ctrl-C and calls the callback.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use dp_accounting::Delta;
use fairdp::{Account, FitOptions, Progress, Release};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use super::columns::{Column, table};
use crate::errors;

/// Time between two looks for signals.
const PAUSE: Duration = Duration::from_millis(50);

/// A message to the callback: the stage, and steps done of all (0 of 0 when a stage begins).
type Message = (String, u64, u64);

/// Trains on a table in memory and leaves the run's folder in `out`. `ledger` is a file that
/// several fits share; `known` says how settings were chosen. The GIL is free meanwhile.
#[pyfunction]
#[pyo3(signature = (config, columns, out, seed, n_threads, program, ledger, known, progress))]
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
    known: String,
    progress: Option<Py<PyAny>>,
) -> PyResult<()> {
    let table = table(columns)?;
    let threads = NonZeroUsize::new(n_threads).unwrap_or(NonZeroUsize::MIN);
    let options = FitOptions { seed, threads, program, ledger, settings_note: Some(known), ..FitOptions::new(out) };
    let stop = AtomicBool::new(false);
    py.detach(|| {
        let (sender, receiver) = channel();
        let is_told = progress.is_some();
        thread::scope(|scope| {
            let run = scope.spawn(|| {
                let sender = sender;
                let mut stage = String::new();
                fairdp::fit_table(config, table, &options, &mut |progress| {
                    let message = match progress {
                        Progress::Stage(line) => {
                            line.clone_into(&mut stage);
                            (stage.clone(), 0, 0)
                        }
                        Progress::Step { done, of } => (stage.clone(), done, of),
                    };
                    if is_told {
                        // Nobody listens once a signal came.
                        let _ = sender.send(message);
                    }
                    if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                })
            });
            let heard = listen(&receiver, progress.as_ref());
            stop.store(true, Ordering::Relaxed);
            let ended = run.join().map_err(|_| PyRuntimeError::new_err("the training thread panicked"))?;
            heard?;
            ended.map(drop).map_err(errors::fairdp_error)
        })
    })
}

/// Passes messages on until the run has ended, a signal came or the callback raised.
fn listen(messages: &Receiver<Message>, progress: Option<&Py<PyAny>>) -> PyResult<()> {
    loop {
        let message = match messages.recv_timeout(PAUSE) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        Python::attach(|py| {
            py.check_signals()?;
            match (message, progress) {
                (Some(message), Some(progress)) => progress.call1(py, message).map(drop),
                _ => Ok(()),
            }
        })?;
    }
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

/// Checks a release, or a run's folder, and returns its statement as JSON.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over")]
pub(super) fn verify(py: Python<'_>, folder: PathBuf) -> PyResult<String> {
    let verified = py.detach(|| fairdp::verify(&folder)).map_err(errors::fairdp_error)?;
    serde_json::to_string(&verified.statement).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}
