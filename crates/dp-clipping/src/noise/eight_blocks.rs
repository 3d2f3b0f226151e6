//! ChaCha20's rounds on AVX2, whose sixteen registers hold the state of eight blocks.
//!
//! The loops over sixteen blocks, which AVX-512 holds, take more than twice as long there.

#![expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]

use pulp::x86::V3;
use pulp::{cast, u32x8};

use super::keystream::{BLOCK, LANES};

/// Blocks computed side by side.
const HALF: usize = 8;

type State = [u32x8; BLOCK];

/// The twenty rounds of sixteen blocks.
#[inline(always)]
pub(super) fn rounds(simd: V3, x: &mut [[u32; LANES]; BLOCK]) {
    for half in 0..LANES / HALF {
        let mut state: State = x.map(|lanes| cast(lanes.as_chunks::<HALF>().0[half]));
        for _ in 0..10 {
            quarter_rounds(simd, &mut state, [[0, 4, 8, 12], [1, 5, 9, 13]]);
            quarter_rounds(simd, &mut state, [[2, 6, 10, 14], [3, 7, 11, 15]]);
            quarter_rounds(simd, &mut state, [[0, 5, 10, 15], [1, 6, 11, 12]]);
            quarter_rounds(simd, &mut state, [[2, 7, 8, 13], [3, 4, 9, 14]]);
        }
        for (lanes, state) in x.iter_mut().zip(state) {
            lanes.as_chunks_mut::<HALF>().0[half] = cast(state);
        }
    }
}

/// Two quarter rounds in step: more would leave no register for what is in between.
#[inline(always)]
fn quarter_rounds(simd: V3, x: &mut State, words: [[usize; 4]; 2]) {
    halves::<16, 16, 12, 20>(simd, x, words);
    halves::<8, 24, 7, 25>(simd, x, words);
}

/// Rotations to the left by `A` and `C`; `B` and `D` are what is left of 32.
#[inline(always)]
fn halves<const A: i32, const B: i32, const C: i32, const D: i32>(simd: V3, x: &mut State, words: [[usize; 4]; 2]) {
    for [a, b, _, d] in words {
        x[a] = simd.wrapping_add_u32x8(x[a], x[b]);
        x[d] = rotate::<A, B>(simd, simd.xor_u32x8(x[d], x[a]));
    }
    for [_, b, c, d] in words {
        x[c] = simd.wrapping_add_u32x8(x[c], x[d]);
        x[b] = rotate::<C, D>(simd, simd.xor_u32x8(x[b], x[c]));
    }
}

#[inline(always)]
fn rotate<const LEFT: i32, const RIGHT: i32>(simd: V3, x: u32x8) -> u32x8 {
    simd.or_u32x8(simd.shl_const_u32x8::<LEFT>(x), simd.shr_const_u32x8::<RIGHT>(x))
}
