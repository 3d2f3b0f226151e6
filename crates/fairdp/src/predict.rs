//! What a released model says of a table's rows.

use std::path::Path;

use dp_data::table::{Row, TableFiles};

use crate::error::Result;
use crate::groups::GroupReader;
use crate::model::Model;
use crate::output::{self, Readers};
use crate::predictions::Predictions;
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
    let files = TableFiles::new(tables)?;
    let mut reader = files.open()?;
    let columns = reader.columns().to_vec();
    let groups = if model.needs_groups() {
        Some(GroupReader::new(model.encoding().schema(), &columns, &files.paths()[0])?)
    } else {
        None
    };
    let mut encoder = model.encoding().encoder(&columns, &files.paths()[0])?;
    let width = model.encoding().width();
    let (mut features, mut probabilities) = (vec![0.0; width], vec![0.0; model.classes().len()]);
    let mut row = Row::default();
    let mut n = 0;
    let mut failed = None;
    let written = output::write_with(out, Readers::Default, |file| {
        let mut predictions = Predictions::new(out, model.classes(), file)?;
        loop {
            let mut next = || -> Result<Option<usize>> {
                if !reader.read(&mut row)? {
                    return Ok(None);
                }
                encoder.encode(&row, &mut features)?;
                groups.as_ref().map_or(Ok(Some(0)), |groups| groups.group(&row).map(Some))
            };
            let group = match next() {
                Ok(Some(group)) => group,
                Ok(None) => break,
                Err(error) => {
                    failed = Some(error);
                    return Err(std::io::Error::other("a row does not fit"));
                }
            };
            n += 1;
            model.probabilities(features.iter().copied().enumerate(), &mut probabilities);
            let class = model.decide(&probabilities, group);
            predictions.push(n, class, &probabilities)?;
        }
        predictions.end()
    });
    match failed {
        Some(error) => Err(error),
        None => written.map(|()| n),
    }
}
