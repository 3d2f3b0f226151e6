//! Entries of columns and groups.

use std::fmt::{self, Display, Formatter};

use schemars::JsonSchema;
use serde::Deserialize;

use super::entry_error::EntryError;
use super::names::Names;
use super::origin::Origin;
use crate::date_format::{DateFormat, DatePart};
use crate::number_format::NumberFormat;
use crate::schema::{GroupColumn, GroupValues};

/// `[[column]]`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ColumnEntry {
    /// Its name in the table.
    pub name: String,
    /// Its kind.
    pub kind: ColumnKind,
    /// Numbers and vectors: the lower bound. Dates: the first day.
    pub low: Option<BoundEntry>,
    /// Numbers and vectors: the upper bound. Dates: the end.
    pub high: Option<BoundEntry>,
    /// Numbers and dates: `"private"` releases the bounds within the budget.
    pub bounds: Option<Bounds>,
    /// Numbers and dates: a number of equal bins, `{ log = 16 }` for growing ones, `{ signed_log = 16 }`
    /// for those that grow to both sides of 0, `{ edges = […] }`, or `"private"`.
    pub bins: Option<BinsEntry>,
    /// Numbers: the value that stands for a missing one. Other kinds: whether missing values have a
    /// feature.
    pub missing: Option<Missing>,
    /// Numbers: between whole part and fraction; a point unless given.
    pub decimal: Option<char>,
    /// Numbers: between every three digits of the whole part.
    pub thousands: Option<char>,
    /// Numbers: before or behind each.
    pub unit: Option<String>,
    /// Dates: how they are written; `"iso"` unless given.
    #[schemars(with = "Option<Names<DateFormat>>")]
    pub format: Option<DateFormat>,
    /// Dates: parts that are features too.
    #[schemars(with = "Option<Vec<Names<DatePart>>>")]
    pub parts: Option<Vec<DatePart>>,
    /// Vectors: how many numbers each has.
    pub length: Option<usize>,
    /// Vectors: the largest Euclidean norm, in place of low and high.
    pub norm: Option<f64>,
    /// Images: rows of pixels.
    pub height: Option<usize>,
    /// Images: pixels in a row.
    pub width: Option<usize>,
    /// Images: 1, or 3 for colours; 1 unless given.
    pub channels: Option<usize>,
    /// Images: whether those of another size or with other channels are brought to these.
    pub resize: Option<bool>,
    /// Categories: the values. Booleans: the two.
    pub values: Option<Vec<String>>,
    /// Categories: whether all other texts share a feature.
    pub other: Option<bool>,
    /// The origin of the entry.
    pub from: Option<Origin>,
    /// Whether somebody checked that it is known without the records.
    #[serde(default)]
    pub public: bool,
}

/// Kinds of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ColumnKind {
    /// Numbers within bounds.
    Number,
    /// Dates and points in time.
    Date,
    /// One of two values, as one feature.
    Boolean,
    /// Vectors of numbers, such as embeddings.
    Vector,
    /// Images, as features of fixed filters.
    Image,
    /// One of a list of texts.
    Category,
    /// Not used.
    Drop,
}

/// The source of the bounds of a number or a date, or of its bins alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Bounds {
    /// Quantiles, released with noise.
    Private,
}

/// A bound on a number or a date.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a number, or a date such as \"2024-01-31\"")]
#[non_exhaustive]
pub enum BoundEntry {
    /// A number.
    Number(f64),
    /// A date, in ISO format.
    Day(String),
}

impl Display for BoundEntry {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Day(day) => f.write_str(day),
        }
    }
}

/// How a number's range is divided.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a number of bins, { log = a number }, { signed_log = a number }, { edges = [...] } or \"private\""
)]
#[non_exhaustive]
pub enum BinsEntry {
    /// Between quantiles, released with noise.
    Released(Bounds),
    /// Bins of equal width.
    Equal(usize),
    /// Widths that grow to both sides of 0.
    SignedLog {
        /// How many.
        signed_log: usize,
    },
    /// Growing widths.
    Log {
        /// How many.
        log: usize,
    },
    /// Between declared edges.
    Edges {
        /// The edges.
        edges: Vec<f64>,
    },
}

/// The treatment of missing values.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected true, false or a number")]
#[non_exhaustive]
pub enum Missing {
    /// Whether there is a feature for it.
    Feature(bool),
    /// A number.
    Value(f64),
}

/// `[[group]]`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GroupEntry {
    /// The column.
    pub column: String,
    /// Its groups, by text.
    pub values: Option<Vec<String>>,
    /// Its groups, as bands of a number between these edges.
    pub edges: Option<Vec<f64>>,
    /// Bands: between whole part and fraction; a point, or what the input of that name has, unless
    /// given.
    pub decimal: Option<char>,
    /// Bands: between every three digits of the whole part.
    pub thousands: Option<char>,
    /// Bands: before or behind each number.
    pub unit: Option<String>,
    /// Whether all other texts are a group.
    #[serde(default)]
    pub other: bool,
    /// Whether missing values are a group.
    #[serde(default)]
    pub missing: bool,
    /// The origin of the entry.
    pub from: Option<Origin>,
    /// Whether somebody checked that it is known without the records.
    #[serde(default)]
    pub public: bool,
}

impl ColumnEntry {
    /// Whether it is covered by no ε.
    pub fn is_read_from_records(&self) -> bool {
        Origin::is_open(self.from, self.public)
    }

    /// Whether its bounds, or its bins alone, are released within the budget.
    pub fn has_released_edges(&self) -> bool {
        self.bounds.is_some() || self.bins_are_released()
    }

    /// Whether its bins are released, between declared bounds.
    pub fn bins_are_released(&self) -> bool {
        self.bounds.is_none() && matches!(self.bins, Some(BinsEntry::Released(_)))
    }

    /// Declared bounds: of dates in days since 1970.
    pub fn declared_bounds(&self) -> Option<(f64, f64)> {
        let number = |bound: &Option<BoundEntry>| match bound.as_ref()? {
            BoundEntry::Number(number) => Some(*number),
            BoundEntry::Day(day) => DateFormat::Iso.days(day),
        };
        Some((number(&self.low)?, number(&self.high)?))
    }

    /// How its numbers are written.
    pub fn number_format(&self) -> NumberFormat {
        let decimal = self.decimal.unwrap_or('.');
        NumberFormat { decimal, thousands: self.thousands, unit: self.unit.clone() }
    }
}

impl GroupEntry {
    /// How many groups it makes.
    pub fn n_groups(&self) -> usize {
        match (&self.values, &self.edges) {
            (Some(values), _) => values.len() + usize::from(self.other) + usize::from(self.missing),
            (None, Some(edges)) => edges.len() + 1 + usize::from(self.missing),
            (None, None) => 1,
        }
    }

    /// The groups of the column; `input` is the entry of the input of that name, if there is one: one
    /// column has one format.
    ///
    /// # Errors
    /// Names the key that contradicts another one.
    pub fn group(&self, input: Option<&ColumnEntry>) -> Result<GroupColumn, EntryError> {
        let groups = match (&self.values, &self.edges) {
            (Some(_), None) if self.has_format() => {
                let message =
                    format!("group `{}`: decimal, thousands and unit: expected with edges alone", self.column);
                return Err(EntryError::new("values", message));
            }
            (Some(values), None) => {
                GroupValues::Values { values: values.clone(), other: self.other, missing: self.missing }
            }
            (None, Some(_)) if self.other => {
                let message = format!("group `{}`: other: expected with values, not with edges", self.column);
                return Err(EntryError::new("other", message));
            }
            (None, Some(edges)) => {
                GroupValues::Bands { edges: edges.clone(), missing: self.missing, format: self.number_format(input)? }
            }
            _ => {
                let message = format!("group `{}`: values and edges: expected one of the two", self.column);
                return Err(EntryError::new("column", message));
            }
        };
        Ok(GroupColumn { column: self.column.clone(), groups })
    }

    fn has_format(&self) -> bool {
        self.decimal.is_some() || self.thousands.is_some() || self.unit.is_some()
    }

    fn number_format(&self, input: Option<&ColumnEntry>) -> Result<NumberFormat, EntryError> {
        let declared =
            NumberFormat { decimal: self.decimal.unwrap_or('.'), thousands: self.thousands, unit: self.unit.clone() };
        match input.filter(|input| input.kind == ColumnKind::Number).map(ColumnEntry::number_format) {
            Some(format) if self.has_format() && format != declared => {
                let message =
                    format!("group `{}`: expected decimal, thousands and unit of [[column]] `{0}`", self.column);
                Err(EntryError::new("column", message))
            }
            Some(format) => Ok(format),
            None => Ok(declared),
        }
    }
}
