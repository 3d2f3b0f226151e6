//! Real numbers known to 200 bits and more: a midpoint of 256 bits and a radius that is always
//! rounded outwards.

use std::cell::RefCell;
use std::ops::{Add, Div, Mul, Neg, Sub};

use astro_float_num::{BigFloat, Consts, RoundingMode};

/// Bits of a midpoint.
const PRECISION: usize = 256;

/// Bits of a radius.
const COARSE: usize = 64;

const NEAREST: RoundingMode = RoundingMode::ToEven;

/// All numbers within `radius` of `middle`.
#[derive(Debug, Clone)]
pub(super) struct Ball {
    middle: BigFloat,
    radius: BigFloat,
}

/// Constants that the elementary functions need, computed once per thread.
fn with_constants<R>(f: impl FnOnce(&mut Consts) -> R) -> R {
    thread_local! {
        static CONSTANTS: RefCell<Option<Consts>> = const { RefCell::new(None) };
    }
    CONSTANTS.with_borrow_mut(|constants| {
        if constants.is_none() {
            *constants = Consts::new().ok();
        }
        match constants {
            Some(constants) => f(constants),
            // Only without memory for a few hundred bytes.
            None => unreachable!("the constants' cache cannot be allocated"),
        }
    })
}

/// `2^exponent`, as a radius.
fn power_of_two(exponent: i32) -> BigFloat {
    let mut one = BigFloat::from_word(1, COARSE);
    // 1 is 0.5·2¹.
    one.set_exponent(exponent + 1);
    one
}

/// A sum of radii, rounded up.
fn sum(terms: &[&BigFloat]) -> BigFloat {
    let total = terms.iter().fold(BigFloat::new(COARSE), |total, term| total.add(term, COARSE, NEAREST));
    // Each of at most four additions is off by 2^-64 relatively.
    total.mul(&outwards(), COARSE, NEAREST)
}

/// A product of the moduli of two numbers, rounded up.
fn product(a: &BigFloat, b: &BigFloat) -> BigFloat {
    a.abs().mul(&b.abs(), COARSE, NEAREST).mul(&outwards(), COARSE, NEAREST)
}

/// `1 + 2^-60`.
fn outwards() -> BigFloat {
    BigFloat::from_word(1, COARSE).add(&power_of_two(-60), COARSE, NEAREST)
}

impl Ball {
    /// The rounding of a result, at most `2^-250` of it: operations are right to half a unit in the
    /// last of 256 bits.
    fn rounded(middle: BigFloat, radius: &BigFloat) -> Self {
        let rounding = product(&middle, &power_of_two(-250));
        let radius = sum(&[radius, &rounding]);
        Self { middle, radius }
    }

    /// A number of the working precision, exactly.
    pub(super) fn exact(value: f64) -> Self {
        Self { middle: BigFloat::from_f64(value, PRECISION), radius: BigFloat::new(COARSE) }
    }

    pub(super) fn from_count(count: u64) -> Self {
        Self { middle: BigFloat::from_u64(count, PRECISION), radius: BigFloat::new(COARSE) }
    }

    /// Times a power of two, exactly.
    pub(super) fn scaled(mut self, exponent: i32) -> Self {
        for part in [&mut self.middle, &mut self.radius] {
            if let Some(own) = part.exponent().filter(|_| !part.is_zero()) {
                part.set_exponent(own + exponent);
            }
        }
        self
    }

    pub(super) const fn middle(&self) -> &BigFloat {
        &self.middle
    }

    /// Zero with a radius of `2^exponent`.
    pub(super) fn within_power_of_two(exponent: i32) -> Self {
        Self { middle: BigFloat::new(PRECISION), radius: power_of_two(exponent) }
    }

    /// All numbers of both.
    pub(super) fn hull(&self, other: &Self) -> Self {
        let half = Self::exact(0.5);
        let middle = (self.clone() + other.clone()) * half.clone();
        let distance = (self.clone() - other.clone()) * half;
        let radius = sum(&[&self.radius, &other.radius, &distance.middle.abs(), &distance.radius]);
        Self { radius: sum(&[&radius, &middle.radius]), middle: middle.middle }
    }

    pub(super) fn pi() -> Self {
        let middle = with_constants(|constants| constants.pi(PRECISION, NEAREST));
        Self::rounded(middle, &BigFloat::new(COARSE))
    }

    pub(super) fn exp(&self) -> Self {
        let middle = with_constants(|constants| self.middle.exp(PRECISION, NEAREST, constants));
        // e^r - 1 ≤ 2r for r ≤ 1; a wider argument is a failure, which the comparisons show as "not
        // known".
        let radius = product(&product(&middle, &self.radius), &BigFloat::from_word(2, COARSE));
        Self::rounded(middle, &radius)
    }

    /// The reference for the fixed-point function.
    #[cfg(test)]
    pub(super) fn cos(&self) -> Self {
        let middle = with_constants(|constants| self.middle.cos(PRECISION, NEAREST, constants));
        Self::rounded(middle, &self.radius)
    }

    /// The reference for the fixed-point function.
    #[cfg(test)]
    pub(super) fn sin(&self) -> Self {
        let middle = with_constants(|constants| self.middle.sin(PRECISION, NEAREST, constants));
        Self::rounded(middle, &self.radius)
    }

    /// All numbers of this modulus at most.
    pub(super) fn around_zero(&self) -> Self {
        Self { middle: BigFloat::new(PRECISION), radius: sum(&[&self.middle.abs(), &self.radius]) }
    }

    /// Needs a positive number whose relative radius is below a half.
    pub(super) fn ln(&self) -> Self {
        let middle = with_constants(|constants| self.middle.ln(PRECISION, NEAREST, constants));
        let relative = self.radius.div(&self.middle.abs(), COARSE, NEAREST);
        Self::rounded(middle, &product(&relative, &BigFloat::from_word(2, COARSE)))
    }

    /// Needs a positive number whose relative radius is below a half.
    pub(super) fn sqrt(&self) -> Self {
        let middle = self.middle.sqrt(PRECISION, NEAREST);
        let radius = self.radius.div(&middle, COARSE, NEAREST);
        Self::rounded(middle, &product(&radius, &outwards()))
    }

    pub(super) fn is_certainly_positive(&self) -> bool {
        self.middle.is_positive() && self.middle.cmp(&self.radius).is_some_and(|order| order > 0)
    }

    pub(super) fn is_certainly_below(&self, other: &Self) -> bool {
        (other.clone() - self.clone()).is_certainly_positive()
    }

    pub(super) fn is_negative(&self) -> bool {
        self.middle.is_negative()
    }

    /// The midpoint, nearly: for decisions that need not be exact, and for messages.
    pub(super) fn to_f64(&self) -> f64 {
        let (Some(exponent), Some(words)) = (self.middle.exponent(), self.middle.mantissa_digits()) else {
            return if self.middle.is_zero() { 0.0 } else { f64::NAN };
        };
        let leading = words.last().map_or(0.0, |word| *word as f64) * 2.0_f64.powi(-64);
        let sign = if self.middle.is_negative() { -1.0 } else { 1.0 };
        // In two steps: the power alone may underflow.
        let half = exponent.clamp(-2200, 2200) / 2;
        sign * leading * 2.0_f64.powi(half) * 2.0_f64.powi(exponent.clamp(-2200, 2200) - half)
    }
}

impl Add for Ball {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let radius = sum(&[&self.radius, &other.radius]);
        Self::rounded(self.middle.add(&other.middle, PRECISION, NEAREST), &radius)
    }
}

impl Neg for Ball {
    type Output = Self;
    fn neg(self) -> Self {
        Self { middle: self.middle.neg(), radius: self.radius }
    }
}

impl Sub for Ball {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Ball {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let radius = sum(&[
            &product(&self.middle, &other.radius),
            &product(&self.radius, &other.middle),
            &product(&self.radius, &other.radius),
        ]);
        Self::rounded(self.middle.mul(&other.middle, PRECISION, NEAREST), &radius)
    }
}

impl Div for Ball {
    type Output = Self;
    /// By a number whose relative radius is below a half.
    fn div(self, other: Self) -> Self {
        let middle = self.middle.div(&other.middle, PRECISION, NEAREST);
        let relative = other.radius.div(&other.middle.abs(), COARSE, NEAREST);
        let own = self.radius.div(&other.middle.abs(), COARSE, NEAREST);
        // 1/(1-r) ≤ 1 + 2r. In a continued fraction of hundreds of divisions, a factor of 2 in
        // place of that would leave nothing.
        let wider = sum(&[&BigFloat::from_word(1, COARSE), &relative, &relative]);
        let radius = sum(&[&product(&own, &wider), &product(&product(&middle, &relative), &wider)]);
        Self::rounded(middle, &radius)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balls_hold_what_they_should() {
        // (1/3)·3 = 1, ln(e^x) = x, √2² = 2: the difference is 0, within a radius of a few 2^-250
        // but not 0.
        let third = Ball::exact(1.0) / Ball::exact(3.0);
        let x = Ball::exact(-41.7);
        let two = Ball::exact(2.0).sqrt();
        for difference in
            [third * Ball::exact(3.0) - Ball::exact(1.0), x.exp().ln() - x, two.clone() * two - Ball::exact(2.0)]
        {
            assert!(!difference.is_certainly_positive() && !(-difference.clone()).is_certainly_positive());
            assert!(difference.is_certainly_below(&Ball::exact(2.0_f64.powi(-200))));
        }
        assert!(Ball::exact(1.0).is_certainly_below(&Ball::exact(1.0 + f64::EPSILON)));
        for value in [1.0, -3.25e-300, 7.0e100, 0.0] {
            assert_eq!(Ball::exact(value).to_f64(), value);
        }
    }
}
