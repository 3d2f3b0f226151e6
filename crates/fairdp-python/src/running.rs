//! A run on a second thread, while the calling thread listens for Ctrl-C and calls the callback.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use fairdp::Progress;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::errors;

/// Time between two looks for signals.
const PAUSE: Duration = Duration::from_millis(50);

/// A message to the callback: the stage, and steps done of all (0 of 0 when a stage begins).
type Message = (String, u64, u64);

/// What a run calls with its progress.
pub(crate) type Told<'a> = &'a mut (dyn FnMut(Progress<'_>) -> ControlFlow<()> + Send);

/// Runs, and passes its progress on. The GIL is free meanwhile.
pub(crate) fn listening<T: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    run: impl FnOnce(Told<'_>) -> fairdp::Result<T> + Send,
) -> PyResult<T> {
    let stop = AtomicBool::new(false);
    let is_told = progress.is_some();
    py.detach(|| {
        let (sender, receiver) = channel();
        thread::scope(|scope| {
            let stop = &stop;
            let run = scope.spawn(move || {
                let mut stage = String::new();
                run(&mut |progress| {
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
            let heard = listen(&receiver, progress);
            stop.store(true, Ordering::Relaxed);
            let ended = run.join().map_err(|_| PyRuntimeError::new_err("the training thread panicked"))?;
            heard?;
            ended.map_err(errors::fairdp_error)
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
