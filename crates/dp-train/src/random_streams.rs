//! The streams of one run, and whether anyone can know them.

use sha2::{Digest, Sha256};

use crate::error::{Result, TrainError};
use crate::purpose::Purpose;
use crate::random_stream::RandomStream;
use crate::randomness::Randomness;
use crate::ranks::Collective;
use crate::stream_state::StreamState;

/// One stream for each purpose of a run; see [`RandomStreams::from_generators`].
#[derive(Debug)]
pub struct Generators {
    /// Initial parameters.
    pub initialisation: RandomStream,
    /// Poisson batches.
    pub sampling: RandomStream,
    /// Gradient noise.
    pub noise: RandomStream,
    /// Noise of counts.
    pub counts: RandomStream,
    /// Keys of dropout masks, one per step.
    pub dropout: RandomStream,
}

/// The streams of one training run: initial parameters, batches, gradient noise, noise of counts
/// and dropout masks.
///
/// A run consumes them. They cannot be cloned, because a second run with the same noise on other
/// records would release the difference of both without any. They know whether the last four are
/// private; initial parameters are public.
///
/// **Example**
/// ```
/// use dp_train::Randomness;
/// assert!(Randomness::from_os()?.streams(0, 0)?.is_private());
/// assert!(!Randomness::from_seed(1).streams(0, 0)?.is_private());
/// # Ok::<(), dp_train::TrainError>(())
/// ```
pub struct RandomStreams {
    pub(crate) initialisation: RandomStream,
    pub(crate) sampling: RandomStream,
    pub(crate) noise: RandomStream,
    pub(crate) counts: RandomStream,
    /// Keys of dropout masks, one per step.
    pub(crate) dropout: RandomStream,
    /// Whether nobody can know the streams, except perhaps the one of initial parameters.
    pub(crate) is_private: bool,
}

/// Without keys and positions.
impl std::fmt::Debug for RandomStreams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RandomStreams").field("is_private", &self.is_private).finish_non_exhaustive()
    }
}

impl RandomStreams {
    /// The streams of a program that derives generators from its key. With `is_private` the program
    /// promises that nobody can know the key, and that no other run draws from these generators.
    ///
    /// # Errors
    /// [`TrainError::Mismatch`] if two purposes have one generator, at whichever positions.
    pub fn from_generators(generators: Generators, is_private: bool) -> Result<Self> {
        let Generators { initialisation, sampling, noise, counts, dropout } = generators;
        let streams = Self { initialisation, sampling, noise, counts, dropout, is_private };
        let named = streams.named();
        let same = |a: &RandomStream, b: &RandomStream| {
            (a.0.get_seed(), a.0.get_stream()) == (b.0.get_seed(), b.0.get_stream())
        };
        for (i, (name, one)) in named.iter().enumerate() {
            if let Some((other, _)) = named[..i].iter().find(|(_, other)| same(one, other)) {
                let got = format!("one generator for {other} and {name}");
                return Err(TrainError::mismatch("random streams of a run", "five generators", got));
            }
        }
        Ok(streams)
    }

    /// Whether nobody can know batches, noise and masks: not with a seed.
    pub fn is_private(&self) -> bool {
        self.is_private
    }

    /// The same streams with initial parameters from a public source: from a study's, for example,
    /// so that every method begins alike.
    ///
    /// # Errors
    /// The errors of [`Randomness::stream`].
    pub fn initialised_from(self, public: &Randomness, run: u32) -> Result<Self> {
        Ok(Self { initialisation: public.stream(Purpose::Initialisation, run, 0)?, ..self })
    }

    /// Gives every rank the streams of rank 0 and drops its earlier ones. Keys pass between the
    /// ranks.
    ///
    /// # Errors
    /// [`TrainError::Ranks`] if a rank is gone, or gives something else.
    pub fn shared_by(mut self, ranks: &dyn Collective) -> Result<Self> {
        let unfit = || TrainError::Ranks("rank 0 gave no random streams".to_owned());
        let own: Vec<StreamState> = self.named().iter().map(|(_, rng)| StreamState::of(rng)).collect();
        let message = serde_json::to_vec(&(self.is_private, own)).map_err(|_| unfit())?;
        let (is_private, states): (bool, Vec<StreamState>) =
            serde_json::from_slice(&ranks.broadcast(message)?).map_err(|_| unfit())?;
        if states.len() != self.named().len() {
            return Err(unfit());
        }
        for ((_, rng), state) in self.named_mut().into_iter().zip(states) {
            *rng = state.generator().map_err(|_| unfit())?;
        }
        self.is_private = is_private;
        Ok(self)
    }

    /// A digest that identifies these streams and their positions. It reveals no key.
    pub(crate) fn digest(&self) -> String {
        let mut digest = Sha256::new().chain_update([u8::from(self.is_private)]);
        for (_, rng) in self.named() {
            digest.update(rng.0.get_seed());
            digest.update(rng.0.get_stream().to_le_bytes());
            digest.update(rng.0.get_word_pos().to_le_bytes());
        }
        hex::encode(digest.finalize())
    }

    /// The same streams again: for faults that an audit plants, and for ranks that are threads.
    #[cfg(feature = "audit")]
    #[must_use]
    pub fn duplicate(&self) -> Self {
        Self {
            initialisation: RandomStream(self.initialisation.0.clone()),
            sampling: RandomStream(self.sampling.0.clone()),
            noise: RandomStream(self.noise.0.clone()),
            counts: RandomStream(self.counts.0.clone()),
            dropout: RandomStream(self.dropout.0.clone()),
            is_private: self.is_private,
        }
    }

    /// Every stream with its name: what a checkpoint keeps.
    pub(crate) fn named(&self) -> [(&'static str, &RandomStream); 5] {
        let Self { initialisation, sampling, noise, counts, dropout, is_private: _ } = self;
        [
            ("initialisation", initialisation),
            ("sampling", sampling),
            ("noise", noise),
            ("counts", counts),
            ("dropout", dropout),
        ]
    }

    /// Every stream with its name, to be restored.
    pub(crate) fn named_mut(&mut self) -> [(&'static str, &mut RandomStream); 5] {
        let Self { initialisation, sampling, noise, counts, dropout, is_private: _ } = self;
        [
            ("initialisation", initialisation),
            ("sampling", sampling),
            ("noise", noise),
            ("counts", counts),
            ("dropout", dropout),
        ]
    }
}

impl Randomness {
    /// The streams a training run draws from.
    ///
    /// Variants of the same run share their initial parameters, nothing else: methods are compared
    /// from the same start, on independent batches and noise.
    ///
    /// # Errors
    /// [`TrainError::StreamInUse`] if this source is private and has handed them out before.
    pub fn streams(&self, run: u32, variant: u16) -> Result<RandomStreams> {
        Ok(RandomStreams {
            initialisation: self.stream(Purpose::Initialisation, run, 0)?,
            sampling: self.stream(Purpose::Sampling, run, variant)?,
            noise: self.stream(Purpose::Noise, run, variant)?,
            counts: self.stream(Purpose::Counts, run, variant)?,
            dropout: self.stream(Purpose::Dropout, run, variant)?,
            is_private: self.is_private(),
        })
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngCore, SeedableRng};
    use rand_chacha::ChaCha20Rng;

    use super::*;
    use crate::ranks::on_threads;

    #[test]
    fn one_generator_is_not_taken_for_two_purposes() {
        let numbered = |number: u64, position: u128| -> RandomStream {
            let mut rng = ChaCha20Rng::from_seed([3; 32]);
            rng.set_stream(number);
            rng.set_word_pos(position);
            rng.into()
        };
        let generators = |numbers: [u64; 5]| Generators {
            initialisation: numbered(numbers[0], 0),
            sampling: numbered(numbers[1], 0),
            noise: numbered(numbers[2], 0),
            // Further on in its stream.
            counts: numbered(numbers[3], 1 << 20),
            dropout: numbered(numbers[4], 0),
        };
        for is_private in [true, false] {
            let streams = RandomStreams::from_generators(generators([0, 1, 2, 3, 4]), is_private).unwrap();
            assert_eq!(streams.is_private(), is_private);
        }
        let error = |numbers| RandomStreams::from_generators(generators(numbers), true).unwrap_err();
        insta::assert_snapshot!(error([0, 1, 2, 2, 4]), @"random streams of a run: expected five generators, got one generator for noise and counts");
        for numbers in [[0; 5], [0, 1, 2, 3, 0], [0, 1, 1, 3, 4]] {
            error(numbers);
        }
    }

    #[test]
    fn a_public_start_leaves_the_secret_streams_as_they_are() {
        let (public, secret) = (Randomness::from_seed(1), Randomness::from_seed(2));
        let mut streams = secret.streams(3, 1).unwrap().initialised_from(&public, 3).unwrap();
        let start = public.stream(Purpose::Initialisation, 3, 0).unwrap().next_u64();
        assert_eq!(streams.initialisation.next_u64(), start);
        assert_eq!(streams.noise.next_u64(), secret.stream(Purpose::Noise, 3, 1).unwrap().next_u64());
        let private = Randomness::from_os().unwrap().streams(0, 0).unwrap();
        assert!(private.initialised_from(&public, 0).unwrap().is_private());
    }

    #[test]
    fn ranks_share_those_of_the_first() {
        let drawn = on_threads(3, |ranks| {
            let own = if ranks.rank() == 0 { Randomness::from_os()? } else { Randomness::from_seed(7) };
            let mut streams = own.streams(0, 0)?.shared_by(&*ranks)?;
            Ok((streams.digest(), streams.is_private(), streams.noise.next_u64()))
        })
        .unwrap();
        assert!(drawn[0].1 && drawn.iter().all(|other| *other == drawn[0]), "{drawn:?}");
        assert_ne!(drawn[0].0, Randomness::from_seed(7).streams(0, 0).unwrap().digest());
    }
}
