//! How a command fails: in words, for programs, and as an exit code.

use std::io::{self, IsTerminal as _, Write};
use std::path::Path;

use clap::ColorChoice;
use fairdp::{Exit, FairdpError, printable};

use super::{answer, log};

/// Files that stand for streams, with the streams' names.
pub(super) type StreamNames = Vec<(String, String)>;

pub(super) enum Failure {
    Library(FairdpError),
    /// The same, of files that stand for streams: each with the name that is shown.
    OfInputs(Box<(FairdpError, StreamNames)>),
    /// A signal ended a fit: what is kept, and how it goes on.
    Interrupted(String),
    /// Options that do not make a question.
    Usage(String),
    Output(io::Error),
    /// An audit's report, which was printed, refutes the claim.
    Refuted,
}

impl Failure {
    /// A failure about files in the place of streams.
    pub(super) fn of_inputs(error: FairdpError, names: StreamNames) -> Self {
        if names.is_empty() { Self::Library(error) } else { Self::OfInputs(Box::new((error, names))) }
    }

    pub(super) fn of_library(&self) -> Option<&FairdpError> {
        match self {
            Self::Library(error) => Some(error),
            Self::OfInputs(inputs) => Some(&inputs.0),
            Self::Interrupted(_) | Self::Usage(_) | Self::Output(_) | Self::Refuted => None,
        }
    }

    /// The message and how the program ends; `None` where the reader of the output has had enough.
    fn in_words(&self) -> Option<(String, Exit)> {
        let (message, exit) = match self {
            Self::Library(_) | Self::OfInputs(_) => {
                let error = self.of_library()?;
                let is_closed = |source: &io::Error| source.kind() == io::ErrorKind::BrokenPipe;
                match error {
                    FairdpError::Io { path, source, .. } if path == Path::new("the output") && is_closed(source) => {
                        return None;
                    }
                    // Lists, of lines that are plain.
                    FairdpError::Config { .. }
                    | FairdpError::Uncovered { .. }
                    | FairdpError::UnknownToModel { .. }
                    | FairdpError::NotVerified { .. }
                    | FairdpError::NotRead { .. } => (error.to_string(), error.exit()),
                    error => (printable(&error.in_full()).into_owned(), error.exit()),
                }
            }
            // Lines that are plain.
            Self::Interrupted(message) => (message.clone(), Exit::Interrupted),
            Self::Usage(message) => (printable(message).into_owned(), Exit::Usage),
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => return None,
            Self::Refuted => ("the claim is refuted".into(), Exit::NotVerified),
            Self::Output(error) => (format!("cannot write the output: {error}"), Exit::Failed),
        };
        Some((self.named(message), exit))
    }

    /// A text in which files that stand for streams have the streams' names.
    fn named(&self, text: String) -> String {
        let Self::OfInputs(inputs) = self else { return text };
        inputs.1.iter().fold(text, |text, (file, name)| text.replace(&*printable(file), name))
    }

    /// Says it on standard error, and returns how the program ends.
    pub(super) fn told(&self, who: &str, color: ColorChoice) -> Exit {
        let Some((message, exit)) = self.in_words() else { return Exit::Done };
        log::add(&format!("{who}error: {message}"));
        let is_coloured = match color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|no| no.is_empty())
            }
        };
        let (begin, end) = if is_coloured { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
        let _ = writeln!(io::stderr(), "{who}{begin}error:{end} {message}");
        exit
    }

    /// Prints it on standard output for a program: the message, the exit code and its meaning, and
    /// the file and line where there are any.
    pub(super) fn print_json(&self) {
        let Some((error, exit)) = self.in_words() else { return };
        if matches!(self, Self::Refuted) {
            // The report was printed.
            return;
        }
        let place = self.of_library().and_then(FairdpError::place);
        let file = |path: &Path| self.named(path.to_string_lossy().into_owned());
        let place = place.map(|(path, line)| serde_json::json!({ "file": file(path), "line": line }));
        let mut answer = in_json(&error, exit, &serde_json::json!(place));
        if let Some(mistakes) = self.of_library().map(FairdpError::mistakes).filter(|mistakes| !mistakes.is_empty()) {
            answer["mistakes"] = serde_json::json!(mistakes);
        }
        let _ = answer::line(&mut io::stdout(), answer);
    }
}

/// Prints that a command line is wrong on standard output, for a program.
pub(super) fn print_usage_json(message: &str) {
    let error = message.trim().strip_prefix("error: ").unwrap_or(message);
    let _ = answer::line(&mut io::stdout(), in_json(error, Exit::Usage, &serde_json::Value::Null));
}

fn in_json(error: &str, exit: Exit, place: &serde_json::Value) -> serde_json::Value {
    serde_json::json!({ "error": error, "code": exit.code(), "meaning": exit.meaning(), "where": place })
}

impl From<FairdpError> for Failure {
    fn from(error: FairdpError) -> Self {
        Self::Library(error)
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::Output(error.into())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
