//! The one secret of a run: every random number follows from it, its purpose and its step.

use dp_data::table::EncodedTable;
use rand::rngs::OsRng;
use rand::{RngCore, SeedableRng, TryRngCore};
use rand_chacha::ChaCha20Rng;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{FairdpError, Result};
use crate::solver::Streams;

/// 256 bits from the operating system, or from a seed: with a seed a run can be repeated, and its
/// noise taken off.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Key {
    bits: String,
    pub(crate) seed: Option<u64>,
}

impl Key {
    pub(crate) fn new(seed: Option<u64>) -> Result<Self> {
        let mut bits = [0; 32];
        match seed {
            Some(seed) => ChaCha20Rng::seed_from_u64(seed).fill_bytes(&mut bits),
            None => OsRng.try_fill_bytes(&mut bits).map_err(|error| {
                FairdpError::Refused(format!("the operating system has no random numbers: {error}"))
            })?,
        }
        Ok(Self { bits: hex::encode(bits), seed })
    }

    fn digest(&self, purpose: &str, number: u64) -> [u8; 32] {
        let digest = Sha256::new()
            .chain_update(self.bits.as_bytes())
            .chain_update(Sha256::digest(purpose))
            .chain_update(number.to_le_bytes());
        digest.finalize().into()
    }

    /// A number that follows from the key and from nothing that is secret of the records but
    /// `number`.
    pub(crate) fn hash(&self, purpose: &str, number: u64) -> u64 {
        let digest = self.digest(purpose, number);
        u64::from_le_bytes(std::array::from_fn(|i| digest[i]))
    }

    /// An independent key with a name: of one trial, say.
    pub(crate) fn derived(&self, purpose: &str, number: u64) -> Self {
        Self { bits: hex::encode(self.digest(purpose, number)), seed: self.seed }
    }

    /// A name for the run that tells nothing of the key.
    pub(crate) fn name(&self) -> String {
        hex::encode(self.digest("name", 0))
    }

    /// A name for a table that tells nothing of it without the key.
    pub(crate) fn name_of(&self, table: &EncodedTable) -> String {
        let digest = Sha256::new().chain_update(self.digest("table", 0)).chain_update(table.digest());
        hex::encode(digest.finalize())
    }
}

impl Streams for Key {
    fn stream(&self, purpose: &str, step: u64) -> ChaCha20Rng {
        ChaCha20Rng::from_seed(self.digest(purpose, step))
    }
}
