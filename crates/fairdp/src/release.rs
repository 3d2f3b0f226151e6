//! The two folders of a run: the release, which may be shared, and the private one, which may not.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::card;
use crate::curves::{CURVES, Curves};
use crate::error::{FairdpError, Result};
use crate::fairness::FairnessReport;
use crate::model::{FittedModel, PIPELINE, WEIGHTS};
use crate::onnx::onnx;
use crate::output::{self, Readers};
use crate::scores::{SCORES, ScoresFile};
use crate::seal::{sealed, sha256};
use crate::statement::ReleaseStatement;

/// The folder that ε covers.
pub(crate) const RELEASE: &str = "release";
/// The folder that ε does not cover.
pub(crate) const PRIVATE: &str = "private";
pub(crate) const STATEMENT: &str = "statement.json";
pub(crate) const STATEMENT_TEXT: &str = "statement.md";
pub(crate) const LEDGER: &str = "ledger.json";
/// The configuration of a run, in its private folder.
pub(crate) const CONFIG: &str = "config.toml";
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
pub(crate) struct ReleaseFiles(BTreeMap<String, Vec<u8>>);

impl ReleaseFiles {
    pub(crate) fn add(&mut self, name: &str, bytes: impl Into<Vec<u8>>) {
        self.0.insert(name.to_owned(), bytes.into());
    }

    /// Everything but the statement.
    pub(crate) fn add_model(
        &mut self,
        model: &FittedModel,
        weights: Vec<u8>,
        curves: &Curves,
        scores: Option<&ScoresFile>,
        statement: &ReleaseStatement,
        fairness: &FairnessReport,
    ) -> Result<()> {
        self.add(WEIGHTS, weights);
        self.add("model.onnx", onnx(model)?);
        self.add(PIPELINE, json(model.pipeline())?);
        self.add(FAIRNESS, json(fairness)?);
        if let Some(scores) = scores {
            self.add(SCORES, scores.to_json()?);
        }
        self.add(CURVES, json(curves)?);
        self.add("card.html", card::html(model, curves, statement, fairness));
        Ok(())
    }

    /// Adds the statement with the digests of all other files, and returns the files.
    pub(crate) fn with_statement(mut self, mut statement: ReleaseStatement) -> Result<BTreeMap<String, Vec<u8>>> {
        self.seal(&mut statement)?;
        Ok(self.0)
    }

    fn seal(&mut self, statement: &mut ReleaseStatement) -> Result<()> {
        self.add(STATEMENT_TEXT, statement.markdown());
        statement.files = self.digests();
        self.add(STATEMENT, sealed(statement)?);
        Ok(())
    }

    fn digests(&self) -> BTreeMap<String, String> {
        self.0.iter().map(|(name, bytes)| (name.clone(), sha256(bytes))).collect()
    }

    /// Writes the private ledger, then the release: the release appears whole, as the last act of a
    /// run. It is put together in the private folder, and nothing is left of it, nor of the ledger,
    /// where it cannot appear.
    pub(crate) fn publish(mut self, folder: &Path, mut statement: ReleaseStatement, account: &Account) -> Result<()> {
        self.seal(&mut statement)?;
        let ledger = LedgerFile {
            version: 1,
            epsilon: statement.epsilon,
            delta: statement.delta,
            account: account.clone(),
            release: self.digests(),
        };
        let (release, private) = (folder.join(RELEASE), folder.join(PRIVATE));
        if release.exists() {
            return Err(FairdpError::folder(folder, "holds a release", "it is not replaced"));
        }
        let (part, place) = (private.join(PART), private.join(LEDGER));
        let placed = self
            .fill(&part)
            .and_then(|()| output::write(&place, sealed(&ledger)?.as_bytes(), Readers::Owner))
            .and_then(|()| output::move_folder(&part, &release));
        if let Err(error) = placed {
            // A second error would say nothing new.
            let _ = output::remove_folder(&part).and_then(|()| output::remove(&place));
            return Err(error);
        }
        output::sync_entry(&release)
    }

    fn fill(&self, part: &Path) -> Result<()> {
        // Left behind by a killed process.
        output::remove_folder(part)?;
        fs::create_dir(part).map_err(FairdpError::io("create", part))?;
        self.0.iter().try_for_each(|(name, bytes)| output::write(&part.join(name), bytes, Readers::Default))
    }
}

/// A document of a release.
pub(crate) fn json(value: &impl Serialize) -> Result<String> {
    let text = serde_json::to_string_pretty(value);
    text.map(|text| text + "\n").map_err(FairdpError::json("a document cannot be written"))
}
