//! ChaCha20, sixteen blocks at a time.

#![expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]

use rand_chacha::ChaCha20Rng;

use crate::vector_math::vectorise;

/// Blocks computed side by side: one per lane of a 512-bit register.
const LANES: usize = 16;
/// Words of a ChaCha block.
const BLOCK: usize = 16;
/// Words of a group.
pub(crate) const WORDS: usize = LANES * BLOCK;

type Lanes = [u32; LANES];

/// Fills `groups` with the generator's next words, from its next block boundary on. In each group of sixteen blocks, word `w`
/// of block `b` is at `16 w + b`. The generator is moved past them.
///
/// Noise takes 360 kB of keystream a step; the library's AVX2 code made that a sixth of the step, this makes it a
/// twentieth. The words are the library's own (a test compares them), which also keeps key, nonce and position.
pub(crate) fn next_words(rng: &mut ChaCha20Rng, groups: &mut [[u32; WORDS]]) {
    let position = rng.get_word_pos().next_multiple_of(BLOCK as u128);
    // Moving the generator makes it compute a few blocks: once for all groups.
    rng.set_word_pos(position + (groups.len() * WORDS) as u128);
    let mut state = [0; BLOCK];
    // "expand 32-byte k"
    state[..4].copy_from_slice(&[0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574]);
    for (word, bytes) in state[4..12].iter_mut().zip(rng.get_seed().chunks_exact(4)) {
        *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    let (counter, stream) = ((position / BLOCK as u128) as u64, rng.get_stream());
    state[14] = stream as u32;
    state[15] = (stream >> 32) as u32;
    vectorise(
        #[inline(always)]
        || {
            for (i, words) in groups.iter_mut().enumerate() {
                blocks(&state, counter.wrapping_add((i * LANES) as u64), words);
            }
        },
    );
}

#[inline(always)]
fn blocks(state: &[u32; BLOCK], counter: u64, words: &mut [u32; WORDS]) {
    let mut input = state.map(|word| [word; LANES]);
    let counters: [u64; LANES] = std::array::from_fn(|lane| counter.wrapping_add(lane as u64));
    input[12] = counters.map(|counter| counter as u32);
    input[13] = counters.map(|counter| (counter >> 32) as u32);
    let mut x = input;
    for _ in 0..10 {
        for (a, b, c, d) in [(0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15)] {
            quarter_round(&mut x, a, b, c, d);
        }
        for (a, b, c, d) in [(0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)] {
            quarter_round(&mut x, a, b, c, d);
        }
    }
    for ((out, x), input) in words.chunks_exact_mut(LANES).zip(&x).zip(&input) {
        for ((out, x), input) in out.iter_mut().zip(x).zip(input) {
            *out = x.wrapping_add(*input);
        }
    }
}

#[inline(always)]
fn quarter_round(x: &mut [Lanes; BLOCK], a: usize, b: usize, c: usize, d: usize) {
    x[a] = add(x[a], x[b]);
    x[d] = xor_rotate(x[d], x[a], 16);
    x[c] = add(x[c], x[d]);
    x[b] = xor_rotate(x[b], x[c], 12);
    x[a] = add(x[a], x[b]);
    x[d] = xor_rotate(x[d], x[a], 8);
    x[c] = add(x[c], x[d]);
    x[b] = xor_rotate(x[b], x[c], 7);
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

    use super::*;

    #[test]
    fn words_are_the_library_s() {
        let mut rng = ChaCha20Rng::from_seed([7; 32]);
        rng.set_stream(0x0123_4567_89ab_cdef);
        // Near the end of the counter's low half, so that the carry into the high half is seen; and off a block boundary.
        rng.set_word_pos(((1u128 << 32) - 5) * 16 - 3);
        let mut library = rng.clone();
        library.set_word_pos(((1u128 << 32) - 5) * 16);
        let mut groups = [[0; WORDS]; 3];
        next_words(&mut rng, &mut groups);
        for group in groups {
            for block in 0..LANES {
                for word in 0..BLOCK {
                    assert_eq!(group[word * LANES + block], library.next_u32(), "word {word} of block {block}");
                }
            }
        }
        assert_eq!(rng.next_u32(), library.next_u32());
    }
}
