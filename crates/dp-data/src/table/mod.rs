//! One's own table: read from CSV, Parquet or memory as a stream, checked against a declared
//! schema, and encoded once into bounded features.
//!
//! A table becomes inputs for private training in three steps:
//!
//! 1. [`TableFiles`] names the files, [`TableReader`] reads them row by row. Nothing is interpreted
//!    yet: a [`Row`] holds text.
//! 2. A [`Schema`] declares every column: bounds and bins of numbers, values of categories, label,
//!    groups, unit of privacy. It comes from a configuration, not from the records. [`Guess`]
//!    proposes one from the records to spare typing; all of it is read from the data, and whoever
//!    uses it must say so.
//! 3. [`EncodedTable`] keeps the table as codes in a memory-mapped file and expands them into
//!    features when rows are gathered. What a row becomes depends on this row and the schema alone,
//!    and its Euclidean norm is at most 1 by construction.
//!
//! ```
//! use dp_data::table::{BadRows, Bins, Column, EncodedFile, EncodedTable, Label, Schema, TableFiles};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("t.csv");
//! std::fs::write(&path, "age,job,ill\n30,clerk,no\n61,nurse,yes\n")?;
//!
//! let schema = Schema {
//!     columns: vec![
//!         ("age".into(), Column::Number { low: 0.0, high: 100.0, bins: Bins::Equal(10), missing: None }),
//!         ("job".into(), Column::Category { values: vec!["clerk".into()], other: true, missing: false }),
//!     ],
//!     label: Label { column: "ill".into(), classes: vec!["no".into(), "yes".into()] },
//!     groups: Vec::new(),
//!     group_as_input: false,
//!     unit: None,
//!     bad_rows: BadRows::Refuse,
//!     missing: vec![String::new()],
//! };
//! let files = TableFiles::new(&[path.to_str().unwrap()])?;
//! let (table, counts) = EncodedTable::create(&files, &schema, EncodedFile::Temporary(folder.path()))?;
//! assert_eq!((table.rows(), counts.dropped), (2, 0));
//!
//! let mut features = vec![0.0; 2 * table.width()];
//! table.gather(&[0, 1], &mut features);
//! assert!(features.chunks(table.width()).all(|row| row.iter().map(|x| x * x).sum::<f32>() <= 1.0));
//! assert_eq!(table.label(1), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod alike;
mod check;
mod codes;
mod csv_source;
mod encoded;
mod encoding;
pub mod example;
mod files;
mod group;
mod guess;
mod header;
mod knots;
mod map;
mod memory_source;
mod parquet_file;
mod parquet_pages;
mod parquet_source;
mod parse;
mod quotes;
mod reader;
mod row_index;
mod rows_digest;
mod schema;
mod share;
mod tally;
mod text_file;
mod value;
mod value_list;

pub use alike::{Alike, Difference, is_invisible};
pub use encoded::{EncodedFile, EncodedTable};
pub use encoding::{BlockKind, Encoding, FeatureBlock, RowChecker, RowEncoder};
pub use files::{Csv, TableFiles, TableFormat};
pub use group::{Group, Level, NoGroup};
pub use guess::{ColumnGuess, Guess, GuessedKind, MISSING_MARKERS, Words};
pub use memory_source::{MemoryColumn, MemoryTable};
pub use reader::{Row, TableReader};
pub use row_index::RowIndex;
pub use rows_digest::{RowHasher, RowsDigest};
pub use schema::{BadRows, Bins, Column, GroupColumn, GroupValues, Label, Schema};
pub use share::{Gather, Peers};
pub use tally::{ColumnTally, TableCounts, thousands};
pub use value::{Decimal, Value};
