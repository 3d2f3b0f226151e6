//! A file that keeps what is said on standard error, with times: `--log`.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use fairdp::FairdpError;
use jiff::Timestamp;

use super::stream;

static LOG: OnceLock<Mutex<File>> = OnceLock::new();

/// Adds to this file from now on.
pub(super) fn open(path: &Path) -> Result<(), FairdpError> {
    let file = stream::append(path)?;
    // It is asked for once.
    let _ = LOG.set(Mutex::new(file));
    Ok(())
}

/// Adds a text, each line with the time; what is said all the same does not depend on it.
pub(super) fn add(text: &str) {
    let Some(log) = LOG.get() else { return };
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ");
    let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
    for line in text.lines() {
        let _ = writeln!(log, "{now}  {line}");
    }
}
