//! Which groups may have the lowest figure.

use super::contrast::Contrast;
use super::rate::mean;
use super::share::Share;

/// Groups that cannot be told from the lowest, in order: a confidence set for the worst group. Each
/// group has the shares whose mean is compared.
///
/// **Guarantee.** The set holds the truly lowest group with probability `level` at least, and all of
/// them together where several are equal: of groups that are alike, none is said to be above the
/// lowest. A group leaves the set only if another one is below it by a one-sided test at
/// `(1 − level)/(k (k − 1))` for `k` groups, so that all pairs hold together.
///
/// # Edge cases
/// Groups with an [unknown](Share::is_known) share stay in it, and nothing is concluded from them.
///
/// # Source
/// Subset selection: Gupta 1965; multiple comparisons with the best: Hsu 1984. Bonferroni's bound
/// stands for their joint quantile, since groups differ in size and several may be lowest.
pub fn not_above_the_lowest(groups: &[Vec<Share>], level: f64) -> Vec<usize> {
    let contrasts: Vec<Contrast> = groups.iter().map(|shares| mean(shares)).collect();
    let n_pairs = groups.len() * groups.len().saturating_sub(1);
    let tail = (1.0 - level) / n_pairs.max(1) as f64;
    let is_above = |group: &Contrast, other: &Contrast| {
        if !group.is_known() || !other.is_known() || group.estimate() <= other.estimate() {
            return false;
        }
        let difference = group.minus(1.0, other);
        difference.deviate(0.0) > difference.quantile(tail)
    };
    let stays = |group: &usize| !contrasts.iter().any(|other| is_above(&contrasts[*group], other));
    (0..groups.len()).filter(stays).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(n: f64, right: f64, std: f64) -> Vec<Share> {
        let variance = std * std;
        let recall = Share::independent(0.5 * n * right, 0.5 * n * (1.0 - right), variance, variance);
        vec![recall; 2]
    }

    #[test]
    fn a_group_that_is_far_below_stands_alone() {
        let groups = [group(2_000.0, 0.9, 3.73), group(2_000.0, 0.8, 3.73), group(2_000.0, 0.6, 3.73)];
        assert_eq!(not_above_the_lowest(&groups, 0.95), [2]);
    }

    #[test]
    fn groups_that_are_close_stay_together() {
        let groups = [group(2_000.0, 0.9, 3.73), group(2_000.0, 0.8, 3.73), group(2_000.0, 0.795, 3.73)];
        assert_eq!(not_above_the_lowest(&groups, 0.95), [1, 2]);
        let alike = vec![group(1_000.0, 0.8, 1.0); 8];
        assert_eq!(not_above_the_lowest(&alike, 0.95), (0..8).collect::<Vec<_>>());
    }

    /// The second group is below the third; the first is too small for its estimate to count.
    #[test]
    fn small_and_unknown_groups_stay() {
        let groups = [group(60.0, 0.7, 0.1), group(5_000.0, 0.64, 0.1), group(5_000.0, 0.7, 0.1)];
        assert_eq!(not_above_the_lowest(&groups, 0.95), [0, 1]);
        let groups = [group(20.0, 0.99, 4.0), group(5_000.0, 0.64, 4.0), group(5_000.0, 0.7, 4.0)];
        assert_eq!(not_above_the_lowest(&groups, 0.95), [0, 1]);
        assert_eq!(not_above_the_lowest(&[group(20.0, 0.5, 0.0)], 0.95), [0]);
    }
}
