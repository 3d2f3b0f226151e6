//! ChaCha20's rounds on AVX-512, whose thirty-two registers hold two states of sixteen blocks.
//!
//! The operations of one state wait for each other; in step with those of a second one they do not.

#![expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]

use std::arch::x86_64::__m512i;

use pulp::cast;
use pulp::x86::V4;

use super::keystream::{BLOCK, COLUMNS, DIAGONALS, LANES};

type State = [__m512i; BLOCK];

/// The twenty rounds of two times sixteen blocks.
#[inline(always)]
pub(super) fn rounds(simd: V4, x: [&mut [[u32; LANES]; BLOCK]; 2]) {
    let [a, b] = x;
    let (mut first, mut second): (State, State) = (cast(*a), cast(*b));
    for _ in 0..10 {
        quarter_rounds(simd, &mut first, COLUMNS);
        quarter_rounds(simd, &mut second, COLUMNS);
        quarter_rounds(simd, &mut first, DIAGONALS);
        quarter_rounds(simd, &mut second, DIAGONALS);
    }
    (*a, *b) = (cast(first), cast(second));
}

#[inline(always)]
fn quarter_rounds(simd: V4, x: &mut State, words: [[usize; 4]; 4]) {
    halves::<16, 12>(simd, x, words);
    halves::<8, 7>(simd, x, words);
}

#[inline(always)]
fn halves<const FIRST: i32, const SECOND: i32>(simd: V4, x: &mut State, words: [[usize; 4]; 4]) {
    let avx512 = simd.avx512f;
    for [a, b, _, _] in words {
        x[a] = avx512._mm512_add_epi32(x[a], x[b]);
    }
    for [a, _, _, d] in words {
        x[d] = avx512._mm512_rol_epi32::<FIRST>(avx512._mm512_xor_si512(x[d], x[a]));
    }
    for [_, _, c, d] in words {
        x[c] = avx512._mm512_add_epi32(x[c], x[d]);
    }
    for [_, b, c, _] in words {
        x[b] = avx512._mm512_rol_epi32::<SECOND>(avx512._mm512_xor_si512(x[b], x[c]));
    }
}
