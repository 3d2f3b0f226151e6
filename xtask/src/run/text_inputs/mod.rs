//! What MIMIC-III's discharge summaries are turned into: counts of hashed words, or features of a
//! frozen encoder.

// Its own tests need no encoder.
#[cfg(any(feature = "bert", test))]
mod cache;
#[cfg(feature = "bert")]
mod encoder;

use std::path::Path;

use dp_data::mimic::Admissions;
use dp_train::ModelConfig;
use ndarray::Array2;

/// Inputs made from texts.
pub(crate) struct TextInputs {
    /// For records and reports; tells encoders apart.
    pub(crate) name: String,
    /// What is trained on them.
    pub(crate) model: ModelConfig,
    /// Where they depart from the paper, one sentence each.
    pub(crate) departures: Vec<String>,
    features: Box<Features>,
}

/// From the admissions and the cache's folder to `[admissions, inputs]`.
type Features = dyn Fn(&Admissions, &Path) -> anyhow::Result<Array2<f32>> + Send + Sync;

impl TextInputs {
    /// Features of the encoder in this folder; without one, hashed words.
    ///
    /// # Errors
    /// If the encoder cannot be read.
    pub(crate) fn new(encoder: Option<&Path>) -> anyhow::Result<Self> {
        match encoder {
            None => Ok(Self::hashed_words()),
            #[cfg(feature = "bert")]
            Some(folder) => encoder::inputs(folder),
            #[cfg(not(feature = "bert"))]
            Some(folder) => anyhow::bail!(
                "--encoder {}: this program was built without encoders; with them: cargo run --release --package xtask --features \
                 bert -- reproduce mimic --encoder DIR",
                folder.display()
            ),
        }
    }

    /// They need no files and know no language.
    pub(crate) fn hashed_words() -> Self {
        Self {
            name: "hashed-words".to_owned(),
            model: ModelConfig::LogisticRegression,
            departures: vec![
                "Inputs are counts of hashed words and the model is one linear layer; the paper's are a ClinicalBERT and its \
                 head (--encoder)."
                    .to_owned(),
            ],
            features: Box::new(|table, _| Ok(table.hashed_words())),
        }
    }

    /// `[admissions, inputs]`. Features of an encoder are kept under `cache`.
    ///
    /// # Errors
    /// If a text cannot be encoded, or the cache not be written to.
    pub(crate) fn features(&self, table: &Admissions, cache: &Path) -> anyhow::Result<Array2<f32>> {
        (self.features)(table, cache)
    }
}

#[cfg(all(test, not(feature = "bert")))]
mod tests {
    use super::*;

    #[test]
    fn without_encoders_the_message_says_how_to_get_them() {
        let error = TextInputs::new(Some(Path::new("folder"))).err().unwrap().to_string();
        insta::assert_snapshot!(error, @"--encoder folder: this program was built without encoders; with them: cargo run --release --package xtask --features bert -- reproduce mimic --encoder DIR");
    }
}
