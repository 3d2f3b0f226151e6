//! Files made from one input.

use sha2::{Digest, Sha256};

/// Between two files of an input.
const SEPARATOR: &[u8] = b"\n====\n";

/// The files of an input; absent ones are empty. The last has what is left.
pub fn files<const N: usize>(mut input: &[u8]) -> [&[u8]; N] {
    std::array::from_fn(|place| {
        let end = input.windows(SEPARATOR.len()).position(|window| window == SEPARATOR);
        let end = end.filter(|_| place + 1 < N).unwrap_or(input.len());
        let (file, rest) = input.split_at(end);
        input = rest.get(SEPARATOR.len()..).unwrap_or_default();
        file
    })
}

/// A document with the digest that it would have, had the program written it: what comes after the
/// digest is reached too. The document ends where its seal begins, if it has one.
pub fn sealed(document: &[u8]) -> Vec<u8> {
    const SEAL: &[u8] = b",\n  \"seal\": \"";
    let end = document.windows(SEAL.len()).rposition(|window| window == SEAL).unwrap_or(document.len());
    let body = &document[..end];
    [body, SEAL, hex::encode(Sha256::digest(body)).as_bytes(), b"\"\n}\n"].concat()
}
