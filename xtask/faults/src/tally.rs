//! What faults of one kind led to.

use std::fmt::{self, Write as _};

use serde::Serialize;

use crate::Outcome;

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The program is killed.
    Kill,
    /// A call fails.
    FailedCall,
    /// The disk is full.
    FullDisk,
    /// The disk is read-only.
    ReadOnlyDisk,
    /// The time of day jumps.
    JumpingClock,
    /// The same command runs twice at once.
    TwoWriters,
    /// A bit of a stored file is another.
    FlippedBit,
    /// A stored file is cut short.
    CutFile,
    /// Random bytes stand in a file that a user gives.
    RandomBytes,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kill => "kill",
            Self::FailedCall => "a call fails",
            Self::FullDisk => "full disk",
            Self::ReadOnlyDisk => "read-only disk",
            Self::JumpingClock => "jumping clock",
            Self::TwoWriters => "two writers",
            Self::FlippedBit => "flipped bit",
            Self::CutFile => "cut file",
            Self::RandomBytes => "random bytes",
        })
    }
}

/// Counts of outcomes.
#[derive(Debug, Clone, Serialize)]
pub struct Tally {
    /// Operation or stored file.
    pub name: String,
    /// What was done to it.
    pub kind: Kind,
    /// Calls of the operation that change a file system; bytes of a stored file.
    pub size: u64,
    /// Faults.
    pub cases: u64,
    /// Runs that did what they were asked for all the same.
    pub successes: u64,
    /// Runs that said in one line why not.
    pub clear_errors: u64,
    /// Runs that were killed.
    pub kills: u64,
    /// Runs that failed without a clear line.
    pub unclear_errors: u64,
    /// Runs that panicked.
    pub panics: u64,
    /// Runs that did not end.
    pub hangs: u64,
    /// Cases in which something was lost, or was wrong in silence.
    pub losses: u64,
    /// The first of them, in words.
    pub first: Option<String>,
}

impl Tally {
    pub(crate) fn new(name: &str, kind: Kind, size: u64) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            size,
            cases: 0,
            successes: 0,
            clear_errors: 0,
            kills: 0,
            unclear_errors: 0,
            panics: 0,
            hangs: 0,
            losses: 0,
            first: None,
        }
    }

    pub(crate) fn count(&mut self, outcome: Outcome) {
        self.cases += 1;
        if let Some(ending) = outcome.ending {
            let (counter, words) = match () {
                () if ending.status.is_none() => (&mut self.hangs, Some("it does not end".to_owned())),
                () if ending.has_panicked() => (&mut self.panics, Some(format!("it panics: {}", ending.errors.trim()))),
                () if ending.is_success() => (&mut self.successes, None),
                () if ending.was_killed() => (&mut self.kills, None),
                () if ending.is_clear() => (&mut self.clear_errors, None),
                () => (&mut self.unclear_errors, Some(format!("unclear: {}", ending.errors.trim()))),
            };
            *counter += 1;
            self.first = self.first.take().or(words);
        }
        if let Some(loss) = outcome.loss {
            self.losses += 1;
            self.first = self.first.take().or(Some(loss));
        }
    }

    /// Whether nothing went wrong that must not.
    pub fn is_sound(&self) -> bool {
        self.unclear_errors + self.panics + self.hangs + self.losses == 0
    }
}

/// A row for each operation and kind of fault, and for each stored file.
pub fn tables(written: &[Tally], read: &[Tally]) -> String {
    format!("{}\n{}", table("command", "calls", written), table("stored file", "bytes", read))
}

fn table(name: &str, size: &str, tallies: &[Tally]) -> String {
    let mut text = format!(
        "| {name} | {size} | fault | cases | as without | clear | killed | unclear | panics | hangs | losses |\n\
         |---|---|---|---|---|---|---|---|---|---|---|\n"
    );
    for tally in tallies {
        let Tally { name, kind, size, cases, successes, clear_errors, kills, .. } = tally;
        // Writing to a `String` cannot fail.
        let _ = writeln!(
            text,
            "| {name} | {size} | {kind} | {cases} | {successes} | {clear_errors} | {kills} | {} | {} | {} | {} |",
            tally.unclear_errors, tally.panics, tally.hangs, tally.losses
        );
    }
    text
}
