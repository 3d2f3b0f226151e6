//! A random stream.

use rand::{CryptoRng, RngCore};
use rand_chacha::ChaCha20Rng;

/// A stream of random numbers: ChaCha20 under a key and a nonce.
///
/// It cannot be cloned, because two releases with the same noise cancel it, and does not print its
/// key. [`Randomness::stream`](crate::Randomness::stream) hands out streams; a program that derives
/// keys by a rule of its own makes them of generators (`From`).
///
/// **Example**
/// ```
/// use dp_train::rand::Rng;
/// use dp_train::{Purpose, RandomStream, Randomness};
/// let mut split: RandomStream = Randomness::from_seed(7).stream(Purpose::Split, 0, 0)?;
/// assert!((0.0..1.0).contains(&split.random::<f64>()));
/// assert_eq!(format!("{split:?}"), "RandomStream(..)");
/// # Ok::<(), dp_train::TrainError>(())
/// ```
pub struct RandomStream(pub(crate) ChaCha20Rng);

impl From<ChaCha20Rng> for RandomStream {
    fn from(generator: ChaCha20Rng) -> Self {
        Self(generator)
    }
}

impl RngCore for RandomStream {
    fn next_u32(&mut self) -> u32 {
        self.0.next_u32()
    }

    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}

impl CryptoRng for RandomStream {}

impl std::fmt::Debug for RandomStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RandomStream(..)")
    }
}
