//! Batches whose groups are drawn at rates of their own.

use dp_clipping::Clipped;
use rand::{CryptoRng, RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::gradient::Pass;
use crate::rates_by_loss::RateLevel;

/// The thinning of a batch: rates and shares of the groups, and a coin for each candidate.
#[derive(Debug)]
pub(super) struct ByGroup {
    /// The rate of the candidates.
    largest: f64,
    /// Below which coin a candidate of each group stays; `None` where every one does.
    stays: Vec<Option<u64>>,
    shares: Vec<f64>,
    /// One of each candidate.
    coins: Vec<u64>,
}

impl ByGroup {
    /// Groups at these rates, of candidates that are drawn at the largest one.
    pub(super) fn new(largest: f64, of_groups: &[RateLevel]) -> Self {
        let mut by_group = Self { largest, stays: Vec::new(), shares: Vec::new(), coins: Vec::new() };
        by_group.set(of_groups);
        by_group
    }

    /// Moves the groups to these rates.
    pub(super) fn set(&mut self, of_groups: &[RateLevel]) {
        // Rounded down: a record is drawn no more often than is accounted for.
        let below = |share: f64| (share.next_down() * 18_446_744_073_709_551_616.0) as u64;
        let stays = |rate: f64| (rate < self.largest).then(|| below(rate / self.largest));
        self.stays = of_groups.iter().map(|level| stays(level.rate.get())).collect();
        self.shares = of_groups.iter().map(|level| level.share).collect();
    }

    /// Draws the coins of a batch. That of a record follows from the step's key and the record's
    /// number, whoever else was drawn.
    pub(super) fn draw(&mut self, rng: &mut dyn CryptoRng, rows: &[usize]) {
        let mut key = [0; 32];
        rng.fill_bytes(&mut key);
        let mut coins = ChaCha20Rng::from_seed(key);
        let coin = |&row: &usize| {
            coins.set_word_pos(2 * row as u128);
            coins.next_u64()
        };
        self.coins.clear();
        self.coins.extend(rows.iter().map(coin));
    }

    /// Every candidate of a batch stays.
    #[cfg(feature = "audit")]
    pub(super) fn keep_all(&mut self, n_drawn: usize) {
        self.coins = vec![0; n_drawn];
    }

    /// The norms as the method sees them: over the group's share, and none of a candidate that does
    /// not stay, so that its scale is 0 and it is counted nowhere.
    pub(super) fn norms(&self, pass: &Pass) -> Vec<f64> {
        let seen = |((norm, &group), &coin): ((&f64, &usize), &u64)| {
            let stays = self.stays[group].is_none_or(|below| coin < below);
            if stays { norm / self.shares[group] } else { f64::NAN }
        };
        pass.norms.iter().zip(&pass.groups).zip(&self.coins).map(seen).collect()
    }

    /// Bounds and thresholds of the groups, of those that the method had.
    pub(super) fn restrict(&self, clipped: &mut Clipped) {
        for (bound, share) in clipped.group_bounds.iter_mut().zip(&self.shares) {
            *bound *= share;
        }
        let of_group = |(group, share)| *clipped.thresholds.get(group).unwrap_or(&clipped.thresholds[0]) * share;
        if !clipped.thresholds.is_empty() {
            clipped.thresholds = self.shares.iter().enumerate().map(of_group).collect();
        }
    }

    /// What rounding adds to the sensitivity is the same for every group, while its noise is over
    /// the group's share: of a sensitivity that holds for the whole bound, one that holds for each
    /// group's share.
    pub(super) fn sensitivity(&self, bound: f64, with_rounding: f64) -> f64 {
        let least = self.shares.iter().copied().fold(1.0, f64::min);
        bound + (with_rounding - bound) / least
    }
}

#[cfg(test)]
mod tests {
    use dp_accounting::SamplingRate;

    use super::*;

    fn by_group(rates: [f64; 2]) -> ByGroup {
        let level = |rate, share| RateLevel { rate: SamplingRate::new(rate).unwrap(), share };
        ByGroup::new(1.0, &[level(rates[0], 1.0), level(rates[1], 0.25)])
    }

    /// Rates ½ and 1: half of group 0 stays, all of group 1, whose norms are seen four times as long.
    /// 20,000 coins: a share beyond 5 standard deviations, .018, by chance once in 2 million.
    #[test]
    fn a_candidate_stays_with_the_ratio_of_the_rates() {
        let mut by_group = by_group([0.5, 1.0]);
        let rows: Vec<usize> = (0..40_000).collect();
        let groups: Vec<usize> = rows.iter().map(|row| row % 2).collect();
        by_group.draw(&mut ChaCha20Rng::seed_from_u64(1), &rows);
        let norms = by_group.norms(&Pass::of(Vec::new(), vec![2.0; rows.len()], groups));
        let (first, second): (Vec<f64>, Vec<f64>) = norms.chunks_exact(2).map(|pair| (pair[0], pair[1])).unzip();
        assert!(second.iter().all(|&norm| norm == 8.0));
        let stayed = first.iter().filter(|norm| **norm == 2.0).count();
        assert_eq!(stayed + first.iter().filter(|norm| norm.is_nan()).count(), 20_000);
        assert!((stayed as f64 / 20_000.0 - 0.5).abs() < 0.018, "{stayed}");
    }

    #[test]
    fn a_coin_is_that_of_its_record_whoever_else_is_drawn() {
        let draw = |rows: &[usize]| {
            let mut by_group = by_group([0.5, 1.0]);
            by_group.draw(&mut ChaCha20Rng::seed_from_u64(2), rows);
            by_group.coins
        };
        let (all, some) = (draw(&[0, 3, 7, 1_000_000]), draw(&[3, 1_000_000]));
        assert_eq!(some, [all[1], all[3]]);
        assert_ne!(all[0], all[1]);
    }

    /// A bound of 2 with rounding of .01: with a quarter of the bound, .51 over 2.04 is a quarter, but for
    /// the last digit, which the headroom under the bound covers.
    #[test]
    fn rounding_is_covered_for_every_share() {
        let sensitivity = by_group([0.5, 1.0]).sensitivity(2.0, 2.01);
        assert!((sensitivity - 2.04).abs() < 1e-12);
        assert!((0.25 * 2.0 + 0.01) / sensitivity <= 0.25 * (1.0 + 1e-12) && 2.01 <= sensitivity);
    }
}
