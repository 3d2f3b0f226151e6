//! Runs without a release: what is known of them.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::{FairdpError, Result};
use crate::fit::{LOCK, LOG};
use crate::input;
use crate::model::PIPELINE;
use crate::release::{PRIVATE, RELEASE, STATEMENT};

/// The release in a run's folder, or the folder itself; a run that has none yet is refused, with how far it
/// is, and so is what is neither.
pub(crate) fn release_of(folder: &Path) -> Result<PathBuf> {
    let whole = folder.join(RELEASE);
    if whole.is_dir() {
        return Ok(whole);
    }
    let private = folder.join(PRIVATE);
    if !private.is_dir() {
        return bare_release(folder);
    }
    let state = if is_locked(&private.join(LOCK)) {
        format!("is being fitted{}", place(&private).map_or_else(String::new, |place| format!(", {place}")))
    } else {
        ended(&private)
    };
    Err(FairdpError::Unfinished { folder: folder.into(), state })
}

/// A folder that is a release, or what is left of one.
fn bare_release(folder: &Path) -> Result<PathBuf> {
    fs::metadata(folder).map_err(FairdpError::io("read", folder))?;
    // What cannot be looked at may be there: reading it says why it cannot be read.
    let is_absent = |name: &&str| {
        let kind = fs::metadata(folder.join(name)).map_err(|error| error.kind());
        matches!(kind, Err(ErrorKind::NotFound | ErrorKind::NotADirectory))
    };
    if [STATEMENT, PIPELINE].iter().all(is_absent) {
        return Err(FairdpError::file(folder, "is no run and no release: it has no statement.json"));
    }
    Ok(folder.to_path_buf())
}

/// How a run ended that nobody fits any more.
fn ended(private: &Path) -> String {
    let last = last_line(private, "interrupted ");
    match (last, place(private)) {
        (Some(interrupted), _) => format!("was {interrupted}"),
        (None, Some(place)) => format!("was ended from outside, {place} or later"),
        (None, None) => "was ended before its first step".into(),
    }
}

/// The last step in the log, in words.
pub(crate) fn place(private: &Path) -> Option<String> {
    let text = input::text(&private.join(LOG)).ok()?;
    let mut lines = text.lines().rev().filter_map(|line| line.split_once("step ").map(|(_, step)| step));
    lines.find(|step| step.contains(" of ")).map(|step| format!("at step {step}"))
}

/// What the last line of the log says, if it begins so.
fn last_line(private: &Path, start: &str) -> Option<String> {
    let text = input::text(&private.join(LOG)).ok()?;
    let (_, line) = text.lines().last()?.split_once("  ")?;
    line.starts_with(start).then(|| line.to_owned())
}

fn is_locked(lock: &Path) -> bool {
    File::open(lock).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}
