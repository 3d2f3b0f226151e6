//! `[label]`: classes or a number.

use schemars::JsonSchema;
use serde::Deserialize;

use super::entry_error::EntryError;
use super::origin::Origin;
use crate::number_format::NumberFormat;
use crate::schema::{Label, NumberLabel};

/// `[label]`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct LabelEntry {
    /// The column.
    pub column: String,
    /// Whether it has classes or is a number.
    #[serde(default)]
    pub kind: LabelKind,
    /// Classes: its values; of two, the last is the positive one.
    #[serde(default)]
    pub classes: Vec<String>,
    /// Numbers: the lower bound. Smaller ones are set to it, and counted.
    pub low: Option<f64>,
    /// Numbers: the upper bound. Larger ones are set to it, and counted.
    pub high: Option<f64>,
    /// Numbers: between whole part and fraction; a point unless given.
    pub decimal: Option<char>,
    /// Numbers: between every three digits of the whole part.
    pub thousands: Option<char>,
    /// Numbers: before or behind each.
    pub unit: Option<String>,
    /// The origin of the classes or of the bounds.
    pub from: Option<Origin>,
    /// Whether somebody checked that they are known without the records.
    #[serde(default)]
    pub public: bool,
}

/// Kinds of labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LabelKind {
    /// One of a list of values.
    #[default]
    Classes,
    /// A number between bounds.
    Number,
}

impl LabelEntry {
    /// Whether it is a number.
    pub fn is_number(&self) -> bool {
        self.kind == LabelKind::Number
    }

    /// The label of a schema.
    ///
    /// # Errors
    /// Names the key that its kind does not take or lacks.
    pub fn label(&self) -> Result<Label, EntryError> {
        let refuse =
            |key: &str, message: &str| Err(EntryError::new(format!("label.{key}"), format!("label.{message}")));
        if !self.is_number() {
            let given = [
                ("low", self.low.is_some()),
                ("high", self.high.is_some()),
                ("decimal", self.decimal.is_some()),
                ("thousands", self.thousands.is_some()),
                ("unit", self.unit.is_some()),
            ];
            return match given.iter().find(|(_, is_given)| *is_given) {
                Some((key, _)) => refuse(key, &format!("{key}: expected with kind = \"number\" alone")),
                None => Ok(Label::of_classes(self.column.clone(), self.classes.clone())),
            };
        }
        if !self.classes.is_empty() {
            return refuse("classes", "classes: expected none with kind = \"number\"");
        }
        let (Some(low), Some(high)) = (self.low, self.high) else {
            let key = if self.low.is_none() { "low" } else { "high" };
            return refuse("kind", &format!("{key} = none: expected a number, the end of the label's range"));
        };
        let decimal = self.decimal.unwrap_or('.');
        let format = NumberFormat { decimal, thousands: self.thousands, unit: self.unit.clone() };
        let number = Some(NumberLabel { low, high, format });
        Ok(Label { column: self.column.clone(), classes: Vec::new(), number })
    }

    /// What was read from the records, in words; `None` if that is known without them.
    pub fn uncovered(&self) -> Option<String> {
        if !Origin::is_open(self.from, self.public) {
            return None;
        }
        let bound = |bound: Option<f64>| bound.map_or_else(|| "?".to_owned(), |bound| bound.to_string());
        Some(if self.is_number() {
            format!("label `{}`: a number, bounds {} to {}", self.column, bound(self.low), bound(self.high))
        } else {
            format!("label `{}`: classes {}", self.column, self.classes.join(", "))
        })
    }
}
