//! Entries of columns and groups.

use std::fmt::Display;

use dp_table::{Bins, Column, GroupColumn, GroupValues};
use serde::Deserialize;

use super::Origin;
use super::entry_error::EntryError;

/// `[[column]]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnEntry {
    /// Its name in the table.
    pub name: String,
    /// Its kind.
    pub kind: ColumnKind,
    /// Numbers: the lower bound.
    pub low: Option<f64>,
    /// Numbers: the upper bound.
    pub high: Option<f64>,
    /// Numbers: `"private"` releases the bounds within the budget.
    pub bounds: Option<Bounds>,
    /// Numbers: a number of equal bins, `{ log = 16 }` for growing ones, or `{ edges = […] }`.
    pub bins: Option<BinsEntry>,
    /// Numbers: the value that stands for a missing one. Categories: whether missing values have a
    /// feature.
    pub missing: Option<Missing>,
    /// Categories: the values.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ColumnKind {
    /// Numbers within bounds.
    Number,
    /// One of a list of texts.
    Category,
    /// Not used.
    Drop,
}

/// The source of a number's bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bounds {
    /// Quantiles, released with noise.
    Private,
}

/// How a number's range is divided.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "expected a number of bins, { log = a number } or { edges = [...] }")]
pub enum BinsEntry {
    /// Bins of equal width.
    Equal(usize),
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
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(untagged, expecting = "expected true, false or a number")]
pub enum Missing {
    /// Whether there is a feature for it.
    Feature(bool),
    /// A number.
    Value(f64),
}

/// `[[group]]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupEntry {
    /// The column.
    pub column: String,
    /// Its groups, by text.
    pub values: Option<Vec<String>>,
    /// Its groups, as bands of a number between these edges.
    pub edges: Option<Vec<f64>>,
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
    /// The column; `released` are bounds that were paid for, and the edges between them.
    pub(super) fn column(&self, released: Option<&[f64]>) -> Result<Column, EntryError> {
        let refuse = |key: &str, value: &dyn Display, expected: &str| {
            Err(EntryError::new(key, format!("column `{}`: {key} = {value}: expected {expected}", self.name)))
        };
        let unexpected = |keys: &[(&str, bool)], expected: &str| match keys.iter().find(|(_, is_given)| *is_given) {
            Some((key, _)) => Err(EntryError::new(*key, format!("column `{}`: {key}: expected {expected}", self.name))),
            None => Ok(()),
        };
        let range = [("low", self.low.is_some()), ("high", self.high.is_some()), ("bins", self.bins.is_some())];
        match self.kind {
            ColumnKind::Drop => Ok(Column::Dropped),
            ColumnKind::Category => {
                unexpected(&range, "none for a category")?;
                unexpected(&[("bounds", self.bounds.is_some())], "none for a category")?;
                let Some(values) = self.values.clone() else { return refuse("values", &"none", "a list of texts") };
                let missing = match self.missing {
                    None => false,
                    Some(Missing::Feature(missing)) => missing,
                    Some(Missing::Value(value)) => return refuse("missing", &value, "true or false"),
                };
                Ok(Column::Category { values, other: self.other.unwrap_or(false), missing })
            }
            ColumnKind::Number => {
                let of_categories = [("values", self.values.is_some()), ("other", self.other.is_some())];
                unexpected(&of_categories, "none for a number")?;
                if self.bounds.is_some() && !self.is_read_from_records() {
                    let given: Vec<&str> =
                        range.iter().filter(|(_, is_given)| *is_given).map(|(key, _)| *key).collect();
                    if let [first, ..] = given[..] {
                        let message = format!(
                            "column `{}`: {}: expected none with bounds = \"private\", which releases bounds and edges in place of \
                             low, high and bins: delete {}",
                            self.name,
                            given.join(", "),
                            if given.len() == 1 { "it" } else { "them" }
                        );
                        return Err(EntryError::new(first, message));
                    }
                }
                let missing = match self.missing {
                    None | Some(Missing::Feature(false)) => None,
                    Some(Missing::Value(value)) => Some(value),
                    Some(Missing::Feature(true)) => return refuse("missing", &"true", "the number that stands for it"),
                };
                let (low, high, edges) = match (released, self.low, self.high) {
                    (Some([low, edges @ .., high]), _, _) => (*low, *high, Some(edges.to_vec())),
                    (_, Some(low), Some(high)) => (low, high, None),
                    (_, low, _) => {
                        let key = if low.is_none() { "low" } else { "high" };
                        return refuse(
                            key,
                            &"none",
                            "a number, or bounds = \"private\" in place of low, high and bins",
                        );
                    }
                };
                let missing = match edges {
                    None => missing,
                    // Not what the records say, nor whether one of them lacks it: of that only the
                    // bounds are paid for.
                    Some(_) if self.is_read_from_records() => Some(low),
                    // It may lie outside of bounds that were released.
                    Some(_) => missing.map(|declared: f64| declared.clamp(low, high)),
                };
                let bins = match (edges, &self.bins) {
                    (Some(edges), _) => Bins::Edges(edges),
                    (None, Some(BinsEntry::Equal(n))) => Bins::Equal(*n),
                    (None, Some(BinsEntry::Log { log })) => Bins::Log(*log),
                    (None, Some(BinsEntry::Edges { edges })) => Bins::Edges(edges.clone()),
                    (None, None) => Bins::for_bounds(low, high, false),
                };
                Ok(Column::Number { low, high, bins, missing })
            }
        }
    }
}

impl ColumnEntry {
    /// Whether it is covered by no ε.
    pub(super) fn is_read_from_records(&self) -> bool {
        Origin::is_open(self.from, self.public)
    }
}

impl GroupEntry {
    /// How many groups it makes.
    pub(crate) fn n_groups(&self) -> usize {
        match (&self.values, &self.edges) {
            (Some(values), _) => values.len() + usize::from(self.other) + usize::from(self.missing),
            (None, Some(edges)) => edges.len() + 1 + usize::from(self.missing),
            (None, None) => 1,
        }
    }

    pub(super) fn group(&self) -> Result<GroupColumn, EntryError> {
        let groups = match (&self.values, &self.edges) {
            (Some(values), None) => {
                GroupValues::Values { values: values.clone(), other: self.other, missing: self.missing }
            }
            (None, Some(_)) if self.other => {
                let message = format!("group `{}`: other: expected with values, not with edges", self.column);
                return Err(EntryError::new("other", message));
            }
            (None, Some(edges)) => GroupValues::Bands { edges: edges.clone(), missing: self.missing },
            _ => {
                let message = format!("group `{}`: values and edges: expected one of the two", self.column);
                return Err(EntryError::new("column", message));
            }
        };
        Ok(GroupColumn { column: self.column.clone(), groups })
    }
}
