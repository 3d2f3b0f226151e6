//! Tiny random encoders against a plain computation of the same, and what their features must not
//! depend on.
use std::fs;
use std::path::Path;

use dp_train::{EncoderFamily, TextEncoder};
use tempfile::TempDir;

use super::reference;
use super::tiny::{self, HIDDEN, Kind, Tiny, VOCABULARY};

fn load(tiny: &Tiny) -> (TempDir, TextEncoder) {
    let folder = tempfile::tempdir().unwrap();
    tiny.write(folder.path());
    let encoder = TextEncoder::load(folder.path()).unwrap();
    (folder, encoder)
}

fn features(encoder: &TextEncoder, texts: &[&str]) -> Vec<f32> {
    encoder.features(texts, || {}).unwrap()
}

/// Texts with their tokens, found by hand in the vocabulary: 4 to 6 are the pieces, 7 to 32 `a` to
/// `z`, 33 to 58 `##a` to `##z`.
const TEXTS: [(&str, &[usize]); 5] = [
    ("", &[2, 3]),
    ("fever", &[2, 4, 3]),
    ("Coughing, FEVER", &[2, 5, 6, 1, 4, 3]),
    ("xyz b", &[2, 30, 57, 58, 8, 3]),
    // Eight pieces beside the special tokens, and two that are cut off.
    ("a b c d e f g h fever cough", &[2, 7, 8, 9, 10, 11, 12, 13, 14, 3]),
];

#[test]
fn features_are_those_of_the_plain_computation() {
    for (kind, family) in [(Kind::Bert, EncoderFamily::Bert), (Kind::Distilbert, EncoderFamily::Distilbert)] {
        let tiny = Tiny::new(kind, 1);
        let (_folder, encoder) = load(&tiny);
        assert_eq!((encoder.family(), encoder.n_features()), (family, HIDDEN));
        let ours = features(&encoder, &TEXTS.map(|(text, _)| text));
        let theirs: Vec<f64> = TEXTS.iter().flat_map(|(_, tokens)| reference::features(&tiny, tokens)).collect();
        assert_eq!(ours.len(), theirs.len());
        let worst = ours.iter().zip(&theirs).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
        assert!(worst < 1e-5, "{kind:?}: {worst}");
        // The comparison would mean little if all features were alike.
        assert!(theirs.iter().any(|x| *x > 0.3) && theirs.iter().any(|x| *x < -0.3), "{kind:?}");
    }
}

#[test]
fn a_text_is_cut_off_at_the_positions_of_the_encoder() {
    let (_folder, encoder) = load(&Tiny::new(Kind::Distilbert, 2));
    let of = |text| features(&encoder, &[text]);
    assert_eq!(of("a b c d e f g h i"), of("a b c d e f g h z"));
    assert_ne!(of("a b c d e f g h"), of("a b c d e f g z"));
}

#[test]
fn features_do_not_depend_on_company_threads_or_the_file_s_padding() {
    let mut tiny = Tiny::new(Kind::Bert, 3);
    let (_folder, encoder) = load(&tiny);
    let texts = TEXTS.map(|(text, _)| text);
    let alone: Vec<f32> = texts.iter().flat_map(|text| features(&encoder, &[text])).collect();
    for n_threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        assert_eq!(pool.install(|| features(&encoder, &texts)), alone, "{n_threads} threads");
    }
    tiny.tokenizer = tiny.tokenizer.replace(
        r#""truncation": null, "padding": null"#,
        r#""truncation": {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0},
           "padding": {"strategy": {"Fixed": 10}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0,
             "pad_type_id": 0, "pad_token": "[PAD]"}"#,
    );
    let (_folder, padding) = load(&tiny);
    assert_ne!(padding.digest(), encoder.digest());
    assert_eq!(features(&padding, &texts), alone);
}

/// A model with a head has its encoder in a module; files converted from TensorFlow have other
/// names for normalisations.
#[test]
fn names_of_a_model_with_a_head_are_understood() {
    let texts = TEXTS.map(|(text, _)| text);
    for kind in [Kind::Bert, Kind::Distilbert] {
        let mut tiny = Tiny::new(kind, 4);
        let (_folder, encoder) = load(&tiny);
        tiny.parameters.insert("classifier.weight".into(), (vec![2, HIDDEN], vec![0.0; 2 * HIDDEN]));
        let folder = tempfile::tempdir().unwrap();
        tiny.write_as(folder.path(), |name| match (kind, name) {
            (_, "classifier.weight") => name.to_owned(),
            (Kind::Distilbert, _) => format!("distilbert.{}", tiny::distilbert_name(name)),
            (Kind::Bert, _) => {
                let name =
                    name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta");
                format!("bert.{name}")
            }
        });
        let with_head = TextEncoder::load(folder.path()).unwrap();
        assert_eq!(features(&with_head, &texts), features(&encoder, &texts));
    }
}

#[test]
fn the_digest_is_of_all_three_files() {
    let digest = |tiny: &Tiny| load(tiny).1.digest().to_owned();
    let mut digests = vec![digest(&Tiny::new(Kind::Bert, 5))];
    assert_eq!(digests[0], digest(&Tiny::new(Kind::Bert, 5)));
    digests.push(digest(&Tiny::new(Kind::Bert, 6)));
    let change = |change: fn(&mut Tiny)| {
        let mut tiny = Tiny::new(Kind::Bert, 5);
        change(&mut tiny);
        digest(&tiny)
    };
    digests.push(change(|tiny| tiny.config.push('\n')));
    digests.push(change(|tiny| tiny.tokenizer.push('\n')));
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), 4);
}

/// What loading a folder says after these changes to the encoder and to its files; the folder's
/// path is left out.
fn refused(kind: Kind, change: impl FnOnce(&mut Tiny), damage: impl FnOnce(&Path)) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut tiny = Tiny::new(kind, 7);
    change(&mut tiny);
    tiny.write(folder.path());
    damage(folder.path());
    let error = TextEncoder::load(folder.path()).err().unwrap();
    error.to_string().replace(&folder.path().display().to_string(), "DIR")
}

#[test]
fn missing_and_broken_files_are_named() {
    let without = |name: &str| refused(Kind::Bert, |_| {}, |folder| fs::remove_file(folder.join(name)).unwrap());
    insta::assert_snapshot!(without("config.json"), @"DIR/config.json: no such file; an encoder is a folder with config.json, tokenizer.json and model.safetensors. Python's `transformers` writes them: `AutoTokenizer.from_pretrained(NAME).save_pretrained(DIR)`, `AutoModel.from_pretrained(NAME).save_pretrained(DIR)`");
    assert!(without("tokenizer.json").starts_with("DIR/tokenizer.json: no such file; "));
    assert!(without("model.safetensors").starts_with("DIR/model.safetensors: no such file; "));
    let broken = |name: &str| refused(Kind::Bert, |_| {}, |folder| fs::write(folder.join(name), "{").unwrap());
    insta::assert_snapshot!(broken("config.json"), @"DIR/config.json: EOF while parsing an object at line 1 column 1");
    insta::assert_snapshot!(broken("tokenizer.json"), @"DIR/tokenizer.json: EOF while parsing an object at line 1 column 1");
    insta::assert_snapshot!(broken("model.safetensors"), @"DIR/model.safetensors: header too small");
}

#[test]
fn other_encoders_and_sizes_are_refused() {
    let config = |kind, from: &str, to: &str| refused(kind, |tiny| tiny.config = tiny.config.replace(from, to), |_| {});
    insta::assert_snapshot!(config(Kind::Bert, r#""model_type": "bert""#, r#""model_type": "roberta""#), @"DIR/config.json: unknown variant `roberta`, expected `bert` or `distilbert` at line 1 column 56");
    insta::assert_snapshot!(config(Kind::Bert, r#""model_type": "bert","#, ""), @"DIR/config.json: missing field `model_type` at line 4 column 94");
    insta::assert_snapshot!(config(Kind::Bert, "gelu", "swish"), @"DIR/config.json: unknown variant `swish`, expected one of `gelu`, `geluapproximate`, `relu`");
    insta::assert_snapshot!(config(Kind::Bert, r#""num_attention_heads": 4"#, r#""num_attention_heads": 3"#), @"DIR/config.json: num_attention_heads = 3: expected a divisor of hidden_size = 16");
    insta::assert_snapshot!(config(Kind::Distilbert, r#""n_heads": 4"#, r#""n_heads": 0"#), @"DIR/config.json: n_heads = 0: expected a divisor of dim = 16");
    insta::assert_snapshot!(config(Kind::Distilbert, r#""dim": 16,"#, ""), @"DIR/config.json: missing field `dim`");
    insta::assert_snapshot!(config(Kind::Bert, &format!(r#""vocab_size": {VOCABULARY}"#), r#""vocab_size": 50"#), @"DIR/tokenizer.json: 59 tokens: expected at most vocab_size = 50 of config.json");
    insta::assert_snapshot!(config(Kind::Bert, r#""max_position_embeddings": 10"#, r#""max_position_embeddings": 2"#), @"DIR/tokenizer.json: 2 special tokens: expected less than max_position_embeddings = 2");
    insta::assert_snapshot!(config(Kind::Bert, r#""hidden_size": 16"#, r#""hidden_size": 32"#), @"DIR/model.safetensors: shape mismatch for embeddings.word_embeddings.weight, expected: [59, 32], got: [59, 16]");
}

#[test]
fn files_that_do_not_fit_are_refused() {
    let changed = |kind, change: fn(&mut Tiny)| refused(kind, change, |_| {});
    insta::assert_snapshot!(
        changed(Kind::Bert, |tiny| tiny.tokenizer = tiny.tokenizer.replace(tiny::SPECIAL_TOKENS, "null")),
        @"DIR/tokenizer.json: no special tokens around a text: expected one at its beginning, whose features are taken"
    );
    insta::assert_snapshot!(
        changed(Kind::Bert, |tiny| drop(tiny.parameters.remove("pooler.dense.weight"))),
        @"DIR/model.safetensors: cannot find tensor pooler.dense.weight"
    );
    insta::assert_snapshot!(
        changed(Kind::Distilbert, |tiny| drop(tiny.parameters.remove("encoder.layer.1.output.dense.bias"))),
        @"DIR/model.safetensors: cannot find tensor transformer.layer.1.ffn.lin2.bias"
    );
}

#[test]
fn features_that_are_not_finite_are_refused() {
    let mut tiny = Tiny::new(Kind::Bert, 8);
    // The embedding of `z`.
    tiny.parameters.get_mut("embeddings.word_embeddings.weight").unwrap().1[32 * HIDDEN] = f32::NAN;
    let (_folder, encoder) = load(&tiny);
    let error = encoder.features(&["a", "z"], || {}).unwrap_err().to_string();
    assert!(error.ends_with("model.safetensors: text 1: features are not finite"), "{error}");
    assert!(encoder.features(&["a", "b"], || {}).is_ok());
}
