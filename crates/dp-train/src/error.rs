//! Errors of training.

use std::path::{Path, PathBuf};

use dp_engine::EngineError;

use crate::purpose::Purpose;

/// Why a plan was refused or a run stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
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
    /// A configuration file was refused.
    #[error("line {line}: {message}")]
    Config {
        /// 1-based line of the parameter, or of the table that lacks it.
        line: usize,
        /// Parameter, value and what is accepted.
        message: String,
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
    /// A checkpoint could not be written or read.
    #[error("checkpoint {path}: {reason}")]
    Checkpoint {
        /// The file.
        path: String,
        /// The defect.
        reason: String,
    },
    /// Two things that must be the same differ in several places.
    #[error("{what}: {}", .differences.join("; "))]
    Differences {
        /// Name of the thing that was compared.
        what: String,
        /// One line per difference, with both values.
        differences: Vec<String>,
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
    /// The parameters, or the sum of gradients, are infinite or not a number: the learning rate is
    /// too high.
    #[error("parameters or gradients are not finite at step {step}; lower the learning rate")]
    Diverged {
        /// 0-based step.
        step: u64,
    },
    /// A step failed after its batch was drawn. Taken again, it would have the noise that a restored
    /// run adds to another batch.
    #[error("step {step} failed, and cannot be taken again: restore a checkpoint, or start a new run")]
    Broken {
        /// 0-based step.
        step: u64,
    },
    /// A run stopped early. It has the parameters of its best epoch, and its ledger holds all steps
    /// of the plan.
    #[error("the run stopped early after step {steps}: it takes no further step")]
    Stopped {
        /// Steps taken.
        steps: u64,
    },
    /// A private source was asked for the same stream again.
    #[error(
        "random stream of {purpose:?}, run {run}, variant {variant}: it is in use already; two releases with the same noise cancel it, \
         so take another run or variant, or restore the checkpoint of the run that has it"
    )]
    StreamInUse {
        /// Purpose of the stream.
        purpose: Purpose,
        /// Number of the run.
        run: u32,
        /// Number of the variant.
        variant: u16,
    },
    /// A privacy parameter or the ledger was refused.
    #[error("accounting: {0}")]
    Accounting(#[from] dp_accounting::AccountingError),
    /// The clipping method was refused or failed.
    #[error("clipping: {0}")]
    Clipping(#[from] dp_clipping::ClipError),
    /// The processes of a run are not all there, or differ.
    #[error("ranks: {0}")]
    Ranks(String),
    /// A tensor operation failed.
    #[error("tensor: {0}")]
    Tensor(#[from] candle_core::Error),
}

impl From<EngineError> for TrainError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::InvalidParameter { parameter, value, expected } => {
                Self::InvalidParameter { parameter, value, expected }
            }
            EngineError::Mismatch { what, expected, got } => Self::Mismatch { what, expected, got },
            EngineError::Weights { path, problem } => Self::Weights { path, problem },
            EngineError::Encoder { path, problem } => Self::Encoder { path, problem },
            EngineError::Ranks(problem) => Self::Ranks(problem),
            EngineError::Tensor(error) => Self::Tensor(error),
        }
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "values are turned into text at once; `&` at every call says nothing"
)]
impl TrainError {
    /// A setting that is out of range.
    pub fn invalid(parameter: &'static str, value: impl ToString, expected: impl Into<String>) -> Self {
        Self::InvalidParameter { parameter, value: value.to_string(), expected: expected.into() }
    }

    pub(crate) fn checkpoint(path: &Path, reason: impl ToString) -> Self {
        Self::Checkpoint { path: path.display().to_string(), reason: reason.to_string() }
    }

    /// Two inputs that do not fit each other.
    pub fn mismatch(what: impl Into<String>, expected: impl ToString, got: impl ToString) -> Self {
        Self::Mismatch { what: what.into(), expected: expected.to_string(), got: got.to_string() }
    }
}

/// `Result` with this crate's error.
pub type Result<T, E = TrainError> = std::result::Result<T, E>;
