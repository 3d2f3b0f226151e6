//! A command that takes its time: its progress, and signals that end it.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use fairdp::{FairdpError, Progress, ReadProgress, printable, stream_name};

use super::failure::Failure;
use super::interrupt::Interrupt;
use super::progress::{ProgressDisplay, Said};

pub(super) struct Shown {
    reading: Arc<ReadProgress>,
    interrupt: Interrupt,
    display: ProgressDisplay,
}

impl Shown {
    pub(super) fn new(said: Said) -> Self {
        let reading = Arc::new(ReadProgress::default());
        let interrupt = Interrupt::install(reading.stop());
        let display = ProgressDisplay::new(said, &reading, &interrupt);
        Self { reading, interrupt, display }
    }

    /// That of a command that reads a table, and does nothing else that takes its time.
    pub(super) fn reading_of(said: Said, table: &[String]) -> Self {
        let shown = Self::new(said);
        let names: Vec<&str> = table.iter().map(|table| stream_name(table)).collect();
        shown.display.stage(&format!("reading {}", names.join(", ")));
        shown
    }

    pub(super) fn reading(&self) -> Arc<ReadProgress> {
        Arc::clone(&self.reading)
    }

    /// Shows it; breaks where a signal came.
    pub(super) fn note(&self, progress: Progress<'_>) -> ControlFlow<()> {
        self.display.note(progress);
        if self.interrupt.is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// The result of a command that leaves nothing behind where a signal ends it.
    pub(super) fn ended<T>(&self, result: Result<T, impl Into<Failure>>) -> Result<T, Failure> {
        result.map_err(Into::into).map_err(|failure| match failure.of_library() {
            Some(FairdpError::Interrupted) => {
                Failure::Interrupted(format!("interrupted ({}): no file was written", self.interrupt.name()))
            }
            _ => failure,
        })
    }

    /// What is left of a fit that a signal ended, and how it goes on.
    pub(super) fn interrupted(self, out: &Path) -> Failure {
        let place = match self.display.place() {
            Some((done, of)) => format!("at step {done} of {of}"),
            None => "before the first step".to_owned(),
        };
        let private = out.join("private");
        let (signal, folder) = (self.interrupt.name(), printable(&private.to_string_lossy()).into_owned());
        drop(self.display);
        let arguments = std::env::args().skip(1).filter(|argument| argument != "--resume");
        let arguments: Vec<String> = arguments.chain(["--resume".into()]).collect();
        let kept = if fairdp::holds_key(out) {
            format!(
                "kept: {folder} has the run up to there, and the key of its noise, which is as secret as the records: share \
                 nothing of it"
            )
        } else {
            format!("kept: {folder} has the log; no noise was drawn")
        };
        let command: Vec<String> = arguments.iter().map(|argument| quoted(argument)).collect();
        Failure::Interrupted(format!("interrupted {place} ({signal})\n{kept}\ngo on: fairdp {}", command.join(" ")))
    }
}

/// A text as a shell reads it back.
pub(super) fn quoted(text: &str) -> String {
    let quoted = shlex::try_quote(text).map_or_else(|_| format!("{text:?}"), Cow::into_owned);
    printable(&quoted).into_owned()
}
