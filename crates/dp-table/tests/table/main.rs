//! Tables of one's own: what is read, what is refused, and what the features keep to.

#![expect(clippy::unwrap_used, reason = "a failing test may panic")]

mod bytes;
mod csv_files;
mod encoded;
mod formats;
#[path = "../../examples/guess_and_encode.rs"]
mod guess_and_encode;
mod images;
mod number_labels;
mod parquet_files;
mod shared;
mod values;
mod weights;

use std::fs;
use std::path::PathBuf;

use dp_table::TableError;
use dp_table::{
    BadRows, Bins, Column, Csv, EncodedFile, EncodedTable, Label, NumberFormat, Schema, TableCounts, TableFiles,
    TableRow,
};

/// The example runs, and ends with a check of its own result.
#[test]
fn the_example_runs() {
    guess_and_encode::main().unwrap();
}

/// A folder with one table in it.
struct Placed {
    folder: tempfile::TempDir,
    path: PathBuf,
}

impl Placed {
    fn new(name: &str, contents: impl AsRef<[u8]>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, contents).unwrap();
        Self { folder, path }
    }

    fn files(&self) -> TableFiles {
        TableFiles::new(&[self.path.to_str().unwrap()]).unwrap()
    }

    fn encode(&self, schema: &Schema) -> Result<(EncodedTable, TableCounts), TableError> {
        EncodedTable::create(&self.files(), schema, EncodedFile::Temporary(self.folder.path()))
    }

    /// The error's text without the folder.
    fn text_of(&self, error: &TableError) -> String {
        error.to_string().replace(&format!("{}/", self.folder.path().display()), "")
    }
}

/// Header and rows, each row's line before its fields; an error of one row takes its place, another
/// one ends the list.
fn read(files: &TableFiles) -> Vec<String> {
    let mut reader = match files.open() {
        Ok(reader) => reader,
        Err(error) => return vec![error.to_string()],
    };
    let mut lines = vec![reader.columns().join("|")];
    let mut row = TableRow::default();
    loop {
        match reader.read(&mut row) {
            Ok(true) => lines.push(format!("{}: {}", row.line(), row.fields().collect::<Vec<_>>().join("|"))),
            Ok(false) => return lines,
            Err(error) => {
                lines.push(error.to_string());
                if !error.is_of_one_row() {
                    return lines;
                }
            }
        }
    }
}

/// As [`read`], of one file with these contents.
fn read_bytes(name: &str, contents: impl AsRef<[u8]>, csv: Option<Csv>) -> String {
    let placed = Placed::new(name, contents);
    let files = csv.map_or(placed.files(), |csv| placed.files().with_csv(csv));
    read(&files).join("\n").replace(&format!("{}/", placed.folder.path().display()), "")
}

fn texts(values: &[&str]) -> Vec<String> {
    values.iter().map(|&value| value.into()).collect()
}

/// `age` in ten bins from 0 to 100, `job` of two and others, label `ill`.
fn schema() -> Schema {
    Schema {
        columns: vec![
            (
                "age".into(),
                Column::Number {
                    low: 0.0,
                    high: 100.0,
                    bins: Bins::Equal(10),
                    missing: None,
                    format: NumberFormat::default(),
                },
            ),
            ("job".into(), Column::Category { values: texts(&["clerk", "nurse"]), other: false, missing: false }),
        ],
        label: Label::of_classes("ill", texts(&["no", "yes"])),
        groups: Vec::new(),
        group_as_input: false,
        unit: None,
        weight: None,
        bad_rows: BadRows::Refuse,
        missing: texts(&[""]),
    }
}
