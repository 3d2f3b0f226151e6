//! Where random bits come from.

use pyo3::prelude::*;
use rand::rngs::OsRng;
use rand::{SeedableRng, TryRngCore};
use rand_chacha::ChaCha20Rng;

use crate::errors::ClipError;

/// A cryptographic stream: keyed by the operating system, or, for experiments, by a number. Who
/// knows the number knows the noise.
pub(crate) fn stream(seed: Option<u64>) -> PyResult<ChaCha20Rng> {
    if let Some(seed) = seed {
        return Ok(ChaCha20Rng::seed_from_u64(seed));
    }
    let mut key = [0; 32];
    OsRng
        .try_fill_bytes(&mut key)
        .map_err(|error| ClipError::new_err(format!("the operating system gives no random bits: {error}")))?;
    Ok(ChaCha20Rng::from_seed(key))
}
