//! The secret key of a run, and the binding of its noise to the data.
//!
//! **The rule: no key makes noise before it is bound to the records.** The same noise on two tables
//! would cancel: the difference of the two releases would be the difference of the records. So
//!
//! - a [`DrawnKey`] divides records into parts and draws batches, by their numbers and units alone.
//!   It makes no noise, and is in no file;
//! - [`DrawnKey::bind`] makes a [`NoiseKey`] of it and of a [`Bound`]: a digest of all rows as they
//!   were read, and of the configuration. Two tables, or two configurations, have unlike noise
//!   whatever is copied, killed or continued;
//! - the key is written with what it is bound to, in one act, before the first draw
//!   ([`Checkpoints::bind`](crate::fit::Checkpoints::bind)).
//!
//! A run with a seed is not private. Its noise follows from the seed alone, so that releases of two
//! tables can be compared.

use std::sync::Arc;

use dp_audit::one_run::Attack;
use dp_linear::{ExactSum, Streams};
use dp_table::RowsDigest;
use rand::rngs::OsRng;
use rand::{RngCore, SeedableRng, TryRngCore};
use rand_chacha::ChaCha20Rng;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{FairdpError, Result};

/// 256 bits from the operating system, or from a seed: with a seed a run can be repeated, and its
/// noise taken off.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DrawnKey {
    bits: String,
    pub(crate) seed: Option<u64>,
}

impl DrawnKey {
    pub(crate) fn new(seed: Option<u64>) -> Result<Self> {
        #[cfg(test)]
        if let Some(key) = crate::hook::COPIED_KEY.with_borrow(Clone::clone) {
            return Ok(key);
        }
        let mut bits = [0; 32];
        match seed {
            Some(seed) => ChaCha20Rng::seed_from_u64(seed).fill_bytes(&mut bits),
            None => OsRng.try_fill_bytes(&mut bits).map_err(|error| FairdpError::system("random numbers", error))?,
        }
        Ok(Self { bits: hex::encode(bits), seed })
    }

    /// A number that follows from the key, the purpose and `number` alone.
    pub(crate) fn hash(&self, purpose: &str, number: u64) -> u64 {
        let digest = digest(&self.bits, purpose, number);
        u64::from_le_bytes(std::array::from_fn(|i| digest[i]))
    }

    /// A name for the run that reveals nothing of the key.
    pub(crate) fn name(&self) -> String {
        hex::encode(digest(&self.bits, "name", 0))
    }

    /// A name for the bound data. Without the key it reveals nothing of them.
    pub(crate) fn name_of(&self, bound: &NoiseBinding) -> String {
        let digest = Sha256::new().chain_update(digest(&self.bits, "table", 0)).chain_update(bound.0);
        hex::encode(digest.finalize())
    }

    /// The key of the noise on these records.
    pub(crate) fn bind(&self, bound: &NoiseBinding) -> NoiseKey {
        let bits = match self.seed {
            Some(_) => self.bits.clone(),
            #[cfg(test)]
            None if crate::hook::KEY_BEFORE_DIGEST.get() => self.bits.clone(),
            None => {
                let digest = Sha256::new().chain_update(digest(&self.bits, "noise", 0)).chain_update(bound.0);
                hex::encode(digest.finalize())
            }
        };
        NoiseKey { drawn: self.clone(), bits, bound_to: self.name_of(bound), watch: None }
    }
}

/// A digest of the data that noise is bound to: the rows of the training table and of the test
/// table, and the configuration. As private as the rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoiseBinding([u8; 32]);

impl NoiseBinding {
    /// `test` is the digest of a separate test table.
    pub(crate) fn new(training: RowsDigest, test: Option<RowsDigest>, config: &str) -> Self {
        let mut digest = Sha256::new().chain_update(training.bytes());
        digest.update([u8::from(test.is_some())]);
        digest.update(test.unwrap_or_default().bytes());
        digest.update(Sha256::digest(config));
        Self(digest.finalize().into())
    }
}

/// The key of a run's noise: every stream is a function of it, of a purpose and of a step.
#[derive(Clone)]
pub(crate) struct NoiseKey {
    drawn: DrawnKey,
    bits: String,
    bound_to: String,
    /// Only in an audit, whose run releases nothing.
    watch: Option<Arc<dyn Watch>>,
}

/// An audit's eyes on the sums of a run.
pub(crate) trait Watch: Send + Sync {
    /// The sum of this purpose and step with its noise.
    fn release(&self, purpose: &str, step: u64, sum: ExactSum, rng: &mut ChaCha20Rng) -> Vec<f64>;

    /// The attack on the steps of a method by name.
    fn attack(&self) -> Option<&Arc<Attack>> {
        None
    }
}

impl NoiseKey {
    /// A stream for draws other than noise: batches, initial weights, trials. It does not depend on
    /// the records.
    pub(crate) fn draws(&self, purpose: &str, step: u64) -> ChaCha20Rng {
        ChaCha20Rng::from_seed(digest(&self.drawn.bits, purpose, step))
    }

    /// An independent key: of one trial, say.
    pub(crate) fn derived(&self, purpose: &str, number: u64) -> Self {
        let derived = |bits: &str| hex::encode(digest(bits, purpose, number));
        let drawn = DrawnKey { bits: derived(&self.drawn.bits), seed: self.drawn.seed };
        Self { drawn, bits: derived(&self.bits), bound_to: self.bound_to.clone(), watch: self.watch.clone() }
    }

    /// The same key in an audit's run.
    pub(crate) fn watched(&self, watch: Arc<dyn Watch>) -> Self {
        Self { watch: Some(watch), ..self.clone() }
    }

    /// The attack on the steps of a method by name, in an audit's run.
    pub(crate) fn attack(&self) -> Option<&Arc<Attack>> {
        self.watch.as_ref()?.attack()
    }

    /// The key that divided the records.
    pub(crate) fn drawn(&self) -> &DrawnKey {
        &self.drawn
    }

    /// The name of the data that it is bound to.
    pub(crate) fn bound_to(&self) -> &str {
        &self.bound_to
    }
}

impl Streams for NoiseKey {
    fn stream(&self, purpose: &str, step: u64) -> ChaCha20Rng {
        ChaCha20Rng::from_seed(digest(&self.bits, purpose, step))
    }

    fn release(&self, purpose: &str, step: u64, sum: ExactSum) -> Vec<f64> {
        let mut rng = self.stream(purpose, step);
        match &self.watch {
            Some(watch) => watch.release(purpose, step, sum, &mut rng),
            None => sum.release(&mut rng),
        }
    }
}

fn digest(bits: &str, purpose: &str, number: u64) -> [u8; 32] {
    let digest = Sha256::new()
        .chain_update(bits.as_bytes())
        .chain_update(Sha256::digest(purpose))
        .chain_update(number.to_le_bytes());
    digest.finalize().into()
}
