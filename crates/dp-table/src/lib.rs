#![doc = include_str!("../README.md")]

mod alike;
#[cfg(test)]
mod bad_rows;
mod check;
mod codes;
mod csv_source;
mod encoded;
mod encoding;
mod error;
pub mod example;
mod files;
mod group;
mod guess;
mod header;
#[cfg(test)]
mod hook;
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
pub use error::TableError;
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
