//! A bound on what is added for a record of several positions, from the norm of its gradient.
//!
//! The gradient of such a record is `Σ_t d_t x_tᵀ`, and where only its norm is formed (from Gram
//! matrices, in `f64`), its terms enter the sum over records one by one. What they leave there is
//! not the gradient whose norm was taken: the scaled `s·d_t` are rounded, and so is the sum after
//! every term. Terms that cancel are larger than what remains of them, by any factor, and their
//! rounding may then be all that remains.

use crate::hook;

/// Largest ratio between `A = Σ_t ‖d_t‖‖x_t‖` and the norm by which a record of `positions`
/// positions is scaled.
///
/// Positions whose gradients point in unrelated directions have `A/‖g‖ = √T`; twice that is rare.
pub(crate) fn limit(positions: usize) -> f64 {
    2.0 * (positions as f64).sqrt()
}

/// Largest norm of an input, 2⁴⁰. A scale may make an output's gradient subnormal; times an input
/// beyond this, the error of 2⁻¹⁵⁰ in it would be seen beside the smallest clipping bound, 2⁻⁶⁰.
pub(super) const LARGEST_INPUT: f64 = (1_u64 << 40) as f64;

/// The square of a bound on the norm of what is added for a record, from a squared norm in `f64`.
///
/// With `A` the sum of the terms' norms and `u` the unit roundoff of the terms, it is the square of
/// the largest of
///
/// - `‖g‖ + 2uA`, where `‖g‖²` is first raised by `T² 2⁻⁵⁰ A²`, the rounding of the sum that it
///   came from: a bound on `‖Σ_t fl(s d_t) x_tᵀ‖/s`;
/// - `A / limit(T)`, so that the terms of a scaled record are at most `limit(T)` times the clipping
///   bound, and the rounding of the sum over records has a bound that no record decides.
///
/// **Edge cases.** Infinite where a norm is not finite or an input is beyond 2⁴⁰: such a record
/// contributes 0.
pub(super) fn guarded_sq_norm(sq_norm: f64, terms: f64, largest_input: f64, positions: usize, unit: f64) -> f64 {
    if let Some(other) = hook::ask(|other| other.sq_norm(sq_norm)) {
        return other;
    }
    if !(sq_norm.is_finite() && terms.is_finite() && largest_input <= LARGEST_INPUT) {
        return f64::INFINITY;
    }
    let t = positions as f64;
    let rounding = t * t * (-50.0_f64).exp2() * terms * terms;
    let norm = (sq_norm.max(0.0) + rounding).sqrt() + 2.0 * unit * terms;
    norm.max(terms / limit(positions)).powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: f64 = 1.0 / 16_777_216.0;

    #[test]
    fn a_norm_is_never_below_what_its_terms_can_leave() {
        // Nothing cancels: the norm and its rounding.
        let plain = guarded_sq_norm(4.0, 2.0, 1.0, 4, UNIT);
        assert!((4.0..4.0 * (1.0 + 1e-6)).contains(&plain));
        // All cancels: a quarter of the terms for four positions.
        assert_eq!(guarded_sq_norm(0.0, 8.0, 1.0, 4, UNIT), 4.0);
        assert_eq!(guarded_sq_norm(-1e-9, 8.0, 1.0, 4, UNIT), 4.0);
    }

    #[test]
    fn what_is_not_finite_or_too_large_is_infinite() {
        for (sq_norm, terms, input) in [
            (f64::NAN, 1.0, 1.0),
            (1.0, f64::NAN, 1.0),
            (1.0, 1.0, f64::NAN),
            (f64::INFINITY, 1.0, 1.0),
            (1.0, 1.0, 2.0 * LARGEST_INPUT),
        ] {
            assert_eq!(guarded_sq_norm(sq_norm, terms, input, 3, UNIT), f64::INFINITY);
        }
    }
}
