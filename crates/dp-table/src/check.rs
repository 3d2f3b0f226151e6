//! Whether the parts of a schema fit each other.

use std::collections::HashSet;

use crate::column_names::is_named;
use crate::error::TableError;
use crate::schema::{Column, GroupColumn, Schema};

impl Schema {
    /// Names of the columns whose values become features.
    pub fn inputs(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().filter(|(_, column)| *column != Column::Dropped).map(|(name, _)| name.as_str())
    }

    /// # Errors
    /// [`TableError::Schema`] for a column that is named twice, by a vector's prefix too, no input at
    /// all, the label or the unit among the inputs or as the weight, a largest weight out of range, and
    /// a group among the inputs unless that is asked for.
    pub(crate) fn check(&self) -> Result<(), TableError> {
        let refuse = |column: &str, reason: &str| TableError::Schema { column: column.into(), reason: reason.into() };
        let mut seen = HashSet::new();
        if let Some((twice, _)) = self.columns.iter().find(|(name, _)| !seen.insert(name.as_str())) {
            return Err(refuse(twice, "is declared twice"));
        }
        for (name, _) in self.columns.iter().filter(|(_, column)| matches!(column, Column::Vector { .. })) {
            let others = self.columns.iter().map(|(other, _)| other).filter(|other| *other != name);
            let others = others.chain([&self.label.column]).chain(&self.unit);
            if let Some(other) = others.into_iter().find(|other| is_named(other, name, true)) {
                let reason = format!("is one of the columns of the vector `{name}` too");
                return Err(TableError::Schema { column: other.clone(), reason });
            }
        }
        let mut seen = HashSet::new();
        if let Some(twice) = self.groups.iter().find(|group| !seen.insert(group.column.as_str())) {
            return Err(refuse(&twice.column, "is among the groups twice"));
        }
        let inputs: HashSet<&str> = self.inputs().collect();
        if inputs.is_empty() {
            return Err(refuse(&self.label.column, "is to be predicted from no column at all"));
        }
        if inputs.contains(self.label.column.as_str()) {
            return Err(refuse(&self.label.column, "is the label and cannot be an input"));
        }
        if let Some(unit) = self.unit.as_deref() {
            if inputs.contains(unit) {
                return Err(refuse(unit, "is the unit of privacy and cannot be an input"));
            }
            if unit == self.label.column {
                return Err(refuse(unit, "is the label and cannot be the unit of privacy"));
            }
        }
        if let Some(weight) = &self.weight {
            if !(weight.high.is_finite() && (weight.high as f32).is_normal() && weight.high > 0.0) {
                let reason = format!("largest weight {}: expected a finite number above 0", weight.high);
                return Err(refuse(&weight.column, &reason));
            }
            if weight.column == self.label.column {
                return Err(refuse(&weight.column, "is the label and cannot be the weight"));
            }
            if Some(&weight.column) == self.unit.as_ref() {
                return Err(refuse(&weight.column, "is the unit of privacy and cannot be the weight"));
            }
        }
        for GroupColumn { column, .. } in &self.groups {
            if !self.group_as_input && inputs.contains(column.as_str()) {
                return Err(refuse(column, "is a group and an input; drop it, or set group_as_input"));
            }
        }
        Ok(())
    }
}
