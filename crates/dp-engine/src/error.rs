//! Errors of the engine.

use std::io;
use std::path::{Path, PathBuf};

/// Why a model, a loss or records were refused, or an operation failed.
///
/// Under a chain of errors (`source`) nothing is printed twice.
///
/// **Example**
/// ```
/// use dp_engine::{DType, Device, EngineError, Model, ModelConfig};
/// let error = Model::new(&ModelConfig::LogisticRegression, 0, 1, DType::F32, &Device::Cpu).unwrap_err();
/// assert_eq!(error.to_string(), "n_inputs = 0: expected at least 1");
/// assert!(matches!(error, EngineError::InvalidParameter { parameter: "n_inputs", .. }));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
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
    /// A file of weights is not one, or not the model's.
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
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

/// A failure of candle or of its device: memory, shapes or number types.
#[derive(Debug, thiserror::Error)]
#[error("tensor: {0}")]
pub struct TensorError(candle_core::Error);

impl From<candle_core::Error> for TensorError {
    fn from(error: candle_core::Error) -> Self {
        Self(error)
    }
}

/// Operations call each other inside of candle's.
impl From<TensorError> for candle_core::Error {
    fn from(error: TensorError) -> Self {
        error.0
    }
}

impl From<candle_core::Error> for EngineError {
    fn from(error: candle_core::Error) -> Self {
        Self::Tensor(error.into())
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "values are turned into text at once; `&` at every call says nothing"
)]
impl EngineError {
    /// A parameter that is out of range.
    pub fn invalid(parameter: &'static str, value: impl ToString, expected: impl Into<String>) -> Self {
        Self::InvalidParameter { parameter, value: value.to_string(), expected: expected.into() }
    }

    /// A rank is about to do something else than this one.
    pub fn elsewhere(what: &str, rank: usize) -> Self {
        Self::Ranks(format!("{what}: rank {rank} is at another place of its run"))
    }

    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_path_buf(), source }
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

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    /// Every variant; a new one does not compile until it is here.
    fn all() -> Vec<EngineError> {
        let path = PathBuf::from("weights.safetensors");
        let all = vec![
            EngineError::invalid("micro_batch", 0, "at least 1"),
            EngineError::mismatch("labels", 2, 3),
            EngineError::io("read", &path, io::Error::other("disk on fire")),
            EngineError::weights(&path, "no header"),
            EngineError::Encoder { path, problem: "no such file".into() },
            EngineError::Ranks("rank 1 is gone".into()),
            candle_core::Error::Msg("out of memory".into()).into(),
        ];
        for error in &all {
            match error {
                EngineError::InvalidParameter { .. }
                | EngineError::Mismatch { .. }
                | EngineError::Io { .. }
                | EngineError::Weights { .. }
                | EngineError::Encoder { .. }
                | EngineError::Ranks(_)
                | EngineError::Tensor(_) => {}
            }
        }
        all
    }

    #[test]
    fn a_chain_prints_nothing_twice() {
        let chain = |error: EngineError| {
            let mut texts = vec![error.to_string()];
            let mut next = error.source();
            while let Some(source) = next {
                assert!(texts.iter().all(|text| !text.contains(&source.to_string())), "{texts:?}: {source}");
                texts.push(source.to_string());
                next = source.source();
            }
            texts.join(" <- ")
        };
        insta::assert_snapshot!(all().into_iter().map(chain).collect::<Vec<_>>().join("\n"), @"
        micro_batch = 0: expected at least 1
        labels: expected 2, got 3
        cannot read `weights.safetensors` <- disk on fire
        weights.safetensors: no header
        weights.safetensors: no such file
        ranks: rank 1 is gone
        tensor: out of memory
        ");
    }
}
