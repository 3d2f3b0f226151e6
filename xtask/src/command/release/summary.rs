//! What a run of the command did, what lies in its folder, and what was not done here.

use std::fmt::Display;
use std::fs;

use anyhow::{Context, ensure};

use super::artefacts::Artefacts;
use crate::terminal::say;

/// Said once more at the end: the output of compilers fills the lines between.
#[derive(Debug, Default)]
pub(super) struct Summary {
    done: Vec<String>,
    missed: Vec<String>,
    skipped: Vec<(String, String)>,
}

impl Summary {
    /// Says what was done, and keeps it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn done(&mut self, what: impl Display) -> anyhow::Result<()> {
        say!("release: {what}")?;
        self.done.push(what.to_string());
        Ok(())
    }

    /// Says that a promise is not kept, and keeps it: the steps behind it still say what they find.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn missed(&mut self, what: impl Display) -> anyhow::Result<()> {
        say!("release: MISSED: {what}")?;
        self.missed.push(what.to_string());
        Ok(())
    }

    /// Fails if a promise is not kept.
    ///
    /// # Errors
    /// Names what is missed.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        ensure!(self.missed.is_empty(), "{}", self.missed.join("; "));
        Ok(())
    }

    /// Says what is not done here, and why, and keeps it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn skipped(&mut self, what: impl Display, why: impl Display) -> anyhow::Result<()> {
        say!("release: {what}: SKIPPED: {why}")?;
        self.skipped.push((what.to_string(), why.to_string()));
        Ok(())
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// If it cannot be written, a file of the release cannot be read, or a promise is not kept.
    pub(super) fn print(&self, heading: &str, artefacts: &Artefacts) -> anyhow::Result<()> {
        say!("\n{heading}\n\nDone:")?;
        for what in &self.done {
            say!("  {what}")?;
        }
        say!("\nFiles in {}:", artefacts.folder().display())?;
        for name in artefacts.names()? {
            let size = fs::metadata(artefacts.path(&name)).with_context(|| format!("size of {name}"))?.len();
            say!("  {:>8.3} MB  {name}", size as f64 / 1e6)?;
        }
        say!("\nNot done here:")?;
        for (what, why) in &self.skipped {
            say!("  {what}: {why}")?;
        }
        self.check()
    }
}
