//! The rows of a new table, counted.

use std::collections::HashMap;
use std::path::Path;

use dp_table::{Encoding, RowHasher, RowsDigest, TableError, TableFiles, TableRow};
use fair_decisions::{CumulativeCounts, ScoreCells};

use super::columns::Columns;
use crate::error::{FairdpError, Result};
use crate::key::NoiseBinding;
use crate::new_records::Subject;

/// Exact counts of a table. **Not private.**
pub(crate) struct NewTable {
    /// Rows that are counted.
    pub(crate) rows: u64,
    /// Whether it has the columns of the groups.
    pub(crate) has_groups: bool,
    pub(crate) columns: Columns,
    /// Scores by group, all as of one class that is not positive; none where the release has none.
    pub(crate) cells: Option<ScoreCells>,
    /// What is compared of them: exact, or released.
    pub(crate) counts: Option<CumulativeCounts>,
    digest: RowsDigest,
}

impl NewTable {
    /// Reads a table; of a unit at most so many rows.
    pub(crate) fn read(subject: &Subject, files: &TableFiles, most: Option<u64>) -> Result<Self> {
        let encoding = subject.model.encoding();
        let schema = encoding.schema();
        let (mut reader, file) = (files.open()?, &files.paths()[0]);
        let names = reader.columns().to_vec();
        let has_groups = schema.groups.iter().all(|group| names.contains(&group.column));
        let mut encoder = encoding.encoder(&names, file)?;
        if has_groups {
            encoder = encoder.with_groups(&names, file)?;
        }
        let mut limit = UnitLimit::new(schema.unit.as_deref(), most, &names, file)?;
        let scoring = subject.scores.as_ref().map(|scores| scores.scoring(&subject.model));
        let n_groups = if has_groups { encoding.groups().len() } else { 1 };
        let mut table = Self {
            rows: 0,
            has_groups,
            columns: Columns::new(encoder.counts(), if has_groups { encoding.groups() } else { &[] }),
            cells: scoring.as_ref().map(|scoring| scoring.no_records(n_groups)),
            counts: None,
            digest: RowsDigest::default(),
        };
        let hasher = RowHasher::new(&names);
        let (mut row, mut number) = (TableRow::default(), 0);
        let mut features = vec![0.0; encoding.width()];
        let mut probabilities = vec![0.0; subject.model.classes().len()];
        loop {
            let wrong = match reader.read(&mut row) {
                Ok(true) => None,
                Ok(false) => break,
                Err(TableError::EmptyLine { .. }) => continue,
                Err(error) if error.is_of_one_row() => Some(error),
                Err(error) => return Err(error.into()),
            };
            table.digest = table.digest.plus(hasher.digest(number, &row));
            number += 1;
            if !limit.takes(encoding, &row, wrong.as_ref())? {
                continue;
            }
            table.rows += 1;
            let group = match wrong {
                None => encoder.encode(&row, &mut features),
                Some(error) => {
                    encoder.pass_over(&error);
                    Err(error)
                }
            };
            let group = match group {
                Ok(group) => Some(group),
                Err(error) if error.is_of_one_row() => None,
                Err(error) => return Err(error.into()),
            };
            table.columns.count(encoder.counts(), group.filter(|_| has_groups));
            if let (Some(group), Some(scoring), Some(cells)) = (group, &scoring, &mut table.cells) {
                subject.model.probabilities(features.iter().copied().enumerate(), &mut probabilities);
                scoring.add_unlabelled(cells, group, &probabilities);
            }
        }
        if table.rows == 0 {
            return Err(TableError::EmptyFile { path: file.clone() }.into());
        }
        table.counts = table.cells.as_ref().map(CumulativeCounts::exact);
        Ok(table)
    }

    /// What noise on it is bound to.
    pub(crate) fn binding(&self, subject: &Subject) -> NoiseBinding {
        NoiseBinding::new(self.digest, None, &subject.digest)
    }
}

/// Takes the first rows of a unit.
struct UnitLimit<'a> {
    /// The column of units and the most rows of one; none where rows are not limited.
    limit: Option<(usize, u64)>,
    n_columns: usize,
    file: &'a Path,
    seen: HashMap<u64, u64>,
}

impl<'a> UnitLimit<'a> {
    fn new(unit: Option<&str>, most: Option<u64>, names: &[String], file: &'a Path) -> Result<Self> {
        let limit = match (unit, most) {
            (Some(unit), Some(most)) => {
                let missing = || FairdpError::file(file, format!("has no column `{unit}`, whose values are protected"));
                Some((names.iter().position(|name| name == unit).ok_or_else(missing)?, most))
            }
            _ => None,
        };
        Ok(Self { limit, n_columns: names.len(), file, seen: HashMap::new() })
    }

    /// Whether a row is counted, which does not fit for the reason `wrong`. A row of nobody knows whom is refused:
    /// a unit could have any number of them.
    fn takes(&mut self, encoding: &Encoding, row: &TableRow, wrong: Option<&TableError>) -> Result<bool> {
        let Some((column, most)) = self.limit else { return Ok(true) };
        #[cfg(test)]
        if crate::hook::ALL_ROWS_OF_A_UNIT.get() {
            return Ok(true);
        }
        let unit = encoding.unit_of(row, (column, self.n_columns), wrong).ok_or_else(|| {
            let reason = wrong.map_or_else(|| "a row has none".to_owned(), ToString::to_string);
            FairdpError::file(self.file, format!("no row without a readable unit of privacy is counted: {reason}"))
        })?;
        let n = self.seen.entry(unit).or_default();
        *n += 1;
        Ok(*n <= most)
    }
}
