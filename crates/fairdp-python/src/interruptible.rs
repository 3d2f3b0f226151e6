//! Long work off the interpreter: other threads run, Ctrl-C works, progress is told.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// How often signals are looked for and progress is told.
const PERIOD: Duration = Duration::from_millis(100);

/// Runs `work` on a second thread without the interpreter's lock, and waits for it.
///
/// `progress`, if there is one, is called about ten times a second with the seconds so far. What it
/// raises, and Ctrl-C, ends the wait; the thread ends with its work, whose result nobody reads.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let start = Instant::now();
    let (sender, mut receiver) = channel();
    std::thread::Builder::new().name("fairdp".to_owned()).spawn(move || {
        // Nobody listens any more after an interrupt.
        let _ = sender.send(work());
    })?;
    loop {
        let received;
        (received, receiver) = py.detach(move || (receiver.recv_timeout(PERIOD), receiver));
        match received {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Timeout) => {
                py.check_signals()?;
                if let Some(progress) = progress {
                    progress.call1((start.elapsed().as_secs_f64(),))?;
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("the computation stopped without a result: please report it"));
            }
        }
    }
}
