//! The columns of a table that an entry of a schema is about.

use std::path::Path;

use crate::error::TableError;

/// The columns of one input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum InputColumns {
    /// One, at this position.
    One(usize),
    /// The numbers of a vector, in order.
    Several(Vec<usize>),
}

/// The name before the number, of an entry for several columns.
pub(crate) fn prefix(name: &str) -> Option<&str> {
    name.strip_suffix('*')
}

/// The number behind a prefix.
pub(crate) fn number_behind(column: &str, prefix: &str) -> Option<u64> {
    let digits = column.strip_prefix(prefix)?;
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}

/// Whether a column is one of those that an entry names.
pub(crate) fn is_named(column: &str, name: &str, is_vector: bool) -> bool {
    match prefix(name).filter(|_| is_vector) {
        Some(prefix) => number_behind(column, prefix).is_some(),
        None => column == name,
    }
}

/// Characters that tables are commonly delimited by.
const DELIMITERS: [char; 8] = [',', ';', '\t', '|', '^', '~', ':', ' '];

/// Asks for the delimiter of a table whose header was read as one field, where it holds characters that commonly
/// delimit tables: it ends a message about a column that is missing. Empty for other headers.
pub fn delimiter_question(columns: &[String]) -> String {
    let likely = likely_delimiter(columns);
    likely.map_or_else(String::new, |letter| {
        let letter = letter.escape_default();
        format!("; it is one field: are its parts delimited by `{letter}` (the option `delimiter`)?")
    })
}

/// The commonest of such characters.
fn likely_delimiter(columns: &[String]) -> Option<char> {
    let [field] = columns else { return None };
    let count = |letter: &char| field.matches(*letter).count();
    // Of several that are as common, the first.
    DELIMITERS.into_iter().rev().filter(|letter| count(letter) > 0).max_by_key(count)
}

/// Finds one column; `file` is for the message.
pub(crate) fn find(columns: &[String], name: &str, file: &Path) -> Result<usize, TableError> {
    columns.iter().position(|column| column == name).ok_or_else(|| TableError::MissingColumn {
        path: file.into(),
        line: 1,
        column: name.into(),
        cause: delimiter_question(columns),
    })
}

/// Finds the columns of a vector of this length; `file` is for the message.
pub(crate) fn find_vector(
    columns: &[String],
    name: &str,
    length: usize,
    file: &Path,
) -> Result<InputColumns, TableError> {
    let Some(prefix) = prefix(name) else { return find(columns, name, file).map(InputColumns::One) };
    let mut found: Vec<(u64, usize)> = columns
        .iter()
        .enumerate()
        .filter_map(|(place, column)| Some((number_behind(column, prefix)?, place)))
        .collect();
    found.sort_unstable();
    if found.len() != length {
        let reason = format!("has {} columns `{name}`, expected {length}", found.len());
        return Err(TableError::File { path: file.into(), reason });
    }
    Ok(InputColumns::Several(found.into_iter().map(|(_, place)| place).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_of_one_field_has_another_delimiter() {
        let likely =
            |header: &[&str]| likely_delimiter(&header.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        assert_eq!((likely(&["age^job^ill"]), likely(&["first name;last name;ill"])), (Some('^'), Some(';')));
        assert_eq!((likely(&["a,b;c"]), likely(&["age"]), likely(&["a;b", "c"])), (Some(','), None, None));
        let columns = ["age\tjob".to_owned()];
        insta::assert_snapshot!(
            find(&columns, "job", Path::new("t.csv")).unwrap_err(),
            @r"t.csv:1: column `job` is missing from the header; it is one field: are its parts delimited by `\t` (the option `delimiter`)?"
        );
    }

    #[test]
    fn numbers_order_the_columns_of_a_vector() {
        let columns = ["e_10", "e_2", "x", "e_", "e_1b", "e_0"].map(str::to_owned);
        let find = |length| find_vector(&columns, "e_*", length, Path::new("t.csv"));
        assert_eq!(find(3).unwrap(), InputColumns::Several(vec![5, 1, 0]));
        insta::assert_snapshot!(find(4).unwrap_err(), @"`t.csv` has 3 columns `e_*`, expected 4");
        assert!(is_named("e_7", "e_*", true) && !is_named("e_7", "e_*", false) && is_named("e_*", "e_*", false));
    }
}
