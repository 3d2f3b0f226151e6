//! The entries of a table together.

use super::columns::{ColumnEntry, GroupEntry};
use super::entry_error::EntryError;
use super::label::LabelEntry;
use super::table::TableEntry;
use crate::encoding::Encoding;
use crate::error::TableError;
use crate::schema::{Column, GroupColumn, Label, Schema, Weight};

/// Edges that stand for those that will be released.
const SOME_EDGES: [f64; 3] = [0.0, 0.5, 1.0];

/// Everything that a document declares of a table.
#[derive(Debug, Clone)]
pub struct Declared<'a> {
    /// `[table]`.
    pub table: &'a TableEntry,
    /// `[label]`.
    pub label: &'a LabelEntry,
    /// `[[group]]`.
    pub groups: &'a [GroupEntry],
    /// `[[column]]`.
    pub columns: &'a [ColumnEntry],
    /// Whether columns of groups may be among the inputs.
    pub group_as_input: bool,
    /// Whether the features of columns of images are their pixels.
    pub pixels: bool,
    /// The column that says whose record it is.
    pub unit: Option<&'a str>,
    /// The column that says how much a record counts.
    pub weight: Option<Weight>,
}

impl Declared<'_> {
    /// The schema; `released` gives the edges of columns whose bounds were paid for.
    ///
    /// # Errors
    /// Names the first key that does not fit.
    pub fn schema(&self, released: &dyn Fn(&str) -> Option<Vec<f64>>) -> Result<Schema, EntryError> {
        let column = |(index, entry): (usize, &ColumnEntry)| {
            let column = entry.column(self::released(entry, released).as_deref());
            let mut column = column.map_err(|error| error.within(&format!("column.{index}")))?;
            if let Column::Image { pixels, .. } = &mut column {
                *pixels = self.pixels;
            }
            Ok((entry.name.clone(), column))
        };
        Ok(Schema {
            columns: self.columns.iter().enumerate().map(column).collect::<Result<_, EntryError>>()?,
            label: self.label.label()?,
            groups: (0..self.groups.len()).map(|index| self.group(index)).collect::<Result<_, EntryError>>()?,
            group_as_input: self.group_as_input,
            unit: self.unit.map(str::to_owned),
            weight: self.weight.clone(),
            bad_rows: self.table.bad_rows,
            missing: self.table.missing.clone(),
        })
    }

    fn group(&self, index: usize) -> Result<GroupColumn, EntryError> {
        let entry = &self.groups[index];
        if entry.column == self.label.column {
            return Err(EntryError::value(
                &format!("group.{index}.column"),
                &entry.column,
                "another column than the label",
            ));
        }
        let input = self.columns.iter().find(|column| column.name == entry.column);
        entry.group(input).map_err(|error| error.within(&format!("group.{index}")))
    }

    /// What is wrong with single entries.
    pub fn entry_mistakes(&self) -> Vec<EntryError> {
        let mut found = Vec::new();
        for (index, column) in self.columns.iter().enumerate() {
            found.extend(self.check_column(column).err().map(|error| error.within(&format!("column.{index}"))));
        }
        found.extend((0..self.groups.len()).filter_map(|index| self.group(index).err()));
        found
    }

    /// An entry of a column, beside a label that is fine.
    fn check_column(&self, entry: &ColumnEntry) -> Result<(), EntryError> {
        let column = entry.column(released(entry, &|_| Some(SOME_EDGES.to_vec())).as_deref())?;
        if matches!(column, Column::Image { .. } | Column::Dropped) {
            return Ok(());
        }
        let alone = Schema {
            columns: vec![(entry.name.clone(), column)],
            label: Label::of_classes(format!("{} label", entry.name), vec!["0".into(), "1".into()]),
            groups: Vec::new(),
            group_as_input: false,
            unit: None,
            weight: None,
            bad_rows: self.table.bad_rows,
            missing: self.table.missing.clone(),
        };
        Encoding::new(&alone).map(drop).map_err(|error| EntryError::new("name", error.to_string()))
    }

    /// What is wrong with columns, groups, label and unit together, where single entries are right.
    pub fn schema_mistakes(&self) -> Vec<EntryError> {
        let schema = match self.schema(&|_| Some(SOME_EDGES.to_vec())) {
            Ok(schema) => schema,
            Err(error) => return vec![error],
        };
        let Err(error) = Encoding::new(&schema) else { return Vec::new() };
        let place = match &error {
            TableError::Schema { column, .. } => self.place_of(column),
            _ => "column".into(),
        };
        vec![EntryError::new(place, error.to_string())]
    }

    /// The key of a column's declaration; the last one if there are several.
    fn place_of(&self, column: &str) -> String {
        if self.weight.as_ref().is_some_and(|weight| weight.column == column) {
            return "weight".into();
        }
        let input = self.columns.iter().rposition(|entry| entry.name == column).map(|index| format!("column.{index}"));
        let group = || self.groups.iter().rposition(|entry| entry.column == column);
        input.or_else(|| group().map(|index| format!("group.{index}"))).unwrap_or_else(|| "label".into())
    }
}

fn released(entry: &ColumnEntry, released: &dyn Fn(&str) -> Option<Vec<f64>>) -> Option<Vec<f64>> {
    if entry.has_released_edges() { released(&entry.name) } else { None }
}
