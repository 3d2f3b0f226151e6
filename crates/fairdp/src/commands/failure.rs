//! How a command fails: in words, for programs, and as an exit code.

use std::io::{self, Write};
use std::path::Path;

use fairdp::{Exit, FairdpError, printable};

pub(super) enum Failure {
    Library(FairdpError),
    /// Options that do not make a question.
    Usage(String),
    Output(io::Error),
}

impl Failure {
    /// The message and how the program ends; `None` where the reader of the output has had enough.
    fn in_words(&self) -> Option<(String, Exit)> {
        let (message, exit) = match self {
            Self::Library(FairdpError::Io { path, source, .. })
                if path == Path::new("the output") && source.kind() == io::ErrorKind::BrokenPipe =>
            {
                return None;
            }
            // Lists, of lines that are plain.
            Self::Library(
                error @ (FairdpError::Uncovered { .. } | FairdpError::NotVerified { .. } | FairdpError::NotRead { .. }),
            ) => (error.to_string(), error.exit()),
            Self::Library(error) => (printable(&error.in_full()).into_owned(), error.exit()),
            Self::Usage(message) => (printable(message).into_owned(), Exit::Usage),
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => return None,
            Self::Output(error) => (format!("cannot write the output: {error}"), Exit::Failed),
        };
        Some((message, exit))
    }

    /// Says it on standard error, and returns how the program ends.
    pub(super) fn told(&self, who: &str) -> Exit {
        let Some((message, exit)) = self.in_words() else { return Exit::Done };
        let _ = writeln!(io::stderr(), "{who}error: {message}");
        exit
    }

    /// Prints it on standard output for a program: the message, the exit code and its meaning, and
    /// the file and line where there are any.
    pub(super) fn print_json(&self) {
        let Some((error, exit)) = self.in_words() else { return };
        let place = match self {
            Self::Library(error) => error.place(),
            Self::Usage(_) | Self::Output(_) => None,
        };
        let place = place.map(|(path, line)| serde_json::json!({ "file": path.to_string_lossy(), "line": line }));
        let answer =
            serde_json::json!({ "error": error, "code": exit.code(), "meaning": exit.meaning(), "where": place });
        let _ = writeln!(io::stdout(), "{answer}");
    }
}

impl From<FairdpError> for Failure {
    fn from(error: FairdpError) -> Self {
        Self::Library(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
