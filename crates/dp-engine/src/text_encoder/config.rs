//! `config.json`: which family, and the sizes as BERT's.

use candle_transformers::models::bert::{Config, HiddenAct, PositionEmbeddingType};
use serde::Deserialize;

use crate::models::EncoderFamily;

/// A configuration that was checked.
#[derive(Debug)]
pub(super) struct EncoderConfig {
    pub(super) family: EncoderFamily,
    pub(super) bert: Config,
}

/// The file as the families write it.
#[derive(Deserialize)]
#[serde(tag = "model_type", rename_all = "lowercase")]
enum File {
    Bert(Config),
    Distilbert(Distilbert),
}

#[derive(Deserialize)]
struct Distilbert {
    vocab_size: usize,
    dim: usize,
    n_layers: usize,
    n_heads: usize,
    hidden_dim: usize,
    activation: HiddenAct,
    max_position_embeddings: usize,
}

/// DistilBERT is computed as a BERT whose only token type adds zeros; candle-transformers' own
/// model of it approximates GELU by a tanh, which `transformers` does not.
impl From<Distilbert> for Config {
    fn from(file: Distilbert) -> Self {
        Self {
            vocab_size: file.vocab_size,
            hidden_size: file.dim,
            num_hidden_layers: file.n_layers,
            num_attention_heads: file.n_heads,
            intermediate_size: file.hidden_dim,
            hidden_act: file.activation,
            max_position_embeddings: file.max_position_embeddings,
            type_vocab_size: 1,
            layer_norm_eps: 1e-12,
            position_embedding_type: PositionEmbeddingType::Absolute,
            ..Self::default()
        }
    }
}

/// Reads and checks the file; an error says which value and what is accepted.
pub(super) fn parse(bytes: &[u8]) -> Result<EncoderConfig, String> {
    let (family, mut bert) = match serde_json::from_slice(bytes).map_err(|error| error.to_string())? {
        File::Bert(config) => (EncoderFamily::Bert, config),
        File::Distilbert(file) => (EncoderFamily::Distilbert, file.into()),
    };
    // Where the parameters' names begin is settled when they are read.
    bert.model_type = None;
    let [sizes, heads] = match family {
        EncoderFamily::Bert => ["hidden_size", "num_attention_heads"],
        EncoderFamily::Distilbert => ["dim", "n_heads"],
    };
    let (width, n_heads) = (bert.hidden_size, bert.num_attention_heads);
    if n_heads == 0 || width == 0 || !width.is_multiple_of(n_heads) {
        return Err(format!("{heads} = {n_heads}: expected a divisor of {sizes} = {width}"));
    }
    Ok(EncoderConfig { family, bert })
}
