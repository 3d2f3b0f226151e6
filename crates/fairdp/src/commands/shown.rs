//! A command that takes its time: its progress, and signals that end it.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use fairdp::{Progress, ReadProgress, printable};

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

    pub(super) fn reading(&self) -> Arc<ReadProgress> {
        Arc::clone(&self.reading)
    }

    pub(super) fn stage(&self, name: &str) {
        self.display.stage(name);
    }

    /// Shows it; breaks where a signal came.
    pub(super) fn note(&self, progress: Progress<'_>) -> ControlFlow<()> {
        self.display.note(progress);
        if self.interrupt.is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
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
        let mut arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--resume").collect();
        let kept = if private.exists() {
            arguments.push("--resume".into());
            format!(
                "kept: {folder} has the run up to there, and the key of its noise, which is as secret as the records: share \
                 nothing of it"
            )
        } else {
            "kept: nothing, for no noise was drawn".to_owned()
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
