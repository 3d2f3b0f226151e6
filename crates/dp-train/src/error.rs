//! Errors of training.

use std::io;
use std::path::{Path, PathBuf};

use dp_engine::{EngineError, TensorError};

use crate::purpose::Purpose;

/// Why a plan was refused or a run stopped.
///
/// Under a chain of errors (`source`) nothing is printed twice.
///
/// **Example**
/// ```
/// use dp_train::{BatchPlan, PublicFacts, TrainError};
/// let facts = PublicFacts { n_records: 10, n_inputs: 1, n_classes: 2, n_groups: 1 };
/// let error = BatchPlan::exact(facts, 11, 1).unwrap_err();
/// assert_eq!(error.to_string(), "batch_size = 11: expected 1 to 10, the number of records");
/// assert!(matches!(error, TrainError::InvalidParameter { parameter: "batch_size", .. }));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// A parameter is out of range.
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
    /// A file cannot be read or written.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// The action: `read` or `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// A file is not a checkpoint, is damaged, or is of another version.
    #[error("checkpoint {}: {problem}", path.display())]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// The defect.
        problem: String,
    },
    /// Two things that must be the same differ in several places.
    #[error("{what}: {}", .differences.join("; "))]
    Differences {
        /// Name of the thing that was compared.
        what: String,
        /// One line per difference, with both values.
        differences: Vec<String>,
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
    #[error(transparent)]
    Accounting(#[from] dp_accounting::AccountingError),
    /// The clipping method was refused or failed.
    #[error(transparent)]
    Clipping(#[from] dp_clipping::ClipError),
    /// The processes of a run are not all there, or differ.
    #[error("ranks: {0}")]
    Ranks(String),
    /// A tensor operation failed.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// The engine refused something else: a file of weights, say.
    #[error(transparent)]
    Engine(EngineError),
}

impl From<EngineError> for TrainError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::InvalidParameter { parameter, value, expected } => {
                Self::InvalidParameter { parameter, value, expected }
            }
            EngineError::Mismatch { what, expected, got } => Self::Mismatch { what, expected, got },
            EngineError::Io { action, path, source } => Self::Io { action, path, source },
            EngineError::Ranks(problem) => Self::Ranks(problem),
            EngineError::Tensor(error) => Self::Tensor(error),
            other => Self::Engine(other),
        }
    }
}

impl From<candle_core::Error> for TrainError {
    fn from(error: candle_core::Error) -> Self {
        Self::Tensor(error.into())
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "values are turned into text at once; `&` at every call says nothing"
)]
impl TrainError {
    /// A parameter that is out of range.
    pub fn invalid(parameter: &'static str, value: impl ToString, expected: impl Into<String>) -> Self {
        Self::InvalidParameter { parameter, value: value.to_string(), expected: expected.into() }
    }

    pub(crate) fn checkpoint(path: &Path, problem: impl ToString) -> Self {
        Self::Checkpoint { path: path.to_path_buf(), problem: problem.to_string() }
    }

    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_path_buf(), source }
    }

    /// Two inputs that do not fit each other.
    pub fn mismatch(what: impl Into<String>, expected: impl ToString, got: impl ToString) -> Self {
        Self::Mismatch { what: what.into(), expected: expected.to_string(), got: got.to_string() }
    }
}

/// `Result` with this crate's error.
pub type Result<T, E = TrainError> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use std::error::Error;

    use dp_accounting::{AccountingError, Delta};
    use dp_clipping::ClipError;

    use super::*;

    /// Every variant; a new one does not compile until it is here.
    fn all() -> Vec<TrainError> {
        let path = PathBuf::from("run.checkpoint");
        let accounting: AccountingError = Delta::new(2.0).unwrap_err();
        let all = vec![
            TrainError::invalid("batches.epochs", 0, "at least 1"),
            TrainError::Config { line: 3, message: "batches.epochs = 0: expected at least 1".into() },
            TrainError::mismatch("labels", 2, 3),
            TrainError::io("write", &path, io::Error::other("disk on fire")),
            TrainError::checkpoint(&path, "no header"),
            TrainError::Differences { what: "ranks".into(), differences: vec!["a: 1, 2".into(), "b: 3, 4".into()] },
            TrainError::Diverged { step: 4 },
            TrainError::Broken { step: 4 },
            TrainError::Stopped { steps: 5 },
            TrainError::StreamInUse { purpose: Purpose::Noise, run: 1, variant: 2 },
            accounting.into(),
            ClipError::NotRowMajor.into(),
            TrainError::Ranks("rank 1 is gone".into()),
            candle_core::Error::Msg("out of memory".into()).into(),
            EngineError::Weights { path: "model.safetensors".into(), problem: "no header".into() }.into(),
        ];
        for error in &all {
            match error {
                TrainError::InvalidParameter { .. }
                | TrainError::Config { .. }
                | TrainError::Mismatch { .. }
                | TrainError::Io { .. }
                | TrainError::Checkpoint { .. }
                | TrainError::Differences { .. }
                | TrainError::Diverged { .. }
                | TrainError::Broken { .. }
                | TrainError::Stopped { .. }
                | TrainError::StreamInUse { .. }
                | TrainError::Accounting(_)
                | TrainError::Clipping(_)
                | TrainError::Ranks(_)
                | TrainError::Tensor(_)
                | TrainError::Engine(_) => {}
            }
        }
        all
    }

    #[test]
    fn a_chain_prints_nothing_twice() {
        let mut with_source = Vec::new();
        for error in all() {
            let mut texts = vec![error.to_string()];
            let mut next = error.source();
            while let Some(source) = next {
                assert!(texts.iter().all(|text| !text.contains(&source.to_string())), "{texts:?}: {source}");
                texts.push(source.to_string());
                next = source.source();
            }
            if texts.len() > 1 {
                with_source.push(texts.join(" <- "));
            }
        }
        // The cause of a failure of the system is kept, and said once.
        assert_eq!(with_source, ["cannot write `run.checkpoint` <- disk on fire"]);
    }
}
