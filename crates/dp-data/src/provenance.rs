//! The source of records, which every output names.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The source of a table, and digests by which to recognise it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The data set, for example `adult`.
    pub name: String,
    /// True for generated records: figures made from them say nothing about a paper.
    pub synthetic: bool,
    /// In words; names no folder of this machine.
    pub source: String,
    /// Every file was compared with its published sha256 and agrees. False for generated records,
    /// and where a file has no checksum to compare with.
    pub sha256_ok: bool,
    /// sha256 of the table in hexadecimal: what `sha256sum FILES | sha256sum` prints, files in the
    /// manifest's order. For generated records, of the generated text.
    pub digest: String,
    /// Records before any is dropped.
    pub n_records: usize,
    /// The files, empty for generated records.
    pub files: Vec<FileRecord>,
    /// Places that were tried before this one and why they did not serve, one sentence each.
    pub notes: Vec<String>,
}

/// One file of a data set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// File name without folders.
    pub name: String,
    /// sha256 of its (decompressed, where the published file is not compressed) content,
    /// hexadecimal.
    pub sha256: String,
    /// Size of that content.
    pub bytes: u64,
}

impl Provenance {
    /// That of generated records. `what` says in words what they are, `contents` is the generated
    /// text, `n_records` their number.
    ///
    /// ```
    /// use dp_data::Provenance;
    /// let provenance = Provenance::generated("adult", "census with Adult's schema", 1, b"39, State-gov", 1);
    /// assert!(provenance.synthetic && !provenance.sha256_ok);
    /// assert_eq!(provenance.source, "SYNTHETIC census with Adult's schema, seed 1");
    /// ```
    pub fn generated(name: &str, what: &str, seed: u64, contents: &[u8], n_records: usize) -> Self {
        Self {
            name: name.into(),
            synthetic: true,
            source: format!("SYNTHETIC {what}, seed {seed}"),
            sha256_ok: false,
            digest: sha256_hex(contents),
            n_records,
            files: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// One digest for several files, as `sha256sum FILES | sha256sum` prints it.
    pub(crate) fn digest_of(files: &[FileRecord]) -> String {
        let mut listing = Sha256::new();
        for file in files {
            listing.update(format!("{}  {}\n", file.sha256, file.name));
        }
        hex::encode(listing.finalize())
    }
}

/// sha256 in hexadecimal.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_is_that_of_the_coreutils_listing() {
        // $ printf abc > a; : > b; sha256sum a b | sha256sum
        let file = |name: &str, content: &str| FileRecord {
            name: name.into(),
            sha256: sha256_hex(content.as_bytes()),
            bytes: content.len() as u64,
        };
        assert_eq!(
            Provenance::digest_of(&[file("a", "abc"), file("b", "")]),
            "09c7e0b8a02d027d95ec0375a600ed4ad4d6b26a1c93f16d9150cab5fec761a6"
        );
    }
}
