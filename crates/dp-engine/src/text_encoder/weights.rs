//! `model.safetensors`: the parameters under BERT's names, whichever program and model saved them.

use candle_core::{DType, Device, Result, Tensor};
use candle_nn::VarBuilder;

use crate::models::EncoderFamily;

/// Number type of encoders.
const DTYPE: DType = DType::F32;

const TOKEN_TYPES: &str = "embeddings.token_type_embeddings.weight";

/// The file's parameters. They are asked for by BERT's names; what is missing is reported by the
/// file's.
pub(super) fn parse(bytes: &[u8], family: EncoderFamily) -> Result<VarBuilder<'static>> {
    let tensors = candle_core::safetensors::load_buffer(bytes, &Device::Cpu)?;
    let mut tensors: std::collections::HashMap<String, Tensor> =
        tensors.into_iter().map(|(name, tensor)| (without_prefix(&name), tensor)).collect();
    if family == EncoderFamily::Distilbert
        && let Some(words) = tensors.get("embeddings.word_embeddings.weight")
    {
        let zeros = Tensor::zeros((1, words.dim(1)?), DTYPE, &Device::Cpu)?;
        tensors.insert(TOKEN_TYPES.to_owned(), zeros);
    }
    let variables = VarBuilder::from_tensors(tensors, DTYPE, &Device::Cpu);
    Ok(match family {
        EncoderFamily::Bert => variables,
        EncoderFamily::Distilbert => variables.rename_f(distilbert_name),
    })
}

/// The name within the encoder. A model with a head keeps the encoder in a separate module, and
/// files converted from TensorFlow's BERT call a normalisation's scale and shift `gamma` and
/// `beta`.
fn without_prefix(name: &str) -> String {
    let name = name.strip_prefix("bert.").or_else(|| name.strip_prefix("distilbert.")).unwrap_or(name);
    name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
}

/// DistilBERT's name of a parameter of BERT.
fn distilbert_name(bert: &str) -> String {
    // `output.dense` and `output.LayerNorm` are parts of other names, which therefore come first.
    const PARTS: [(&str, &str); 9] = [
        ("encoder.layer.", "transformer.layer."),
        (".attention.self.query.", ".attention.q_lin."),
        (".attention.self.key.", ".attention.k_lin."),
        (".attention.self.value.", ".attention.v_lin."),
        (".attention.output.dense.", ".attention.out_lin."),
        (".attention.output.LayerNorm.", ".sa_layer_norm."),
        (".intermediate.dense.", ".ffn.lin1."),
        (".output.dense.", ".ffn.lin2."),
        (".output.LayerNorm.", ".output_layer_norm."),
    ];
    PARTS.iter().fold(bert.to_owned(), |name, (from, to)| name.replace(from, to))
}
