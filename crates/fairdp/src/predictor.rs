//! What a model says of a table's rows, one after another.

use dp_data::DataError;
use dp_data::table::{Row, RowEncoder, TableFiles, TableReader};

use crate::error::Result;
use crate::groups::GroupReader;
use crate::model::Model;

/// Reads a table and answers row by row. Labels are not needed, and columns that are no inputs do
/// not matter.
pub struct Predictor<'a> {
    model: &'a Model,
    reader: TableReader,
    groups: Option<GroupReader<'a>>,
    encoder: RowEncoder<'a>,
    row: Row,
    features: Vec<f32>,
    probabilities: Vec<f64>,
}

impl<'a> Predictor<'a> {
    /// Begins to read.
    ///
    /// # Errors
    /// [`FairdpError::Data`](crate::FairdpError::Data) for a column that is missing,
    /// [`FairdpError::File`](crate::FairdpError::File) for one of groups on which decisions depend.
    pub fn new(model: &'a Model, files: &TableFiles) -> Result<Self> {
        let reader = files.open()?;
        let columns = reader.columns().to_vec();
        let groups = if model.needs_groups() {
            Some(GroupReader::new(model.encoding().schema(), &columns, &files.paths()[0])?)
        } else {
            None
        };
        Ok(Self {
            model,
            encoder: model.encoding().encoder(&columns, &files.paths()[0])?,
            reader,
            groups,
            row: Row::default(),
            features: vec![0.0; model.encoding().width()],
            probabilities: vec![0.0; model.classes().len()],
        })
    }

    /// The class of the next row, as a position in [`Model::classes`], and the probabilities of
    /// all; `None` at the end.
    ///
    /// # Errors
    /// [`FairdpError::Data`](crate::FairdpError::Data) with file, line and column for a row that
    /// does not fit.
    pub fn answer(&mut self) -> Result<Option<(usize, &[f64])>> {
        let is_there = loop {
            match self.reader.read(&mut self.row) {
                // Nobody is asked for.
                Err(DataError::EmptyLine { .. }) => {}
                found => break found?,
            }
        };
        if !is_there {
            return Ok(None);
        }
        self.encoder.encode(&self.row, &mut self.features)?;
        let group = self.groups.as_ref().map_or(Ok(0), |groups| groups.group(&self.row))?;
        self.model.probabilities(self.features.iter().copied().enumerate(), &mut self.probabilities);
        Ok(Some((self.model.decide(&self.probabilities, group), &self.probabilities)))
    }
}
