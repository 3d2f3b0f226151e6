//! A release in the forms that others ask for. Every fact is the statement's, the figures', or the
//! configuration's `[card]`; what only a person can say is named as missing, and never invented.

mod model_card;
mod registry;
mod yaml;

use std::path::Path;

use crate::error::{FairdpError, Result};
use crate::input;
use crate::model::PIPELINE;
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
    /// Whether the model's only inputs are images.
    is_of_images: bool,
}

impl Source {
    /// Reads a release after the checks of [`verify`].
    fn read(folder: &Path) -> Result<Self> {
        let statement = verify(folder)?.statement;
        let release = release_of(folder)?;
        let document = |name: &str| -> Result<serde_json::Value> {
            let path = release.join(name);
            serde_json::from_slice(&input::bytes(&path)?).map_err(|error| FairdpError::file(&path, error))
        };
        let fairness = document(FAIRNESS)?;
        // A release of figures has no model.
        let is_of_images = statement.about.is_none() && {
            let pipeline = document(PIPELINE)?;
            let columns = pipeline["schema"]["columns"].as_array().into_iter().flatten();
            let mut kinds = columns.map(|column| &column[1]["kind"]).filter(|kind| *kind != "dropped").peekable();
            kinds.peek().is_some() && kinds.all(|kind| kind == "image")
        };
        Ok(Self { statement, fairness, is_of_images })
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
