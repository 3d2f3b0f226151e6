//! Answers of a model for the rows of a table, one after another.

use std::fmt;

use dp_table::{RowEncoder, StoredAs, TableCounts, TableError, TableFiles, TableReader, TableRow};

use crate::error::{FairdpError, Result};
use crate::model::FittedModel;

/// Reads a table and answers row by row. Labels are not needed, and columns that are no inputs do
/// not matter.
pub struct Predictor<'a> {
    model: &'a FittedModel,
    reader: TableReader,
    encoder: RowEncoder<'a>,
    row: TableRow,
    features: Vec<f32>,
    probabilities: Vec<f64>,
}

/// Without the row that was read, which is private.
impl fmt::Debug for Predictor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Predictor").field("columns", &self.reader.columns()).finish_non_exhaustive()
    }
}

impl<'a> Predictor<'a> {
    /// Begins to read.
    ///
    /// # Errors
    /// [`FairdpError::Table`] for a column that is missing, [`FairdpError::File`] for one of groups
    /// on which decisions depend.
    pub fn new(model: &'a FittedModel, files: &TableFiles) -> Result<Self> {
        let reader = files.open()?;
        let (columns, file) = (reader.columns(), &files.paths()[0]);
        let mut encoder = model.encoding().encoder(columns, file)?;
        if model.needs_groups() {
            encoder = encoder.with_groups(columns, file).map_err(|error| match error {
                TableError::MissingColumn { path, column, .. } => {
                    let problem = format!("has no column `{column}`, and decisions depend on its groups");
                    FairdpError::file(&path, problem)
                }
                error => error.into(),
            })?;
        }
        Ok(Self {
            model,
            encoder,
            reader,
            row: TableRow::default(),
            features: vec![0.0; model.encoding().width()],
            probabilities: vec![0.0; model.classes().len()],
        })
    }

    /// The class of the next row, as a position in [`FittedModel::classes`], and the probabilities of
    /// all; `None` at the end.
    ///
    /// # Errors
    /// [`FairdpError::Table`] with file, line and column for a row that does not fit. After one for
    /// which [`TableError::is_of_one_row`] holds, the next call goes on with the next row.
    ///
    /// Of a model that predicts a number there are no classes: see [`number`](Self::number).
    pub fn answer(&mut self) -> Result<Option<(usize, &[f64])>> {
        let Some(group) = self.read()? else { return Ok(None) };
        self.model.probabilities(self.features.iter().copied().enumerate(), &mut self.probabilities);
        Ok(Some((
            self.model.decide(&self.probabilities, self.features.iter().copied().enumerate(), group),
            &self.probabilities,
        )))
    }

    /// The number that is predicted for the next row, within its declared range; `None` at the end.
    ///
    /// # Errors
    /// As [`answer`](Self::answer); [`FairdpError::InvalidParameter`] for a model of classes.
    pub fn number(&mut self) -> Result<Option<f64>> {
        let Some(range) = self.model.number() else {
            return Err(FairdpError::invalid("model", "of classes", "one that predicts a number"));
        };
        let found = self.read()?;
        Ok(found.map(|group| self.model.predicted_number(self.features.iter().copied().enumerate(), group, range)))
    }

    /// Reads the next row and fills its features; returns its group.
    fn read(&mut self) -> Result<Option<usize>> {
        loop {
            match self.reader.read(&mut self.row) {
                Ok(true) => break,
                Ok(false) => return Ok(None),
                // An empty line is no record.
                Err(TableError::EmptyLine { .. }) => {}
                Err(error) => {
                    if error.is_of_one_row() {
                        self.encoder.pass_over(&error);
                    }
                    return Err(error.into());
                }
            }
        }
        Ok(Some(self.encoder.encode(&self.row, &mut self.features)?))
    }

    /// Names of the table's columns.
    pub fn columns(&self) -> &[String] {
        self.reader.columns()
    }

    /// How the table stores a column's values, by position.
    pub fn stored_as(&self, column: usize) -> StoredAs {
        self.reader.stored_as(column)
    }

    /// The row that was read last, whether it has an answer or not.
    pub fn row(&self) -> &TableRow {
        &self.row
    }

    /// The probabilities of the last answer.
    pub fn probabilities(&self) -> &[f64] {
        &self.probabilities
    }

    /// The columns that moved the last answer most, with [how much each
    /// did](FittedModel::reasons): the largest first, of equals the first in the schema.
    pub fn reasons(&self, answer: usize, most: usize) -> Vec<(&'a str, f64)> {
        let blocks = self.model.encoding().blocks();
        let mut changes = vec![0.0; blocks.len()];
        self.model.reasons(&self.features, answer, &mut changes);
        let mut reasons: Vec<(&str, f64)> = blocks.iter().map(|block| &*block.column).zip(changes).collect();
        // The constant is the same for every row.
        reasons.pop();
        reasons.sort_by(|(_, a), (_, b)| b.abs().total_cmp(&a.abs()));
        reasons.truncate(most);
        reasons
    }

    /// Counts over the rows so far. **Not private.**
    pub fn counts(&self) -> &TableCounts {
        self.encoder.counts()
    }

    /// Values so far that the model's schema does not foresee: not declared, or beyond bounds; and
    /// rows without an answer ([`TableCounts::remarks`]). **Not private.**
    pub fn remarks(&self) -> Vec<String> {
        self.encoder.counts().remarks(self.model.encoding().schema())
    }
}
