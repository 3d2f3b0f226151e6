//! Permutations of numpy's legacy generator, for records that published code drew by it.
//!
//! **Source.** `numpy.random.RandomState`: MT19937 (Matsumoto and Nishimura 1998) seeded by one
//! number, and a shuffle from the end whose positions are drawn by rejection under a mask.

const WORDS: usize = 624;
const MIDDLE: usize = 397;

/// The state of `numpy.random` after `seed`.
#[derive(Debug, Clone)]
pub(crate) struct LegacyRandom {
    words: [u32; WORDS],
    /// Position of the next word; all are used up at first.
    next: usize,
}

impl LegacyRandom {
    /// As `numpy.random.seed(seed)` leaves it.
    pub(crate) fn seeded(seed: u32) -> Self {
        let mut words = [seed; WORDS];
        for index in 1..WORDS {
            let before = words[index - 1];
            words[index] = 1_812_433_253_u32.wrapping_mul(before ^ (before >> 30)).wrapping_add(index as u32);
        }
        Self { words, next: WORDS }
    }

    /// `numpy.random.permutation(n)`, whose first `k` are `numpy.random.choice(n, k,
    /// replace=False)`.
    pub(crate) fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for last in (1..n).rev() {
            let other = self.at_most(last as u32) as usize;
            order.swap(last, other);
        }
        order
    }

    fn at_most(&mut self, greatest: u32) -> u32 {
        let mask = u32::MAX >> greatest.leading_zeros();
        loop {
            let drawn = self.word() & mask;
            if drawn <= greatest {
                return drawn;
            }
        }
    }

    fn word(&mut self) -> u32 {
        if self.next == WORDS {
            self.twist();
        }
        let mut word = self.words[self.next];
        self.next += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    fn twist(&mut self) {
        for index in 0..WORDS {
            let joined = (self.words[index] & 0x8000_0000) | (self.words[(index + 1) % WORDS] & 0x7fff_ffff);
            let odd = if joined & 1 == 1 { 0x9908_b0df } else { 0 };
            self.words[index] = self.words[(index + MIDDLE) % WORDS] ^ (joined >> 1) ^ odd;
        }
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output of numpy.
    #[test]
    fn permutations_are_numpy_s() {
        assert_eq!(LegacyRandom::seeded(0).permutation(10), [2, 8, 4, 9, 1, 6, 7, 3, 0, 5]);
        assert_eq!(LegacyRandom::seeded(1).permutation(10), [2, 9, 6, 4, 0, 3, 1, 7, 8, 5]);
        assert!(LegacyRandom::seeded(1).permutation(0).is_empty());
    }

    /// The generator's published check: the 10,000th word after the seed 5489.
    #[test]
    fn words_are_the_generator_s() {
        let mut random = LegacyRandom::seeded(5_489);
        let last = (0..10_000).map(|_| random.word()).last();
        assert_eq!(last, Some(4_123_659_995));
    }
}
