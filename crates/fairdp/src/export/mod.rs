//! A release in the forms that others ask for. Every fact is the statement's, the figures', or the
//! configuration's `[card]`; what only a person can say is named as missing, and never invented.

mod model_card;
mod registry;
mod yaml;

use std::path::Path;

use crate::error::{FairdpError, Result};
use crate::input;
use crate::release::FAIRNESS;
use crate::statement::ReleaseStatement;
use crate::unfinished::release_of;
use crate::verify::verify;

pub use self::model_card::model_card;
pub use self::registry::registry_entry;

/// A document for others.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exported {
    /// Its text.
    pub text: String,
    /// What only a person can say, and nobody has: fields with what they ask for.
    pub missing: Vec<String>,
}

/// What a document is made from: a release that holds.
struct Source {
    statement: ReleaseStatement,
    /// `fairness.json`.
    fairness: serde_json::Value,
}

impl Source {
    /// Reads a release after the checks of [`verify`].
    fn read(folder: &Path) -> Result<Self> {
        let statement = verify(folder)?.statement;
        let path = release_of(folder)?.join(FAIRNESS);
        let fairness =
            serde_json::from_slice(&input::bytes(&path)?).map_err(|error| FairdpError::file(&path, error))?;
        Ok(Self { statement, fairness })
    }

    /// A line of `[card]`.
    fn card(&self, line: impl Fn(&crate::config::CardEntry) -> Option<&String>) -> Option<String> {
        self.statement.card.as_ref().and_then(line).cloned()
    }

    /// What a reader of a release must hear first.
    fn warning(&self) -> Option<String> {
        let seed = self.statement.seed?;
        Some(format!("NOT PRIVATE: the noise follows from the seed {seed}, and who knows it can take it off."))
    }
}

/// A text, or a place holder that says what is missing.
fn or_missing(text: Option<String>, field: &str, asks_for: &str, missing: &mut Vec<String>) -> String {
    text.unwrap_or_else(|| {
        missing.push(format!("{field}: {asks_for}"));
        format!("MISSING: {asks_for}")
    })
}
