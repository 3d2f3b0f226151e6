//! Released cumulative counts of scores.

use dp_clipping::noise::StepNoise;
use fair_metrics::noisy::Share;
use rand::CryptoRng;
use serde::{Deserialize, Serialize};

use crate::error::DecisionError;
use crate::grid::{N_CELLS, N_EDGES};
use crate::monotone::rising;
use crate::prefix_sums::PrefixSums;

/// Decimals of a released prefix: rounding moves it by less than a record's thousandth.
const DECIMALS: f64 = 1e3;

/// Exact counts of records by group, class and cell of the score. **Not private.**
#[derive(Debug, Clone, PartialEq)]
pub struct ScoreCells(Vec<f64>);

impl ScoreCells {
    /// No records of this many groups.
    pub fn new(n_groups: usize) -> Self {
        Self(vec![0.0; n_groups * 2 * N_CELLS])
    }

    /// Counts that were added up elsewhere, `[groups, 2, cells]`.
    pub fn of(values: Vec<f64>) -> Self {
        Self(values)
    }

    /// Counts a record.
    ///
    /// # Panics
    /// Beyond the groups, classes and cells.
    pub fn add(&mut self, group: usize, class: usize, cell: usize) {
        self.0[(group * 2 + class) * N_CELLS + cell] += 1.0;
    }

    /// The counts, `[groups, 2, cells]`.
    pub fn into_values(self) -> Vec<f64> {
        self.0
    }
}

/// For each group and class, the number of records in the cells up to each, with noise of known
/// covariance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CumulativeCounts {
    n_groups: usize,
    /// Standard deviation of the noise of encoded counts.
    noise_std: f64,
    /// `[groups, 2, cells]`.
    prefixes: Vec<f64>,
}

impl CumulativeCounts {
    /// Releases counts.
    ///
    /// **Guarantee.** That of [`PrefixSums::release`]: a record is in one cell of one group and class.
    ///
    /// # Errors
    /// Those of [`PrefixSums::release`].
    pub fn release(
        sums: &PrefixSums,
        cells: &ScoreCells,
        noise_multiplier: f64,
        records_per_unit: u64,
        rng: &mut dyn CryptoRng,
    ) -> Result<Self, DecisionError> {
        let mut prefixes = sums.release(&cells.0, noise_multiplier, records_per_unit, rng)?;
        for value in &mut prefixes {
            *value = (*value * DECIMALS).round() / DECIMALS;
        }
        let noise_std = sums.noise_std(noise_multiplier, records_per_unit);
        Ok(Self { n_groups: cells.0.len() / (2 * N_CELLS), noise_std, prefixes })
    }

    /// Counts without noise, for comparison. **Not private.**
    pub fn exact(cells: &ScoreCells) -> Self {
        let mut prefixes = cells.0.clone();
        for block in prefixes.chunks_exact_mut(N_CELLS) {
            for i in 1..N_CELLS {
                block[i] += block[i - 1];
            }
        }
        Self { n_groups: prefixes.len() / (2 * N_CELLS), noise_std: 0.0, prefixes }
    }

    /// Counts as they are on average, with noise of this standard deviation in what is said of them: for plans.
    pub fn expected(cells: &ScoreCells, noise_std: f64) -> Self {
        Self { noise_std, ..Self::exact(cells) }
    }

    /// Checks counts that were read from a file.
    ///
    /// # Errors
    /// [`DecisionError::InvalidParameter`] for numbers that cannot be a release's.
    pub fn check(&self) -> Result<(), DecisionError> {
        let (found, expected) = (self.prefixes.len(), self.n_groups.saturating_mul(2 * N_CELLS));
        if found != expected {
            return Err(DecisionError::invalid("prefixes", found, format!("{expected} numbers")));
        }
        if !(self.noise_std >= 0.0 && self.noise_std.is_finite()) {
            return Err(DecisionError::invalid("noise_std", self.noise_std, "finite, at least 0"));
        }
        match self.prefixes.iter().find(|value| !value.is_finite()) {
            Some(value) => Err(DecisionError::invalid("prefixes", value, "finite numbers")),
            None => Ok(()),
        }
    }

    /// Groups.
    pub const fn n_groups(&self) -> usize {
        self.n_groups
    }

    /// Standard deviation of the noise of encoded counts.
    pub const fn noise_std(&self) -> f64 {
        self.noise_std
    }

    /// Some groups as one, whose noise is the sum of theirs.
    #[must_use]
    pub fn together(&self, groups: &[usize]) -> Self {
        let mut prefixes = vec![0.0; 2 * N_CELLS];
        for &group in groups {
            let own = &self.prefixes[group * 2 * N_CELLS..][..2 * N_CELLS];
            prefixes.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        }
        Self { n_groups: 1, noise_std: self.noise_std * (groups.len() as f64).sqrt(), prefixes }
    }

    /// Standard deviation of the noise of a number of records.
    pub fn total_noise(&self, sums: &PrefixSums) -> f64 {
        self.noise_std * sums.covariance(N_CELLS - 1, N_CELLS - 1).sqrt()
    }

    pub(crate) fn prefix(&self, group: usize, class: usize) -> &[f64] {
        &self.prefixes[(group * 2 + class) * N_CELLS..][..N_CELLS]
    }

    /// Records of a class in a group.
    pub fn total(&self, group: usize, class: usize) -> f64 {
        self.prefix(group, class)[N_CELLS - 1]
    }

    /// Records of a class above an edge, and the others.
    pub fn share_above(&self, sums: &PrefixSums, group: usize, class: usize, edge: usize) -> Share {
        let prefix = self.prefix(group, class);
        let (below, all) = (prefix[edge], prefix[N_CELLS - 1]);
        let variance = self.noise_std * self.noise_std;
        let of = |i: usize, j: usize| variance * sums.covariance(i, j);
        let (last, both) = (N_CELLS - 1, of(edge, N_CELLS - 1));
        Share {
            noise_covariance: both - of(edge, edge),
            ..Share::independent(all - below, below, of(last, last) + of(edge, edge) - 2.0 * both, of(edge, edge))
        }
    }

    /// The positive and the negative records of a group in a range of cells.
    pub fn positives_between(&self, sums: &PrefixSums, group: usize, cells: std::ops::Range<usize>) -> Share {
        let of = |class: usize| {
            let prefix = self.prefix(group, class);
            let below = if cells.start == 0 { 0.0 } else { prefix[cells.start - 1] };
            prefix[cells.end - 1] - below
        };
        let mut weights = [0.0; N_CELLS];
        weights[cells.end - 1] = 1.0;
        if cells.start > 0 {
            weights[cells.start - 1] = -1.0;
        }
        let variance = self.noise_std * self.noise_std * sums.variance_of(&weights);
        Share::independent(of(1), of(0), variance, variance)
    }

    /// Standard normal numbers for the draw of records and of noise.
    pub(crate) fn normal(&self, rng: &mut dyn CryptoRng) -> Vec<f64> {
        let mut normal = vec![0.0; 2 * self.prefixes.len()];
        StepNoise::draw(rng, 1.0).add_f64(0, &mut normal);
        normal
    }

    /// Counts that might as well have been released: of other records of the same people, with other noise, each
    /// times its factor.
    ///
    /// Numbers by cell vary as those of Poisson's law, to a normal approximation.
    pub(crate) fn again(&self, sums: &PrefixSums, normal: &[f64], [records, noise]: [f64; 2]) -> Self {
        let (of_records, of_noise) = normal.split_at(self.prefixes.len());
        let mut prefixes = Vec::with_capacity(self.prefixes.len());
        for (place, released) in self.prefixes.chunks_exact(N_CELLS).enumerate() {
            let cells = place * N_CELLS..(place + 1) * N_CELLS;
            let all = released[N_CELLS - 1].max(0.0);
            let clamped: Vec<f64> = released.iter().map(|value| value.clamp(0.0, all)).collect();
            let noise: Vec<f64> =
                of_noise[cells.clone()].iter().map(|normal| noise * self.noise_std * normal).collect();
            let (mut before, mut sum) = (0.0, 0.0);
            for ((normal, below), noise) in of_records[cells].iter().zip(rising(&clamped)).zip(sums.decode(&noise)) {
                let n = below - before;
                sum += n + records * n.sqrt() * normal;
                before = below;
                prefixes.push(sum + noise);
            }
        }
        Self { n_groups: self.n_groups, noise_std: self.noise_std, prefixes }
    }

    /// Shares of a class in a group above each edge, falling from edge to edge.
    pub fn monotone_shares(&self, group: usize, class: usize) -> Vec<f64> {
        let prefix = self.prefix(group, class);
        let all = prefix[N_CELLS - 1].max(1.0);
        let below: Vec<f64> = prefix[..N_EDGES].iter().map(|below| (below / all).clamp(0.0, 1.0)).collect();
        rising(&below).iter().map(|below| 1.0 - below).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng as _;

    fn cells() -> ScoreCells {
        let mut cells = ScoreCells::new(2);
        for i in 0..20_000 {
            cells.add(i % 2, (i / 2) % 2, (i / 4 * 7) % 50 + 7 * ((i / 2) % 2));
        }
        cells
    }

    #[test]
    fn shares_are_those_of_the_counts() {
        let (sums, exact) = (PrefixSums::new(), CumulativeCounts::exact(&cells()));
        // Cells 7 to 56, 100 records each; above edge 31 are the cells from 32 on.
        let share = exact.share_above(&sums, 1, 1, 31);
        assert_eq!((share.hits, share.others, share.is_exact()), (2_500.0, 2_500.0, true));
        let between = exact.positives_between(&sums, 0, 0..10);
        assert_eq!((between.hits, between.others), (300.0, 1_000.0));
        assert_eq!(exact.monotone_shares(0, 0)[24], 0.5);
    }

    /// Of 3,000 releases, the deviation of a rate's numerator has the stated variance.
    #[test]
    fn the_noise_of_a_share_is_what_it_says() {
        let (sums, cells) = (PrefixSums::new(), ScoreCells::new(1));
        let mut rng = ChaCha20Rng::seed_from_u64(9);
        let (mut squares, mut expected) = (0.0, 0.0);
        for _ in 0..3_000 {
            let counts = CumulativeCounts::release(&sums, &cells, 5.0, 1, &mut rng).unwrap();
            let share = counts.share_above(&sums, 0, 1, 20);
            squares += (0.7 * share.hits - 0.3 * share.others).powi(2) / 3_000.0;
            let both = 2.0 * 0.7 * 0.3 * share.noise_covariance;
            expected = 0.49 * share.noise_of_hits + 0.09 * share.noise_of_others - both;
        }
        assert!((squares / expected - 1.0).abs() < 0.11, "{squares} {expected}");
    }

    #[test]
    fn damaged_counts_are_refused() {
        let mut counts = CumulativeCounts::exact(&cells());
        counts.check().unwrap();
        counts.prefixes[3] = f64::NAN;
        assert_eq!(counts.check().unwrap_err().to_string(), "prefixes = NaN: expected finite numbers");
        counts.n_groups = 3;
        assert_eq!(counts.check().unwrap_err().to_string(), "prefixes = 256: expected 384 numbers");
    }
}
