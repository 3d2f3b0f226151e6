//! The file of a ledger: a line for its terms, then one for each fit.
//!
//! A line is a JSON object whose last entry is its seal, the sha256 of everything before it in the
//! line. Every line but the first begins with the seal of the line before. So a line that was
//! changed, removed, added or moved shows, but at the end of the file: there a [`Witness`] tells.
//! Lines are appended and never written anew.
//!
//! [`Witness`]: super::witness::Witness

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Fit;
use crate::error::{FairdpError, Result};
use crate::input;
use crate::output::{self, Readers};
use crate::seal::{sha256, unsealed};

/// The version of ledger files that this program writes; it reads the one before too.
const VERSION: u32 = 2;
const SEAL: &str = ",\"seal\":\"";
const END: &str = "\"}";

/// What all fits share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Terms {
    version: u32,
    /// ε of all fits together, at most.
    pub(super) cap: f64,
    pub(super) delta: f64,
    /// The column whose values are the units of all fits; none where these are rows.
    #[serde(default)]
    pub(super) unit: Option<String>,
}

/// A line behind the first.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// The seal of the line before.
    previous: String,
    fit: Fit,
}

/// A file of version 1: one sealed document.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OldLedger {
    version: u32,
    cap: f64,
    delta: f64,
    #[serde(default)]
    unit: Option<String>,
    fits: Vec<Fit>,
}

/// A ledger as it is in its file.
#[derive(Debug, Clone)]
pub(super) struct LedgerFile {
    pub(super) terms: Terms,
    pub(super) fits: Vec<Fit>,
    /// Every line, without its line break.
    lines: Vec<String>,
}

impl Terms {
    pub(super) fn new(cap: f64, delta: f64, unit: Option<&str>) -> Self {
        Self { version: VERSION, cap, delta, unit: unit.map(ToOwned::to_owned) }
    }
}

impl LedgerFile {
    pub(super) fn new(terms: Terms) -> Result<Self> {
        Ok(Self { lines: vec![sealed_line(&terms)?], terms, fits: Vec::new() })
    }

    /// Appends a fit; the file is not written.
    pub(super) fn push(&mut self, fit: Fit) -> Result<()> {
        let entry = Entry { previous: self.seal(self.fits.len()).to_owned(), fit };
        self.lines.push(sealed_line(&entry)?);
        self.fits.push(entry.fit);
        Ok(())
    }

    /// The seal of the ledger when it had this many fits, which it has had.
    pub(super) fn seal(&self, n_fits: usize) -> &str {
        let line = &self.lines[n_fits];
        line.rsplit_once(SEAL).and_then(|(_, rest)| rest.strip_suffix(END)).unwrap_or_default()
    }

    /// The ledger in a file, if there is one.
    ///
    /// # Errors
    /// [`FairdpError::BrokenLedger`] for lines that do not follow from one another.
    pub(super) fn read(path: &Path) -> Result<Option<Self>> {
        if !path.exists() {
            return Ok(None);
        }
        let text = input::text(path)?;
        // A document of version 1, or of something else, is not sealed line by line.
        if text.lines().next().is_none_or(|line| !line.contains(SEAL)) {
            return Self::of_old(unsealed(path, &text)?, path).map(Some);
        }
        let broken = |problem: String| FairdpError::BrokenLedger { ledger: path.to_path_buf(), problem };
        let Some(body) = text.strip_suffix('\n') else { return Err(broken("ends within a line".into())) };
        let mut lines = body.split('\n');
        let first = lines.next().unwrap_or_default();
        let terms: Terms = unsealed_line(first).ok_or_else(|| broken("line 1 was changed".into()))?;
        if terms.version != VERSION {
            let problem = format!("version {}: this program reads 1 and {VERSION}", terms.version);
            return Err(FairdpError::file(path, problem));
        }
        let mut ledger = Self { terms, fits: Vec::new(), lines: vec![first.to_owned()] };
        for line in lines {
            let number = ledger.lines.len() + 1;
            let entry: Entry = unsealed_line(line).ok_or_else(|| broken(format!("line {number} was changed")))?;
            if entry.previous != ledger.seal(ledger.fits.len()) {
                let problem =
                    format!("line {number} does not follow the one before: a fit was removed, added or moved");
                return Err(broken(problem));
            }
            ledger.fits.push(entry.fit);
            ledger.lines.push(line.to_owned());
        }
        Ok(Some(ledger))
    }

    fn of_old(old: OldLedger, path: &Path) -> Result<Self> {
        if old.version != 1 {
            return Err(FairdpError::file(
                path,
                format!("version {}: this program reads 1 and {VERSION}", old.version),
            ));
        }
        let mut ledger = Self::new(Terms::new(old.cap, old.delta, old.unit.as_deref()))?;
        old.fits.into_iter().try_for_each(|fit| ledger.push(fit))?;
        Ok(ledger)
    }

    /// Writes the file, which appears whole or not at all.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        output::write(path, (self.lines.join("\n") + "\n").as_bytes(), Readers::Owner)
    }
}

fn sealed_line(document: &impl Serialize) -> Result<String> {
    let text = serde_json::to_string(document).map_err(FairdpError::json("a ledger cannot be written"))?;
    let body = text.strip_suffix('}').unwrap_or(&text);
    Ok(format!("{body}{SEAL}{}{END}", sha256(body.as_bytes())))
}

/// The document of a line; none if its seal is another one.
fn unsealed_line<T: serde::de::DeserializeOwned>(line: &str) -> Option<T> {
    let (body, rest) = line.rsplit_once(SEAL)?;
    let is_sealed = rest.strip_suffix(END) == Some(&sha256(body.as_bytes()));
    if is_sealed { serde_json::from_str(&format!("{body}}}")).ok() } else { None }
}
