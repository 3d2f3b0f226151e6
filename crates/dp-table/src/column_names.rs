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

/// Finds one column; `file` is for the message.
pub(crate) fn find(columns: &[String], name: &str, file: &Path) -> Result<usize, TableError> {
    columns.iter().position(|column| column == name).ok_or_else(|| TableError::MissingColumn {
        path: file.into(),
        line: 1,
        column: name.into(),
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
    fn numbers_order_the_columns_of_a_vector() {
        let columns = ["e_10", "e_2", "x", "e_", "e_1b", "e_0"].map(str::to_owned);
        let find = |length| find_vector(&columns, "e_*", length, Path::new("t.csv"));
        assert_eq!(find(3).unwrap(), InputColumns::Several(vec![5, 1, 0]));
        insta::assert_snapshot!(find(4).unwrap_err(), @"`t.csv` has 3 columns `e_*`, expected 4");
        assert!(is_named("e_7", "e_*", true) && !is_named("e_7", "e_*", false) && is_named("e_*", "e_*", false));
    }
}
