//! The source of random bits.

use pyo3::prelude::*;
use rand::rngs::OsRng;
use rand::{SeedableRng, TryRngCore};
use rand_chacha::ChaCha20Rng;

use crate::errors::ClipError;

/// A cryptographic stream: keyed by the operating system, or, for experiments, by a number. Who
/// knows the number knows the noise.
pub(crate) struct Stream {
    rng: ChaCha20Rng,
    /// The process that a key of the operating system was drawn for; None with a seed.
    process: Option<u32>,
}

impl Stream {
    /// A stream of this process.
    pub(crate) fn new(seed: Option<u64>) -> PyResult<Self> {
        match seed {
            Some(seed) => Ok(Self { rng: ChaCha20Rng::seed_from_u64(seed), process: None }),
            None => Ok(Self { rng: keyed()?, process: Some(std::process::id()) }),
        }
    }

    /// The generator to draw from now. A process that was forked gets its own key first: with
    /// the parent's, both would add the same noise. A seeded stream stays as it is.
    pub(crate) fn rng(&mut self) -> PyResult<&mut ChaCha20Rng> {
        if self.process.is_some_and(|process| process != std::process::id()) {
            *self = Self::new(None)?;
        }
        Ok(&mut self.rng)
    }
}

/// A generator with a key from the operating system.
fn keyed() -> PyResult<ChaCha20Rng> {
    let mut key = [0; 32];
    OsRng
        .try_fill_bytes(&mut key)
        .map_err(|error| ClipError::new_err(format!("the operating system gives no random bits: {error}")))?;
    Ok(ChaCha20Rng::from_seed(key))
}
