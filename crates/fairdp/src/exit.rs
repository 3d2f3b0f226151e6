//! How commands of the program end.

use std::fmt::Write as _;

/// How a command ends, for scripts: the one list behind every command, `--help` and the pages.
///
/// ```
/// use fairdp::{Exit, FairdpError};
///
/// let error = FairdpError::NotVerified { problems: vec!["a digest".into()] };
/// assert_eq!((error.exit(), error.exit().code()), (Exit::NotVerified, 4));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All was done.
    Done,
    /// A file or the machine failed, or a row of a table did not fit.
    Failed,
    /// The command line or the configuration is wrong.
    Usage,
    /// The result would not be private, would not be worth having, or would go beyond a cap.
    Refused,
    /// A release is not what its statement says, or a ledger is not what it was.
    NotVerified,
    /// A table or its outcomes are not what the release was made for: an alarm, and no failure.
    Alarm,
    /// A signal ended it, in order: what is kept was said.
    Interrupted,
}

impl Exit {
    /// All of them, by code.
    pub const ALL: [Self; 7] =
        [Self::Done, Self::Failed, Self::Usage, Self::Refused, Self::NotVerified, Self::Alarm, Self::Interrupted];

    /// The exit code of the process.
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Refused => 3,
            Self::NotVerified => 4,
            Self::Alarm => 5,
            // As shells say it of Ctrl-C.
            Self::Interrupted => 130,
        }
    }

    /// For people.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "a file or the machine failed, or a row does not fit",
            Self::Usage => "the command line or the configuration is wrong",
            Self::Refused => "refused: not private, not worth having, or beyond a cap",
            Self::NotVerified => "a release, a ledger or a claim does not hold",
            Self::Alarm => "an alarm: a table or its outcomes are not those of the release",
            Self::Interrupted => "interrupted by a signal; what is kept was said",
        }
    }

    /// All codes on one line, for `--help`.
    pub fn line() -> String {
        let mut line = "Exit codes: ".to_owned();
        for (place, exit) in Self::ALL.into_iter().enumerate() {
            let separator = if place == 0 { "" } else { "; " };
            let _ = write!(line, "{separator}{} {}", exit.code(), exit.meaning());
        }
        line + "."
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::error::FairdpError;

    #[test]
    fn every_end_has_its_code() {
        assert_eq!(Exit::ALL.map(Exit::code), [0, 1, 2, 3, 4, 5, 130]);
        assert!(Exit::line().starts_with("Exit codes: 0 done; 1 a file or the machine failed"), "{}", Exit::line());
    }

    #[test]
    fn errors_end_as_the_table_says() {
        let path = Path::new("x");
        let config = FairdpError::Config { path: path.into(), mistakes: Vec::new() };
        for (error, exit) in [
            (FairdpError::io("read", path)(std::io::ErrorKind::NotFound.into()), Exit::Failed),
            (FairdpError::file(path, "damaged"), Exit::Failed),
            (FairdpError::Interrupted, Exit::Interrupted),
            (config, Exit::Usage),
            (FairdpError::invalid("--out", "x", "y"), Exit::Usage),
            (FairdpError::folder(path, "is not empty", "give another one"), Exit::Refused),
            (FairdpError::system("threads", "none is left"), Exit::Failed),
            (FairdpError::Uncovered { path: path.into(), entries: Vec::new() }, Exit::Refused),
            (FairdpError::NotRead { files: Vec::new() }, Exit::Failed),
            (FairdpError::NotVerified { problems: Vec::new() }, Exit::NotVerified),
        ] {
            assert_eq!(error.exit(), exit, "{error:?}");
        }
    }
}
