//! Which units a pass drops, as a function of counters.

#![expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]

use rand::CryptoRng;

use crate::vector_math::vectorise;

/// The key that decides every dropout mask of one step.
///
/// A unit's fate is a function of this key, the dropout layer, the number of the record in its data
/// set and the unit: no state runs along with the batch. So the mask of a record is the same in the
/// forward and the backward pass, in both computations of a batch worked off in pieces, whatever
/// the pieces, and whoever else was drawn. Keys come from a stream of their own
/// (`dp_train::Purpose::Dropout`).
///
/// **Guarantee.** Masks depend on no data, and the privacy of a step holds for every choice of
/// them: they need to be independent of the records, not secret. The generator is therefore a
/// statistical one (Philox), not the cipher that makes the noise.
///
/// **Source.** Srivastava 2014, in the "inverted" form: kept units are divided by the probability
/// to be kept. Salmon 2011 for Philox 4x32-10.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DropoutKey(u64);

impl DropoutKey {
    /// Draws a key.
    pub fn draw(rng: &mut dyn CryptoRng) -> Self {
        Self(rng.next_u64())
    }

    /// The key, for a generator on another device.
    #[cfg(feature = "cuda")]
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// Fills `words`, a whole number of fours, with uniform 32-bit numbers for one record in
    /// dropout layer `layer`, from four number `first` on.
    pub fn fill(self, layer: u32, record: u64, first: u32, words: &mut [u32]) {
        let key = [self.0 as u32, (self.0 >> 32) as u32];
        vectorise(
            #[inline(always)]
            || {
                for (four, words) in words.chunks_exact_mut(4).enumerate() {
                    let four = first.wrapping_add(four as u32);
                    words.copy_from_slice(&philox([four, layer, record as u32, (record >> 32) as u32], key));
                }
            },
        );
    }
}

/// Philox 4x32 with ten rounds.
#[inline(always)]
fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let a = u64::from(counter[0]) * 0xd251_1f53;
        let b = u64::from(counter[2]) * 0xcd9e_8d57;
        counter = [(b >> 32) as u32 ^ counter[1] ^ key[0], b as u32, (a >> 32) as u32 ^ counter[3] ^ key[1], a as u32];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    counter
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers of Random123's `kat_vectors`, philox4x32 with 10 rounds.
    #[test]
    fn philox_gives_the_known_answers() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox([u32::MAX; 4], [u32::MAX; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        let counter = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
        let answer = [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1];
        assert_eq!(philox(counter, [0xa409_3822, 0x299f_31d0]), answer);
    }

    #[test]
    fn words_depend_on_key_layer_and_record_and_nothing_else() {
        let words = |key, layer, record| {
            let mut words = [0; 16];
            DropoutKey(key).fill(layer, record, 0, &mut words);
            words
        };
        let base = words(7, 0, 3);
        assert_eq!(base, words(7, 0, 3));
        let mut later = [0; 8];
        DropoutKey(7).fill(0, 3, 2, &mut later);
        assert_eq!(base[8..], later);
        for other in
            [words(8, 0, 3), words(7 | 1 << 40, 0, 3), words(7, 1, 3), words(7, 0, 4), words(7, 0, 3 | 1 << 40)]
        {
            assert!(base.iter().zip(other).all(|(a, b)| *a != b));
        }
    }
}
