#![doc = include_str!("../README.md")]

mod check;
mod codes;
mod counts;
mod csv_source;
#[cfg(test)]
mod defects;
mod encoded;
mod encoding;
mod error;
mod example;
mod files;
mod group;
mod guess;
mod header;
#[cfg(test)]
mod hook;
mod knots;
mod look_alikes;
mod map;
mod memory_source;
mod parquet_file;
mod parquet_pages;
mod parquet_source;
mod parse;
mod peers;
mod quotes;
mod reader;
mod row_index;
mod rows_digest;
mod schema;
mod text_file;
mod value;
mod value_list;

pub use counts::{ColumnCounts, TableCounts, thousands};
pub use encoded::{EncodedFile, EncodedTable};
pub use encoding::{BlockKind, Encoding, FeatureBlock, RowChecker, RowEncoder};
pub use error::TableError;
pub use example::Example;
pub use files::{Csv, TableFiles, TableFormat};
pub use group::{Group, Level, ParseGroupError};
pub use guess::{ColumnGuess, Guess, GuessedKind, MISSING_MARKERS, StrayTexts};
pub use look_alikes::{Difference, LookAlikes, is_invisible};
pub use memory_source::{MemoryColumn, MemoryTable};
pub use peers::{Gather, Peers};
pub use reader::{Row, StoredAs, TableReader};
pub use row_index::RowIndex;
pub use rows_digest::{RowHasher, RowsDigest};
pub use schema::{BadRows, Bins, Column, GroupColumn, GroupValues, Label, Schema};
pub use value::{Decimal, Value};
