//! Released cumulative counts of scores.

use std::ops::Range;

use dp_clipping::noise::StepNoise;
use fair_metrics::noisy::Share;
use rand::CryptoRng;
use serde::{Deserialize, Serialize};

use crate::error::DecisionError;
use crate::grid::{N_CELLS, N_EDGES};
use crate::mixture::Mixture;
use crate::monotone::rising;
use crate::prefix_sums::PrefixSums;

/// Decimals of a released prefix: rounding moves it by less than a record's thousandth.
const DECIMALS: f64 = 1e3;
/// Far more classes than counts can be told from noise for.
const MOST_CLASSES: usize = 1 << 16;

/// Exact counts of records by group, class and cell of the score. **Not private.**
///
/// The last class is the positive one: it is answered above a threshold. Of more than two classes, each other one
/// has two blocks of cells: of its records that are answered right where the positive class is not, and of its
/// other records. Numbers of right answers at every threshold follow.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoreCells {
    n_classes: usize,
    /// `[groups, blocks, cells]`.
    values: Vec<f64>,
}

impl ScoreCells {
    /// No records of this many groups, of two classes.
    pub fn new(n_groups: usize) -> Self {
        Self::of_classes(n_groups, 2)
    }

    /// No records of this many groups and classes.
    ///
    /// # Panics
    /// For less than two classes.
    pub fn of_classes(n_groups: usize, n_classes: usize) -> Self {
        Self { n_classes, values: vec![0.0; n_groups * n_blocks(n_classes) * N_CELLS] }
    }

    /// The same with counts that were added up elsewhere, `[groups, blocks, cells]`.
    #[must_use]
    pub fn with_values(self, values: Vec<f64>) -> Self {
        Self { values, ..self }
    }

    /// Counts a record of one of two classes.
    ///
    /// # Panics
    /// Beyond the groups, classes and cells.
    pub fn add(&mut self, group: usize, class: usize, cell: usize) {
        self.add_of_many(group, class, true, cell);
    }

    /// Counts a record. `is_right`: whether it is answered right where the positive class is not answered; of the
    /// positive class it says nothing, and of two classes it is so.
    ///
    /// # Panics
    /// Beyond the groups, classes and cells.
    pub fn add_of_many(&mut self, group: usize, class: usize, is_right: bool, cell: usize) {
        let block = group * n_blocks(self.n_classes) + block(self.n_classes, class, is_right);
        self.values[block * N_CELLS + cell] += 1.0;
    }

    /// The counts, `[groups, blocks, cells]`.
    pub fn into_values(self) -> Vec<f64> {
        self.values
    }
}

/// Blocks of cells of a group.
const fn n_blocks(n_classes: usize) -> usize {
    if n_classes == 2 { 2 } else { (2 * n_classes).saturating_sub(1) }
}

/// The block of a class's records.
const fn block(n_classes: usize, class: usize, is_right: bool) -> usize {
    if n_classes == 2 {
        class
    } else if is_right || class + 1 == n_classes {
        2 * class
    } else {
        2 * class + 1
    }
}

/// For each group and class, the number of records in the cells up to each, with noise of known
/// covariance.
///
/// *Sides.* Rates compare the positive class, side 1, with all others together, side 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CumulativeCounts {
    n_groups: usize,
    #[serde(default = "two", skip_serializing_if = "is_two")]
    n_classes: usize,
    /// Standard deviation of the noise of encoded counts.
    noise_std: f64,
    /// `[groups, blocks, cells]`, see [`ScoreCells`].
    prefixes: Vec<f64>,
}

const fn two() -> usize {
    2
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_two(n: &usize) -> bool {
    *n == 2
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
        let mut prefixes = sums.release(&cells.values, noise_multiplier, records_per_unit, rng)?;
        for value in &mut prefixes {
            *value = (*value * DECIMALS).round() / DECIMALS;
        }
        let noise_std = sums.noise_std(noise_multiplier, records_per_unit);
        Ok(Self { noise_std, prefixes, ..Self::exact(cells) })
    }

    /// Counts without noise, for comparison. **Not private.**
    pub fn exact(cells: &ScoreCells) -> Self {
        let mut prefixes = cells.values.clone();
        for block in prefixes.chunks_exact_mut(N_CELLS) {
            for i in 1..N_CELLS {
                block[i] += block[i - 1];
            }
        }
        let n_classes = cells.n_classes;
        let n_groups = prefixes.len() / (n_blocks(n_classes) * N_CELLS);
        Self { n_groups, n_classes, noise_std: 0.0, prefixes }
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
        if !(2..=MOST_CLASSES).contains(&self.n_classes) {
            return Err(DecisionError::invalid("n_classes", self.n_classes, format!("2 to {MOST_CLASSES}")));
        }
        let (found, expected) = (self.prefixes.len(), self.n_groups.saturating_mul(self.n_blocks() * N_CELLS));
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

    /// Blocks of cells of a group with this many classes, see [`ScoreCells`].
    pub const fn blocks_of_group(n_classes: usize) -> usize {
        n_blocks(n_classes)
    }

    /// Classes.
    pub const fn n_classes(&self) -> usize {
        self.n_classes
    }

    const fn n_blocks(&self) -> usize {
        n_blocks(self.n_classes)
    }

    /// The blocks of a side.
    const fn blocks(&self, side: usize) -> Range<usize> {
        let positive = self.n_blocks() - 1;
        if side == 0 { 0..positive } else { positive..positive + 1 }
    }

    /// Standard deviation of the noise of a side's encoded counts: of all its blocks together.
    pub fn encoding_noise(&self, side: usize) -> f64 {
        self.variance(side).sqrt()
    }

    /// Variance of the noise of a side's encoded counts.
    pub(crate) fn variance(&self, side: usize) -> f64 {
        self.noise_std * self.noise_std * self.blocks(side).len() as f64
    }

    /// Some groups as one, whose noise is the sum of theirs.
    #[must_use]
    pub fn together(&self, groups: &[usize]) -> Self {
        let length = self.n_blocks() * N_CELLS;
        let mut prefixes = vec![0.0; length];
        for &group in groups {
            let own = &self.prefixes[group * length..][..length];
            prefixes.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        }
        Self { n_groups: 1, noise_std: self.noise_std * (groups.len() as f64).sqrt(), prefixes, ..*self }
    }

    /// Standard deviation of the noise of the number of records of a side in a group.
    pub fn total_noise(&self, sums: &PrefixSums, side: usize) -> f64 {
        (self.variance(side) * sums.covariance(N_CELLS - 1, N_CELLS - 1)).sqrt()
    }

    /// Records of each side from which a group may have a threshold of its own, see
    /// [`PrefixSums::enough_records`].
    pub fn enough_records(&self, sums: &PrefixSums) -> f64 {
        sums.enough_records(self.encoding_noise(0))
    }

    fn prefix_of_block(&self, group: usize, block: usize) -> &[f64] {
        &self.prefixes[(group * self.n_blocks() + block) * N_CELLS..][..N_CELLS]
    }

    pub(crate) fn prefix(&self, group: usize, side: usize) -> Vec<f64> {
        let mut sum = vec![0.0; N_CELLS];
        for block in self.blocks(side) {
            sum.iter_mut().zip(self.prefix_of_block(group, block)).for_each(|(sum, own)| *sum += own);
        }
        sum
    }

    /// Records of a side in a group.
    pub fn total(&self, group: usize, side: usize) -> f64 {
        self.blocks(side).map(|block| self.prefix_of_block(group, block)[N_CELLS - 1]).sum()
    }

    /// Records of a class in a group.
    pub fn total_of_class(&self, group: usize, class: usize) -> f64 {
        if class + 1 == self.n_classes {
            return self.total(group, 1);
        }
        self.blocks_of_negative(class).map(|block| self.prefix_of_block(group, block)[N_CELLS - 1]).sum()
    }

    /// The blocks of a class that is not the positive one: first its right answers where that is not answered.
    fn blocks_of_negative(&self, class: usize) -> Range<usize> {
        if class + 1 == self.n_classes {
            return 0..0;
        }
        let first = block(self.n_classes, class, true);
        first..if self.n_classes == 2 { first + 1 } else { first + 2 }
    }

    /// Records of a side above an edge, and the others; of a [`Mixture`] of edges their mean over the coin.
    pub fn share_above(&self, sums: &PrefixSums, group: usize, side: usize, threshold: impl Into<Mixture>) -> Share {
        share(sums, &self.prefix(group, side), self.variance(side), &threshold.into())
    }

    /// Records of a class that are answered right with a threshold at an edge, and its others; of a [`Mixture`]
    /// their mean over the coin.
    pub fn recall(&self, sums: &PrefixSums, group: usize, class: usize, threshold: impl Into<Mixture>) -> Share {
        let threshold = threshold.into();
        if class + 1 == self.n_classes {
            return self.share_above(sums, group, 1, threshold);
        }
        let variance = self.noise_std * self.noise_std;
        let mut blocks = self.blocks_of_negative(class);
        let right = blocks.next().map_or(Share::exact(0.0, 0.0), |block| {
            share(sums, self.prefix_of_block(group, block), variance, &threshold).opposite()
        });
        blocks.fold(right, |right, block| {
            let wrong = self.prefix_of_block(group, block)[N_CELLS - 1];
            right.and(Share::independent(0.0, wrong, 0.0, variance * sums.covariance(N_CELLS - 1, N_CELLS - 1)))
        })
    }

    /// The positive and the other records of a group in a range of cells.
    pub fn positives_between(&self, sums: &PrefixSums, group: usize, cells: Range<usize>) -> Share {
        let of = |side: usize| {
            let prefix = self.prefix(group, side);
            let below = if cells.start == 0 { 0.0 } else { prefix[cells.start - 1] };
            prefix[cells.end - 1] - below
        };
        let mut weights = [0.0; N_CELLS];
        weights[cells.end - 1] = 1.0;
        if cells.start > 0 {
            weights[cells.start - 1] = -1.0;
        }
        let variance = sums.variance_of(&weights);
        Share::independent(of(1), of(0), variance * self.variance(1), variance * self.variance(0))
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
        Self { prefixes, ..*self }
    }

    /// Shares of a side in a group above each edge, falling from edge to edge.
    pub fn monotone_shares(&self, group: usize, side: usize) -> Vec<f64> {
        let prefix = self.prefix(group, side);
        rising_shares(&prefix, prefix[N_CELLS - 1]).iter().map(|below| 1.0 - below).collect()
    }

    /// Shares of a class in a group that are answered right with a threshold at each edge: rising, and of the
    /// positive class falling.
    pub(crate) fn monotone_recall(&self, group: usize, class: usize) -> Vec<f64> {
        let mut blocks = self.blocks_of_negative(class);
        match blocks.next() {
            None => self.monotone_shares(group, 1),
            Some(right) => rising_shares(self.prefix_of_block(group, right), self.total_of_class(group, class)),
        }
    }
}

/// Records above a threshold and below it, by their prefix sums with noise of this variance.
fn share(sums: &PrefixSums, prefix: &[f64], variance: f64, threshold: &Mixture) -> Share {
    let last = N_CELLS - 1;
    let (below, all) = (threshold.mean(|edge| prefix[edge]), prefix[last]);
    let mut weights = [0.0; N_CELLS];
    threshold.parts().iter().for_each(|&(edge, probability)| weights[edge] = probability);
    let of_below = variance * sums.variance_of(&weights);
    let of_all = variance * sums.covariance(last, last);
    let both = variance * threshold.mean(|edge| sums.covariance(edge, last));
    Share {
        noise_covariance: both - of_below,
        ..Share::independent(all - below, below, of_all + of_below - 2.0 * both, of_below)
    }
}

/// Shares of all records below each edge.
fn rising_shares(prefix: &[f64], all: f64) -> Vec<f64> {
    let all = all.max(1.0);
    let below: Vec<f64> = prefix[..N_EDGES].iter().map(|below| (below / all).clamp(0.0, 1.0)).collect();
    rising(&below)
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
