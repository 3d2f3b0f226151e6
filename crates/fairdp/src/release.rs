//! The two folders that a run leaves: what may leave the house, and what may not.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::error::{FairdpError, Result};
use crate::output::{self, Readers};
use crate::seal::{sealed, sha256};
use crate::statement::Statement;

/// Folder of what ε covers.
pub(crate) const RELEASE: &str = "release";
/// Folder of what it does not.
pub(crate) const PRIVATE: &str = "private";
pub(crate) const STATEMENT: &str = "statement.json";
pub(crate) const STATEMENT_TEXT: &str = "statement.md";
pub(crate) const LEDGER: &str = "ledger.json";
pub(crate) const FAIRNESS: &str = "fairness.json";
const PART: &str = ".release.part";

/// `private/ledger.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LedgerFile {
    pub(crate) version: u32,
    pub(crate) epsilon: f64,
    pub(crate) delta: f64,
    pub(crate) account: Account,
    /// sha256 of every file of the release.
    pub(crate) release: BTreeMap<String, String>,
}

/// The files of a release while it is put together.
#[derive(Debug, Default)]
pub(crate) struct Files(BTreeMap<String, Vec<u8>>);

impl Files {
    pub(crate) fn add(&mut self, name: &str, bytes: impl Into<Vec<u8>>) {
        self.0.insert(name.to_owned(), bytes.into());
    }

    fn digests(&self) -> BTreeMap<String, String> {
        self.0.iter().map(|(name, bytes)| (name.clone(), sha256(bytes))).collect()
    }

    /// Writes the private ledger, then the release: the release appears whole, as the last act of a
    /// run.
    pub(crate) fn publish(mut self, folder: &Path, mut statement: Statement, account: &Account) -> Result<()> {
        self.add(STATEMENT_TEXT, statement.markdown());
        statement.files = self.digests();
        self.add(STATEMENT, sealed(&statement)?);
        let ledger = LedgerFile {
            version: 1,
            epsilon: statement.epsilon,
            delta: statement.delta,
            account: account.clone(),
            release: self.digests(),
        };
        output::write(&folder.join(PRIVATE).join(LEDGER), sealed(&ledger)?.as_bytes(), Readers::Owner)?;
        let part = folder.join(PART);
        if part.exists() {
            fs::remove_dir_all(&part).map_err(FairdpError::io("remove", &part))?;
        }
        fs::create_dir(&part).map_err(FairdpError::io("create", &part))?;
        for (name, bytes) in &self.0 {
            output::write(&part.join(name), bytes, Readers::Default)?;
        }
        output::move_folder(&part, &folder.join(RELEASE))
    }
}
