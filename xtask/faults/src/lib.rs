//! Faults put into programs that write files, and what must hold afterwards.
//!
//! An [`Operation`] is a command in a folder. It is run once as it is, which gives what its folder
//! should come to; then again and again with a [`Fault`] each time: killed in the middle of the
//! n-th call that changes a file system, or that call fails, or the disk is full or read-only from
//! there on. After each
//!
//! - the program has said in one line what happened, or has succeeded; it has neither panicked nor
//!   hung,
//! - every file that was there before holds what it held, or what it should come to,
//! - the same command without a fault succeeds, and brings the folder to where it should be, with
//!   nothing left over.
//!
//! The calls are counted and failed by the library `fault-shim`, which is preloaded (Linux).
//! [`flips`] damages stored files instead, and [`crash`] kills runs that continue where they were.

pub mod crash;
mod error;
pub mod flips;
mod folder;
mod process;
mod tally;

use std::path::{Path, PathBuf};

use rayon::prelude::*;

pub use self::error::FaultsError;
use self::folder::Snapshot;
pub use self::process::{Ending, Program, Shim};
pub use self::tally::{Kind, Tally, tables};

/// How a call that changes a file system goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The program ends with it, half of a write done.
    Kill,
    /// It fails, once.
    Error,
    /// It and all later ones that need room fail.
    Full,
    /// It and all later ones fail.
    ReadOnly,
}

impl Fault {
    /// Every fault.
    pub const ALL: [Self; 4] = [Self::Kill, Self::Error, Self::Full, Self::ReadOnly];

    fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Error => "error",
            Self::Full => "full",
            Self::ReadOnly => "read-only",
        }
    }
}

impl From<Fault> for Kind {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Kill => Self::Kill,
            Fault::Error => Self::FailedCall,
            Fault::Full => Self::FullDisk,
            Fault::ReadOnly => Self::ReadOnlyDisk,
        }
    }
}

/// A command that writes.
#[derive(Debug, Clone)]
pub struct Operation {
    /// For tables.
    pub name: &'static str,
    /// What its folder holds before.
    pub before: PathBuf,
    /// Words of the command.
    pub arguments: Vec<String>,
    /// Commands whose output says what the folder has come to; it must not depend on clocks.
    pub views: Vec<Vec<String>>,
    /// Files, or folders of files, that change at every run (they hold times): they are compared by
    /// the views alone.
    pub timed: Vec<&'static str>,
}

/// What an operation should come to.
struct Expected {
    before: Snapshot,
    after: Snapshot,
    views: Vec<Vec<u8>>,
    n_calls: u64,
}

/// Puts faults into an operation: each kind at `positions` calls spread over all, or at every call
/// if there are no more. Several at a time: each has a folder of its own.
///
/// # Errors
/// [`FaultsError`] if the operation fails without a fault, or the machine does.
pub fn exercise(
    program: &Program,
    shim: &Shim,
    operation: &Operation,
    positions: u64,
) -> Result<Vec<Tally>, FaultsError> {
    let expected = expected(program, shim, operation)?;
    let n = expected.n_calls;
    let at: Vec<u64> = if n <= positions {
        (1..=n).collect()
    } else {
        // The last call is the one after which everything is in place.
        (0..positions).map(|i| 1 + i * (n - 1) / (positions - 1).max(1)).collect()
    };
    let mut tallies = Vec::new();
    for fault in Fault::ALL {
        let mut tally = Tally::new(operation.name, fault.into(), n);
        let outcomes: Result<Vec<Outcome>, FaultsError> =
            at.par_iter().map(|&at| strike(program, shim, operation, &expected, fault, at)).collect();
        outcomes?.into_iter().for_each(|outcome| tally.count(outcome));
        tallies.push(tally);
    }
    tallies.push(jumping_clock(program, shim, operation, &expected)?);
    tallies.push(two_writers(program, operation, &expected)?);
    Ok(tallies)
}

fn expected(program: &Program, shim: &Shim, operation: &Operation) -> Result<Expected, FaultsError> {
    let folder = folder::copy_of(&operation.before)?;
    let before = Snapshot::of(folder.path())?;
    let (ending, n_calls) = shim.count_calls(program, folder.path(), &operation.arguments)?;
    ending.ensure_success(operation.name)?;
    Ok(Expected {
        before,
        after: Snapshot::of(folder.path())?,
        views: views(program, folder.path(), operation)?,
        n_calls,
    })
}

fn views(program: &Program, folder: &Path, operation: &Operation) -> Result<Vec<Vec<u8>>, FaultsError> {
    let view = |arguments: &Vec<String>| {
        let ending = program.run(folder, arguments)?;
        ending.ensure_success(&arguments.join(" "))?;
        Ok(ending.output)
    };
    operation.views.iter().map(view).collect()
}

/// What one fault led to.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) ending: Option<Ending>,
    /// What was lost or is wrong, in words.
    pub(crate) loss: Option<String>,
}

fn strike(
    program: &Program,
    shim: &Shim,
    operation: &Operation,
    expected: &Expected,
    fault: Fault,
    at: u64,
) -> Result<Outcome, FaultsError> {
    let folder = folder::copy_of(&operation.before)?;
    let ending = shim.run_with(program, folder.path(), &operation.arguments, fault.name(), at)?;
    let loss = loss(program, folder.path(), operation, expected)?;
    let loss = loss.map(|loss| format!("{} {at}: {loss}", fault.name()));
    Ok(Outcome { ending: Some(ending), loss })
}

/// What is lost of what was there, or cannot be brought to its end.
fn loss(
    program: &Program,
    folder: &Path,
    operation: &Operation,
    expected: &Expected,
) -> Result<Option<String>, FaultsError> {
    let found = Snapshot::of(folder)?;
    if let Some(path) = found.lost(&expected.before, &expected.after, &operation.timed) {
        return Ok(Some(format!("{path} is neither as it was nor as it should be")));
    }
    let again = program.run(folder, &operation.arguments)?;
    if !again.is_success() {
        return Ok(Some(format!("the same command fails afterwards: {}", again.error())));
    }
    let end = Snapshot::of(folder)?;
    if let Some(path) = end.difference(&expected.after, &operation.timed) {
        return Ok(Some(format!("{path} is not as it should be after the same command")));
    }
    for (view, wanted) in operation.views.iter().zip(&expected.views) {
        let shown = program.run(folder, view)?;
        if shown.output != *wanted {
            return Ok(Some(format!("`{}` shows something else", view.join(" "))));
        }
    }
    Ok(None)
}

fn jumping_clock(
    program: &Program,
    shim: &Shim,
    operation: &Operation,
    expected: &Expected,
) -> Result<Tally, FaultsError> {
    let mut tally = Tally::new(operation.name, Kind::JumpingClock, expected.n_calls);
    let folder = folder::copy_of(&operation.before)?;
    let ending = shim.run_with_jumping_clock(program, folder.path(), &operation.arguments)?;
    let loss = if ending.is_success() {
        loss(program, folder.path(), operation, expected)?
    } else {
        Some(format!("it fails: {}", ending.error()))
    };
    tally.count(Outcome { ending: Some(ending), loss });
    Ok(tally)
}

/// The same command twice at once: one may refuse, neither may spoil.
fn two_writers(program: &Program, operation: &Operation, expected: &Expected) -> Result<Tally, FaultsError> {
    let mut tally = Tally::new(operation.name, Kind::TwoWriters, expected.n_calls);
    let folder = folder::copy_of(&operation.before)?;
    let both: Vec<_> =
        (0..2).map(|_| program.start(folder.path(), &operation.arguments)).collect::<Result<_, FaultsError>>()?;
    let mut endings = both.into_iter().map(process::Running::finish).collect::<Result<Vec<_>, FaultsError>>()?;
    let loss = if endings.iter().any(Ending::is_success) {
        loss(program, folder.path(), operation, expected)?
    } else {
        Some(format!("both fail: {}", endings[0].error()))
    };
    let last = endings.pop();
    tally.count(Outcome { ending: endings.pop(), loss: None });
    tally.count(Outcome { ending: last, loss });
    Ok(tally)
}
