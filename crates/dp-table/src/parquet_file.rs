//! A file that `parquet` reads, whose end is an error.

use std::fs::File;
use std::io::{self, BufReader, Read};

use parquet::errors::Result;
use parquet::file::reader::{ChunkReader, Length};

/// A Parquet file. `parquet` passes over fields that it does not know without looking whether they
/// are there: a list of 2³¹ numbers beyond the end of a damaged file would take it half an hour.
pub(crate) struct ParquetFile(pub(super) File);

/// The content of the file from an offset on. A sound read never reaches the end, where the
/// footer lies.
pub(crate) struct FromPlace(File);

impl Read for FromPlace {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 if !buffer.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
            n => Ok(n),
        }
    }
}

impl Length for ParquetFile {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for ParquetFile {
    type T = BufReader<FromPlace>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(BufReader::new(FromPlace(self.0.get_read(start)?.into_inner())))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<bytes::Bytes> {
        self.0.get_bytes(start, length)
    }
}
