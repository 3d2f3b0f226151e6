//! From the texts of categories, labels and groups to their codes.

use sha2::{Digest, Sha256};

use crate::codes::MOST_CODES;
use crate::counts::ReadOutcome;
use crate::error::{Position, TableError};
use crate::group::Level;
use crate::markers::Markers;
use crate::number_format::NumberFormat;
use crate::reader::TableRow;
use crate::schema::{GroupColumn, GroupValues, Label, NumberLabel};
use crate::value::Value;
use crate::value_list::ValueList;

/// A list of values with their positions, and where other values and missing ones go.
#[derive(Debug, Clone)]
pub(crate) struct Categories {
    list: ValueList,
    other: Option<u16>,
    missing: Option<u16>,
    accepted: String,
}

impl Categories {
    /// # Errors
    /// [`TableError::Schema`] for two texts of one value, one that stands for a missing value,
    /// blanks around one, and too many or none.
    pub(crate) fn new(
        column: &str,
        values: &[String],
        other: bool,
        missing: bool,
        markers: &Markers,
    ) -> Result<Self, TableError> {
        let refuse = |reason: String| TableError::Schema { column: column.into(), reason };
        for value in values {
            if value.trim() != value {
                return Err(refuse(format!("`{value}` has blanks around it, which are removed when a table is read")));
            }
            if markers.contain_as_written(value) {
                return Err(refuse(format!("`{value}` stands for a missing value and cannot be a category")));
            }
        }
        let n = values.len() + usize::from(other) + usize::from(missing);
        if n == 0 || n > MOST_CODES {
            return Err(refuse(format!("categories = {n}: expected 1 to {MOST_CODES}")));
        }
        let list = ValueList::new(values).map_err(|(earlier, later)| {
            let (earlier, later) = (&values[earlier], &values[later]);
            if earlier == later {
                return refuse(format!("`{later}` is listed twice"));
            }
            refuse(format!("`{earlier}` and `{later}` are two spellings of one value; list it once"))
        })?;
        let after = values.len() as u16;
        Ok(Self {
            list,
            other: other.then_some(after),
            missing: missing.then_some(after + u16::from(other)),
            accepted: listed(values),
        })
    }

    /// The position of a value, and whether it is listed, missing or another one.
    pub(crate) fn find(
        &self,
        at: Position<'_>,
        column: &str,
        text: &str,
        is_missing: bool,
    ) -> Result<(u16, ReadOutcome), TableError> {
        // A value that is listed is no marker in other letters.
        if let Some(code) = self.list.find(text) {
            return Ok((code, ReadOutcome::Declared));
        }
        if is_missing {
            let found = self.missing.or(self.other).map(|code| (code, ReadOutcome::Missing));
            return found.ok_or_else(|| at.missing_value(column));
        }
        self.other.map(|code| (code, ReadOutcome::Other)).ok_or_else(|| at.unlisted(column, text, &self.accepted))
    }
}

/// At most eight texts of a list.
fn listed(values: &[String]) -> String {
    let mut list = values.iter().take(8).map(String::as_str).collect::<Vec<_>>().join(", ");
    if values.len() > 8 {
        list.push_str(&format!(" and {} more", values.len() - 8));
    }
    list
}

/// How the label is read.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    Classes(Categories),
    Number(NumberLabel),
}

/// A label that was read.
pub(crate) struct ReadLabel {
    /// The position of the class; 0 of a number.
    pub(crate) class: u16,
    /// A number's place in its range, from -1 to 1; 0 of a class.
    pub(crate) place: f32,
    pub(crate) outcome: ReadOutcome,
}

impl Target {
    /// # Errors
    /// [`TableError::Schema`].
    pub(crate) fn new(label: &Label, markers: &Markers) -> Result<Self, TableError> {
        let refuse = |reason: String| Err(TableError::Schema { column: label.column.clone(), reason });
        if let Some(number) = &label.number {
            if !label.classes.is_empty() {
                return refuse("a label has classes or is a number, not both".into());
            }
            let (low, high) = (number.low, number.high);
            if !(low < high && (high - low).is_finite()) {
                return refuse(format!("bounds {low} and {high}: expected finite numbers, the lower first"));
            }
            number.format.check(&label.column)?;
            return Ok(Self::Number(number.clone()));
        }
        if label.classes.len() < 2 {
            return refuse(format!("classes = {}: expected at least 2", label.classes.len()));
        }
        if label.classes.iter().any(String::is_empty) {
            return refuse("a class has an empty name, which stands for no answer".into());
        }
        Categories::new(&label.column, &label.classes, false, false, markers).map(Self::Classes)
    }

    pub(crate) fn read(
        &self,
        at: Position<'_>,
        column: &str,
        text: &str,
        is_missing: bool,
    ) -> Result<ReadLabel, TableError> {
        match self {
            Self::Classes(classes) => match classes.find(at, column, text, is_missing) {
                Ok((class, outcome)) => Ok(ReadLabel { class, place: 0.0, outcome }),
                Err(TableError::MissingValue { .. }) => Err(at.missing_label(column)),
                Err(error) => Err(error),
            },
            Self::Number(_) if is_missing => Err(at.missing_label(column)),
            Self::Number(number) => {
                let value = number.format.parse(text).ok_or_else(|| {
                    if number.format.is_plain() {
                        at.not_a_number(column, text)
                    } else {
                        at.not_in_format(column, text, &number.format)
                    }
                })?;
                let is_beyond = !(number.low..=number.high).contains(&value);
                let outcome = if is_beyond { ReadOutcome::Clamped } else { ReadOutcome::Declared };
                let place = (value.clamp(number.low, number.high) - number.middle()) / number.half();
                Ok(ReadLabel { class: 0, place: place.clamp(-1.0, 1.0) as f32, outcome })
            }
        }
    }
}

/// How one column of the groups is read.
#[derive(Debug, Clone)]
pub(crate) enum Groups {
    Values { list: Categories, levels: Vec<Level> },
    Bands { edges: Vec<f64>, missing: bool, levels: Vec<Level>, format: NumberFormat },
}

impl Groups {
    /// # Errors
    /// [`TableError::Schema`].
    pub(crate) fn new(group: &GroupColumn, markers: &Markers) -> Result<Self, TableError> {
        match &group.groups {
            GroupValues::Values { values, other, missing } => {
                let list = Categories::new(&group.column, values, *other, *missing, markers)?;
                let rest = other.then_some(Level::Other).into_iter().chain(missing.then_some(Level::Missing));
                let levels = values.iter().cloned().map(Level::Value).chain(rest).collect();
                Ok(Self::Values { list, levels })
            }
            GroupValues::Bands { edges, missing, format } => {
                format.check(&group.column)?;
                let ascends = edges.iter().all(|edge| edge.is_finite()) && edges.is_sorted_by(|a, b| a < b);
                if edges.is_empty() || !ascends {
                    let reason = "the edges of its groups are not one or more finite numbers in ascending order".into();
                    return Err(TableError::Schema { column: group.column.clone(), reason });
                }
                let ends = || edges.iter().copied().map(Some);
                let bands = std::iter::once(None).chain(ends()).zip(ends().chain([None]));
                let bands = bands.map(|(from, below)| Level::Band { from, below });
                let levels = bands.chain(missing.then_some(Level::Missing)).collect();
                Ok(Self::Bands { edges: edges.clone(), missing: *missing, levels, format: format.clone() })
            }
        }
    }

    pub(crate) fn levels(&self) -> &[Level] {
        match self {
            Self::Values { levels, .. } | Self::Bands { levels, .. } => levels,
        }
    }

    pub(crate) fn code(
        &self,
        row: &TableRow,
        (column, index): (&str, usize),
        is_missing: bool,
    ) -> Result<(usize, ReadOutcome), TableError> {
        let (at, text) = (row.position(), row.field(index));
        match self {
            Self::Values { list, .. } => {
                list.find(at, column, text, is_missing).map(|(code, met)| (usize::from(code), met))
            }
            Self::Bands { edges, missing: true, .. } if is_missing => Ok((edges.len() + 1, ReadOutcome::Missing)),
            Self::Bands { .. } if is_missing => Err(at.missing_value(column)),
            Self::Bands { edges, format, .. } => match row.number(index, format) {
                Some(value) => Ok((edges.partition_point(|edge| *edge <= value), ReadOutcome::Declared)),
                None if format.is_plain() => Err(at.not_a_number(column, text)),
                None => Err(at.not_in_format(column, text, format)),
            },
        }
    }
}

/// A number for the value that identifies a unit: the first eight bytes of the sha256 of a text
/// that all its spellings share. Two of 10⁷ units share one with probability 3e-6; they would be
/// taken for one unit, which bounds both.
pub(crate) fn unit(text: &str) -> u64 {
    let digest = Sha256::digest(Value::of_identifier(text).canonical());
    digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_one_value_name_one_unit() {
        for texts in [&["17", "17.0", "+17", "017", "1.7e1", "17."][..], &["0", "-0.0", ".0", "0e5"], &["True", "true"]]
        {
            assert!(texts.iter().all(|text| unit(text) == unit(texts[0])), "{texts:?}");
        }
        let different = [
            "17",
            "-17",
            "1.7",
            "170",
            "a17",
            "17e",
            "1e999",
            ".",
            "-",
            "e1",
            "",
            "1.2.3",
            "0",
            "true",
            "1",
            "12345678901234567890123",
            "12345678901234567890124",
        ];
        let numbers: std::collections::HashSet<u64> = different.iter().map(|text| unit(text)).collect();
        assert_eq!(numbers.len(), different.len());
    }
}
