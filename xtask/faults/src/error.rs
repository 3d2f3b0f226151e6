//! What keeps faults from being put in.

use std::path::{Path, PathBuf};

/// Why an operation could not be exercised.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FaultsError {
    /// The machine refused.
    #[error("cannot {action} {}: {reason}", path.display())]
    Machine {
        /// What was tried, for example `copy`.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's answer.
        reason: std::io::Error,
    },
    /// Without a fault it must succeed.
    #[error("{name} fails without a fault: {reason}")]
    Unsound {
        /// The operation.
        name: String,
        /// The program's last words.
        reason: String,
    },
    /// Every kill falls before the run has begun or after it has ended.
    #[error("runs are too short to be killed and continued")]
    TooShort,
}

impl FaultsError {
    pub(crate) fn machine(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |reason| Self::Machine { action, path, reason }
    }
}
