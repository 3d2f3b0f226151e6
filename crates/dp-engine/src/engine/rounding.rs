//! The increase of a clipped sum's sensitivity through rounding.

use crate::ops::cancellation_limit;

/// A bound on how far the sum of a piece may be from the exact one, over the clipping bound.
///
/// A piece of `m` records is summed term by term. Every addition errs by at most `u` of its result,
/// and the results are partial sums: after `i` records of norm at most `S`, one of at most `iS`.
/// The errors of a piece are thus at most `u Σ_i iS ≤ u (m²/2 + 2m) S`, products rounded before
/// they are added included, and that holds over all parameters at once, since it is a sum of
/// vectors. In another order, as on a GPU, the partial sums hold no more records in total. Nor do
/// they stretch by stretch: their number is convex in the length of a stretch, and the same for 1 and
/// for `m`.
///
/// Layers whose gradients are not formed
/// (`Model::chained_terms`) add `T` terms for each record,
/// of which partial sums may exceed `S`; the norm by which the record was scaled sees to it that
/// they stay within `cancellation_limit` times `S`. Their error is at most `u T m (m/2 + 2
/// limit + 2) S`, layer by layer.
///
/// `unit` is the unit roundoff of the sum's number type.
pub fn of_piece(m: usize, chained_terms: &[usize], unit: f64) -> f64 {
    let m = m as f64;
    let formed = unit * (m * m / 2.0 + 2.0 * m);
    let chained = chained_terms.iter().map(|&terms| {
        let t = terms as f64;
        (unit * t * m * (m / 2.0 + 2.0 * cancellation_limit(terms) + 2.0)).powi(2)
    });
    // Products of errors of successive additions: far below one part in a thousand.
    1.001 * (formed * formed + chained.sum::<f64>()).sqrt()
}

/// By how much a clipped sum changes at most when one record is blanked: `S` and the rounding of
/// the one piece that changes, with and without the record, to floating point and to a grid of this
/// step.
pub fn sensitivity(bound: f64, of_piece: f64, grid_step: f64, n_parameters: usize) -> f64 {
    bound * (1.0 + 2.0 * of_piece) + grid_step * (n_parameters as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SINGLE: f64 = f32::EPSILON as f64 / 2.0;

    #[test]
    fn a_hundred_records_cost_a_thousandth() {
        let two_sides = 2.0 * of_piece(128, &[], SINGLE);
        assert!((9e-4..1.1e-3).contains(&two_sides), "{two_sides}");
        assert!(2.0 * of_piece(20, &[49, 49, 16, 4], SINGLE) < 1e-2);
        assert!(of_piece(200, &[], f64::EPSILON / 2.0) < 1e-11);
    }

    #[test]
    fn the_sensitivity_is_the_bound_and_its_rounding() {
        assert_eq!(sensitivity(2.0, 0.25, 0.5, 4), 4.0);
    }
}
