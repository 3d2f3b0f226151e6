//! Products of two vectors in double precision, for norms from Gram matrices.

use super::element::Element;

/// Product of two vectors of equal length in `f64`, in lanes so that it vectorises. Of `f32` every
/// product is exact, so that it does not matter whether a processor fuses it with the addition.
#[inline(always)]
pub fn double_dot<T: Element>(a: &[T], b: &[T]) -> f64 {
    const LANES: usize = 16;
    let mut lanes = [0.0; LANES];
    let (a_chunks, b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f64 =
        a_chunks.remainder().iter().zip(b_chunks.remainder()).map(|(a, b)| a.to_double() * b.to_double()).sum();
    for (a, b) in a_chunks.zip(b_chunks) {
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += a.to_double() * b.to_double();
        }
    }
    lanes.iter().sum::<f64>() + rest
}
