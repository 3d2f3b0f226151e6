//! How a new table is read.

use std::sync::Arc;

use clap::Args;
use fairdp::{NewTableOptions, ReadProgress};

use super::{by_column, character, column_and_file};

#[derive(Args)]
pub(super) struct NewTableArgs {
    /// The character between two fields of a text file; that of the run's table, or found, unless given.
    #[arg(long, value_name = "CHARACTER", value_parser = character)]
    delimiter: Option<char>,
    /// The character around a field that holds delimiters, '' for none; that of the run's table unless given.
    #[arg(long, value_name = "CHARACTER")]
    quote: Option<String>,
    /// The encoding of text files, such as latin1, where it is neither UTF-8 nor UTF-16.
    #[arg(long)]
    encoding: Option<String>,
    /// A column of vectors in a file of NumPy, or of images in an IDX file, row by row beside the
    /// table; repeatable, once for each file of the table.
    #[arg(long, value_name = "COLUMN=FILE", value_parser = column_and_file)]
    vectors: Vec<(String, String)>,
}

impl NewTableArgs {
    pub(super) fn options(self, reading: Arc<ReadProgress>) -> NewTableOptions {
        let Self { delimiter, quote, encoding, vectors } = self;
        NewTableOptions { delimiter, quote, encoding, vectors: by_column(vectors), reading: Some(reading) }
    }
}
