//! Errors of linear training.

use std::path::{Path, PathBuf};

use dp_engine::{EngineError, TensorError};
use dp_train::TrainError;

/// Why settings or records were refused, or a release was not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinearError {
    /// A setting is out of range.
    #[error("{parameter} = {value}: expected {expected}")]
    InvalidParameter {
        /// Name in the configuration.
        parameter: &'static str,
        /// Value received.
        value: String,
        /// Accepted range.
        expected: String,
    },
    /// Two inputs that belong together do not fit.
    #[error("{what}: expected {expected}, got {got}")]
    Mismatch {
        /// Name of the thing that was compared.
        what: String,
        /// Value it should have.
        expected: String,
        /// Value it has.
        got: String,
    },
    /// A file cannot be read or written.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The action, for example `read`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A file holds something else.
    #[error("{}: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The defect.
        problem: String,
    },
    /// The state to go on from is that of another run.
    #[error("state of a run: {0}")]
    State(String),
    /// A privacy parameter or the ledger was refused.
    #[error(transparent)]
    Accounting(#[from] dp_accounting::AccountingError),
    /// A plan was refused, a device failed, or a rank is gone.
    #[error(transparent)]
    Train(#[from] TrainError),
}

impl From<EngineError> for LinearError {
    fn from(error: EngineError) -> Self {
        Self::Train(error.into())
    }
}

impl From<TensorError> for LinearError {
    fn from(error: TensorError) -> Self {
        Self::Train(error.into())
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "values are turned into text at once; `&` at every call says nothing"
)]
impl LinearError {
    pub(crate) fn invalid(parameter: &'static str, value: impl ToString, expected: impl Into<String>) -> Self {
        Self::InvalidParameter { parameter, value: value.to_string(), expected: expected.into() }
    }

    pub(crate) fn mismatch(what: impl Into<String>, expected: impl ToString, got: impl ToString) -> Self {
        Self::Mismatch { what: what.into(), expected: expected.to_string(), got: got.to_string() }
    }

    pub(crate) fn io(action: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Io { action, path: path.to_path_buf(), source }
    }

    pub(crate) fn file(path: &Path, problem: impl ToString) -> Self {
        Self::File { path: path.to_path_buf(), problem: problem.to_string() }
    }
}

/// `Result` with this crate's error.
pub type Result<T, E = LinearError> = std::result::Result<T, E>;
