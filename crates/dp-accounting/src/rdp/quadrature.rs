//! Gauss–Legendre panels for integrands that start or break at a point.

/// Gauss–Legendre rule with 8 nodes on [-1, 1]: nodes and weights.
const RULE: [(f64, f64); 8] = [
    (-0.960_289_856_497_536_2, 0.101_228_536_290_376_26),
    (-0.796_666_477_413_626_7, 0.222_381_034_453_374_47),
    (-0.525_532_409_916_329, 0.313_706_645_877_887_3),
    (-0.183_434_642_495_649_8, 0.362_683_783_378_362),
    (0.183_434_642_495_649_8, 0.362_683_783_378_362),
    (0.525_532_409_916_329, 0.313_706_645_877_887_3),
    (0.796_666_477_413_626_7, 0.222_381_034_453_374_47),
    (0.960_289_856_497_536_2, 0.101_228_536_290_376_26),
];

/// Nodes and weights on `[start, start + width]`; exact for polynomials of degree 15.
pub(super) fn legendre(start: f64, width: f64) -> impl Iterator<Item = (f64, f64)> {
    RULE.into_iter().map(move |(node, weight)| (start + 0.5 * width * (1.0 + node), 0.5 * width * weight))
}
