//! ChaCha20, sixteen blocks at a time.

#![expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]

use pulp::Arch;

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
use super::eight_blocks;
#[cfg(target_arch = "x86_64")]
use super::two_states;

/// Blocks computed side by side: one per lane of a 512-bit register.
pub(super) const LANES: usize = 16;
/// Words of a ChaCha block.
pub(super) const BLOCK: usize = 16;
/// Words of one block per lane.
pub(super) const WORDS: usize = LANES * BLOCK;

type Lanes = [u32; LANES];

/// ChaCha20 under one key, to be read at any place.
///
/// Noise takes four bytes of it a value; the library's AVX2 code made that a sixth of a step, this
/// makes it a twentieth. The words are the library's own: a test compares them.
pub(super) struct Keystream {
    /// Constants and key; counter and stream are 0.
    state: [u32; BLOCK],
}

impl Keystream {
    pub(super) fn new(key: [u8; 32]) -> Self {
        let mut state = [0; BLOCK];
        // "expand 32-byte k"
        state[..4].copy_from_slice(&[0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574]);
        for (word, &bytes) in state[4..12].iter_mut().zip(key.as_chunks().0) {
            *word = u32::from_le_bytes(bytes);
        }
        Self { state }
    }

    /// The key's words.
    pub(super) fn key(&self) -> [u32; 8] {
        std::array::from_fn(|i| self.state[4 + i])
    }

    /// The blocks of a stream that have these numbers. Word `w` of the `b`-th of them is at `16 w +
    /// b`.
    #[inline(always)]
    pub(super) fn blocks(&self, stream: u64, numbers: [u64; LANES], words: &mut [u32; WORDS]) {
        let mut x = self.input(stream, numbers);
        match Arch::new() {
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            Arch::V3(simd) => eight_blocks::rounds(simd, &mut x),
            _ => rounds(&mut x),
        }
        self.finish(stream, numbers, &x, words);
    }

    /// The same for two times as many blocks, which some processors compute in step.
    #[inline(always)]
    pub(super) fn two_times_blocks(&self, stream: u64, numbers: [[u64; LANES]; 2], words: &mut [[u32; WORDS]; 2]) {
        match Arch::new() {
            #[cfg(target_arch = "x86_64")]
            Arch::V4(simd) => {
                let [mut a, mut b] = numbers.map(|numbers| self.input(stream, numbers));
                two_states::rounds(simd, [&mut a, &mut b]);
                for ((x, numbers), words) in [a, b].iter().zip(numbers).zip(words) {
                    self.finish(stream, numbers, x, words);
                }
            }
            _ => {
                for (numbers, words) in numbers.into_iter().zip(words) {
                    self.blocks(stream, numbers, words);
                }
            }
        }
    }

    /// Adds what the cipher began with.
    #[inline(always)]
    fn finish(&self, stream: u64, numbers: [u64; LANES], x: &[Lanes; BLOCK], words: &mut [u32; WORDS]) {
        // Made again rather than kept: a copy of a kilobyte takes longer.
        let input = self.input(stream, numbers);
        // One flat loop: LLVM would turn two nested ones into gathers and scatters.
        for ((out, x), input) in words.iter_mut().zip(x.as_flattened()).zip(input.as_flattened()) {
            *out = x.wrapping_add(*input);
        }
    }

    /// The initial state of the cipher.
    #[inline(always)]
    fn input(&self, stream: u64, numbers: [u64; LANES]) -> [Lanes; BLOCK] {
        let mut input = self.state.map(|word| [word; LANES]);
        input[12] = numbers.map(|number| number as u32);
        input[13] = numbers.map(|number| (number >> 32) as u32);
        input[14] = [stream as u32; LANES];
        input[15] = [(stream >> 32) as u32; LANES];
        input
    }
}

/// Words of the quarter rounds of a round.
pub(super) const COLUMNS: [[usize; 4]; 4] = [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]];
/// Those of the next.
pub(super) const DIAGONALS: [[usize; 4]; 4] = [[0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14]];

/// The twenty rounds.
#[inline(always)]
fn rounds(x: &mut [Lanes; BLOCK]) {
    for _ in 0..10 {
        quarter_rounds(x, COLUMNS);
        quarter_rounds(x, DIAGONALS);
    }
}

/// Four independent quarter rounds in step: while an operation waits for the one before it, the
/// processor has those of the others.
#[inline(always)]
fn quarter_rounds(x: &mut [Lanes; BLOCK], words: [[usize; 4]; 4]) {
    halves::<16, 12>(x, words);
    halves::<8, 7>(x, words);
}

#[inline(always)]
fn halves<const FIRST: u32, const SECOND: u32>(x: &mut [Lanes; BLOCK], words: [[usize; 4]; 4]) {
    for [a, b, _, _] in words {
        x[a] = add(x[a], x[b]);
    }
    for [a, _, _, d] in words {
        x[d] = xor_rotate(x[d], x[a], FIRST);
    }
    for [_, _, c, d] in words {
        x[c] = add(x[c], x[d]);
    }
    for [_, b, c, _] in words {
        x[b] = xor_rotate(x[b], x[c], SECOND);
    }
}

#[inline(always)]
fn add(mut a: Lanes, b: Lanes) -> Lanes {
    for (a, b) in a.iter_mut().zip(b) {
        *a = a.wrapping_add(b);
    }
    a
}

#[inline(always)]
fn xor_rotate(mut a: Lanes, b: Lanes, bits: u32) -> Lanes {
    for (a, b) in a.iter_mut().zip(b) {
        *a = (*a ^ b).rotate_left(bits);
    }
    a
}

#[cfg(test)]
mod tests {
    use rand::{RngCore, SeedableRng};
    use rand_chacha::ChaCha20Rng;

    use super::*;
    use crate::simd::vectorise;

    #[test]
    fn words_are_the_library_s() {
        let keystream = Keystream::new([7; 32]);
        let stream = 0x0123_4567_89ab_cdef;
        let mut library = ChaCha20Rng::from_seed([7; 32]);
        library.set_stream(stream);
        // Some near the end of the counter's low half, so that the carry into the high half is
        // seen.
        let numbers = std::array::from_fn(|lane| if lane % 2 == 0 { (1 << 32) - 5 + lane as u64 } else { 1 << lane });
        let others = numbers.map(|number: u64| number.wrapping_mul(7) ^ 3);
        let (mut words, mut of_two) = ([0; WORDS], [[0; WORDS]; 2]);
        vectorise(
            #[inline(always)]
            || {
                keystream.blocks(stream, numbers, &mut words);
                keystream.two_times_blocks(stream, [others, numbers], &mut of_two);
            },
        );
        assert!(of_two[1] == words);
        for (numbers, words) in [others, numbers].into_iter().zip(of_two) {
            for (lane, number) in numbers.into_iter().enumerate() {
                library.set_word_pos(u128::from(number) * BLOCK as u128);
                for word in 0..BLOCK {
                    assert_eq!(words[word * LANES + lane], library.next_u32(), "word {word} of block {number}");
                }
            }
        }
    }
}
