//! Named, independent random streams.

use rand::rngs::OsRng;
use rand::{RngCore, SeedableRng, TryRngCore};
use rand_chacha::ChaCha20Rng;
use sha2::{Digest, Sha256};

use crate::error::{Result, TrainError};

/// What a stream is for. Each purpose has its own, so that, say, a method that draws more count
/// noise trains on the same batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Data sampling and splitting.
    Split,
    /// Initial parameters.
    Initialisation,
    /// Poisson batches.
    Sampling,
    /// Gradient noise.
    Noise,
    /// Noise of counts.
    Counts,
    /// Batches and probes of an analysis; no stream of a training run.
    Analysis,
    /// Dropout masks.
    Dropout,
    /// Noise of the releases before training: means, covariances, class counts.
    Conditioning,
}

/// The source of all randomness of a study: one 256-bit ChaCha20 key.
///
/// **Guarantee.** Streams of different purpose, run or variant are the same key's output under
/// different nonces, hence independent as far as ChaCha20 is a pseudo-random function.
/// [`Randomness::from_os`] is private; [`Randomness::from_seed`] is reproducible bit for bit on the
/// same processor type **and therefore not private**: whoever knows the seed can take the noise off
/// again.
///
/// **Example**
/// ```
/// use dp_train::{Purpose, Randomness};
/// use rand::RngCore;
/// let randomness = Randomness::from_seed(7);
/// let mut noise = randomness.stream(Purpose::Noise, 0, 0);
/// assert_eq!(noise.next_u64(), Randomness::from_seed(7).stream(Purpose::Noise, 0, 0).next_u64());
/// assert_eq!((randomness.seed(), Randomness::from_os()?.seed()), (Some(7), None));
/// # Ok::<(), dp_train::TrainError>(())
/// ```
#[derive(Clone)]
pub struct Randomness {
    key: [u8; 32],
    seed: Option<u64>,
}

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
        Ok(Self { key, seed: None })
    }

    /// A key that follows from a seed: for reproduction, never for a release.
    pub fn from_seed(seed: u64) -> Self {
        let mut key = [0; 32];
        ChaCha20Rng::seed_from_u64(seed).fill_bytes(&mut key);
        Self { key, seed: Some(seed) }
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
    pub fn stream(&self, purpose: Purpose, run: u32, variant: u16) -> ChaCha20Rng {
        let mut rng = ChaCha20Rng::from_seed(self.key);
        rng.set_stream((u64::from(run) << 32) | (u64::from(variant) << 8) | purpose as u64);
        rng
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
        Self { key: key.into(), seed: self.seed }
    }

    /// The streams a training run draws from.
    ///
    /// Variants of the same run share their initial parameters, nothing else: methods are compared
    /// from the same start, on independent batches and noise. No two runs that are released may
    /// share both numbers.
    pub fn streams(&self, run: u32, variant: u16) -> RandomStreams {
        RandomStreams {
            initialisation: self.stream(Purpose::Initialisation, run, 0),
            sampling: self.stream(Purpose::Sampling, run, variant),
            noise: self.stream(Purpose::Noise, run, variant),
            counts: self.stream(Purpose::Counts, run, variant),
            dropout: self.stream(Purpose::Dropout, run, variant),
        }
    }
}

/// The streams of one training run.
#[derive(Debug, Clone)]
pub struct RandomStreams {
    /// Initial parameters.
    pub initialisation: ChaCha20Rng,
    /// Poisson batches.
    pub sampling: ChaCha20Rng,
    /// Gradient noise.
    pub noise: ChaCha20Rng,
    /// Noise of counts.
    pub counts: ChaCha20Rng,
    /// Keys of dropout masks, one per step.
    pub dropout: ChaCha20Rng,
}

impl RandomStreams {
    /// Every stream with its name: what a checkpoint keeps.
    pub(crate) fn named(&self) -> [(&'static str, &ChaCha20Rng); 5] {
        let Self { initialisation, sampling, noise, counts, dropout } = self;
        [
            ("initialisation", initialisation),
            ("sampling", sampling),
            ("noise", noise),
            ("counts", counts),
            ("dropout", dropout),
        ]
    }

    /// Every stream with its name, to be restored.
    pub(crate) fn named_mut(&mut self) -> [(&'static str, &mut ChaCha20Rng); 5] {
        let Self { initialisation, sampling, noise, counts, dropout } = self;
        [
            ("initialisation", initialisation),
            ("sampling", sampling),
            ("noise", noise),
            ("counts", counts),
            ("dropout", dropout),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_replays_and_purposes_runs_and_variants_differ() {
        let first = |r: &Randomness, p, run, variant| r.stream(p, run, variant).next_u64();
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
        let first = |r: &Randomness| r.stream(Purpose::Noise, 0, 0).next_u64();
        let seven = Randomness::from_seed(7);
        assert_eq!(first(&seven.derived("a")), first(&Randomness::from_seed(7).derived("a")));
        let drawn = [first(&seven), first(&seven.derived("a")), first(&seven.derived("b"))];
        assert!(drawn[0] != drawn[1] && drawn[1] != drawn[2] && drawn[2] != drawn[0]);
        assert_ne!(first(&seven.derived("a")), first(&Randomness::from_seed(8).derived("a")));
        assert_eq!(seven.derived("a").seed(), Some(7));
    }

    #[test]
    fn the_operating_system_gives_a_new_key_each_time() {
        let draw = || Randomness::from_os().unwrap().stream(Purpose::Noise, 0, 0).next_u64();
        assert_ne!(draw(), draw());
        assert_eq!(Randomness::from_os().unwrap().seed(), None);
    }

    #[test]
    fn variants_share_initial_parameters_only() {
        let randomness = Randomness::from_seed(1);
        let (mut a, mut b) = (randomness.streams(0, 1), randomness.streams(0, 2));
        assert_eq!(a.initialisation.next_u64(), b.initialisation.next_u64());
        assert_ne!(a.sampling.next_u64(), b.sampling.next_u64());
        assert_ne!(a.noise.next_u64(), b.noise.next_u64());
    }
}
