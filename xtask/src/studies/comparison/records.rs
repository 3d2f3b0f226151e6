//! The records that a file names.

use std::collections::BTreeMap;
use std::path::Path;

use dp_data::TestFraction;
use dp_data::mnist::Collection;
use dp_table::declaration::{ColumnKind, EntryError, TableEntry, located};
use dp_table::{Column, TableFiles, TableFormat};

use super::entries::{ArraysEntry, ComparisonFile, PublishedEntry};
use super::refusal;
use crate::run::data_setting::Source;
use crate::run::images::few_eights;
use crate::run::own_data::{OwnArrays, OwnData, OwnTable, Pixels, RecordFiles};

/// Those of a paper, or one's own.
pub(super) enum Records {
    Published(Source),
    Own(OwnData),
}

/// The records of a file, relative to its folder; tables are opened, and no record is read.
///
/// # Errors
/// What of the file's declaration does not fit the table's header, with lines.
pub(super) fn data(file: &ComparisonFile, path: &Path, text: &str) -> anyhow::Result<Records> {
    let files = match (&file.published, &file.arrays) {
        (Some(published), _) => return Ok(Records::Published(source(*published))),
        (None, Some(arrays)) => RecordFiles::Arrays(of_arrays(arrays, path)),
        (None, None) => RecordFiles::Table(Box::new(of_table(file, path, text)?)),
    };
    Ok(Records::Own(OwnData {
        name: file.name.clone(),
        synthetic: file.synthetic,
        files,
        test: file.test.fraction.map_or_else(|| Ok(TestFraction::default()), TestFraction::new)?,
        group_by_class: file.group_by_class,
    }))
}

fn source(published: PublishedEntry) -> Source {
    match published {
        PublishedEntry::Adult { encoding, sampling, scaling, group_by } => {
            Source::Adult { encoding, sampling, scaling, group_by }
        }
        PublishedEntry::Dutch { encoding, sampling, group_by } => Source::Dutch { encoding, sampling, group_by },
        PublishedEntry::Mnist { eights } => {
            Source::Images { collection: Collection::Mnist, rare: eights.map(few_eights), share: None }
        }
        PublishedEntry::FashionMnist {} => {
            Source::Images { collection: Collection::FashionMnist, rare: None, share: None }
        }
        PublishedEntry::Celeba {} => Source::Celeba { share: None },
        PublishedEntry::Eicu {} => Source::Eicu,
    }
}

fn of_arrays(entry: &ArraysEntry, path: &Path) -> OwnArrays {
    OwnArrays {
        path: beside(path, &entry.file).into(),
        inputs: entry.inputs.clone(),
        labels: entry.labels.clone(),
        groups: entry.groups.clone(),
        class_names: entry.classes.clone(),
        group_names: entry.group_names.clone(),
    }
}

fn of_table(file: &ComparisonFile, path: &Path, text: &str) -> anyhow::Result<OwnTable> {
    let at = |errors: &[EntryError]| refusal(path, &located(text, errors));
    let at_key = |key: &str, error: &dyn std::fmt::Display| at(&[EntryError::new(key, error.to_string())]);
    let (Some(table), Some(declared)) = (&file.table, file.declared()) else {
        return Err(at(&[EntryError::new("table", "table: expected with [label]")]));
    };
    let files = opened(table, &table.files, &table.vectors, path).map_err(|error| at_key("table", &error))?;
    let first = files.open()?;
    let mistakes = declared.name_mistakes(first.columns(), &files.paths()[0]);
    if !mistakes.is_empty() {
        return Err(at(&mistakes));
    }
    let test = file.test.files.as_ref().map(|test| opened(table, test, &file.test.vectors, path)).transpose();
    let mut schema = declared.schema(&|_| None).map_err(|error| at(&[error]))?;
    let pixels =
        if file.pixels { Some(pixels(file, &mut schema.columns).map_err(|error| at(&[error]))?) } else { None };
    let uncovered = file.label.iter().filter_map(dp_table::declaration::LabelEntry::uncovered);
    let uncovered = uncovered.chain(file.group.iter().filter_map(dp_table::declaration::GroupEntry::uncovered));
    let uncovered = uncovered.chain(file.column.iter().filter_map(dp_table::declaration::ColumnEntry::uncovered));
    Ok(OwnTable {
        test: test.map_err(|error| at_key("test.files", &error))?,
        uncovered: uncovered.collect(),
        files,
        schema,
        pixels,
    })
}

/// The files of a table.
fn opened(
    table: &TableEntry,
    files: &[String],
    vectors: &BTreeMap<String, Vec<String>>,
    path: &Path,
) -> anyhow::Result<TableFiles> {
    let here = |files: &[String]| files.iter().map(|file| beside(path, file)).collect::<Vec<_>>();
    let mut opened = TableFiles::new(&here(files))?;
    if let TableFormat::Csv(csv) = *opened.format() {
        opened = opened.with_csv(table.csv(csv).map_err(|error| anyhow::anyhow!(error.message))?);
    }
    for (column, files) in vectors {
        opened = opened.with_vectors(column, &here(files))?;
    }
    Ok(opened)
}

/// The one column of images, of which the schema then makes no features.
fn pixels(file: &ComparisonFile, columns: &mut [(String, Column)]) -> Result<Pixels, EntryError> {
    let inputs: Vec<usize> = (0..columns.len()).filter(|&at| columns[at].1 != Column::Dropped).collect();
    let refuse = || {
        let kinds = inputs.iter().map(|&at| format!("{:?}", file.column[at].kind).to_lowercase()).collect::<Vec<_>>();
        let kinds = if kinds.is_empty() { "none".to_owned() } else { kinds.join(", ") };
        EntryError::new("pixels", format!("pixels = true: expected one input, of the kind image; there are: {kinds}"))
    };
    let [input] = inputs[..] else { return Err(refuse()) };
    let (name, column) = &mut columns[input];
    let Column::Image { height, width, channels, resize, missing: false, .. } = *column else {
        return Err(if file.column[input].kind == ColumnKind::Image {
            EntryError::new(format!("column.{input}.missing"), "missing = true: expected false with pixels = true")
        } else {
            refuse()
        });
    };
    // A schema has an input. What it makes of the images is not used: their pixels are read beside it.
    *column = Column::Category { values: vec!["none".to_owned()], other: true, missing: false };
    Ok(Pixels { column: name.clone(), size: [height, width, channels], resize })
}

/// A path, relative to the folder of the file that names it.
fn beside(file: &Path, path: &str) -> String {
    file.parent().unwrap_or(Path::new("")).join(path).to_string_lossy().into_owned()
}
