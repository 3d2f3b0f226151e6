//! Counts made while a table is read. They are exact counts of private records: diagnostics, not
//! for release.

use serde::{Deserialize, Serialize};

use crate::error::{TableError, printable};
use crate::schema::{Column, GroupValues, Label, NumberLabel, Schema, Weight};
use crate::vector::VectorBound;

/// Rows that are reported with their reason.
const EXAMPLES: usize = 10;

/// Counts over a whole table, for the person who may see its records.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TableCounts {
    /// Rows, dropped ones included.
    pub rows: u64,
    /// Rows that did not fit and have no features.
    pub dropped: u64,
    /// Why the first ten of them were dropped.
    pub examples: Vec<String>,
    /// By input column, in the schema's order.
    pub columns: Vec<ColumnCounts>,
    /// By column of groups, in the schema's order; empty where groups were not looked for.
    pub groups: Vec<ColumnCounts>,
    /// Of the column of weights, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<ColumnCounts>,
    /// Of the label, if it is a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<ColumnCounts>,
}

/// Counts of one column over the rows that fit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ColumnCounts {
    /// Its name.
    pub column: String,
    /// Numbers outside the declared bounds, set to the nearest one.
    pub clamped: u64,
    /// Missing values.
    pub missing: u64,
    /// Values that are none of those declared, taken as `other`.
    pub other: u64,
    /// Rows that were dropped for this column's value: missing, no number or none of those
    /// declared, where nothing is declared for that.
    pub refused: u64,
}

/// The outcome of reading a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadOutcome {
    /// One that is declared, or a number within its bounds.
    Declared,
    Clamped,
    Missing,
    Other,
}

/// The outcomes of the columns of a row that fits.
pub(crate) struct RowOutcome {
    pub(crate) inputs: Vec<ReadOutcome>,
    pub(crate) groups: Vec<ReadOutcome>,
    pub(crate) weight: ReadOutcome,
    pub(crate) label: ReadOutcome,
}

impl TableCounts {
    /// Zero counts for these inputs and groups.
    pub(crate) fn new<'a>(columns: impl Iterator<Item = &'a str>, groups: impl Iterator<Item = &'a str>) -> Self {
        let tally = |column: &str| ColumnCounts { column: column.into(), ..ColumnCounts::default() };
        Self { columns: columns.map(tally).collect(), groups: groups.map(tally).collect(), ..Self::default() }
    }

    /// With counts of a column of weights.
    pub(crate) fn with_weight(self, weight: Option<&Weight>) -> Self {
        let tally = |weight: &Weight| ColumnCounts { column: weight.column.clone(), ..ColumnCounts::default() };
        Self { weight: weight.map(tally), ..self }
    }

    /// With counts of a label that is a number.
    pub(crate) fn with_label(self, label: &Label) -> Self {
        let tally = || ColumnCounts { column: label.column.clone(), ..ColumnCounts::default() };
        Self { label: label.number.as_ref().map(|_| tally()), ..self }
    }

    /// The counts of every column.
    fn tallies(&mut self) -> impl Iterator<Item = &mut ColumnCounts> {
        self.columns.iter_mut().chain(&mut self.groups).chain(&mut self.weight).chain(&mut self.label)
    }

    /// Adds the counts of rows that come after these.
    pub(crate) fn add(&mut self, later: &Self) {
        self.rows += later.rows;
        self.dropped += later.dropped;
        let room = EXAMPLES - self.examples.len();
        self.examples.extend(later.examples.iter().take(room).cloned());
        let later = later.columns.iter().chain(&later.groups).chain(&later.weight).chain(&later.label);
        for (column, later) in self.tallies().zip(later) {
            column.clamped += later.clamped;
            column.missing += later.missing;
            column.other += later.other;
            column.refused += later.refused;
        }
    }

    /// Counts a row that fits.
    pub(crate) fn accept(&mut self, RowOutcome { inputs, groups, weight, label }: &RowOutcome) {
        self.rows += 1;
        let of_groups = self.groups.iter_mut().zip(groups);
        let tallies = self.columns.iter_mut().zip(inputs).chain(of_groups).chain(self.weight.iter_mut().zip([weight]));
        let tallies = tallies.chain(self.label.iter_mut().zip([label]));
        for (tally, met) in tallies {
            match met {
                ReadOutcome::Declared => {}
                ReadOutcome::Clamped => tally.clamped += 1,
                ReadOutcome::Missing => tally.missing += 1,
                ReadOutcome::Other => tally.other += 1,
            }
        }
    }

    /// Counts a row that does not fit.
    pub(crate) fn refuse(&mut self, reason: &TableError) {
        self.rows += 1;
        self.dropped += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(reason.to_string());
        }
        let column = reason.column();
        if let Some(tally) = self.tallies().find(|tally| Some(&*tally.column) == column) {
            tally.refused += 1;
        }
    }

    /// Lists values that the schema does not foresee, a line for each column and kind, such as
    /// `column job: 2,000 of 2,000 values are none of those declared`, and a line for rows that do
    /// not fit. Empty if the schema foresees everything.
    pub fn remarks(&self, schema: &Schema) -> Vec<String> {
        let mut remarks = Vec::new();
        for tally in &self.columns {
            let column = schema.columns.iter().find(|(name, _)| *name == tally.column).map(|(_, column)| column);
            let is_foreseen = match column {
                Some(Column::Category { missing, .. }) => *missing,
                _ => true,
            };
            self.remark("column", tally, is_foreseen, &mut remarks);
            let beyond = match column {
                Some(Column::Number { low, high, .. }) => format!("beyond [{low}, {high}], taken as the nearer end"),
                Some(Column::Date { low, high, .. }) => format!("beyond {low} to {high}, taken as the nearer end"),
                Some(Column::Vector { bound: VectorBound::Norm(norm), .. }) => {
                    format!("longer than {norm}, shortened to it")
                }
                Some(Column::Vector { bound: VectorBound::Range { low, high }, .. }) => {
                    format!("with numbers beyond [{low}, {high}], taken as the nearer end")
                }
                _ => continue,
            };
            if tally.clamped > 0 {
                let (of, name) = (self.of(tally.clamped, tally), printable(&tally.column));
                remarks.push(format!("column {name}: {of} {beyond}"));
            }
        }
        for (tally, group) in self.groups.iter().zip(&schema.groups) {
            let is_foreseen = match &group.groups {
                GroupValues::Values { missing, .. } | GroupValues::Bands { missing, .. } => *missing,
            };
            self.remark("group", tally, is_foreseen, &mut remarks);
        }
        if let (Some(tally), Some(Weight { high, .. })) = (&self.weight, &schema.weight) {
            self.remark("weight", tally, false, &mut remarks);
            if tally.clamped > 0 {
                let (of, name) = (self.of(tally.clamped, tally), printable(&tally.column));
                remarks.push(format!("weight {name}: {of} beyond {high}, taken as {high}"));
            }
        }
        if let (Some(tally), Some(number)) = (&self.label, &schema.label.number) {
            self.remark("label", tally, false, &mut remarks);
            if tally.clamped > 0 {
                let (of, name) = (self.of(tally.clamped, tally), printable(&tally.column));
                let NumberLabel { low, high, .. } = number;
                remarks.push(format!("label {name}: {of} beyond [{low}, {high}], taken as the nearer end"));
            }
        }
        if let Some(first) = self.examples.first() {
            let of = format!("{} of {}", thousands(self.dropped), thousands(self.rows));
            let verb = if self.dropped == 1 { "does" } else { "do" };
            remarks.push(format!("{of} rows {verb} not fit; the first: {first}"));
        }
        remarks
    }

    /// Adds lines for values that are not declared, or missing although that is not declared.
    fn remark(&self, what: &str, tally: &ColumnCounts, is_missing_foreseen: bool, remarks: &mut Vec<String>) {
        let name = printable(&tally.column);
        let are = |count: u64| if count == 1 { "is" } else { "are" };
        if tally.other > 0 {
            let (of, are) = (self.of(tally.other, tally), are(tally.other));
            remarks.push(format!("{what} {name}: {of} values {are} none of those declared"));
        }
        if tally.missing > 0 && !is_missing_foreseen {
            let of = format!("{} of {}", thousands(tally.missing), thousands(self.rows - self.dropped));
            let are = are(tally.missing);
            let taken = "and nothing is declared for that: taken as none of those declared";
            remarks.push(format!("{what} {name}: {of} values {are} missing, {taken}"));
        }
        if tally.refused > 0 {
            let of = format!("{} of {}", thousands(tally.refused), thousands(self.rows));
            remarks.push(format!(
                "{what} {name}: {of} values cannot be read, or are missing, and nothing is declared for that"
            ));
        }
    }

    /// `count` of the values that are not missing, in the rows that fit.
    fn of(&self, count: u64, tally: &ColumnCounts) -> String {
        format!("{} of {}", thousands(count), thousands(self.rows - self.dropped - tally.missing))
    }
}

/// A count with a comma between every three digits.
pub fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_come_in_threes() {
        let counts = [0, 7, 999, 1_000, 12_345, 123_456, 1_234_567];
        let texts = ["0", "7", "999", "1,000", "12,345", "123,456", "1,234,567"];
        assert_eq!(counts.map(thousands), texts);
    }
}
