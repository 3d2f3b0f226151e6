//! `Σ a_j·e^(ikx_j)` for k = 0, 1, 2, …: where nearly all of the time of an inversion goes.

use super::fixed::{Constants, FUNCTION_ERROR, Fixed, UNIT};

/// A complex number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Complex {
    pub(super) re: Fixed,
    pub(super) im: Fixed,
}

impl Complex {
    pub(super) const ONE: Self = Self { re: Fixed::ONE, im: Fixed::ZERO };

    #[inline]
    pub(super) fn times(self, other: Self) -> Self {
        Self { re: self.re * other.re - self.im * other.im, im: self.re * other.im + self.im * other.re }
    }

    /// A power of a number of modulus at most 1. Its error is `exponent` times the number's error,
    /// plus eight units for every factor.
    pub(super) fn power(self, mut exponent: u64) -> Self {
        let (mut result, mut square) = (Self::ONE, self);
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = result.times(square);
            }
            exponent >>= 1;
            if exponent > 0 {
                square = square.times(square);
            }
        }
        result
    }
}

/// Positive numbers, each of which turns by its angle at every step.
#[derive(Debug)]
pub(super) struct RotatingSum {
    /// A number, and its turn.
    numbers: Vec<[Complex; 2]>,
    /// Error of one step, relative to the sum of all numbers.
    error_of_step: f64,
}

impl RotatingSum {
    /// Takes pairs of modulus and angle; all angles have the same error.
    pub(super) fn new(
        numbers: impl Iterator<Item = (Fixed, Fixed)>,
        error_of_angle: f64,
        constants: &Constants,
    ) -> Self {
        let mut widest = 1.0_f64;
        let numbers: Vec<_> = numbers
            .map(|(modulus, angle)| {
                widest = widest.max(angle.to_f64().abs());
                let (re, im) = angle.cos_sin(constants);
                [Complex { re: modulus, im: Fixed::ZERO }, Complex { re, im }]
            })
            .collect();
        let error_of_step =
            4.0 * (error_of_angle + FUNCTION_ERROR * (1.0 + widest)) + 8.0 * UNIT * numbers.len() as f64;
        Self { numbers, error_of_step }
    }

    /// Bound on the error of the sum after a number of steps, if the numbers' sum is at most 1.
    pub(super) fn error_after(&self, steps: usize) -> f64 {
        self.error_of_step * (steps + 1) as f64
    }

    /// The sum, and on to the next k.
    pub(super) fn next(&mut self) -> Complex {
        let mut sum = Complex { re: Fixed::ZERO, im: Fixed::ZERO };
        for [number, turn] in &mut self.numbers {
            sum = Complex { re: sum.re + number.re, im: sum.im + number.im };
            *number = number.times(*turn);
        }
        sum
    }
}
