//! Runs without a release: what is known of them.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use crate::error::{FairdpError, Result};
use crate::fit::{LOCK, LOG};
use crate::input;
use crate::release::{PRIVATE, RELEASE};

/// The release in a run's folder, or the folder itself; a run that has none yet is refused, with how far it
/// is.
pub(crate) fn release_of(folder: &Path) -> Result<PathBuf> {
    let whole = folder.join(RELEASE);
    if whole.is_dir() {
        return Ok(whole);
    }
    let private = folder.join(PRIVATE);
    if !private.is_dir() {
        return Ok(folder.to_path_buf());
    }
    let state = if is_locked(&private.join(LOCK)) {
        format!("is being fitted{}", place(&private).map_or_else(String::new, |place| format!(", {place}")))
    } else {
        ended(&private)
    };
    Err(FairdpError::Unfinished { folder: folder.into(), state })
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
