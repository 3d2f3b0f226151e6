//! The error of the crate.

use std::io;
use std::path::{Path, PathBuf};

use dp_accounting::{AccountingError, DpEvent};
use dp_linear::LinearError;
use dp_table::TableError;
use dp_table::declaration::{EntryError, Mistake};
use dp_train::{EngineError, TrainError};

use crate::exit::Exit;
use crate::printable::printable;
use crate::printable::rounded_up;

/// Why a table was refused, a run stopped or a release does not hold.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FairdpError {
    /// A configuration was refused.
    #[error("{}", mistakes_of(path, mistakes))]
    Config {
        /// The configuration.
        path: PathBuf,
        /// Everything that is wrong in it, in the order of its lines.
        mistakes: Vec<Mistake>,
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
    /// An entry of a configuration without a file is out of range or contradicts another one.
    #[error("{message}")]
    Entry {
        /// Keys and positions from the top: `column.3.low`.
        key: String,
        /// Key, value and what is accepted.
        message: String,
    },
    /// A value is accepted in general and not for this table.
    #[error("{parameter} = {value}: expected {expected}")]
    NotForThisTable {
        /// Its name in the configuration, or what was measured.
        parameter: &'static str,
        /// Value received.
        value: String,
        /// Range that is accepted for this table.
        expected: String,
    },
    /// The noise would drown what the training records say.
    #[error("{n_training} training records{used} are too few for {purpose} at ε = {epsilon}: {reason}. {} would do", advice.join(", or "))]
    TooFewRecords {
        /// Number of training records.
        n_training: usize,
        /// How many records of each unit are used, in parentheses; empty without units.
        used: String,
        /// Their use.
        purpose: String,
        /// ε of the whole run.
        epsilon: f64,
        /// How far they fall short.
        reason: String,
        /// Changes, each of which would be enough.
        advice: Vec<String>,
    },
    /// The noisy counts of a column are not enough for bounds.
    #[error("column `{column}`: too few records, or a column of one value, to release its bounds: declare them")]
    NoBounds {
        /// The column.
        column: String,
    },
    /// A step of training would release another event than the account has.
    #[error("a step would release {released}, and {accounted} was accounted for")]
    NotAccounted {
        /// Event of the training step.
        released: Box<DpEvent>,
        /// Event in the account.
        accounted: Box<DpEvent>,
    },
    /// A ledger of an account does not hold the releases that are listed beside it.
    #[error("the {part} ledger is not that of the releases beside it")]
    LedgerDiffers {
        /// `training`, `test` or `validation`.
        part: &'static str,
    },
    /// The fits of a shared ledger would exceed its cap.
    #[error(
        "{}: {n_fits} fits have spent ε = {}, and this one would make it {}, beyond the cap of {cap}; {}",
        ledger.display(), rounded_up(*spent), rounded_up(*total), would_fit(*fits)
    )]
    BeyondCap {
        /// The ledger file.
        ledger: PathBuf,
        /// Number of fits in it.
        n_fits: usize,
        /// ε of these fits.
        spent: f64,
        /// ε with the new fit.
        total: f64,
        /// ε that all fits may have together.
        cap: f64,
        /// The largest ε at which the new fit keeps the cap, if there is one.
        fits: Option<f64>,
    },
    /// Nothing of a ledger's cap is left for a fit.
    #[error("{}: nothing is left: its fits have spent ε = {} of {cap}", ledger.display(), rounded_up(*spent))]
    NothingLeft {
        /// The ledger file.
        ledger: PathBuf,
        /// ε of its fits.
        spent: f64,
        /// ε that all fits may have together.
        cap: f64,
    },
    /// A ledger is not what it was.
    #[error("{}: {problem}", ledger.display())]
    BrokenLedger {
        /// The ledger file.
        ledger: PathBuf,
        /// What shows it.
        problem: String,
    },
    /// A shared ledger is for another δ or for other units.
    #[error("{}: {kept}, and the configuration {configured}: ε of one says nothing of the other", ledger.display())]
    OtherLedger {
        /// The ledger file.
        ledger: PathBuf,
        /// The setting of the ledger, in words.
        kept: String,
        /// The setting of the configuration, in words.
        configured: String,
    },
    /// A shared ledger has a fit with the same key on other records or by another configuration.
    #[error(
        "{}: has a fit under the key of this one, on another table or by another configuration: is its folder a copy of \
         that fit's? Two fits with one key are not independent",
        ledger.display()
    )]
    CopiedKey {
        /// The ledger file.
        ledger: PathBuf,
    },
    /// A run cannot have this folder.
    #[error("{} {problem}: {advice}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The reason.
        problem: &'static str,
        /// The remedy.
        advice: &'static str,
    },
    /// A run cannot be continued with other inputs.
    #[error(
        "the {input} is not the one that the run began with: continue it with the same, or begin another in another folder"
    )]
    OtherInput {
        /// `configuration`, `seed` or another input of the run.
        input: &'static str,
    },
    /// The processes of a run have different inputs.
    #[error("rank {rank} has another {input} than rank 0")]
    RanksDiffer {
        /// The rank that differs.
        rank: usize,
        /// `configuration` or another input of the run.
        input: &'static str,
    },
    /// A table for a strict prediction holds what the model does not know.
    #[error("the model does not know all that is in the table:\n{}", lines(remarks))]
    UnknownToModel {
        /// One line for each kind of value.
        remarks: Vec<String>,
    },
    /// A release does not hold: one line per problem, each of which names the file.
    #[error("{}", lines(problems))]
    NotVerified {
        /// The problems.
        problems: Vec<String>,
    },
    /// A release cannot be checked: one line per file that cannot be read. Nothing is wrong in the
    /// others.
    #[error("cannot be checked, for these files cannot be read, and nothing is wrong in the others:\n{}", lines(files))]
    NotRead {
        /// The files, each with the reason.
        files: Vec<String>,
    },
    /// The progress callback asked for an end.
    #[error("interrupted; a run in a folder that is kept can be continued")]
    Interrupted,
    /// A run has no release yet.
    #[error("`{}` has no release: it {state}", folder.display())]
    Unfinished {
        /// The folder of the run.
        folder: PathBuf,
        /// How far it is.
        state: String,
    },
    /// A file cannot be read or written.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// The action, for example `read`.
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
        /// The fault.
        problem: String,
    },
    /// The operating system refused threads or random numbers.
    #[error("the operating system gives no {what}: {reason}")]
    System {
        /// The resource.
        what: &'static str,
        /// Its answer.
        reason: String,
    },
    /// A document or a message between ranks cannot be written or read.
    #[error("{what}")]
    Json {
        /// The document or the message.
        what: &'static str,
        /// Why it failed.
        source: serde_json::Error,
    },
    /// A fault of this program: the run stops before it releases anything on wrong grounds.
    #[error("a fault of this program: {0}")]
    Internal(String),
    /// A table cannot be read or does not fit its schema.
    #[error(transparent)]
    Table(TableError),
    /// A privacy parameter or a ledger was refused.
    #[error(transparent)]
    Accounting(#[from] AccountingError),
    /// A method's settings were refused, or a training run stopped.
    #[error(transparent)]
    Train(TrainError),
    /// Linear training failed.
    #[error(transparent)]
    Linear(LinearError),
    /// A metric is not defined.
    #[error(transparent)]
    Metric(#[from] fair_metrics::MetricError),
    /// Scores of groups.
    #[error(transparent)]
    Decision(#[from] fair_decisions::DecisionError),
}

/// `Result` with this crate's error.
pub type Result<T, E = FairdpError> = std::result::Result<T, E>;

impl From<LinearError> for FairdpError {
    fn from(error: LinearError) -> Self {
        match error {
            LinearError::State(problem) => Self::file(Path::new("checkpoint.json"), problem),
            LinearError::Accounting(error) => Self::Accounting(error),
            LinearError::Train(error) => error.into(),
            LinearError::InvalidParameter { parameter, value, expected } => {
                Self::Train(TrainError::InvalidParameter { parameter, value, expected })
            }
            LinearError::Mismatch { what, expected, got } => Self::Train(TrainError::Mismatch { what, expected, got }),
            LinearError::Io { action, path, source } => Self::Io { action, path, source },
            LinearError::File { path, problem } => Self::file(&path, problem),
            error => Self::Linear(error),
        }
    }
}

impl From<TableError> for FairdpError {
    fn from(error: TableError) -> Self {
        match error {
            TableError::Stopped { .. } => Self::Interrupted,
            error => Self::Table(error),
        }
    }
}

impl From<TrainError> for FairdpError {
    fn from(error: TrainError) -> Self {
        match error {
            TrainError::Io { action, path, source } => Self::Io { action, path, source },
            other => Self::Train(other),
        }
    }
}

impl From<EngineError> for FairdpError {
    fn from(error: EngineError) -> Self {
        TrainError::from(error).into()
    }
}

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
            | Self::Entry { .. }
            | Self::Table(TableError::Schema { .. } | TableError::InvalidParameter { .. })
            | Self::Accounting(
                AccountingError::InvalidParameter { .. }
                | AccountingError::Unreachable { .. }
                | AccountingError::Incomplete { .. }
                | AccountingError::Conflicting { .. },
            )
            | Self::Train(TrainError::InvalidParameter { .. })
            | Self::Decision(_) => Exit::Usage,
            Self::Uncovered { .. }
            | Self::NotForThisTable { .. }
            | Self::TooFewRecords { .. }
            | Self::NoBounds { .. }
            | Self::NotAccounted { .. }
            | Self::LedgerDiffers { .. }
            | Self::BeyondCap { .. }
            | Self::NothingLeft { .. }
            | Self::OtherLedger { .. }
            | Self::CopiedKey { .. }
            | Self::Folder { .. }
            | Self::OtherInput { .. }
            | Self::RanksDiffer { .. }
            | Self::UnknownToModel { .. } => Exit::Refused,
            Self::NotVerified { .. } | Self::BrokenLedger { .. } => Exit::NotVerified,
            Self::Interrupted => Exit::Interrupted,
            _ => Exit::Failed,
        }
    }

    /// The file or folder, and the line in it where the error is of one, counted from 1.
    pub fn place(&self) -> Option<(&Path, Option<usize>)> {
        match self {
            Self::Config { path, mistakes } => Some((path, mistakes.first().map(|mistake| mistake.line))),
            Self::Io { path, .. }
            | Self::File { path, .. }
            | Self::Folder { path, .. }
            | Self::Unfinished { folder: path, .. }
            | Self::Uncovered { path, .. }
            | Self::BeyondCap { ledger: path, .. }
            | Self::NothingLeft { ledger: path, .. }
            | Self::BrokenLedger { ledger: path, .. }
            | Self::OtherLedger { ledger: path, .. }
            | Self::CopiedKey { ledger: path } => Some((path, None)),
            Self::Table(error) => error.place(),
            _ => None,
        }
    }

    /// Everything that is wrong in a configuration; empty for other errors.
    pub fn mistakes(&self) -> &[Mistake] {
        match self {
            Self::Config { mistakes, .. } => mistakes,
            _ => &[],
        }
    }

    /// The error with its causes, as people read it; each says one thing.
    pub fn in_full(&self) -> String {
        let causes = std::iter::successors(std::error::Error::source(self), |error| error.source());
        std::iter::once(self.to_string()).chain(causes.map(ToString::to_string)).collect::<Vec<_>>().join(": ")
    }

    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }

    pub(crate) fn file(path: &Path, problem: impl ToString) -> Self {
        Self::File { path: path.to_path_buf(), problem: problem.to_string() }
    }

    pub(crate) fn folder(path: &Path, problem: &'static str, advice: &'static str) -> Self {
        Self::Folder { path: path.to_path_buf(), problem, advice }
    }

    pub(crate) fn json(what: &'static str) -> impl Fn(serde_json::Error) -> Self {
        move |source| Self::Json { what, source }
    }

    pub(crate) fn system(what: &'static str, reason: impl ToString) -> Self {
        Self::System { what, reason: reason.to_string() }
    }

    pub(crate) fn invalid(parameter: impl Into<String>, value: impl ToString, expected: impl Into<String>) -> Self {
        Self::InvalidParameter { parameter: parameter.into(), value: value.to_string(), expected: expected.into() }
    }
}

/// Mistakes that a message names: a table in the place of a configuration has one in every line.
const MOST_MISTAKES: usize = 100;

/// One line each, such as editors follow.
fn mistakes_of(path: &Path, mistakes: &[Mistake]) -> String {
    let path = path.to_string_lossy();
    let line = |Mistake { line, column, message, .. }: &Mistake| {
        format!("{}:{line}:{column}: {}", printable(&path), printable(message))
    };
    let mut lines: Vec<String> = mistakes.iter().take(MOST_MISTAKES).map(line).collect();
    if let Some(more) = mistakes.len().checked_sub(MOST_MISTAKES).filter(|more| *more > 0) {
        lines.push(format!("and {more} more"));
    }
    lines.join("\n")
}

/// One line each, whatever is in them.
fn lines(texts: &[String]) -> String {
    texts.iter().map(|text| printable(text)).collect::<Vec<_>>().join("\n")
}

fn uncovered(path: &Path, entries: &[String]) -> String {
    let mut text = format!(
        "{}: {} entries were read from the records, and no ε covers them:\n",
        printable(&path.to_string_lossy()),
        entries.len()
    );
    for entry in entries {
        text.push_str("  ");
        text.push_str(&printable(entry));
        text.push('\n');
    }
    text.push_str(
        "For each: check that it is known without the records and add `public = true`, or pay for it (numbers: \
         `bounds = \"private\"` in place of low, high and bins),\nor set `accept_uncovered = true` at the top: the statement then says in its first \
         line what is not covered.",
    );
    text
}

/// The ε of a fit that was refused at which it would not be.
fn would_fit(epsilon: Option<f64>) -> String {
    epsilon.map_or("nothing is left for it".into(), |epsilon| format!("with ε = {epsilon} it would fit"))
}

impl From<EntryError> for FairdpError {
    fn from(error: EntryError) -> Self {
        Self::Entry { key: error.place, message: error.message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        let path = || PathBuf::from("ledger.json");
        let errors = [
            FairdpError::NotForThisTable {
                parameter: "privacy.delta",
                value: "1e-3".into(),
                expected: "below one over the number of records, 1.0e-4".into(),
            },
            FairdpError::TooFewRecords {
                n_training: 40,
                used: " (of each value of `patient` at most 2 are used)".into(),
                purpose: "12 features".into(),
                epsilon: 1.0,
                reason: "the noise would be 30 times a logit".into(),
                advice: vec!["About 60 training records".into(), "ε = 1.5".into()],
            },
            FairdpError::NoBounds { column: "age".into() },
            FairdpError::BeyondCap { ledger: path(), n_fits: 2, spent: 1.0, total: 1.5, cap: 1.2, fits: Some(0.4) },
            FairdpError::NothingLeft { ledger: path(), spent: 1.2, cap: 1.2 },
            FairdpError::BrokenLedger { ledger: path(), problem: "line 3 was changed".into() },
            FairdpError::OtherLedger {
                ledger: path(),
                kept: "is kept at δ = 1e-5".into(),
                configured: "has 1e-6".into(),
            },
            FairdpError::folder(Path::new("run"), "is not empty", "give another folder"),
            FairdpError::OtherInput { input: "configuration" },
            FairdpError::RanksDiffer { rank: 1, input: "configuration" },
            FairdpError::UnknownToModel { remarks: vec!["column `job`: 2 of 9 values are not declared".into()] },
            FairdpError::system("threads", "too many"),
        ];
        insta::assert_snapshot!(errors.map(|error| error.to_string()).join("\n"), @r"
        privacy.delta = 1e-3: expected below one over the number of records, 1.0e-4
        40 training records (of each value of `patient` at most 2 are used) are too few for 12 features at ε = 1: the noise would be 30 times a logit. About 60 training records, or ε = 1.5 would do
        column `age`: too few records, or a column of one value, to release its bounds: declare them
        ledger.json: 2 fits have spent ε = 1.000, and this one would make it 1.500, beyond the cap of 1.2; with ε = 0.4 it would fit
        ledger.json: nothing is left: its fits have spent ε = 1.200 of 1.2
        ledger.json: line 3 was changed
        ledger.json: is kept at δ = 1e-5, and the configuration has 1e-6: ε of one says nothing of the other
        run is not empty: give another folder
        the configuration is not the one that the run began with: continue it with the same, or begin another in another folder
        rank 1 has another configuration than rank 0
        the model does not know all that is in the table:
        column `job`: 2 of 9 values are not declared
        the operating system gives no threads: too many
        ");
    }

    /// An error says one thing, and its causes the rest.
    #[test]
    fn causes_are_said_once() {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let broken = serde_json::from_str::<u8>("[").unwrap_err();
        let cause = broken.to_string();
        let errors = [
            (
                FairdpError::io("read", Path::new("a.toml"))(missing()),
                "cannot read `a.toml`: entity not found".to_owned(),
            ),
            (FairdpError::json("the ledger")(broken), format!("the ledger: {cause}")),
            (
                TrainError::Io { action: "write", path: "b".into(), source: missing() }.into(),
                "cannot write `b`: entity not found".into(),
            ),
        ];
        for (error, expected) in errors {
            assert_eq!(error.in_full(), expected);
            assert!(
                std::error::Error::source(&error).is_some_and(|cause| !error.to_string().contains(&cause.to_string()))
            );
        }
    }
}
