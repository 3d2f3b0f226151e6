//! The manifests beside the loaders, compiled in: sources, checksums, licence, schema.

use serde::Deserialize;

use crate::error::DataError;

/// The published facts about one data set: source, files, schema, number of records.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Name on the command line and of the folder that holds the files.
    pub name: String,
    /// For people.
    pub title: String,
    /// Publisher, with a citable identifier where there is one.
    pub source: String,
    /// Licence in words, or that none is stated.
    pub licence: String,
    /// Whether the licence permits to pass the files on.
    pub redistributable: bool,
    /// Records over all files, before any is dropped.
    pub records: usize,
    /// How a user gets the files.
    pub obtain: String,
    /// The files, in reading order.
    #[serde(default)]
    pub files: Vec<ManifestFile>,
    /// Tables whose files are not pinned, by what is published of them.
    #[serde(default)]
    pub tables: Vec<ManifestTable>,
    /// The columns of a table, in file order; empty for images and text.
    #[serde(default)]
    pub columns: Vec<ManifestColumn>,
}

/// One published file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestFile {
    /// File name without folders.
    pub name: String,
    /// Size.
    pub bytes: u64,
    /// sha256, hexadecimal, lower case.
    pub sha256: String,
    /// Records in it.
    pub records: usize,
    /// Addresses to download from, best first; empty if it cannot be downloaded freely.
    #[serde(default)]
    pub urls: Vec<String>,
}

/// A published table for whose file there is no checksum.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestTable {
    /// File name without folders and `.gz`.
    pub name: String,
    /// Records in it.
    pub records: usize,
}

/// One column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestColumn {
    /// Name as published.
    pub name: String,
    /// The categories; absent for a number.
    pub values: Option<Vec<String>>,
}

impl Manifest {
    /// Parses the text of a `manifest.toml`.
    ///
    /// # Errors
    /// [`DataError::InvalidManifest`] for text that is not a manifest, a checksum that is not 64
    /// lower-case hexadecimal digits, or a file name with a folder in it.
    pub fn parse(name: &str, text: &str) -> Result<Self, DataError> {
        let invalid = |reason: String| DataError::InvalidManifest { dataset: name.into(), reason };
        let manifest: Self = toml::from_str(text).map_err(|error| invalid(error.to_string()))?;
        for file in &manifest.files {
            let hexadecimal = file.sha256.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            if file.sha256.len() != 64 || !hexadecimal {
                return Err(invalid(format!("sha256 of `{}` is not 64 lower-case hexadecimal digits", file.name)));
            }
            if file.name.contains(['/', '\\']) || file.name.is_empty() || file.name.starts_with('.') {
                return Err(invalid(format!("`{}` is not a plain file name", file.name)));
            }
        }
        Ok(manifest)
    }

    /// Whether every file has an address.
    pub fn is_downloadable(&self) -> bool {
        !self.files.is_empty() && self.files.iter().all(|file| !file.urls.is_empty())
    }

    /// The published file of that name.
    pub fn file(&self, name: &str) -> Option<&ManifestFile> {
        self.files.iter().find(|file| file.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINIMAL: &str = r#"
        name = "d"
        title = "D"
        source = "s"
        licence = "l"
        redistributable = false
        records = 1
        obtain = "o"
        [[files]]
        name = "FILE"
        bytes = 1
        sha256 = "SHA"
        records = 1
    "#;

    fn parse(file: &str, sha: &str) -> Result<Manifest, DataError> {
        Manifest::parse("d", &MINIMAL.replace("FILE", file).replace("SHA", sha))
    }

    #[test]
    fn checks_names_and_digests() {
        let sha = "0".repeat(64);
        assert_eq!(parse("a.csv", &sha).unwrap().file("a.csv").unwrap().bytes, 1);
        insta::assert_snapshot!(parse("../a", &sha).unwrap_err(), @"manifest of `d`: `../a` is not a plain file name");
        insta::assert_snapshot!(
            parse("a", "ABC").unwrap_err(),
            @"manifest of `d`: sha256 of `a` is not 64 lower-case hexadecimal digits"
        );
        assert!(matches!(Manifest::parse("d", "name = 3"), Err(DataError::InvalidManifest { .. })));
    }
}
