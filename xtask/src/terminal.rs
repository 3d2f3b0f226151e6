//! Standard output that may be full or closed: an error like any other, where `println!` would
//! panic.

use std::fmt::Arguments;
use std::io::Write;

use anyhow::Context;

use crate::ranks::ranks;

/// Writes text to standard output. Of several processes the first speaks.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn write(text: Arguments<'_>) -> anyhow::Result<()> {
    if ranks().rank() > 0 {
        return Ok(());
    }
    std::io::stdout().lock().write_fmt(text).context("writing to standard output")
}

/// Writes out what is held back.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn flush() -> anyhow::Result<()> {
    std::io::stdout().lock().flush().context("writing to standard output")
}

/// An error with its causes, in one line. A cause that says again what the one before it says is
/// left out: SQLite's come in pairs.
pub(crate) fn message(error: &anyhow::Error) -> String {
    let mut said: Vec<String> = Vec::new();
    for cause in error.chain().map(ToString::to_string) {
        if said.last().is_none_or(|last| !cause.ends_with(last.as_str())) {
            said.push(cause);
        }
    }
    said.join(": ")
}

/// A line of standard output, as `println!`; returns whether it could be written.
macro_rules! say {
    ($text:literal $($argument:tt)*) => {
        $crate::terminal::write(format_args!("{}\n", format_args!($text $($argument)*)))
    };
}

pub(crate) use say;
