//! Tiny random encoders, written to a folder as `transformers` writes real ones.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use safetensors::tensor::{Dtype, TensorView, serialize};

pub(super) const HIDDEN: usize = 16;
pub(super) const INNER: usize = 32;
pub(super) const LAYERS: usize = 2;
pub(super) const HEADS: usize = 4;
/// Two of them for the special tokens.
pub(super) const POSITIONS: usize = 10;
/// `[PAD] [UNK] [CLS] [SEP]`, three pieces, and every letter as the beginning and as the rest of a
/// word.
pub(super) const VOCABULARY: usize = 4 + 3 + 26 + 26;

/// Puts `[CLS]` before a text and `[SEP]` behind it.
pub(super) const SPECIAL_TOKENS: &str = r#"{"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}"#;

/// Parameters by their names in a BERT, with their shapes.
pub(super) type Parameters = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

/// A layer's modules: name in a BERT, name in a DistilBERT, shape of the weight.
const MODULES: [(&str, &str, &[usize]); 8] = [
    ("attention.self.query", "attention.q_lin", &[HIDDEN, HIDDEN]),
    ("attention.self.key", "attention.k_lin", &[HIDDEN, HIDDEN]),
    ("attention.self.value", "attention.v_lin", &[HIDDEN, HIDDEN]),
    ("attention.output.dense", "attention.out_lin", &[HIDDEN, HIDDEN]),
    ("attention.output.LayerNorm", "sa_layer_norm", &[HIDDEN]),
    ("intermediate.dense", "ffn.lin1", &[INNER, HIDDEN]),
    ("output.dense", "ffn.lin2", &[HIDDEN, INNER]),
    ("output.LayerNorm", "output_layer_norm", &[HIDDEN]),
];

/// Which architecture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Bert,
    Distilbert,
}

/// An encoder that is about to be written.
pub(super) struct Tiny {
    pub(super) kind: Kind,
    pub(super) parameters: Parameters,
    pub(super) config: String,
    pub(super) tokenizer: String,
}

impl Tiny {
    /// Its parameters follow from the seed.
    pub(super) fn new(kind: Kind, seed: u64) -> Self {
        Self { kind, parameters: parameters(kind, seed), config: config(kind), tokenizer: tokenizer() }
    }

    pub(super) fn write(&self, folder: &Path) {
        self.write_as(folder, |name| match self.kind {
            Kind::Bert => name.to_owned(),
            Kind::Distilbert => distilbert_name(name),
        });
    }

    /// The same with the parameters under other names.
    pub(super) fn write_as(&self, folder: &Path, name: impl Fn(&str) -> String) {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("config.json"), &self.config).unwrap();
        fs::write(folder.join("tokenizer.json"), &self.tokenizer).unwrap();
        let bytes: Vec<(String, &[usize], Vec<u8>)> = self
            .parameters
            .iter()
            .map(|(bert, (shape, values))| {
                (name(bert), &shape[..], values.iter().flat_map(|value| value.to_le_bytes()).collect())
            })
            .collect();
        let views = bytes
            .iter()
            .map(|(name, shape, bytes)| (name, TensorView::new(Dtype::F32, shape.to_vec(), bytes).unwrap()));
        fs::write(folder.join("model.safetensors"), serialize(views, None).unwrap()).unwrap();
    }
}

/// What a DistilBERT calls a parameter.
pub(super) fn distilbert_name(bert: &str) -> String {
    let Some((layer, module, parameter)) = parts(bert) else { return bert.to_owned() };
    let of_module = MODULES.iter().find(|(name, ..)| *name == module).unwrap();
    format!("transformer.layer.{layer}.{}.{parameter}", of_module.1)
}

/// Number of the layer, module, `weight` or `bias`.
fn parts(bert: &str) -> Option<(&str, &str, &str)> {
    let (layer, rest) = bert.strip_prefix("encoder.layer.")?.split_once('.')?;
    let (module, parameter) = rest.rsplit_once('.')?;
    Some((layer, module, parameter))
}

fn parameters(kind: Kind, seed: u64) -> Parameters {
    let mut parameters = Parameters::new();
    let mut state = seed;
    let mut add = |name: String, shape: &[usize]| {
        // Around 1 for the scale of a normalisation, else around 0.
        let centre = if name.ends_with("LayerNorm.weight") { 1.0 } else { 0.0 };
        let values = (0..shape.iter().product()).map(|_| centre + 0.4 * uniform(&mut state)).collect();
        parameters.insert(name, (shape.to_vec(), values));
    };
    add("embeddings.word_embeddings.weight".into(), &[VOCABULARY, HIDDEN]);
    add("embeddings.position_embeddings.weight".into(), &[POSITIONS, HIDDEN]);
    if kind == Kind::Bert {
        add("embeddings.token_type_embeddings.weight".into(), &[2, HIDDEN]);
        add("pooler.dense.weight".into(), &[HIDDEN, HIDDEN]);
        add("pooler.dense.bias".into(), &[HIDDEN]);
    }
    add("embeddings.LayerNorm.weight".into(), &[HIDDEN]);
    add("embeddings.LayerNorm.bias".into(), &[HIDDEN]);
    for layer in 0..LAYERS {
        for (module, _, shape) in MODULES {
            add(format!("encoder.layer.{layer}.{module}.weight"), shape);
            add(format!("encoder.layer.{layer}.{module}.bias"), &shape[..1]);
        }
    }
    parameters
}

/// From -1 to 1: SplitMix64.
fn uniform(state: &mut u64) -> f32 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 40) as f32 / (1_u32 << 23) as f32 - 1.0
}

fn config(kind: Kind) -> String {
    match kind {
        Kind::Bert => format!(
            r#"{{"architectures": ["BertModel"], "model_type": "bert", "vocab_size": {VOCABULARY}, "hidden_size": {HIDDEN},
  "num_hidden_layers": {LAYERS}, "num_attention_heads": {HEADS}, "intermediate_size": {INNER}, "hidden_act": "gelu",
  "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "max_position_embeddings": {POSITIONS},
  "type_vocab_size": 2, "initializer_range": 0.02, "layer_norm_eps": 1e-12, "pad_token_id": 0}}"#
        ),
        Kind::Distilbert => format!(
            r#"{{"architectures": ["DistilBertModel"], "model_type": "distilbert", "vocab_size": {VOCABULARY}, "dim": {HIDDEN},
  "n_layers": {LAYERS}, "n_heads": {HEADS}, "hidden_dim": {INNER}, "activation": "gelu", "dropout": 0.1,
  "max_position_embeddings": {POSITIONS}, "pad_token_id": 0, "seq_classif_dropout": 0.2, "sinusoidal_pos_embds": false}}"#
        ),
    }
}

/// WordPiece in lower case.
fn tokenizer() -> String {
    let special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"].map(str::to_owned);
    let pieces = ["fever", "cough", "##ing"].map(str::to_owned);
    let words = special.iter().cloned().chain(pieces);
    let words = words.chain(('a'..='z').map(String::from)).chain(('a'..='z').map(|letter| format!("##{letter}")));
    let vocabulary: Vec<String> = words.enumerate().map(|(id, word)| format!(r#""{word}": {id}"#)).collect();
    let added: Vec<String> = special
        .iter()
        .enumerate()
        .map(|(id, word)| {
            format!(
                r#"{{"id": {id}, "content": "{word}", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}}"#
            )
        })
        .collect();
    format!(
        r###"{{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [{added}],
  "normalizer": {{"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true}},
  "pre_tokenizer": {{"type": "BertPreTokenizer"}},
  "post_processor": {SPECIAL_TOKENS},
  "decoder": null,
  "model": {{"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
    "vocab": {{{vocabulary}}}}}}}"###,
        added = added.join(", "),
        vocabulary = vocabulary.join(", ")
    )
}
