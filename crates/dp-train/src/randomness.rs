//! Named, independent random streams.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use rand::rngs::OsRng;
use rand::{RngCore, SeedableRng, TryRngCore};
use rand_chacha::ChaCha20Rng;
use sha2::{Digest, Sha256};

use crate::error::{Result, TrainError};
use crate::purpose::Purpose;
use crate::random_stream::RandomStream;

/// The source of all randomness of a study: one 256-bit ChaCha20 key.
///
/// **Guarantee.** Streams of different purpose, run or variant are the same key's output under
/// different nonces, hence independent as far as ChaCha20 is a pseudo-random function.
/// [`Randomness::from_os`] is private; [`Randomness::from_seed`] is reproducible bit for bit on the
/// same processor type **and therefore not private**: whoever knows the seed can take the noise off
/// again.
///
/// A private source hands out each stream once, clones and [derived](Self::derived) sources
/// included: the same noise on two tables would cancel in their difference. Only
/// [`Purpose::Initialisation`] is handed out again, because initial parameters are public. To go on
/// with a run, restore its checkpoint, which holds its streams.
///
/// **Example**
/// ```
/// use dp_train::{Purpose, Randomness};
/// use rand::RngCore;
/// let randomness = Randomness::from_seed(7);
/// let mut noise = randomness.stream(Purpose::Noise, 0, 0)?;
/// assert_eq!(noise.next_u64(), Randomness::from_seed(7).stream(Purpose::Noise, 0, 0)?.next_u64());
///
/// let private = Randomness::from_os()?;
/// assert_eq!((randomness.seed(), private.seed()), (Some(7), None));
/// let first_run = private.streams(0, 0)?;
/// assert!(first_run.is_private());
/// assert!(private.streams(0, 0).is_err() && private.streams(1, 0).is_ok());
/// # Ok::<(), dp_train::TrainError>(())
/// ```
#[derive(Clone)]
pub struct Randomness {
    key: [u8; 32],
    seed: Option<u64>,
    /// Streams that a private source has handed out, by key and number: one list for the source, its
    /// clones and what derives from it.
    handed_out: Arc<Mutex<HashSet<StreamName>>>,
}

/// Without the key.
impl std::fmt::Debug for Randomness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Randomness").field("seed", &self.seed).finish_non_exhaustive()
    }
}

/// Key and number of a stream.
type StreamName = ([u8; 32], u64);

impl Randomness {
    /// A key from the operating system's entropy.
    ///
    /// # Errors
    /// [`TrainError::Mismatch`] if the operating system has none to give: there is no weaker source
    /// to fall back on.
    pub fn from_os() -> Result<Self> {
        let mut key = [0; 32];
        OsRng.try_fill_bytes(&mut key).map_err(|error| {
            TrainError::mismatch("random bytes from the operating system", key.len(), format!("an error: {error}"))
        })?;
        Ok(Self { key, seed: None, handed_out: Arc::default() })
    }

    /// A key that follows from a seed: for reproduction, never for a release.
    pub fn from_seed(seed: u64) -> Self {
        let mut key = [0; 32];
        ChaCha20Rng::seed_from_u64(seed).fill_bytes(&mut key);
        Self { key, seed: Some(seed), handed_out: Arc::default() }
    }

    /// The seed, if this is reproducible.
    pub fn seed(&self) -> Option<u64> {
        self.seed
    }

    /// Whether runs under it are private: not with a seed, which takes the noise off for whoever
    /// knows it.
    pub fn is_private(&self) -> bool {
        self.seed.is_none()
    }

    /// The stream of one purpose in run `run` of variant `variant` (a method, say).
    ///
    /// # Errors
    /// [`TrainError::StreamInUse`] if this source is private and has handed the stream out before.
    pub fn stream(&self, purpose: Purpose, run: u32, variant: u16) -> Result<RandomStream> {
        let number = (u64::from(run) << 32) | (u64::from(variant) << 8) | purpose as u64;
        if self.is_private() && purpose != Purpose::Initialisation {
            let mut handed_out = self.handed_out.lock().unwrap_or_else(PoisonError::into_inner);
            if !handed_out.insert((self.key, number)) {
                return Err(TrainError::StreamInUse { purpose, run, variant });
            }
        }
        let mut rng = ChaCha20Rng::from_seed(self.key);
        rng.set_stream(number);
        Ok(rng.into())
    }

    /// An independent source with a name: another key, which follows from this one and from nothing
    /// that is run beside it.
    ///
    /// **Guarantee.** The key is SHA-256 of this key and the digest of the name: sources of
    /// different names are independent as far as SHA-256 under a secret prefix of fixed length is a
    /// pseudo-random function, and none gives the key away from which it came.
    #[must_use]
    pub fn derived(&self, name: &str) -> Self {
        let key = Sha256::new().chain_update(self.key).chain_update(Sha256::digest(name)).finalize();
        Self { key: key.into(), seed: self.seed, handed_out: Arc::clone(&self.handed_out) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_replays_and_purposes_runs_and_variants_differ() {
        let first = |r: &Randomness, p, run, variant| r.stream(p, run, variant).unwrap().next_u64();
        let (a, b) = (Randomness::from_seed(7), Randomness::from_seed(7));
        let base = first(&a, Purpose::Noise, 3, 2);
        assert_eq!(base, first(&b, Purpose::Noise, 3, 2));
        assert_ne!(base, first(&a, Purpose::Counts, 3, 2));
        assert_ne!(base, first(&a, Purpose::Noise, 4, 2));
        assert_ne!(base, first(&a, Purpose::Noise, 3, 1));
        assert_ne!(base, first(&Randomness::from_seed(8), Purpose::Noise, 3, 2));
    }

    #[test]
    fn names_are_independent_and_replay() {
        let first = |r: &Randomness| r.stream(Purpose::Noise, 0, 0).unwrap().next_u64();
        let seven = Randomness::from_seed(7);
        assert_eq!(first(&seven.derived("a")), first(&Randomness::from_seed(7).derived("a")));
        let drawn = [first(&seven), first(&seven.derived("a")), first(&seven.derived("b"))];
        assert!(drawn[0] != drawn[1] && drawn[1] != drawn[2] && drawn[2] != drawn[0]);
        assert_ne!(first(&seven.derived("a")), first(&Randomness::from_seed(8).derived("a")));
        assert_eq!(seven.derived("a").seed(), Some(7));
    }

    #[test]
    fn the_operating_system_gives_a_new_key_each_time() {
        let draw = || Randomness::from_os().unwrap().stream(Purpose::Noise, 0, 0).unwrap().next_u64();
        assert_ne!(draw(), draw());
        assert_eq!(Randomness::from_os().unwrap().seed(), None);
    }

    #[test]
    fn variants_share_initial_parameters_only() {
        let randomness = Randomness::from_seed(1);
        let (mut a, mut b) = (randomness.streams(0, 1).unwrap(), randomness.streams(0, 2).unwrap());
        assert_eq!(a.initialisation.next_u64(), b.initialisation.next_u64());
        assert_ne!(a.sampling.next_u64(), b.sampling.next_u64());
        assert_ne!(a.noise.next_u64(), b.noise.next_u64());
    }
    #[test]
    fn a_private_source_hands_out_each_stream_once() {
        let source = Randomness::from_os().unwrap();
        source.streams(3, 1).unwrap();
        // By itself, in a clone, and one by one: the same noise is not had again.
        insta::assert_snapshot!(source.streams(3, 1).unwrap_err(), @"random stream of Sampling, run 3, variant 1: it is in use already; two releases with the same noise cancel it, so take another run or variant, or restore the checkpoint of the run that has it");
        insta::assert_snapshot!(source.clone().stream(Purpose::Noise, 3, 1).unwrap_err(), @"random stream of Noise, run 3, variant 1: it is in use already; two releases with the same noise cancel it, so take another run or variant, or restore the checkpoint of the run that has it");
        // A derived source is the same whenever it is derived.
        let derived = source.derived("a");
        derived.streams(3, 1).unwrap();
        source.derived("a").streams(3, 1).unwrap_err();
        // Others are others, and initial parameters are public.
        source.streams(3, 2).unwrap();
        source.streams(4, 1).unwrap();
        source.derived("b").streams(3, 1).unwrap();
        for _ in 0..2 {
            source.stream(Purpose::Initialisation, 3, 0).unwrap();
        }
        // A seeded one replays.
        let seeded = Randomness::from_seed(1);
        assert!(seeded.streams(0, 0).is_ok() && seeded.streams(0, 0).is_ok());
    }
}
