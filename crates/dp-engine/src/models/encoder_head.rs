//! Classification heads on the features of a frozen text encoder.

use serde::{Deserialize, Serialize};

use super::{NamedLayer, Sizes};
use crate::layers::{Dropout, Linear, Pointwise};
use crate::ops::Activation;

/// Which encoder's head: layers, dropout and parameter names of `transformers`' models for sequence
/// classification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum EncoderFamily {
    /// `BertForSequenceClassification`: dropout 0.1, `classifier`. Its features are the pooled
    /// output.
    Bert,
    /// `DistilBertForSequenceClassification`: `pre_classifier`, ReLU, dropout 0.2, `classifier`.
    /// Its features are the first token's.
    Distilbert,
}

impl EncoderFamily {
    /// Its name in configurations: `bert` or `distilbert`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bert => "bert",
            Self::Distilbert => "distilbert",
        }
    }
}

pub(super) fn layers(encoder: EncoderFamily, sizes: &Sizes) -> Vec<NamedLayer> {
    let &Sizes { n_inputs, n_outputs } = sizes;
    let mut layers = Vec::new();
    let probability = match encoder {
        EncoderFamily::Bert => 0.1,
        EncoderFamily::Distilbert => {
            layers.push(NamedLayer::new("pre_classifier", Linear::blueprint(n_inputs, n_inputs)));
            layers.push(NamedLayer::new("act", Pointwise::blueprint(Activation::Relu)));
            0.2
        }
    };
    layers.push(NamedLayer::new("dropout", Dropout::blueprint(probability, 0, n_inputs)));
    layers.push(NamedLayer::new("classifier", Linear::blueprint(n_inputs, n_outputs)));
    layers
}
