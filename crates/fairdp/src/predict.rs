//! What a released model says of a table's rows, in a file.

use std::path::Path;

use dp_data::table::TableFiles;

use crate::error::Result;
use crate::model::Model;
use crate::output::{self, Readers};
use crate::predictions::Predictions;
use crate::predictor::Predictor;
use crate::release::RELEASE;

/// Writes one line per row of a table, in its order: `row` (from 1), `prediction`, and `p_<class>` for every class; as Parquet if the
/// name of the file ends so, else as CSV. Labels are not needed. Returns the number of rows.
///
/// # Errors
/// [`FairdpError::File`](crate::FairdpError::File) for a release that is damaged; [`FairdpError::Data`](crate::FairdpError::Data) with file, line and column for a row that does not
/// fit.
pub fn predict(folder: &Path, tables: &[String], out: &Path) -> Result<u64> {
    let release = folder.join(RELEASE);
    let model = Model::load(if release.is_dir() { &release } else { folder })?;
    let mut predictor = Predictor::new(&model, &TableFiles::new(tables)?)?;
    let mut n = 0;
    let mut failed = None;
    let written = output::write_with(out, Readers::Default, |file| {
        let mut predictions = Predictions::new(out, model.classes(), file)?;
        loop {
            match predictor.answer() {
                Ok(Some((class, probabilities))) => {
                    n += 1;
                    predictions.push(n, class, probabilities)?;
                }
                Ok(None) => return predictions.end(),
                Err(error) => {
                    failed = Some(error);
                    return Err(std::io::Error::other("a row does not fit"));
                }
            }
        }
    });
    match failed {
        Some(error) => Err(error),
        None => written.map(|()| n),
    }
}
