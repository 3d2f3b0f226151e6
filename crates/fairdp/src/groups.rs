//! The group of a row that is predicted, where decisions depend on it.

use std::path::Path;

use dp_data::table::{GroupValues, Row, Schema};

use crate::error::{FairdpError, Result};

/// Finds the columns of groups in a table and reads a row's group from them, by the rules of the
/// schema.
pub(crate) struct GroupReader<'a> {
    schema: &'a Schema,
    columns: Vec<usize>,
}

impl<'a> GroupReader<'a> {
    pub(crate) fn new(schema: &'a Schema, columns: &[String], file: &Path) -> Result<Self> {
        let find = |name: &String| {
            columns.iter().position(|column| column == name).ok_or_else(|| {
                let problem = format!("has no column `{name}`, and decisions depend on its groups");
                FairdpError::file(file, problem)
            })
        };
        Ok(Self { schema, columns: schema.groups.iter().map(|group| find(&group.column)).collect::<Result<_>>()? })
    }

    /// The position of a row's group; several columns make their intersections.
    pub(crate) fn group(&self, row: &Row) -> Result<usize> {
        let mut position = 0;
        for (group, &column) in self.schema.groups.iter().zip(&self.columns) {
            let text = row.field(column);
            let is_missing = self.schema.missing.iter().any(|marker| marker == text);
            let (code, size) = code(&group.groups, text, is_missing).ok_or_else(|| {
                let problem = format!("line {}: column `{}`: `{text}` is of no group", row.line(), group.column);
                FairdpError::file(row.file(), problem)
            })?;
            position = position * size + code;
        }
        Ok(position)
    }
}

/// The position of a text among the groups of a column, and their number.
fn code(groups: &GroupValues, text: &str, is_missing: bool) -> Option<(usize, usize)> {
    match groups {
        GroupValues::Values { values, other, missing } => {
            let size = values.len() + usize::from(*other) + usize::from(*missing);
            let listed = || values.iter().position(|value| value == text);
            let code = match (is_missing, missing, other) {
                (true, true, _) => size - 1,
                (true, false, true) => values.len(),
                (true, false, false) => return None,
                (false, _, true) => listed().unwrap_or(values.len()),
                (false, _, false) => listed()?,
            };
            Some((code, size))
        }
        GroupValues::Bands { edges, missing } => {
            let size = edges.len() + 1 + usize::from(*missing);
            if is_missing {
                return missing.then_some((size - 1, size));
            }
            let value = text.parse::<f64>().ok().filter(|value| value.is_finite())?;
            Some((edges.partition_point(|edge| *edge <= value), size))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_bands_have_positions() {
        let values = vec!["a".to_owned(), "b".to_owned()];
        let all = GroupValues::Values { values: values.clone(), other: true, missing: true };
        assert_eq!(code(&all, "b", false), Some((1, 4)));
        assert_eq!(code(&all, "x", false), Some((2, 4)));
        assert_eq!(code(&all, "", true), Some((3, 4)));
        let strict = GroupValues::Values { values, other: false, missing: false };
        assert_eq!((code(&strict, "x", false), code(&strict, "", true)), (None, None));
        let bands = GroupValues::Bands { edges: vec![10.0, 20.0], missing: false };
        assert_eq!(code(&bands, "10", false), Some((1, 3)));
        assert_eq!((code(&bands, "", true), code(&bands, "ten", false)), (None, None));
    }
}
