//! Sums of digests of rows. A sum does not depend on how many processes read a table, nor on the
//! parts that they read.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::reader::TableRow;

/// A sum of digests of single rows, each over the row's number and content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DigestSum([u64; 4]);

impl DigestSum {
    pub(crate) fn of_codes(first: usize, codes: &[u8], stride: usize) -> Self {
        let rows = codes.chunks_exact(stride).enumerate();
        rows.fold(Self::default(), |sum, (row, codes)| {
            let digest =
                Sha256::new().chain_update(((first + row) as u64).to_le_bytes()).chain_update(codes).finalize();
            sum.plus(Self::of(digest.into()))
        })
    }

    fn of(digest: [u8; 32]) -> Self {
        let mut sum = Self::default();
        for (sum, bytes) in sum.0.iter_mut().zip(digest.as_chunks().0) {
            *sum = u64::from_le_bytes(*bytes);
        }
        sum
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i].wrapping_add(other.0[i])))
    }

    pub(crate) fn bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (bytes, sum) in bytes.as_chunks_mut().0.iter_mut().zip(self.0) {
            *bytes = sum.to_le_bytes();
        }
        bytes
    }
}

/// A digest of rows as they were read, before they are encoded. Two passes over a table have equal
/// digests if no row changed in between. It is as private as the rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowsDigest(DigestSum);

impl RowsDigest {
    /// The digest of these rows together with others of the same table.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.plus(other.0))
    }

    /// Its bytes.
    pub fn bytes(self) -> [u8; 32] {
        self.0.bytes()
    }
}

/// Makes digests of the rows of one table.
#[derive(Debug, Clone)]
pub struct RowHasher(Sha256);

impl RowHasher {
    /// For rows below this header.
    pub fn new(columns: &[String]) -> Self {
        let mut bytes = Vec::new();
        for name in columns {
            with(&mut bytes, name);
        }
        Self(Sha256::new().chain_update(bytes))
    }

    /// The digest of one row, by its number in the whole table. A row that cannot be read counts
    /// with the fields that [`TableReader::read`](crate::TableReader::read) leaves of it.
    pub fn digest(&self, number: u64, row: &TableRow) -> RowsDigest {
        // In one piece: a digest of many short ones takes longer.
        let mut bytes = number.to_le_bytes().to_vec();
        for text in row.fields() {
            with(&mut bytes, text);
        }
        RowsDigest(DigestSum::of(self.0.clone().chain_update(bytes).finalize().into()))
    }
}

/// Appends a text whose end cannot be taken for the beginning of the next one.
fn with(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
}
