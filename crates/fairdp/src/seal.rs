//! JSON documents whose last entry is a digest of everything before it: any changed byte shows.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::error::{FairdpError, Result};

const SEAL: &str = ",\n  \"seal\": \"";
const END: &str = "\"\n}\n";

pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// The text of an object, sealed. Its first line is `{ "first key": value,`.
pub(crate) fn sealed(document: &impl Serialize) -> Result<String> {
    let text = serde_json::to_string_pretty(document).map_err(FairdpError::json("a document cannot be written"))?;
    let body = text.strip_suffix("\n}").unwrap_or(&text).replacen("{\n  ", "{ ", 1);
    let digest = sha256(body.as_bytes());
    Ok(format!("{body}{SEAL}{digest}{END}"))
}

/// Reads a sealed document.
pub(crate) fn unsealed<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T> {
    let broken = |problem: &str| FairdpError::file(path, problem);
    let (body, rest) = text.rsplit_once(SEAL).ok_or_else(|| broken("has no seal at its end"))?;
    let digest = rest.strip_suffix(END).ok_or_else(|| broken("does not end with its seal"))?;
    if digest != sha256(body.as_bytes()) {
        return Err(broken("was changed: it does not have the digest of its seal"));
    }
    serde_json::from_str(&format!("{body}\n}}")).map_err(|error| FairdpError::file(path, error))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn any_changed_byte_shows() {
        let path = Path::new("x.json");
        let document = BTreeMap::from([("a".to_owned(), 1.5), ("b".to_owned(), 2.0)]);
        let text = sealed(&document).unwrap();
        assert!(text.starts_with("{ \"a\": 1.5,\n"));
        assert_eq!(unsealed::<BTreeMap<String, f64>>(path, &text).unwrap(), document);
        for place in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[place] ^= 1;
            let changed = String::from_utf8(bytes).unwrap();
            assert!(unsealed::<BTreeMap<String, f64>>(path, &changed).is_err(), "{changed}");
        }
    }
}
