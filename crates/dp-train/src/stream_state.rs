//! A random stream as it is kept and sent.

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use serde::{Deserialize, Serialize};

use crate::random_stream::RandomStream;

/// Key and position of a random stream: the secret of the run.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StreamState {
    key: String,
    stream: u64,
    /// Words drawn; JSON numbers are too short for it.
    position: String,
}

impl StreamState {
    pub(crate) fn of(RandomStream(rng): &RandomStream) -> Self {
        Self { key: hex::encode(rng.get_seed()), stream: rng.get_stream(), position: rng.get_word_pos().to_string() }
    }

    /// The generator at this position.
    pub(crate) fn generator(&self) -> Result<RandomStream, String> {
        let mut key = [0; 32];
        // The key itself must not appear in a message.
        hex::decode_to_slice(&self.key, &mut key).map_err(|_| "a random stream's key is not 64 hexadecimal digits")?;
        let position = self
            .position
            .parse()
            .map_err(|_| format!("position of a random stream: {} is no number", self.position))?;
        let mut rng = ChaCha20Rng::from_seed(key);
        rng.set_stream(self.stream);
        rng.set_word_pos(position);
        Ok(RandomStream(rng))
    }
}

#[cfg(test)]
mod tests {
    use rand::RngCore;

    use super::*;

    #[test]
    fn a_stream_continues_at_any_word() {
        let mut rng = ChaCha20Rng::from_seed([3; 32]);
        rng.set_stream(77);
        let mut rng = RandomStream(rng);
        for drawn in 0..300 {
            let json = serde_json::to_string(&StreamState::of(&rng)).unwrap();
            let mut restored = serde_json::from_str::<StreamState>(&json).unwrap().generator().unwrap();
            let mut original = rng.0.clone();
            for _ in 0..70 {
                assert_eq!(restored.next_u64(), original.next_u64(), "{drawn} words");
            }
            rng.next_u32();
        }
    }

    #[test]
    fn a_damaged_stream_is_refused_without_its_key() {
        let state = |key: &str, position: &str| StreamState { key: key.into(), stream: 0, position: position.into() };
        let key = hex::encode([7; 32]);
        assert!(state(&key, "68719476736").generator().is_ok());
        assert_eq!(state(&key, "x").generator().unwrap_err(), "position of a random stream: x is no number");
        assert_eq!(
            state(&key[1..], "0").generator().unwrap_err(),
            "a random stream's key is not 64 hexadecimal digits"
        );
    }
}
