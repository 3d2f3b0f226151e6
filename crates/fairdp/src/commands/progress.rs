//! Progress: a bar with a forecast on a terminal, plain lines elsewhere.

use std::io::{self, IsTerminal as _, Write};

use fairdp::{Progress, printable};
use indicatif::{ProgressBar, ProgressStyle};

/// Shows progress on standard error.
pub(super) enum ProgressDisplay {
    Nowhere,
    Lines,
    Bar(ProgressBar),
}

impl ProgressDisplay {
    pub(super) fn new(quiet: bool) -> Self {
        if quiet {
            return Self::Nowhere;
        }
        if !io::stderr().is_terminal() {
            return Self::Lines;
        }
        let bar = ProgressBar::new(0);
        let style = ProgressStyle::with_template("{elapsed_precise} [{bar:32}] {pos}/{len} steps, {eta} left  {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self::Bar(bar)
    }

    pub(super) fn note(&self, progress: Progress<'_>) {
        match (self, progress) {
            (Self::Nowhere, _) => {}
            (Self::Lines, Progress::Stage(line)) => drop(writeln!(io::stderr(), "{}", printable(line))),
            (Self::Lines, Progress::Step { done, of }) => {
                if done.is_multiple_of(of.div_ceil(4)) {
                    drop(writeln!(io::stderr(), "step {done} of {of}"));
                }
            }
            (Self::Bar(bar), Progress::Stage(line)) => bar.set_message(printable(line).into_owned()),
            (Self::Bar(bar), Progress::Step { done, of }) => {
                // The forecast is of the steps alone: reading the table took its own time.
                if done <= 1 || bar.length() != Some(of) {
                    bar.set_length(of);
                    bar.reset_eta();
                }
                bar.set_position(done);
            }
        }
    }

    pub(super) fn end(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}
