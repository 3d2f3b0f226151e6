//! Progress of a run: to the callback, and to a log that grows in the private folder.

use std::fs::File;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::error::{FairdpError, Result};
use crate::output;
use crate::printable::printable;

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

/// Time between two lines about steps.
const INTERVAL: Duration = Duration::from_secs(10);

/// `private/log.txt`: a line for each event, with its time.
pub(super) struct Log {
    path: PathBuf,
    file: File,
}

impl Log {
    /// Goes on with the log of a private folder, or begins it.
    pub(super) fn open(private: &Path) -> Result<Self> {
        let path = private.join(LOG);
        Ok(Self { file: output::append(&path)?, path })
    }

    fn line(&mut self, line: &str) -> Result<()> {
        let line = format!("{}  {}\n", Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ"), printable(line));
        self.file.write_all(line.as_bytes()).map_err(FairdpError::io("write", &self.path))
    }
}

pub(crate) const LOG: &str = "log.txt";

/// Passes progress on, and logs it.
pub(super) struct Journal<'a> {
    progress: &'a mut (dyn FnMut(Progress<'_>) -> ControlFlow<()> + Send),
    log: Option<Log>,
    /// The step that was passed on last, and when one was logged last.
    at: Option<(u64, u64)>,
    logged: Instant,
}

impl<'a> Journal<'a> {
    pub(super) fn new(progress: &'a mut (dyn FnMut(Progress<'_>) -> ControlFlow<()> + Send), log: Option<Log>) -> Self {
        Self { progress, log, at: None, logged: Instant::now() }
    }

    pub(super) fn stage(&mut self, line: impl Into<String>) -> Result<()> {
        let line = line.into();
        self.log(&line)?;
        self.tell(Progress::Stage(&line))
    }

    pub(super) fn step(&mut self, done: u64, of: u64) -> Result<()> {
        self.at = Some((done, of));
        let is_quarter = done.is_multiple_of(of.div_ceil(4));
        if done == 1 || is_quarter || done == of || self.logged.elapsed() >= INTERVAL {
            self.log(&format!("step {done} of {of}"))?;
            self.logged = Instant::now();
        }
        self.tell(Progress::Step { done, of })
    }

    /// A line for the log alone.
    pub(super) fn log(&mut self, line: &str) -> Result<()> {
        self.log.as_mut().map_or(Ok(()), |log| log.line(line))
    }

    /// Logs how a run ended that has no release.
    pub(super) fn ended(&mut self, error: &FairdpError) {
        let line = match (error, self.at) {
            (FairdpError::Interrupted, Some((done, of))) => format!("interrupted at step {done} of {of}"),
            (FairdpError::Interrupted, None) => "interrupted before the first step".to_owned(),
            (error, _) => format!("ended: {}", error.in_full()),
        };
        // The error that ended the run is told.
        let _ = self.log(&line);
    }

    fn tell(&mut self, progress: Progress<'_>) -> Result<()> {
        match (self.progress)(progress) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(FairdpError::Interrupted),
        }
    }
}
