//! The folder of a run, which one process has at a time.

use std::fs;
use std::path::{Path, PathBuf};

use super::checkpoint::Checkpoints;
use super::journal::LOG;
use crate::error::{FairdpError, Result};
use crate::output::{self, Lock};
use crate::release::{LEDGER, PRIVATE, RELEASE};
use crate::streams;

/// A file in the private folder. The process that has it locked owns the run.
pub(crate) const LOCK: &str = "lock";

/// A new or empty folder, or that of the run that is continued, locked until it is dropped: neither
/// another process nor another fit of this one can take up the run, or publish in its place.
pub(super) struct RunFolder {
    out: PathBuf,
    private: PathBuf,
    lock: Lock,
}

impl RunFolder {
    pub(super) fn take(out: &Path, resume: bool) -> Result<Self> {
        let private = out.join(PRIVATE);
        clear(out)?;
        check(out, resume)?;
        output::private_folder(&private)?;
        let lock = hold(out, &private)?;
        if !resume && is_unspent(out)? {
            streams::forget(&private)?;
        }
        // The process that had the lock may have ended since.
        if out.join(RELEASE).exists() || (!resume && !Checkpoints::is_unspent(&private)) {
            return Err(not_empty(out));
        }
        Ok(Self { out: out.to_path_buf(), private, lock })
    }

    /// The folder for what no ε covers.
    pub(super) fn private(&self) -> &Path {
        &self.private
    }

    /// Leaves the place as it was, if no noise was drawn in it.
    pub(super) fn give_up(self) {
        if Checkpoints::is_unspent(&self.private) && !self.out.join(RELEASE).exists() {
            let _ = fs::remove_dir_all(&self.private).and_then(|()| fs::remove_dir(&self.out));
        }
    }

    /// The run has ended: its key is removed, then the lock.
    pub(super) fn close(self) -> Result<()> {
        Checkpoints::forget(&self.private)?;
        streams::forget(&self.private)?;
        self.lock.remove()
    }
}

/// Whether a run in this folder has ended with a release.
pub(super) fn has_ended(out: &Path) -> bool {
    out.join(RELEASE).exists() && out.join(PRIVATE).join(LEDGER).exists()
}

/// Removes what a process left behind that ended between the release and its last act: the key, or the lock
/// alone.
pub(super) fn clear(out: &Path) -> Result<()> {
    let private = out.join(PRIVATE);
    let is_left = !Checkpoints::is_unspent(&private) || private.join(LOCK).exists();
    if has_ended(out) && is_left {
        let lock = hold(out, &private)?;
        Checkpoints::forget(&private)?;
        streams::forget(&private)?;
        lock.remove()?;
    }
    Ok(())
}

/// Refuses a folder that a fit could not take.
pub(super) fn check(out: &Path, resume: bool) -> Result<()> {
    if out.join(RELEASE).exists() {
        return Err(FairdpError::folder(out, "holds a release", "give another folder"));
    }
    if resume && !out.join(PRIVATE).is_dir() {
        let problem = if out.exists() { "holds no run" } else { "does not exist" };
        let advice = "there is nothing to continue; without --resume a run begins";
        return Err(FairdpError::folder(out, problem, advice));
    }
    if resume || !out.exists() || names(out)?.is_empty() || is_unspent(out)? { Ok(()) } else { Err(not_empty(out)) }
}

/// Whether all that is in a folder was left by a fit that drew no noise, so that another one can begin: its log,
/// its lock, and what it kept of streams.
fn is_unspent(out: &Path) -> Result<bool> {
    let is_left = |name: &String| [LOCK, LOG].contains(&&**name) || streams::is_kept(name);
    Ok(names(out)? == [PRIVATE] && names(&out.join(PRIVATE))?.iter().all(is_left))
}

fn names(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).map_err(FairdpError::io("read", folder))?;
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    entries.map(|entry| entry.map(name).map_err(FairdpError::io("read", folder))).collect()
}

/// Whether a run's folder has the key of its noise: its run can be continued, and whoever has the key can take the
/// noise off what is released.
pub fn holds_key(out: &Path) -> bool {
    !Checkpoints::is_unspent(&out.join(PRIVATE))
}

fn hold(out: &Path, private: &Path) -> Result<Lock> {
    let locked = || FairdpError::folder(out, "is in use", "another process fits in it, which has it locked");
    Lock::try_hold(&private.join(LOCK))?.ok_or_else(locked)
}

fn not_empty(out: &Path) -> FairdpError {
    FairdpError::folder(out, "is not empty", "give another folder, or --resume to continue the run in it")
}
