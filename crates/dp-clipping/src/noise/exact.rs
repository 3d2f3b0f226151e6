//! One pair of Gaussian variates, as exactly as it takes to round.

use astro_float_num::{BigFloat, Consts, RoundingMode};

use super::GRID;

/// Bits of the multiple-precision path.
const PRECISION: usize = 384;
/// The largest number of grid steps that is rounded to an integer: beyond it `f64` has gaps of its
/// own.
const LARGEST: f64 = 1_125_899_906_842_624.0;

/// A point of the unit square: radius and angle of Box and Muller's transform.
pub(super) struct Pair {
    radius: Coordinate,
    turn: Coordinate,
}

/// A number in (0, 1) of which 192 bits are known. The first 64 nearly always settle the matter.
pub(super) struct Coordinate {
    leading: u64,
    further: u128,
}

impl Coordinate {
    /// From random words, the most significant first.
    pub(super) fn new([first, second, rest @ ..]: [u32; 6]) -> Self {
        let leading = (u64::from(first) << 32) | u64::from(second);
        Self { leading, further: rest.iter().fold(0, |bits, &word| (bits << 32) | u128::from(word)) }
    }
}

impl Pair {
    pub(super) fn new(radius: Coordinate, turn: Coordinate) -> Self {
        Self { radius, turn }
    }

    /// `⌊factor · value + GRID · N⌉` for the two variates `N` of the point.
    ///
    /// **Edge cases.** A value that is not finite, or more than 2⁵⁰ grid steps from 0, is returned
    /// as it comes out in `f64`.
    pub(super) fn round(&self, factor: f64, values: [f64; 2]) -> [f64; 2] {
        let (noise, error) = self.noise();
        [0, 1].map(|i| {
            let (value, noise) = (factor * values[i], GRID * noise[i]);
            let sum = value + noise;
            let rounded = sum.round_ties_even();
            // Rounding of the product and the sum besides; 2⁻⁵⁰ is four times what it can be.
            let error = GRID * error + (value.abs() + sum.abs()) * 2f64.powi(-50);
            // Also true where something is not a number.
            let sure = (sum - rounded).abs() < 0.5 - error;
            if sure || sum.is_nan() || sum.abs() > LARGEST {
                return rounded;
            }
            self.round_in_multiple_precision(factor, values[i], i, rounded)
        })
    }

    /// Both variates from the leading bits, and a bound on the error of either, whatever bits may
    /// follow.
    ///
    /// With `B` steps of 2⁻⁶⁴ to the nearer end of (0, 1), the relative error of `U` or `1 − U` is
    /// below 2⁻⁵² + 1/B, that of `−2 ln U` below four times that and a few roundings, that of the
    /// radius half as large. The elementary functions of the standard library are taken to be good
    /// to 8 ulp; they are better.
    fn noise(&self) -> ([f64; 2], f64) {
        const STEP: f64 = 1.0 / 18_446_744_073_709_551_616.0;
        let (radius, turn) = (self.radius.leading, self.turn.leading);
        let upper = radius >= 1 << 63;
        let steps = if upper { !radius } else { radius } as f64;
        let end = (steps + 0.5) * STEP;
        let log = if upper { (-end).ln_1p() } else { end.ln() };
        let radius = (-2.0 * log).sqrt();
        // The nearest multiple of a quarter turn, and the rest as an angle in [−π/4, π/4).
        let quarter = turn.wrapping_add(1 << 61) >> 62;
        let rest = turn.wrapping_sub(quarter << 62).cast_signed() as f64;
        let (sin, cos) = (rest * (std::f64::consts::TAU * STEP)).sin_cos();
        let (sin, cos) = match quarter {
            0 => (sin, cos),
            1 => (cos, -sin),
            2 => (-sin, -cos),
            _ => (-cos, sin),
        };
        ([radius * cos, radius * sin], radius * (2f64.powi(-46) + 2.0 / steps))
    }

    /// The same from all bits of either coordinate. What is then still undecided, with probability
    /// below 2⁻¹⁶⁰, is rounded as if its further bits were in the middle.
    fn round_in_multiple_precision(&self, factor: f64, value: f64, which: usize, near: f64) -> f64 {
        const RM: RoundingMode = RoundingMode::ToEven;
        let p = PRECISION;
        // Without constants nothing can be said: the nearest integer of the double-precision value
        // is off in 2⁻³⁰ of the cases that come here, and they cannot be made only where memory is
        // exhausted.
        let Ok(mut constants) = Consts::new() else { return near };
        let number = |x: f64| BigFloat::from_f64(x, p);
        let two = number(2.0);
        // (leading · 2¹²⁸ + further + ½) / 2¹⁹²
        let middle = |coordinate: &Coordinate| {
            let further = BigFloat::from_u128(coordinate.further, p).add(&number(0.5), p, RM);
            let low = further.div(&number(2f64.powi(128)), p, RM);
            BigFloat::from_u64(coordinate.leading, p).add(&low, p, RM).div(&number(2f64.powi(64)), p, RM)
        };
        let log = middle(&self.radius).ln(p, RM, &mut constants);
        let radius = log.mul(&number(-2.0), p, RM).sqrt(p, RM);
        let angle = constants.pi(p, RM).mul(&two, p, RM).mul(&middle(&self.turn), p, RM);
        let direction = if which == 0 { angle.cos(p, RM, &mut constants) } else { angle.sin(p, RM, &mut constants) };
        let noise = radius.mul(&direction, p, RM).mul(&number(GRID), p, RM);
        let sum = number(factor).mul(&number(value), p, RM).add(&noise, p, RM);
        let excess = sum.sub(&number(near), p, RM);
        if excess.cmp(&number(0.5)).is_some_and(|order| order > 0) {
            near + 1.0
        } else if excess.cmp(&number(-0.5)).is_some_and(|order| order < 0) {
            near - 1.0
        } else {
            near
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngCore, SeedableRng};
    use rand_chacha::ChaCha20Rng;

    use super::*;

    /// A point with these leading bits.
    fn point(rng: &mut ChaCha20Rng, radius: u64, turn: u64) -> Pair {
        let mut coordinate = |leading| {
            let further = (u128::from(rng.next_u64()) << 64) | u128::from(rng.next_u64());
            Coordinate { leading, further }
        };
        Pair::new(coordinate(radius), coordinate(turn))
    }

    fn draw(rng: &mut ChaCha20Rng) -> Pair {
        let (radius, turn) = (rng.next_u64(), rng.next_u64());
        point(rng, radius, turn)
    }

    #[test]
    fn words_are_bits_from_the_top() {
        let Coordinate { leading, further } = Coordinate::new([1, 2, 3, 4, 5, 6]);
        assert_eq!(leading, 0x0000_0001_0000_0002);
        assert_eq!(further, 0x0000_0003_0000_0004_0000_0005_0000_0006);
    }

    /// Double and multiple precision say the same about points from everywhere, the edges of the
    /// square included: never further apart than the stated error.
    #[test]
    fn double_precision_is_as_good_as_it_says() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let edges = [0, 1, 1 << 20, (1 << 62) - 1, 1 << 62, 1 << 63, (3 << 62) + 7, u64::MAX - 1_000, u64::MAX];
        let mut points: Vec<(u64, u64)> = edges.iter().flat_map(|&r| edges.map(|t| (r, t))).collect();
        points.extend((0..300).map(|_| (rng.next_u64(), rng.next_u64())));
        for (radius, turn) in points {
            let pair = point(&mut rng, radius, turn);
            let (noise, error) = pair.noise();
            for (which, noise) in noise.into_iter().enumerate() {
                // A grid fine enough to see the error: shift the value so that the sum is within it
                // of a boundary.
                let shift = 0.5 - GRID * noise;
                let shift = shift - shift.floor();
                let sum = shift + GRID * noise;
                let below = (sum - 0.5).round_ties_even();
                let exact = pair.round_in_multiple_precision(1.0, shift, which, below);
                let margin = GRID * error + sum.abs() * 2f64.powi(-50);
                assert!(exact == below || exact == below + 1.0 || margin > 0.1, "{radius} {turn}: {sum} {exact}");
                // Just outside of the margin both must agree.
                if margin < 0.1 {
                    for side in [-2.0 * margin, 2.0 * margin] {
                        let sum = shift + side + GRID * noise;
                        let near = sum.round_ties_even();
                        let exact = pair.round_in_multiple_precision(1.0, shift + side, which, near);
                        assert_eq!(exact, near, "{radius} {turn}");
                    }
                }
            }
        }
    }

    /// A sum within 2⁻⁶⁰ of a boundary is decided by bits that double precision does not see.
    #[test]
    fn what_double_precision_cannot_decide_is_decided() {
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        let (mut up, mut down) = (0, 0);
        for _ in 0..200 {
            let pair = draw(&mut rng);
            let ([cos, _], _) = pair.noise();
            let value = (GRID * cos).floor() + 0.5 - GRID * cos;
            let [rounded, _] = pair.round(1.0, [value, 0.0]);
            match rounded - (GRID * cos).floor() {
                0.0 => down += 1,
                1.0 => up += 1,
                other => panic!("{other}"),
            }
        }
        // Either way about as often: fewer than 60 of 200 by chance, 1e-8.
        assert!(up > 60 && down > 60, "{up} {down}");
    }

    #[test]
    fn what_is_no_number_stays_so() {
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let [a, b] = draw(&mut rng).round(1.0, [f64::NAN, f64::INFINITY]);
        assert!(a.is_nan() && b == f64::INFINITY);
        assert_eq!(draw(&mut rng).round(1.0, [1e300, 0.0])[0], 1e300);
    }
}
