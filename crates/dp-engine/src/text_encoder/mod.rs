//! Features of texts from a frozen BERT, computed once; what is trained on them is a head.

mod config;
mod folder;
mod weights;

use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};
use candle_nn::{Linear, Module, VarBuilder, linear};
use candle_transformers::models::bert::{BertModel, Config};
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use tokenizers::{Tokenizer, TruncationParams};

use self::config::EncoderConfig;
use crate::error::{EngineError, Result};
use crate::models::EncoderFamily;

/// Tokens of a text beyond these are cut off.
const MAX_TOKENS: usize = 512;

/// A BERT or DistilBERT with its tokenizer, whose parameters stay as they are.
///
/// **Shapes.** A text becomes [`n_features`](Self::n_features) numbers, those that the head of its
/// family takes ([`ModelConfig::FrozenEncoderHead`](crate::ModelConfig::FrozenEncoderHead)).
///
/// **Guarantee.** A text is encoded by itself, without padding. Its features depend on the files
/// and on the text, not on what is encoded beside it nor on the number of threads.
///
/// **Edge cases.** A text of more than 512 tokens, or of more than the encoder has positions, is
/// cut off there. An empty text has the features of the special tokens.
///
/// **Privacy.** What an encoder was trained on is not accounted for. If it was the records, no
/// guarantee of a head on its features holds.
///
/// **Source.** Devlin et al. 2019 (BERT), Sanh et al. 2019 (DistilBERT), computed by
/// candle-transformers; used as in Soleymani et al. 2025, A.1.
///
/// **Example**
/// ```no_run
/// use std::path::Path;
/// use dp_engine::TextEncoder;
///
/// let encoder = TextEncoder::load(Path::new("ClinicalBERT"))?;
/// let features = encoder.features(&["Service: MEDICINE", "Service: SURGERY"], || {})?;
/// assert_eq!(features.len(), 2 * encoder.n_features());
/// # Ok::<(), dp_engine::EngineError>(())
/// ```
pub struct TextEncoder {
    folder: PathBuf,
    digest: String,
    family: EncoderFamily,
    n_features: usize,
    tokenizer: Tokenizer,
    bert: BertModel,
    /// BERT's last layer, which reads the first token.
    pooler: Option<Linear>,
}

impl std::fmt::Debug for TextEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextEncoder")
            .field("folder", &self.folder)
            .field("family", &self.family)
            .field("n_features", &self.n_features)
            .finish_non_exhaustive()
    }
}

impl TextEncoder {
    /// Reads `config.json`, `tokenizer.json` and `model.safetensors`, as `save_pretrained` of
    /// Python's `transformers` writes them.
    ///
    /// Weights of half precision are computed with in single precision; parameters of heads are
    /// passed over.
    ///
    /// # Errors
    /// [`EngineError::Encoder`] naming the file that is missing or broken, or that does not fit
    /// `config.json`.
    pub fn load(folder: &Path) -> Result<Self> {
        let [config, vocabulary, parameters] = folder::read(folder)?;
        let refused = |name: &str| {
            let path = folder.join(name);
            move |problem: String| EngineError::Encoder { path, problem }
        };
        let EncoderConfig { family, bert: sizes } = config::parse(&config).map_err(refused(folder::CONFIG))?;
        let tokenizer = tokenizer(&vocabulary, &sizes).map_err(refused(folder::TOKENIZER))?;
        let (bert, pooler) = weights::parse(&parameters, family)
            .and_then(|variables| model(&variables, family, &sizes))
            .map_err(|error| refused(folder::WEIGHTS)(message(&error)))?;
        let digest = digest([&config, &vocabulary, &parameters]);
        Ok(Self { folder: folder.into(), digest, family, n_features: sizes.hidden_size, tokenizer, bert, pooler })
    }

    /// Whose head belongs on the features.
    pub fn family(&self) -> EncoderFamily {
        self.family
    }

    /// Features of a text.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// sha256 of the three files, hexadecimal: all that features depend on besides the texts.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Features of all texts: `[texts, n_features]`, row by row, as [`Records`](crate::Records)
    /// take them.
    ///
    /// Texts are shared among the threads of the current pool; `encoded` is called whenever one is
    /// done.
    ///
    /// # Errors
    /// [`EngineError::Encoder`] naming the text whose features are not finite, or that the tokenizer
    /// fails on.
    pub fn features<T: AsRef<str> + Sync>(&self, texts: &[T], encoded: impl Fn() + Sync) -> Result<Vec<f32>> {
        let row = |(index, text): (usize, &T)| {
            let of_text = |problem: &str| format!("text {index}: {problem}");
            let refused = |name: &str, problem| EngineError::Encoder { path: self.folder.join(name), problem };
            let tokens = self
                .tokenizer
                .encode_fast(text.as_ref(), true)
                .map_err(|error| refused(folder::TOKENIZER, of_text(&error.to_string())))?;
            let row = self.encode(tokens.get_ids())?;
            if row.iter().any(|value| !value.is_finite()) {
                return Err(refused(folder::WEIGHTS, of_text("features are not finite")));
            }
            encoded();
            Ok(row)
        };
        let rows: Vec<Vec<f32>> = texts.par_iter().enumerate().map(row).collect::<Result<_>>()?;
        Ok(rows.concat())
    }

    fn encode(&self, tokens: &[u32]) -> candle_core::Result<Vec<f32>> {
        let ids = Tensor::new(tokens, &Device::Cpu)?.unsqueeze(0)?;
        let hidden = self.bert.forward(&ids, &ids.zeros_like()?, None)?;
        let first = hidden.narrow(1, 0, 1)?.squeeze(1)?;
        let features = match &self.pooler {
            Some(pooler) => pooler.forward(&first)?.tanh()?,
            None => first,
        };
        features.squeeze(0)?.to_vec1()
    }
}

/// Without the trace that candle appends where RUST_BACKTRACE is set.
fn message(error: &candle_core::Error) -> String {
    match error {
        candle_core::Error::WithBacktrace { inner, .. } => message(inner),
        other => other.to_string(),
    }
}

/// Lengths keep the borders of files apart.
fn digest(files: [&[u8]; 3]) -> String {
    let mut hasher = Sha256::new();
    for bytes in files {
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    }
    hex::encode(hasher.finalize())
}

/// The file's tokenizer. What the file says of padding and truncation concerns the batches of its
/// author.
fn tokenizer(bytes: &[u8], sizes: &Config) -> Result<Tokenizer, String> {
    let mut tokenizer = Tokenizer::from_bytes(bytes).map_err(|error| error.to_string())?;
    let (n_tokens, n_ids) = (tokenizer.get_vocab_size(true), sizes.vocab_size);
    if n_tokens > n_ids {
        return Err(format!("{n_tokens} tokens: expected at most vocab_size = {n_ids} of {}", folder::CONFIG));
    }
    tokenizer.with_padding(None).with_truncation(None).map_err(|error| error.to_string())?;
    let n_special = tokenizer.encode_fast("", true).map_err(|error| error.to_string())?.len();
    if n_special == 0 {
        return Err(
            "no special tokens around a text: expected one at its beginning, whose features are taken".to_owned()
        );
    }
    let n_positions = sizes.max_position_embeddings;
    if n_special >= n_positions {
        return Err(format!("{n_special} special tokens: expected less than max_position_embeddings = {n_positions}"));
    }
    let truncation = TruncationParams { max_length: n_positions.min(MAX_TOKENS), ..TruncationParams::default() };
    tokenizer.with_truncation(Some(truncation)).map_err(|error| error.to_string())?;
    Ok(tokenizer)
}

/// The model, and the pooler where the family has one.
fn model(
    variables: &VarBuilder<'_>,
    family: EncoderFamily,
    sizes: &Config,
) -> candle_core::Result<(BertModel, Option<Linear>)> {
    let bert = BertModel::load(variables.clone(), sizes)?;
    let pooler = match family {
        EncoderFamily::Bert => Some(linear(sizes.hidden_size, sizes.hidden_size, variables.pp("pooler.dense"))?),
        EncoderFamily::Distilbert => None,
    };
    Ok((bert, pooler))
}
