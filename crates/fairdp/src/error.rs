//! What can go wrong.

use std::io;
use std::path::{Path, PathBuf};

use dp_accounting::AccountingError;
use dp_table::TableError;
use dp_train::TrainError;

use crate::exit::Exit;
use crate::plain::plain;

/// Why a table was refused, a run stopped or a release does not hold.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FairdpError {
    /// A configuration was refused.
    #[error("{}:{line}: {message}", path.display())]
    Config {
        /// The configuration.
        path: PathBuf,
        /// 1-based line.
        line: usize,
        /// Key, value and what is accepted.
        message: String,
    },
    /// A setting is out of range.
    #[error("{parameter} = {value}: expected {expected}")]
    InvalidParameter {
        /// Its name in the configuration or on the command line.
        parameter: String,
        /// Value received.
        value: String,
        /// Accepted range.
        expected: String,
    },
    /// Constants that were read from the records are neither declared public nor paid for.
    #[error("{}", uncovered(path, entries))]
    Uncovered {
        /// The configuration.
        path: PathBuf,
        /// One line per entry.
        entries: Vec<String>,
    },
    /// What was asked for would not hold, or would not be worth having.
    #[error("{0}")]
    Refused(String),
    /// A release does not hold: one line per problem, each of which names the file.
    #[error("{}", lines(problems))]
    NotVerified {
        /// The problems.
        problems: Vec<String>,
    },
    /// The progress callback asked for an end.
    #[error("interrupted; a run in a folder that is kept can be continued")]
    Interrupted,
    /// A file cannot be read or written.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("`{}`: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A table cannot be read or does not fit its schema.
    #[error("{0}")]
    Table(#[from] TableError),
    /// A privacy parameter or a ledger was refused.
    #[error("accounting: {0}")]
    Accounting(#[from] AccountingError),
    /// A method's settings were refused, or a training run stopped.
    #[error("training: {0}")]
    Train(#[from] TrainError),
    /// A metric is not defined.
    #[error("metrics: {0}")]
    Metric(#[from] fair_metrics::MetricError),
}

/// `Result` with this crate's error.
pub type Result<T, E = FairdpError> = std::result::Result<T, E>;

#[expect(
    clippy::needless_pass_by_value,
    reason = "values are turned into text at once; `&` at every call says nothing"
)]
impl FairdpError {
    /// How a program ends with this error.
    pub const fn exit(&self) -> Exit {
        match self {
            Self::Config { .. }
            | Self::InvalidParameter { .. }
            | Self::Table(TableError::Schema { .. } | TableError::InvalidParameter { .. })
            | Self::Accounting(
                AccountingError::OutOfRange { .. }
                | AccountingError::Unreachable { .. }
                | AccountingError::Incomplete { .. }
                | AccountingError::Conflicting { .. },
            )
            | Self::Train(TrainError::InvalidParameter { .. }) => Exit::Usage,
            Self::Uncovered { .. } | Self::Refused(_) => Exit::Refused,
            Self::NotVerified { .. } => Exit::NotVerified,
            _ => Exit::Failed,
        }
    }

    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }

    pub(crate) fn file(path: &Path, problem: impl ToString) -> Self {
        Self::File { path: path.to_path_buf(), problem: problem.to_string() }
    }

    pub(crate) fn invalid(parameter: impl Into<String>, value: impl ToString, expected: impl Into<String>) -> Self {
        Self::InvalidParameter { parameter: parameter.into(), value: value.to_string(), expected: expected.into() }
    }
}

/// One line each, whatever is in them.
fn lines(texts: &[String]) -> String {
    texts.iter().map(|text| plain(text)).collect::<Vec<_>>().join("\n")
}

fn uncovered(path: &Path, entries: &[String]) -> String {
    let mut text = format!(
        "{}: {} entries were read from the records, and no ε covers them:\n",
        plain(&path.to_string_lossy()),
        entries.len()
    );
    for entry in entries {
        text.push_str("  ");
        text.push_str(&plain(entry));
        text.push('\n');
    }
    text.push_str(
        "For each: check that it is known without the records and add `public = true`, or pay for it (numbers: \
         `bounds = \"private\"` in place of low, high and bins),\nor set `accept_uncovered = true` at the top: the statement then says in its first \
         line what is not covered.",
    );
    text
}
