#![doc = include_str!("../README.md")]
#![deny(missing_debug_implementations)]

mod beside;
mod blocks;
mod check;
mod codes;
mod column_names;
mod column_stats;
mod counts;
mod csv_source;
mod date_format;
pub mod declaration;
#[cfg(test)]
mod defects;
mod encoded;
mod encoding;
mod error;
mod example;
mod files;
mod folder_source;
mod group;
mod guess;
mod guessed_vectors;
mod header;
#[cfg(test)]
mod hook;
mod idx;
mod image_text;
#[cfg(feature = "images")]
mod images;
mod inputs;
mod knots;
mod look_alikes;
mod map;
mod markers;
mod memory_source;
mod npy;
mod number_format;
mod parquet_file;
mod parquet_list;
mod parquet_pages;
mod parquet_source;
mod parse;
mod peers;
mod quotes;
mod read_progress;
mod reader;
mod readings;
mod row_index;
mod rows_digest;
mod schema;
mod text_encoding;
mod text_file;
mod text_hash;
mod value;
mod value_list;
mod vector;

pub use blocks::{BlockKind, FeatureBlock};
pub use column_names::delimiter_question;
pub use counts::{ColumnCounts, TableCounts, thousands};
pub use date_format::{DateFormat, DatePart};
pub use encoded::{EncodedFile, EncodedTable};
pub use encoding::{Encoding, RowChecker, RowEncoder};
pub use error::TableError;
pub use example::Example;
pub use files::{Csv, TableFiles, TableFormat};
pub use group::{Group, Level, ParseGroupError};
pub use guess::{
    ColumnGuess, EmptyLines, Guess, GuessedDate, GuessedImage, GuessedKind, GuessedVector, GuessedVectorColumns,
    MISSING_MARKERS, StrayTexts,
};
#[cfg(feature = "images")]
pub use images::PixelColumn;
pub use look_alikes::{LookAlikes, SpellingDifference, is_invisible};
pub use markers::spellings_of_marker;
pub use memory_source::{MemoryColumn, MemoryTable};
pub use number_format::NumberFormat;
pub use peers::{Gather, Peers};
pub use read_progress::ReadProgress;
pub use reader::{StoredAs, TableReader, TableRow};
pub use row_index::RowIndex;
pub use rows_digest::{RowHasher, RowsDigest};
pub use schema::{BadRows, Bins, Column, GroupColumn, GroupValues, Label, NumberLabel, Schema, Weight};
pub use text_encoding::TextEncoding;
pub use value::{Decimal, Value};
pub use vector::VectorBound;
