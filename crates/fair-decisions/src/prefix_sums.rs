//! Prefix sums by a factorisation.

use dp_clipping::noise::StepNoise;
use rand::CryptoRng;

use crate::error::DecisionError;
use crate::grid::N_CELLS;
use crate::hook;

/// A class has enough records for a threshold of its own group if it has this many standard
/// deviations of their noise, and this many at all.
const ENOUGH: f64 = 10.0;
const FEWEST: f64 = 30.0;
/// More records would leave the integers of double precision.
const MOST_RECORDS: f64 = (1_u64 << 33) as f64;

/// The square root of the matrix of prefix sums.
///
/// The matrix `A` of ones on and below the diagonal is `L·R`, both lower triangular and constant along
/// diagonals. `R` has the coefficients of `(1 − x)^(−1/2)`, `1, 1/2, 3/8, …`, rounded towards zero to
/// a grid of 2⁻²⁰, and `L = A·R⁻¹`. A release adds independent noise `z` to `R·counts` and returns
/// `L·(R·counts + z) = A·counts + L·z`.
///
/// **Sensitivity.** A record adds one column of `R`; the longest is the first. Its squared norm is a sum
/// of squares of integers, exact in double precision, and the root is rounded up.
///
/// **Exactness.** `R·counts` is a vector of integers below 2⁵³ steps.
///
/// **Source.** Fichtenberger, Henzinger and Upadhyay 2023; Bennett 1977: the largest error is
/// `1 + ln(n)/π` times the noise of a count at best, and here 2.39 times it for 64 cells.
#[derive(Debug, Clone, PartialEq)]
pub struct PrefixSums {
    /// First column of `R`, in steps.
    encoding: Vec<f64>,
    /// First column of `L`.
    decoding: Vec<f64>,
    column_norm: f64,
}

impl Default for PrefixSums {
    fn default() -> Self {
        Self::new()
    }
}

/// Steps in 1.
const PER_UNIT: f64 = PrefixSums::PER_UNIT;

impl PrefixSums {
    /// Steps in 1 of the grid that encoded counts are on.
    pub const PER_UNIT: f64 = (1_u64 << 20) as f64;

    /// Of the cells of a [`ScoreGrid`](crate::ScoreGrid).
    pub fn new() -> Self {
        let mut coefficient = 1.0;
        let mut encoding = Vec::with_capacity(N_CELLS);
        for k in 0..N_CELLS {
            encoding.push((coefficient * PER_UNIT).floor());
            coefficient *= (2 * k + 1) as f64 / (2 * k + 2) as f64;
        }
        // L·R = A: Σ_k l_k r_(n−k) = 1, and r_0 = 1.
        let mut decoding: Vec<f64> = Vec::with_capacity(N_CELLS);
        for n in 0..N_CELLS {
            let sum: f64 = decoding.iter().zip(encoding[..=n].iter().rev()).map(|(l, r)| l * r / PER_UNIT).sum();
            decoding.push(1.0 - sum);
        }
        let squares: f64 = encoding.iter().map(|r| r * r).sum();
        Self { encoding, decoding, column_norm: squares.sqrt().next_up() / PER_UNIT }
    }

    /// The most that one record changes the encoded counts, in Euclidean norm.
    pub fn column_norm(&self) -> f64 {
        self.column_norm
    }

    /// Exact counts by cell, encoded, in steps of 2⁻²⁰. **Not private.**
    pub fn encode(&self, cells: &[f64]) -> Vec<f64> {
        let of = |i: usize| cells[..=i].iter().zip(self.encoding[..=i].iter().rev()).map(|(x, r)| x * r).sum();
        (0..N_CELLS).map(of).collect()
    }

    /// Encoded counts with their noise, in steps, from the prefix sums that were released, `[blocks, cells]`.
    pub fn encode_released(&self, prefixes: &[f64]) -> Vec<f64> {
        let of_block = |block: &[f64]| {
            let before = std::iter::once(&0.0).chain(block);
            let cells: Vec<f64> = block.iter().zip(before).map(|(sum, before)| sum - before).collect();
            self.encode(&cells)
        };
        prefixes.chunks_exact(N_CELLS).flat_map(of_block).collect()
    }

    /// Prefix sums of encoded counts, in records.
    pub(crate) fn decode(&self, encoded: &[f64]) -> Vec<f64> {
        let of = |i: usize| encoded[..=i].iter().zip(self.decoding[..=i].iter().rev()).map(|(y, l)| y * l).sum();
        (0..N_CELLS).map(of).collect()
    }

    /// Covariance of the noise of two prefixes, over the variance of the noise of encoded counts.
    pub fn covariance(&self, i: usize, j: usize) -> f64 {
        let (short, long) = (i.min(j), i.max(j));
        (0..=short).map(|m| self.decoding[short - m] * self.decoding[long - m]).sum()
    }

    /// Variance of the noise of a weighted sum of prefixes, over that of the noise of encoded counts.
    pub(crate) fn variance_of(&self, weights: &[f64]) -> f64 {
        let at = |m: usize| weights[m..].iter().zip(&self.decoding).map(|(weight, l)| weight * l).sum::<f64>();
        (0..N_CELLS).map(|m| at(m).powi(2)).sum()
    }

    /// Standard deviation of the noise of encoded counts, in records.
    pub fn noise_std(&self, noise_multiplier: f64, records_per_unit: u64) -> f64 {
        noise_multiplier * records_per_unit as f64 * hook::column_norm(self.column_norm)
    }

    /// Records of each class from which a group may have a threshold of its own, at this standard deviation of
    /// the noise of encoded counts: those of which a tenth is one standard deviation of the noise in their number.
    pub fn enough_records(&self, noise_std: f64) -> f64 {
        let last = N_CELLS - 1;
        (ENOUGH * noise_std * self.covariance(last, last).sqrt()).max(FEWEST)
    }

    /// The largest standard deviation of the noise of a prefix, over that of the noise of encoded counts.
    pub fn largest_error(&self) -> f64 {
        (0..N_CELLS).map(|i| self.covariance(i, i)).fold(0.0, f64::max).sqrt()
    }

    /// Releases the prefix sums of blocks of exact counts, `[blocks, cells]`, with noise.
    ///
    /// **Guarantee.** If a unit has at most `records_per_unit` records, each in one cell of one block, this
    /// is a Gaussian mechanism with this noise multiplier. Noise is exactly rounded to a public grid.
    ///
    /// # Errors
    /// [`DecisionError::InvalidParameter`] for more than 2³³ records, a number of counts that is no
    /// multiple of the cells, and a noise multiplier that is not above 0 and finite.
    pub fn release(
        &self,
        counts: &[f64],
        noise_multiplier: f64,
        records_per_unit: u64,
        rng: &mut dyn CryptoRng,
    ) -> Result<Vec<f64>, DecisionError> {
        if !counts.len().is_multiple_of(N_CELLS) {
            return Err(DecisionError::invalid("counts", counts.len(), format!("a multiple of {N_CELLS} numbers")));
        }
        let n: f64 = counts.iter().sum();
        if !(0.0..=MOST_RECORDS).contains(&n) {
            return Err(DecisionError::invalid("records", n, format!("at most {MOST_RECORDS}")));
        }
        if !(noise_multiplier > 0.0 && noise_multiplier.is_finite()) {
            return Err(DecisionError::invalid("noise_multiplier", noise_multiplier, "above 0 and finite"));
        }
        let mut encoded: Vec<f64> = counts.chunks_exact(N_CELLS).flat_map(|cells| self.encode(cells)).collect();
        let std = self.noise_std(noise_multiplier, records_per_unit);
        StepNoise::draw(rng, std * PER_UNIT).add_f64(0, &mut encoded);
        for value in &mut encoded {
            *value /= PER_UNIT;
        }
        Ok(encoded.chunks_exact(N_CELLS).flat_map(|block| self.decode(block)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng as _;

    /// 1, 1/2, 3/8, 5/16: the coefficients of `(1 − x)^(−1/2)`.
    #[test]
    fn coefficients_are_those_of_the_square_root() {
        let sums = PrefixSums::new();
        let first: Vec<f64> = sums.encoding[..4].iter().map(|r| r / PER_UNIT).collect();
        assert_eq!(first, [1.0, 0.5, 0.375, 0.3125]);
        assert!((sums.column_norm() - 1.546).abs() < 1e-3, "{}", sums.column_norm());
    }

    /// Every pair of neighbours: a record in any cell, or in none.
    #[test]
    fn no_record_moves_the_encoded_counts_by_more_than_the_column_norm() {
        let sums = PrefixSums::new();
        let mut largest = 0.0_f64;
        for cell in 0..N_CELLS {
            let mut counts: Vec<f64> = (0..N_CELLS).map(|i| ((7 * i) % 13) as f64).collect();
            let before = sums.encode(&counts);
            counts[cell] += 1.0;
            let moved = sums.encode(&counts);
            // Integers below 2⁵³: the sum of squares is exact.
            let squares: f64 = moved.iter().zip(&before).map(|(a, b)| (a - b) * (a - b)).sum();
            assert!(squares.sqrt() <= sums.column_norm() * PER_UNIT, "{cell}");
            largest = largest.max(squares.sqrt());
        }
        assert!(largest >= sums.column_norm() * PER_UNIT * (1.0 - 1e-15));
    }

    #[test]
    fn decoding_gives_the_prefix_sums() {
        let sums = PrefixSums::new();
        let counts: Vec<f64> = (0..N_CELLS).map(|i| ((i * i) % 1_009) as f64).collect();
        let encoded: Vec<f64> = sums.encode(&counts).iter().map(|y| y / PER_UNIT).collect();
        let mut sum = 0.0;
        for (count, prefix) in counts.iter().zip(sums.decode(&encoded)) {
            sum += count;
            assert!((prefix - sum).abs() < 1e-8, "{prefix} {sum}");
        }
    }

    /// The largest error of a prefix is 2.39 times the noise of a count, and 8 times that of added cells is
    /// far above it.
    #[test]
    fn the_error_of_every_prefix_is_known() {
        let sums = PrefixSums::new();
        let most = (0..N_CELLS).map(|i| sums.covariance(i, i)).fold(0.0, f64::max).sqrt() * sums.column_norm();
        assert!((most - 2.39).abs() < 0.01, "{most}");
        let mut weights = [0.0; N_CELLS];
        (weights[5], weights[40]) = (1.0, -1.0);
        let by_hand = sums.covariance(5, 5) + sums.covariance(40, 40) - 2.0 * sums.covariance(5, 40);
        assert!((sums.variance_of(&weights) - by_hand).abs() < 1e-9);
        // 2,000 releases: the variance is within four of its standard errors, √(2/2,000).
        let mut rng = ChaCha20Rng::seed_from_u64(4);
        let noise: Vec<f64> =
            (0..2_000).map(|_| sums.release(&[0.0; N_CELLS], 2.0, 3, &mut rng).unwrap()[50]).collect();
        let found = noise.iter().map(|x| x * x).sum::<f64>() / 2_000.0;
        let known = sums.covariance(50, 50) * sums.noise_std(2.0, 3).powi(2);
        assert!((found / known - 1.0).abs() < 0.13, "{found} {known}");
    }

    #[test]
    fn what_cannot_be_released_is_refused() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let refused = |counts: &[f64], sigma: f64, rng: &mut ChaCha20Rng| {
            PrefixSums::new().release(counts, sigma, 1, rng).unwrap_err().to_string()
        };
        assert_eq!(refused(&[1.0; 3], 1.0, &mut rng), "counts = 3: expected a multiple of 64 numbers");
        assert_eq!(refused(&[1e9; 64], 1.0, &mut rng), "records = 64000000000: expected at most 8589934592");
        assert_eq!(refused(&[1.0; 64], 0.0, &mut rng), "noise_multiplier = 0: expected above 0 and finite");
    }
}
