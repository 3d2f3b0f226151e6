//! Progress of a run: to the callback, and to a log.

use std::ops::ControlFlow;
use std::time::Instant;

use crate::error::{FairdpError, Result};

/// Progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress<'a> {
    /// A stage begins.
    Stage(&'a str),
    /// A training step ends.
    Step {
        /// Steps done.
        done: u64,
        /// Steps of the training.
        of: u64,
    },
}

/// Passes progress on, and keeps a log for the private folder.
pub(super) struct Journal<'a> {
    progress: &'a mut (dyn FnMut(Progress<'_>) -> ControlFlow<()> + Send),
    start: Instant,
    log: Vec<String>,
}

impl<'a> Journal<'a> {
    pub(super) fn new(progress: &'a mut (dyn FnMut(Progress<'_>) -> ControlFlow<()> + Send)) -> Self {
        Self { progress, start: Instant::now(), log: Vec::new() }
    }

    pub(super) fn stage(&mut self, line: impl Into<String>) -> Result<()> {
        let line = line.into();
        self.tell(Progress::Stage(&line))?;
        self.log.push(format!("{:8.2} s  {line}", self.start.elapsed().as_secs_f64()));
        Ok(())
    }

    pub(super) fn step(&mut self, done: u64, of: u64) -> Result<()> {
        self.tell(Progress::Step { done, of })?;
        if done.is_multiple_of(of.div_ceil(4)) {
            self.log.push(format!("{:8.2} s  step {done} of {of}", self.start.elapsed().as_secs_f64()));
        }
        Ok(())
    }

    fn tell(&mut self, progress: Progress<'_>) -> Result<()> {
        match (self.progress)(progress) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(FairdpError::Interrupted),
        }
    }

    pub(super) fn text(&self) -> String {
        self.log.join("\n") + "\n"
    }
}
