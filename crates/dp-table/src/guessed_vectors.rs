//! Columns that look like the numbers of one vector.

use std::collections::BTreeMap;

use crate::column_names::number_behind;
use crate::column_stats::ColumnStats;
use crate::guess::{GuessedVector, GuessedVectorColumns};

/// Fewer columns are measurements, each of which has its own meaning.
const FEWEST: usize = 32;

/// Columns whose names are one prefix with the numbers from 0 or 1 on, and statistics of their rows.
pub(crate) struct VectorColumns {
    prefix: String,
    columns: Vec<usize>,
    /// The largest square of a row's norm.
    square: f64,
    missing: u64,
    /// Rows with some of the numbers.
    broken: u64,
}

impl VectorColumns {
    /// All such columns of a header.
    pub(crate) fn of(names: &[String]) -> Vec<Self> {
        let mut by_prefix: BTreeMap<&str, Vec<(u64, usize)>> = BTreeMap::new();
        for (place, name) in names.iter().enumerate() {
            let prefix = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
            if let Some(number) = number_behind(name, prefix).filter(|_| !prefix.is_empty()) {
                by_prefix.entry(prefix).or_default().push((number, place));
            }
        }
        let vector = |(prefix, mut found): (&str, Vec<(u64, usize)>)| {
            found.sort_unstable();
            let counts_from = |first: u64| found.iter().zip(first..).all(|((number, _), count)| *number == count);
            let is_one = found.len() >= FEWEST && (counts_from(0) || counts_from(1));
            let columns = found.iter().map(|(_, place)| *place).collect();
            is_one.then(|| Self { prefix: prefix.to_owned(), columns, square: 0.0, missing: 0, broken: 0 })
        };
        by_prefix.into_iter().filter_map(vector).collect()
    }

    /// Counts the row that the columns met last.
    pub(crate) fn add(&mut self, stats: &[ColumnStats]) {
        let numbers = || self.columns.iter().filter_map(|column| stats.get(*column)?.current);
        match numbers().count() {
            0 => self.missing += 1,
            n if n < self.columns.len() => self.broken += 1,
            _ => self.square = self.square.max(numbers().map(|number| number * number).sum()),
        }
    }

    /// A vector, if most columns hold numbers with fractions and no row lacks some of them.
    pub(crate) fn guess(self, stats: &[ColumnStats]) -> Option<GuessedVectorColumns> {
        let n_real = self.columns.iter().filter(|column| stats[**column].is_real()).count();
        if self.broken > 0 || 2 * n_real <= self.columns.len() || !self.square.is_finite() {
            return None;
        }
        let vector = GuessedVector { length: self.columns.len(), norm: self.square.sqrt() };
        Some(GuessedVectorColumns {
            name: format!("{}*", self.prefix),
            columns: self.columns,
            vector,
            missing: self.missing,
        })
    }
}
