//! From the entry of a column to the column of a schema, kind by kind.

use std::fmt::Display;

use super::columns::{BinsEntry, BoundEntry, ColumnEntry, ColumnKind, Missing};
use super::entry_error::EntryError;
use crate::date_format::{DateFormat, DatePart};
use crate::schema::{Bins, Column};
use crate::vector::VectorBound;

/// The two values of a boolean unless they are given: truth values, and 1 and 0.
const TRUTH: [&str; 2] = ["0", "1"];

impl ColumnKind {
    /// With its article, and the keys that it takes.
    fn keys(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Number => ("a number", &["low", "high", "bounds", "bins", "missing", "decimal", "thousands", "unit"]),
            Self::Date => ("a date", &["low", "high", "bounds", "bins", "missing", "format", "parts"]),
            Self::Boolean => ("a boolean", &["values", "missing"]),
            Self::Vector => ("a vector", &["length", "norm", "low", "high", "missing"]),
            Self::Image => ("an image", &["height", "width", "channels", "resize", "missing"]),
            Self::Category => ("a category", &["values", "other", "missing"]),
            Self::Drop => ("a column that is dropped", &[]),
        }
    }
}

impl ColumnEntry {
    /// The column; `released` are bounds that were paid for, and the edges between them: of dates in
    /// days since 1970.
    ///
    /// # Errors
    /// Names the key that its kind does not take or lacks.
    pub fn column(&self, released: Option<&[f64]>) -> Result<Column, EntryError> {
        if self.kind == ColumnKind::Drop {
            return Ok(Column::Dropped);
        }
        self.refuse_foreign_keys()?;
        match self.kind {
            ColumnKind::Drop => Ok(Column::Dropped),
            ColumnKind::Number => self.number(released),
            ColumnKind::Date => self.date(released),
            ColumnKind::Boolean => self.boolean(),
            ColumnKind::Vector => self.vector(),
            ColumnKind::Image => self.image(),
            ColumnKind::Category => {
                let Some(values) = self.values.clone() else {
                    return Err(self.refusal("values", "none", "a list of texts"));
                };
                let missing = self.has_missing_feature()?;
                Ok(Column::Category { values, other: self.other.unwrap_or(false), missing })
            }
        }
    }

    fn refusal(&self, key: &str, value: impl Display, expected: &str) -> EntryError {
        EntryError::new(key, format!("column `{}`: {key} = {value}: expected {expected}", self.name))
    }

    fn refuse_foreign_keys(&self) -> Result<(), EntryError> {
        let given = [
            ("low", self.low.is_some()),
            ("high", self.high.is_some()),
            ("bounds", self.bounds.is_some()),
            ("bins", self.bins.is_some()),
            ("missing", self.missing.is_some()),
            ("decimal", self.decimal.is_some()),
            ("thousands", self.thousands.is_some()),
            ("unit", self.unit.is_some()),
            ("format", self.format.is_some()),
            ("parts", self.parts.is_some()),
            ("length", self.length.is_some()),
            ("norm", self.norm.is_some()),
            ("height", self.height.is_some()),
            ("width", self.width.is_some()),
            ("channels", self.channels.is_some()),
            ("resize", self.resize.is_some()),
            ("values", self.values.is_some()),
            ("other", self.other.is_some()),
        ];
        let (kind, keys) = self.kind.keys();
        match given.iter().find(|(key, is_given)| *is_given && !keys.contains(key)) {
            Some((key, _)) => {
                Err(EntryError::new(*key, format!("column `{}`: {key}: expected none for {kind}", self.name)))
            }
            None => Ok(()),
        }
    }

    fn has_missing_feature(&self) -> Result<bool, EntryError> {
        match self.missing {
            None => Ok(false),
            Some(Missing::Feature(missing)) => Ok(missing),
            Some(Missing::Value(value)) => Err(self.refusal("missing", value, "true or false")),
        }
    }

    fn number_of(&self, key: &str, bound: Option<&BoundEntry>) -> Result<Option<f64>, EntryError> {
        match bound {
            None => Ok(None),
            Some(BoundEntry::Number(number)) => Ok(Some(*number)),
            Some(BoundEntry::Day(day)) => Err(self.refusal(key, format!("\"{day}\""), "a number")),
        }
    }

    fn number(&self, released: Option<&[f64]>) -> Result<Column, EntryError> {
        self.refuse_two_sources()?;
        let missing = match self.missing {
            None | Some(Missing::Feature(false)) => None,
            Some(Missing::Value(value)) => Some(value),
            Some(Missing::Feature(true)) => {
                return Err(self.refusal("missing", "true", "the number that stands for it"));
            }
        };
        let [low, high] = [self.number_of("low", self.low.as_ref())?, self.number_of("high", self.high.as_ref())?];
        let format = self.number_format();
        if let Some([low, edges @ .., high]) = released.filter(|_| !self.bins_are_released()) {
            let missing = if self.is_read_from_records() {
                // Not what the records say, nor whether one of them lacks it: of that only the
                // bounds are paid for.
                Some(*low)
            } else {
                // It may lie outside of bounds that were released.
                missing.map(|declared: f64| declared.clamp(*low, *high))
            };
            return Ok(Column::Number { low: *low, high: *high, bins: Bins::Edges(edges.to_vec()), missing, format });
        }
        let (Some(low), Some(high)) = (low, high) else {
            let key = if low.is_none() { "low" } else { "high" };
            let expected = "a number, or bounds = \"private\" in place of low, high and bins";
            return Err(self.refusal(key, "none", expected));
        };
        let bins = match (&self.bins, released) {
            (Some(BinsEntry::Released(_)), Some(edges)) => Bins::Edges(within(edges, low, high)),
            (bins, _) => declared(bins.as_ref()).unwrap_or_else(|| Bins::for_bounds(low, high, false)),
        };
        Ok(Column::Number { low, high, bins, missing, format })
    }

    fn refuse_two_sources(&self) -> Result<(), EntryError> {
        let range = [("low", self.low.is_some()), ("high", self.high.is_some()), ("bins", self.bins.is_some())];
        let given: Vec<&str> = range.iter().filter(|(_, is_given)| *is_given).map(|(key, _)| *key).collect();
        let [first, ..] = given[..] else { return Ok(()) };
        if self.bounds.is_none() || self.is_read_from_records() {
            return Ok(());
        }
        let message = format!(
            "column `{}`: {}: expected none with bounds = \"private\", which releases bounds and edges in place of low, high \
             and bins: delete {}",
            self.name,
            given.join(", "),
            if given.len() == 1 { "it" } else { "them" }
        );
        Err(EntryError::new(first, message))
    }

    fn date(&self, released: Option<&[f64]>) -> Result<Column, EntryError> {
        self.refuse_two_sources()?;
        let (format, parts) = (self.format.unwrap_or(DateFormat::Iso), self.parts.clone().unwrap_or_default());
        let missing = self.has_missing_feature()?;
        if self.bounds.is_some() {
            if parts.contains(&DatePart::Year) {
                let expected = "none of \"year\" with bounds = \"private\": it has one feature for each year between declared bounds";
                return Err(self.refusal("parts", "\"year\"", expected));
            }
            if let Some([low, edges @ .., high]) = released {
                return Ok(Column::Date {
                    low: DateFormat::iso_day(*low),
                    high: DateFormat::iso_day(*high),
                    bins: Bins::Edges(edges.iter().map(|edge| edge - low).collect()),
                    // Whether a record lacks its date is not paid for.
                    missing: missing || self.is_read_from_records(),
                    format,
                    parts,
                });
            }
        }
        let day = |key: &str, bound: &Option<BoundEntry>| match bound {
            Some(BoundEntry::Day(day)) => Ok(day.clone()),
            Some(number) => Err(self.refusal(key, number, "a date such as \"2024-01-31\"")),
            None => {
                let expected = "a date such as \"2024-01-31\", or bounds = \"private\" in place of low, high and bins";
                Err(self.refusal(key, "none", expected))
            }
        };
        let (low, high) = (day("low", &self.low)?, day("high", &self.high)?);
        let days = [&low, &high].map(|day| DateFormat::Iso.days(day));
        let bins = match (&self.bins, released, days) {
            (Some(BinsEntry::Released(_)), Some(edges), [Some(first), Some(last)]) => {
                Bins::Edges(within(edges, first, last).iter().map(|edge| edge - first).collect())
            }
            (bins, ..) => declared(bins.as_ref()).unwrap_or(Bins::Equal(16)),
        };
        Ok(Column::Date { low, high, bins, missing, format, parts })
    }

    fn boolean(&self) -> Result<Column, EntryError> {
        let values = match self.values.as_deref() {
            None => TRUTH.map(str::to_owned),
            Some([first, second]) => [first.clone(), second.clone()],
            Some(values) => {
                return Err(self.refusal("values", format!("{values:?}"), "two texts, the second one of which is 1"));
            }
        };
        Ok(Column::Boolean { values, missing: self.has_missing_feature()? })
    }

    fn vector(&self) -> Result<Column, EntryError> {
        let [low, high] = [self.number_of("low", self.low.as_ref())?, self.number_of("high", self.high.as_ref())?];
        let bound = match (self.norm, low, high) {
            (Some(norm), None, None) => VectorBound::Norm(norm),
            (None, Some(low), Some(high)) => VectorBound::Range { low, high },
            _ => {
                let message = format!("column `{}`: norm, or low and high: expected one of the two", self.name);
                return Err(EntryError::new("norm", message));
            }
        };
        let Some(length) = self.length else {
            return Err(self.refusal("length", "none", "how many numbers each vector has"));
        };
        Ok(Column::Vector { length, bound, missing: self.has_missing_feature()? })
    }

    fn image(&self) -> Result<Column, EntryError> {
        let side = |key: &str, side: Option<usize>| {
            side.ok_or_else(|| self.refusal(key, "none", "a number of pixels, from 8 to 128"))
        };
        Ok(Column::Image {
            height: side("height", self.height)?,
            width: side("width", self.width)?,
            channels: self.channels.unwrap_or(1),
            resize: self.resize.unwrap_or(false),
            missing: self.has_missing_feature()?,
            pixels: false,
        })
    }
}

fn declared(bins: Option<&BinsEntry>) -> Option<Bins> {
    match bins? {
        // Before their release.
        BinsEntry::Released(_) => None,
        BinsEntry::Equal(n) => Some(Bins::Equal(*n)),
        BinsEntry::Log { log } => Some(Bins::Log(*log)),
        BinsEntry::SignedLog { signed_log } => Some(Bins::SignedLog(*signed_log)),
        BinsEntry::Edges { edges } => Some(Bins::Edges(edges.clone())),
    }
}

/// Released edges strictly between declared bounds, apart in single precision.
fn within(edges: &[f64], low: f64, high: f64) -> Vec<f64> {
    let least = 1e-5 * (high - low);
    let mut kept: Vec<f64> = Vec::with_capacity(edges.len());
    for &edge in edges {
        if edge - kept.last().unwrap_or(&low) > least && high - edge > least {
            kept.push(edge);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_edges_stay_between_the_bounds() {
        assert_eq!(within(&[-1.0, 0.0, 1.0, 1.0, 5.0, 10.0, 11.0], 0.0, 10.0), [1.0, 5.0]);
        assert!(within(&[], 0.0, 1.0).is_empty());
    }
}
