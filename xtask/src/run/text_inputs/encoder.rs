//! Features of a frozen encoder, computed once for all texts.

use std::path::Path;

use dp_train::{ModelConfig, TextEncoder};
use ndarray::Array2;
use run_records::shell;
use sha2::{Digest, Sha256};

use super::TextInputs;
use super::cache::FeatureFile;
use crate::run::progress::encoding_bar;
use crate::terminal::say;

/// Inputs from the encoder in this folder.
///
/// # Errors
/// If it cannot be read.
pub(super) fn inputs(folder: &Path) -> anyhow::Result<TextInputs> {
    let encoder = TextEncoder::load(folder)?;
    let (family, digest) = (encoder.family(), encoder.digest().to_owned());
    let family_name = family.name();
    let name = format!("{family_name}-{}", &digest[..12]);
    Ok(TextInputs {
        model: ModelConfig::FrozenEncoderHead { encoder: family },
        departures: vec![
            format!(
                "Inputs are features of a frozen {family_name}, files of sha256 {digest}. Whether it is the paper's ClinicalBERT \
                 cannot be told from them."
            ),
            "ε is that of the head. What the encoder was trained on is not accounted for; if it was MIMIC-III, ε says nothing."
                .to_owned(),
        ],
        features: {
            let name = name.clone();
            Box::new(move |table, cache| {
                let texts: Vec<&str> = table.admissions.iter().map(|admission| admission.text.as_str()).collect();
                let shape = [texts.len(), encoder.n_features()];
                let file = FeatureFile::new(&cache.join("mimic"), key(&encoder, &texts), shape);
                let features = file.read_or(|| encode(&encoder, &texts))?;
                say!("Inputs: {} features of {name}, kept in {}", shape[1], shell::path(file.path()))?;
                Ok(features)
            })
        },
        name,
    })
}

fn encode(encoder: &TextEncoder, texts: &[&str]) -> anyhow::Result<Array2<f32>> {
    let bar = encoding_bar(texts.len() as u64);
    let features = encoder.features(texts, || bar.inc(1))?;
    bar.finish_and_clear();
    Ok(Array2::from_shape_vec((texts.len(), encoder.n_features()), features)?)
}

/// sha256 of the encoder and of the texts in order. The number rises when features are computed in
/// another way.
fn key(encoder: &TextEncoder, texts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    hasher.update(b"features 1 ");
    hasher.update(encoder.digest());
    for text in texts {
        hasher.update((text.len() as u64).to_le_bytes());
        hasher.update(text);
    }
    hex::encode(hasher.finalize())
}
