//! Fixed-point numbers of 192 bits after the point: what an inversion turns and multiplies millions
//! of times.
//!
//! Every operation is off by at most [`UNIT`]; the elementary functions by [`FUNCTION_ERROR`],
//! which leaves them a thousand units and more.

use std::ops::{Add, Mul, Neg, Sub};

use super::ball::Ball;

/// `2^-192`, the spacing of the numbers, to which every operation is exact.
pub(super) const UNIT: f64 = 1.6e-58;

/// `2^-172`: bound on the error of an exponential, and of a sine or logarithm in units that are
/// said there.
pub(super) const FUNCTION_ERROR: f64 = 1.7e-52;

/// Bits after the point.
const FRACTION: i32 = 192;

/// A number below `2^62` in modulus, as the two's complement of `2^192` times itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fixed([u64; 4]);

/// Constants for the reduction of arguments, and the coefficients of the exponential series,
/// `1/n!`.
#[derive(Debug, Clone)]
pub(super) struct Constants {
    ln_2: Fixed,
    two_pi: Fixed,
    inverse_factorials: [Fixed; 40],
}

impl Constants {
    pub(super) fn new() -> Self {
        let mut factorial = Ball::exact(1.0);
        let inverse_factorials = std::array::from_fn(|n| {
            factorial = factorial.clone() * Ball::from_count(n.max(1) as u64);
            Fixed::near(&(Ball::exact(1.0) / factorial.clone()))
        });
        Self {
            ln_2: Fixed::near(&Ball::exact(2.0).ln()),
            two_pi: Fixed::near(&(Ball::pi() + Ball::pi())),
            inverse_factorials,
        }
    }

    /// `Σ x^k/n_k!` over the given `n_k`.
    fn series(&self, x: Fixed, coefficients: impl DoubleEndedIterator<Item = usize>) -> Fixed {
        coefficients.rev().fold(Fixed::ZERO, |sum, n| sum * x + self.inverse_factorials[n])
    }
}

impl Fixed {
    pub(super) const ZERO: Self = Self([0; 4]);
    pub(super) const ONE: Self = Self([0, 0, 0, 1]);

    /// Exactly, if no bit of it is below [`UNIT`]. Of a number below `2^62` in modulus.
    pub(super) fn from_f64(value: f64) -> Self {
        let bits = value.abs().to_bits();
        let exponent = (bits >> 52) as i32;
        if exponent == 0 {
            // Zero, and numbers far below the spacing.
            return Self::ZERO;
        }
        let mantissa = (bits & ((1 << 52) - 1)) | (1 << 52);
        let magnitude = Self(shifted([mantissa, 0, 0, 0], exponent - 1075 + FRACTION, 0));
        if value < 0.0 { -magnitude } else { magnitude }
    }

    /// The middle of a ball of positive numbers below `2^62`, rounded.
    pub(super) fn near(ball: &Ball) -> Self {
        let middle = ball.middle();
        match (middle.mantissa_digits(), middle.exponent()) {
            (Some(&[a, b, c, d]), Some(exponent)) => Self(shifted([a, b, c, d], exponent - 256 + FRACTION, 0)),
            _ => Self::ZERO,
        }
    }

    /// All numbers within an error.
    pub(super) fn ball(self, error: f64) -> Ball {
        let (negative, magnitude) = self.magnitude();
        let middle = magnitude
            .iter()
            .zip(0..)
            .filter(|(word, _)| **word > 0)
            .fold(Ball::exact(0.0), |sum, (word, i)| sum + Ball::from_count(*word).scaled(64 * i - FRACTION));
        let signed = if negative { -middle } else { middle };
        signed + Ball::exact(error).around_zero()
    }

    /// Nearly.
    pub(super) fn to_f64(self) -> f64 {
        let (negative, magnitude) = self.magnitude();
        let value: f64 =
            magnitude.iter().zip(0..).map(|(word, i)| *word as f64 * 2.0_f64.powi(64 * i - FRACTION)).sum();
        if negative { -value } else { value }
    }

    fn magnitude(self) -> (bool, [u64; 4]) {
        let negative = self.0[3] >> 63 == 1;
        (negative, if negative { (-self).0 } else { self.0 })
    }

    /// Times a power of two; what falls below the spacing is lost, towards minus infinity.
    fn shifted_left(self, bits: i32) -> Self {
        Self(shifted(self.0, bits, if self.0[3] >> 63 == 1 { u64::MAX } else { 0 }))
    }

    /// Over a small positive number.
    pub(super) fn over(self, divisor: u64) -> Self {
        let (negative, magnitude) = self.magnitude();
        let mut remainder = 0_u128;
        let mut quotient = [0; 4];
        for i in (0..4).rev() {
            let part = remainder << 64 | u128::from(magnitude[i]);
            quotient[i] = (part / u128::from(divisor)) as u64;
            remainder = part % u128::from(divisor);
        }
        let quotient = Self(quotient);
        if negative { -quotient } else { quotient }
    }

    /// `e^x` for `x ≤ 1`.
    ///
    /// The series, of an argument below `ln 2/256`, is right to 40 units, and each of eight
    /// squarings doubles that at most.
    pub(super) fn exp(self, constants: &Constants) -> Self {
        let approximate = self.to_f64();
        if approximate < -140.0 {
            return Self::ZERO;
        }
        let halvings = (-approximate / std::f64::consts::LN_2).max(0.0).floor() as i32;
        let reduced = self + constants.ln_2 * Self::from_f64(f64::from(halvings));
        let small = reduced.shifted_left(-8);
        let mut sum = constants.series(small, 0..24);
        for _ in 0..8 {
            sum = sum * sum;
        }
        sum.shifted_left(-halvings)
    }

    /// Logarithm of a positive number up to 1; the error is [`FUNCTION_ERROR`], and this number's
    /// own relative one.
    pub(super) fn ln(self, constants: &Constants) -> Self {
        let zeros = match self.0 {
            [_, _, c, 0] if c > 0 => 64 + c.leading_zeros(),
            [_, b, 0, 0] if b > 0 => 128 + b.leading_zeros(),
            [a, 0, 0, 0] => 192 + a.leading_zeros(),
            [.., d] => d.leading_zeros(),
        };
        // In [1/2, 1).
        let halvings = (zeros.cast_signed() - 64).max(0);
        let mantissa = self.shifted_left(halvings);
        let first = Self::from_f64(mantissa.to_f64().ln());
        // The rest is about 2^-50: five terms of its series are enough.
        let rest = mantissa * (-first).exp(constants) - Self::ONE;
        let (mut power, mut sum) = (rest, rest);
        for n in 2..6 {
            power = -(power * rest);
            sum = sum + power.over(n);
        }
        first + sum - constants.ln_2 * Self::from_f64(f64::from(halvings))
    }

    /// Cosine and sine of an angle below `2^40`; the error is [`FUNCTION_ERROR`] times 1 and the
    /// angle.
    pub(super) fn cos_sin(self, constants: &Constants) -> (Self, Self) {
        let turns = (self.to_f64() / std::f64::consts::TAU).round();
        let reduced = self - constants.two_pi * Self::from_f64(turns);
        let small = reduced.shifted_left(-4);
        let square = -(small * small);
        let mut cos = constants.series(square, (0..40).step_by(2));
        let mut sin = small * constants.series(square, (1..40).step_by(2));
        for _ in 0..4 {
            (cos, sin) = (cos * cos - sin * sin, (cos * sin).shifted_left(1));
        }
        (cos, sin)
    }
}

/// Words, the lowest first, shifted to the left; above the highest they go on with `fill`.
fn shifted(words: [u64; 4], bits: i32, fill: u64) -> [u64; 4] {
    let (whole, rest) = (bits.div_euclid(64), bits.rem_euclid(64));
    let word = |i: i32| usize::try_from(i).map_or(0, |i| words.get(i).copied().unwrap_or(fill));
    [0, 1, 2, 3].map(|i| {
        let (high, low) = (word(i - whole), word(i - whole - 1));
        if rest == 0 { high } else { high << rest | low >> (64 - rest) }
    })
}

impl Add for Fixed {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        let mut sum = [0; 4];
        let mut carry = false;
        for (i, sum) in sum.iter_mut().enumerate() {
            let (part, first) = self.0[i].overflowing_add(other.0[i]);
            let (part, second) = part.overflowing_add(u64::from(carry));
            (*sum, carry) = (part, first || second);
        }
        Self(sum)
    }
}

impl Neg for Fixed {
    type Output = Self;
    #[inline]
    fn neg(self) -> Self {
        Self(self.0.map(|word| !word)) + Self([1, 0, 0, 0])
    }
}

impl Sub for Fixed {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Fixed {
    type Output = Self;
    /// Rounded towards zero.
    #[inline]
    fn mul(self, other: Self) -> Self {
        let ((first, a), (second, b)) = (self.magnitude(), other.magnitude());
        let mut product = [0_u64; 8];
        for (i, x) in a.into_iter().enumerate() {
            let mut carry = 0_u64;
            for (j, y) in b.into_iter().enumerate() {
                let part = u128::from(x) * u128::from(y) + u128::from(product[i + j]) + u128::from(carry);
                product[i + j] = part as u64;
                carry = (part >> 64) as u64;
            }
            product[i + 4] = carry;
        }
        let magnitude = Self([product[3], product[4], product[5], product[6]]);
        if first == second { magnitude } else { -magnitude }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a ball holds zero, and nothing far from it.
    fn is_zero(difference: &Ball) -> bool {
        !difference.is_certainly_positive() && !(-difference.clone()).is_certainly_positive()
    }

    #[test]
    fn numbers_are_what_they_were() {
        for value in [0.0, 1.0, -1.0, 0.1, -3.25e17, 1e-40, -7.0e-41] {
            assert_eq!(Fixed::from_f64(value).to_f64(), value);
            assert!(is_zero(&(Fixed::from_f64(value).ball(0.0) - Ball::exact(value))));
        }
        assert_eq!(Fixed::from_f64(1e-70), Fixed::ZERO);
        let third = Fixed::near(&(Ball::exact(1.0) / Ball::exact(3.0)));
        assert!(is_zero(&(third.ball(UNIT) - Ball::exact(1.0) / Ball::exact(3.0))));
    }

    #[test]
    fn sums_and_products_are_exact_to_a_unit() {
        let mut x = 0.731;
        for i in 0..200 {
            x = (x * 997.0 + 0.123) % 1.0;
            let (a, b) = (x - 0.5, 3e3 * (0.7 - x) * 0.1_f64.powi(i % 9));
            let (fixed, exact) = ((Fixed::from_f64(a), Fixed::from_f64(b)), (Ball::exact(a), Ball::exact(b)));
            assert!(is_zero(&((fixed.0 + fixed.1).ball(0.0) - (exact.0.clone() + exact.1.clone()))));
            assert!(is_zero(&((fixed.0 - fixed.1).ball(0.0) - (exact.0.clone() - exact.1.clone()))));
            assert!(is_zero(&((fixed.0 * fixed.1).ball(UNIT) - exact.0 * exact.1)));
        }
    }

    /// Against the elementary functions of 256 bits, which are another author's.
    #[test]
    fn elementary_functions_are_within_their_error() {
        let constants = Constants::new();
        let mut x = 0.377;
        for i in 0..300 {
            x = (x * 991.0 + 0.346) % 1.0;
            let argument = 1.0 - x * 10.0_f64.powi(i % 3);
            let (fixed, exact) = (Fixed::from_f64(argument), Ball::exact(argument));
            assert!(is_zero(&(fixed.exp(&constants).ball(FUNCTION_ERROR) - exact.exp())), "exp {argument}");
            let angle = (x - 0.5) * 10.0_f64.powi(i % 7);
            let (fixed, exact) = (Fixed::from_f64(angle), Ball::exact(angle));
            let (cos, sin) = fixed.cos_sin(&constants);
            let error = FUNCTION_ERROR * (1.0 + angle.abs());
            assert!(is_zero(&(cos.ball(error) - exact.cos())), "cos {angle}");
            assert!(is_zero(&(sin.ball(error) - exact.sin())), "sin {angle}");
            let small = x * 0.1_f64.powi(i % 17);
            let logarithm = Fixed::from_f64(small).ln(&constants);
            assert!(is_zero(&(logarithm.ball(FUNCTION_ERROR) - Ball::exact(small).ln())), "ln {small}");
        }
        assert_eq!(Fixed::ONE.ln(&constants).to_f64(), 0.0);
    }
}
