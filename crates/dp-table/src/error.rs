//! Every way in which a table can be unusable, with the file and the line.

use std::path::{Path, PathBuf};

use crate::date_format::DateFormat;
use crate::number_format::NumberFormat;

/// Why a table could not be used. File errors name the path, row errors also the line (1-based).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The operating system refused to read or write.
    #[error("cannot {action} `{}`: {reason}", path.display())]
    Io {
        /// The action, for example `read`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's answer; in the message, so that it is no source besides.
        reason: std::io::Error,
    },
    /// The file has no content, or no record in it.
    #[error("`{}` has no records", path.display())]
    EmptyFile {
        /// The file.
        path: PathBuf,
    },
    /// A gzip stream ends before its end mark, or is damaged.
    #[error("`{}` is not a complete gzip file: {reason} (after line {line})", path.display())]
    BrokenGzip {
        /// The file.
        path: PathBuf,
        /// Complete lines that could be decompressed.
        line: usize,
        /// The decoder's answer.
        reason: String,
    },
    /// A header lacks a column of the schema.
    #[error("{}:{line}: column `{column}` is missing from the header{cause}", path.display())]
    MissingColumn {
        /// The file.
        path: PathBuf,
        /// The header's line.
        line: usize,
        /// The absent column.
        column: String,
        /// A likely cause, behind a semicolon; empty where none is known.
        cause: String,
    },
    /// A row has too few or too many fields.
    #[error("{}:{line}: {found} fields, expected {expected}", path.display())]
    WrongArity {
        /// The file.
        path: PathBuf,
        /// The row's line.
        line: usize,
        /// Fields found.
        found: usize,
        /// Fields of the schema.
        expected: usize,
    },
    /// A value is not in its column's fixed list.
    #[error("{}:{line}: column `{column}`: `{value}` is not one of {accepted}", path.display())]
    UnknownCategory {
        /// The file.
        path: PathBuf,
        /// The row's line.
        line: usize,
        /// The column.
        column: String,
        /// Text of the value, shortened if long.
        value: String,
        /// The list.
        accepted: String,
    },
    /// A value is not a number, not finite, or out of range.
    #[error("{}:{line}: column `{column}`: `{value}` is not {accepted}", path.display())]
    InvalidNumber {
        /// The file.
        path: PathBuf,
        /// The row's line.
        line: usize,
        /// The column.
        column: String,
        /// Text of the value, shortened if long.
        value: String,
        /// Accepted values, in words.
        accepted: Box<str>,
    },
    /// The file breaks its format in another way.
    #[error("{}:{line}: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// The fault.
        reason: String,
    },
    /// A row's text is not UTF-8.
    #[error("{}:{line}: not UTF-8 text", path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// The row's line.
        line: usize,
    },
    /// A value is missing where the schema has no place for that.
    #[error("{}:{line}: column `{column}`: the value is missing, and nothing is declared for that", path.display())]
    MissingValue {
        /// The file.
        path: PathBuf,
        /// The row's line.
        line: usize,
        /// The column.
        column: String,
    },
    /// An image is not there, is damaged, or is not as declared.
    #[error("{}:{line}: column `{column}`: `{image}` {reason}", path.display())]
    InvalidImage {
        /// The table's file.
        path: PathBuf,
        /// The row's line.
        line: usize,
        /// The column.
        column: String,
        /// Its text: the image's path, shortened if long.
        image: Box<str>,
        /// What was found.
        reason: Box<str>,
    },
    /// A row has no label.
    #[error(
        "{}:{line}: column `{column}`: the label is missing; to train on the rows that have one, set bad_rows = \"drop\"",
        path.display()
    )]
    MissingLabel {
        /// The file.
        path: PathBuf,
        /// The row's line.
        line: usize,
        /// The column.
        column: String,
    },
    /// An empty line where a row was expected.
    #[error("{}:{line}: an empty line; it counts as a row: remove it", path.display())]
    EmptyLine {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
    },
    /// A row that would be dropped does not say whose record it is.
    #[error("{reason}; no row without a readable `{column}`, the unit of privacy, is dropped")]
    NoUnit {
        /// The column of units.
        column: String,
        /// Why the row does not fit.
        reason: Box<TableError>,
    },
    /// A table is not what an earlier pass over it read.
    #[error("`{}` was changed while it was read: two passes over it read different rows", path.display())]
    Changed {
        /// The first file.
        path: PathBuf,
    },
    /// Whoever watches the reading ended it.
    #[error("`{}`: reading was stopped", path.display())]
    Stopped {
        /// The file that was read.
        path: PathBuf,
    },
    /// A file cannot be a part of a table.
    #[error("`{}` {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why, in words that follow the file's name.
        reason: String,
    },
    /// A declaration contradicts itself or another one.
    #[error("column `{column}`: {reason}")]
    Schema {
        /// The column.
        column: String,
        /// The fault.
        reason: String,
    },
    /// An option is out of range.
    #[error("{parameter} = {value}: expected {expected}")]
    InvalidParameter {
        /// The option.
        parameter: &'static str,
        /// Value received.
        value: String,
        /// The range.
        expected: String,
    },
}

impl TableError {
    /// Whether it is about one row of a table, and the next rows can be read.
    pub fn is_of_one_row(&self) -> bool {
        matches!(
            self,
            Self::WrongArity { .. }
                | Self::UnknownCategory { .. }
                | Self::InvalidNumber { .. }
                | Self::NotUtf8 { .. }
                | Self::EmptyLine { .. }
                | Self::MissingValue { .. }
                | Self::MissingLabel { .. }
                | Self::InvalidImage { .. }
        )
    }

    /// The column whose value does not fit, of an error of one row.
    pub fn column(&self) -> Option<&str> {
        match self {
            Self::UnknownCategory { column, .. }
            | Self::InvalidNumber { column, .. }
            | Self::MissingValue { column, .. }
            | Self::MissingLabel { column, .. }
            | Self::InvalidImage { column, .. } => Some(column),
            _ => None,
        }
    }

    /// The file, and the line in it where the error is of one, counted from 1.
    pub fn place(&self) -> Option<(&Path, Option<usize>)> {
        match self {
            Self::Io { path, .. }
            | Self::EmptyFile { path }
            | Self::Changed { path }
            | Self::Stopped { path }
            | Self::File { path, .. } => Some((path, None)),
            Self::BrokenGzip { path, line, .. }
            | Self::MissingColumn { path, line, .. }
            | Self::WrongArity { path, line, .. }
            | Self::UnknownCategory { path, line, .. }
            | Self::InvalidNumber { path, line, .. }
            | Self::Malformed { path, line, .. }
            | Self::NotUtf8 { path, line }
            | Self::MissingValue { path, line, .. }
            | Self::MissingLabel { path, line, .. }
            | Self::InvalidImage { path, line, .. }
            | Self::EmptyLine { path, line } => Some((path, Some(*line))),
            Self::NoUnit { reason, .. } => reason.place(),
            Self::Schema { .. } | Self::InvalidParameter { .. } => None,
        }
    }

    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |reason| Self::Io { action, path, reason }
    }
}

/// A place in a text file, from which row errors are made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Position<'a> {
    pub(crate) path: &'a Path,
    pub(crate) line: usize,
}

impl Position<'_> {
    pub(crate) fn wrong_arity(self, found: usize, expected: usize) -> TableError {
        TableError::WrongArity { path: self.path.into(), line: self.line, found, expected }
    }

    /// `accepted` is the list in words.
    pub(crate) fn unlisted(self, column: &str, value: &str, accepted: &str) -> TableError {
        TableError::UnknownCategory {
            path: self.path.into(),
            line: self.line,
            column: column.into(),
            value: printable(value),
            accepted: accepted.into(),
        }
    }

    pub(crate) fn not_a_number(self, column: &str, value: &str) -> TableError {
        TableError::InvalidNumber {
            path: self.path.into(),
            line: self.line,
            column: column.into(),
            value: printable(value),
            accepted: "a finite number".into(),
        }
    }

    pub(crate) fn not_a_weight(self, column: &str, value: &str) -> TableError {
        TableError::InvalidNumber {
            path: self.path.into(),
            line: self.line,
            column: column.into(),
            value: printable(value),
            accepted: "a finite number of at least 0, as a weight is".into(),
        }
    }

    /// Where numbers are written in another way than plainly.
    pub(crate) fn not_in_format(self, column: &str, value: &str, format: &NumberFormat) -> TableError {
        TableError::InvalidNumber {
            path: self.path.into(),
            line: self.line,
            column: column.into(),
            value: printable(value),
            accepted: format!("a number written like {}", format.example()).into(),
        }
    }

    pub(crate) fn not_a_date(self, column: &str, value: &str, format: DateFormat) -> TableError {
        TableError::InvalidNumber {
            path: self.path.into(),
            line: self.line,
            column: column.into(),
            value: printable(value),
            accepted: format!("a date written like {}", format.example()).into(),
        }
    }

    /// `found` numbers were read of it.
    pub(crate) fn not_a_vector(self, column: &str, value: &str, found: usize, length: usize) -> TableError {
        TableError::InvalidNumber {
            path: self.path.into(),
            line: self.line,
            column: column.into(),
            value: printable(value),
            accepted: format!("a list of {length} finite numbers ({found} could be read)").into(),
        }
    }

    #[cfg(feature = "images")]
    pub(crate) fn not_an_image(self, column: &str, image: &str, reason: String) -> TableError {
        TableError::InvalidImage {
            path: self.path.into(),
            line: self.line,
            column: column.into(),
            image: printable(image).into(),
            reason: reason.into(),
        }
    }

    pub(crate) fn missing_value(self, column: &str) -> TableError {
        TableError::MissingValue { path: self.path.into(), line: self.line, column: column.into() }
    }

    pub(crate) fn missing_label(self, column: &str) -> TableError {
        TableError::MissingLabel { path: self.path.into(), line: self.line, column: column.into() }
    }

    pub(crate) fn malformed(self, reason: impl Into<String>) -> TableError {
        TableError::Malformed { path: self.path.into(), line: self.line, reason: reason.into() }
    }
}

/// At most 40 characters, control characters escaped: a broken file must not flood a terminal.
pub(crate) fn printable(value: &str) -> String {
    let mut short: String = value.chars().take(40).flat_map(char::escape_debug).collect();
    if value.chars().nth(40).is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_unprintable_values_are_shortened() {
        assert_eq!(printable("abc"), "abc");
        assert_eq!(printable("a\u{7}b"), "a\\u{7}b");
        assert_eq!(printable(&"x".repeat(50)), format!("{}…", "x".repeat(40)));
    }
}
