//! Errors of the engine.

use std::path::{Path, PathBuf};

/// Why a model, a loss or records were refused, or an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
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
    /// A file of weights cannot be read or written, or is not the model's.
    #[error("{}: {problem}", path.display())]
    Weights {
        /// The file.
        path: PathBuf,
        /// The defect; every difference if the file does not fit the model.
        problem: String,
    },
    /// A file of a text encoder is missing or broken, does not fit the others, or gives no features
    /// of a text.
    #[error("{}: {problem}", path.display())]
    Encoder {
        /// The file.
        path: PathBuf,
        /// The defect, and the accepted values.
        problem: String,
    },
    /// The processes of a run are not all there, or differ.
    #[error("ranks: {0}")]
    Ranks(String),
    /// A tensor operation failed.
    #[error("tensor: {0}")]
    Tensor(#[from] candle_core::Error),
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "values are turned into text at once; `&` at every call says nothing"
)]
impl EngineError {
    /// A setting that is out of range.
    pub fn invalid(parameter: &'static str, value: impl ToString, expected: impl Into<String>) -> Self {
        Self::InvalidParameter { parameter, value: value.to_string(), expected: expected.into() }
    }

    /// A rank is about to do something else than this one.
    pub fn elsewhere(what: &str, rank: usize) -> Self {
        Self::Ranks(format!("{what}: rank {rank} is at another place of its run"))
    }

    pub(crate) fn weights(path: &Path, problem: impl ToString) -> Self {
        Self::Weights { path: path.to_path_buf(), problem: problem.to_string() }
    }

    /// Two inputs that do not fit each other.
    pub fn mismatch(what: impl Into<String>, expected: impl ToString, got: impl ToString) -> Self {
        Self::Mismatch { what: what.into(), expected: expected.to_string(), got: got.to_string() }
    }
}

/// `Result` with this crate's error.
pub type Result<T, E = EngineError> = std::result::Result<T, E>;
