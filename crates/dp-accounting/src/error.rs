//! The one error type of this crate.

use crate::{Mark, NeighbouringRelation};

/// Why an accounting question has no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AccountingError {
    /// A parameter is out of range.
    #[error("{parameter} = {value}: expected {expected}")]
    InvalidParameter {
        /// Name of the parameter, as the caller wrote it.
        parameter: &'static str,
        /// The value received.
        value: String,
        /// The accepted range, in words.
        expected: String,
    },
    /// There is no sound analysis of this event in this setting.
    #[error("no sound analysis of {event} under {relation} neighbours: {possible}")]
    NoSoundAnalysis {
        /// The event, named.
        event: String,
        /// The neighbouring relation of the accountant.
        relation: NeighbouringRelation,
        /// Which combinations are possible.
        possible: &'static str,
    },
    /// The accountant cannot interpret this event, although another one can.
    #[error("the {accountant} accountant cannot represent {event}: {possible}")]
    NotRepresentable {
        /// Name of the accountant.
        accountant: &'static str,
        /// The event, named.
        event: String,
        /// The alternatives.
        possible: &'static str,
    },
    /// No value of the calibrated parameter meets the target.
    #[error("no {parameter} in {searched} reaches an epsilon of {target}: the closest gives {closest}")]
    Unreachable {
        /// The calibrated parameter.
        parameter: &'static str,
        /// The range that was searched.
        searched: String,
        /// The target ε.
        target: f64,
        /// The ε at the most private end of the range.
        closest: f64,
    },
    /// A ledger's stored digest does not follow from its entries.
    #[error("ledger entry {index} does not match its digest: expected {expected}, found {found}")]
    LedgerTampered {
        /// Position of the first bad entry.
        index: usize,
        /// The digest that follows from the entries.
        expected: String,
        /// The digest that is stored.
        found: String,
    },
    /// A ledger whose digests follow from another encoding of events.
    #[error(
        "the ledger is of version {found}, but this program reads and writes version {supported}: its digests cannot be \
         checked; record its events anew"
    )]
    LedgerVersion {
        /// The version found; 1 where none is written.
        found: u32,
        /// The only version that is read.
        supported: u32,
    },
    /// A stored ledger that does not say where it ends.
    #[error(
        "the ledger carries no `n_entries` and `last_digest`, so entries that were cut from its end would not be missed: \
         record its events anew"
    )]
    LedgerWithoutEnd,
    /// A stored ledger ends elsewhere than it says.
    #[error(
        "the ledger was cut or changed at its end: it was stored with {n_expected} entries, the last digest {expected}, and \
         has {n_found}, the last digest {found}"
    )]
    LedgerCut {
        /// The number of entries that is stored.
        n_expected: u64,
        /// The last digest that is stored.
        expected: String,
        /// The number of entries.
        n_found: u64,
        /// The digest of the last one.
        found: String,
    },
    /// A statement was asked of an accountant that accounts for something else, too.
    #[error(
        "the {accountant} accountant composed something before: give a new one, into which the statement composes its ledger"
    )]
    AccountantInUse {
        /// Its name.
        accountant: String,
    },
    /// An ε was written with a mark that it cannot have.
    #[error("an epsilon of {epsilon} given {n_given} things cannot be {mark}")]
    InconsistentMark {
        /// The mark as written.
        mark: Mark,
        /// The number.
        epsilon: f64,
        /// How many things it is conditional on.
        n_given: usize,
    },
    /// Something is missing in a question.
    #[error("give {needed}")]
    Incomplete {
        /// The missing fields.
        needed: &'static str,
    },
    /// Two parts of a question exclude each other.
    #[error("{first} and {second} cannot be given together")]
    Conflicting {
        /// The one.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// A text that should describe a question does not.
    #[error("not a case: {message}")]
    NotACase {
        /// Why, with the place in the text.
        message: String,
    },
    /// Two ledgers or accountants were kept under different relations.
    #[error("cannot combine {left} with {right} neighbours: keep both under one relation")]
    RelationMismatch {
        /// Relation of the receiver.
        left: NeighbouringRelation,
        /// Relation of the argument.
        right: NeighbouringRelation,
    },
    /// More compositions than can be counted.
    #[error("the number of compositions exceeds {limit}")]
    CountOverflow {
        /// The largest count that is accepted.
        limit: u64,
    },
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "values are turned into text at once; `&` at every call says nothing"
)]
impl AccountingError {
    /// A parameter that is out of range.
    pub fn invalid(parameter: &'static str, value: impl ToString, expected: impl Into<String>) -> Self {
        Self::InvalidParameter { parameter, value: value.to_string(), expected: expected.into() }
    }
}
