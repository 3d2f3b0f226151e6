//! What a declaration took from the records, in words.

use super::columns::{BinsEntry, BoundEntry, ColumnEntry, ColumnKind, GroupEntry, Missing};
use super::origin::Origin;

impl ColumnEntry {
    /// What was read from the records and is neither declared public nor paid for; `None` if that is
    /// nothing.
    pub fn uncovered(&self) -> Option<String> {
        if !self.is_read_from_records() || self.bounds.is_some() {
            return None;
        }
        let what = match self.kind {
            ColumnKind::Number => {
                let bins = match &self.bins {
                    None => String::new(),
                    Some(BinsEntry::Released(_)) => ", bins that are paid for".to_owned(),
                    Some(BinsEntry::Equal(n)) => format!(", {n} bins"),
                    Some(BinsEntry::Log { log }) => format!(", {log} growing bins"),
                    Some(BinsEntry::SignedLog { signed_log }) => format!(", {signed_log} growing bins"),
                    Some(BinsEntry::Edges { edges }) => format!(", edges {}", shortened(edges)),
                };
                let missing = match self.missing {
                    Some(Missing::Value(value)) => format!(", missing values at {value}"),
                    _ => String::new(),
                };
                format!("bounds {}{bins}{missing}", range(self))
            }
            ColumnKind::Date => format!("dates {}{}", range(self), missing_values(self)),
            ColumnKind::Boolean => {
                let values = self.values.as_deref().map_or_else(|| "0, 1".into(), shortened);
                format!("values {values}{}", missing_values(self))
            }
            ColumnKind::Vector => {
                let bound = self.norm.map_or_else(|| range(self), |norm| format!("up to a norm of {norm}"));
                format!("vectors {bound}{}", missing_values(self))
            }
            ColumnKind::Image => {
                let [height, width] = [self.height, self.width].map(Option::unwrap_or_default);
                format!("images of {height} × {width} pixels{}", missing_values(self))
            }
            ColumnKind::Category => {
                let values = shortened(self.values.as_deref().unwrap_or_default());
                format!("values {values}{}", missing_values(self))
            }
            ColumnKind::Drop => "dropped".to_owned(),
        };
        Some(format!("column `{}`: {what}", self.name))
    }
}

impl GroupEntry {
    /// As [`ColumnEntry::uncovered`].
    pub fn uncovered(&self) -> Option<String> {
        if !Origin::is_open(self.from, self.public) {
            return None;
        }
        let edges = || format!("edges {}", shortened(self.edges.as_deref().unwrap_or_default()));
        let values = self.values.as_ref().map_or_else(edges, |values| shortened(values));
        let missing = if self.missing { ", missing values" } else { "" };
        Some(format!("group `{}`: {values}{missing}", self.column))
    }
}

/// The bounds of a column, in words.
fn range(column: &ColumnEntry) -> String {
    let text = |bound: &Option<BoundEntry>| bound.as_ref().map_or("?".into(), BoundEntry::to_string);
    format!("{} to {}", text(&column.low), text(&column.high))
}

fn missing_values(column: &ColumnEntry) -> &'static str {
    if column.missing == Some(Missing::Feature(true)) { ", missing values" } else { "" }
}

fn shortened<T: ToString>(values: &[T]) -> String {
    const SHOWN: usize = 5;
    let shown = values.iter().take(SHOWN).map(T::to_string).collect::<Vec<_>>().join(", ");
    if values.len() > SHOWN { format!("{shown}, … ({} values)", values.len()) } else { shown }
}
