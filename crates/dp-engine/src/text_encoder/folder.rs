//! The files of an encoder.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use crate::error::{EngineError, Result};

pub(super) const CONFIG: &str = "config.json";
pub(super) const TOKENIZER: &str = "tokenizer.json";
pub(super) const WEIGHTS: &str = "model.safetensors";

/// Reads the files above, in this order.
pub(super) fn read(folder: &Path) -> Result<[Vec<u8>; 3]> {
    let file = |name: &str| {
        let path = folder.join(name);
        fs::read(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => EngineError::Encoder { path, problem: missing() },
            _ => EngineError::io("read", &path, error),
        })
    };
    Ok([file(CONFIG)?, file(TOKENIZER)?, file(WEIGHTS)?])
}

fn missing() -> String {
    format!(
        "no such file; an encoder is a folder with {CONFIG}, {TOKENIZER} and {WEIGHTS}. Python's `transformers` writes them: \
         `AutoTokenizer.from_pretrained(NAME).save_pretrained(DIR)`, `AutoModel.from_pretrained(NAME).save_pretrained(DIR)`"
    )
}
