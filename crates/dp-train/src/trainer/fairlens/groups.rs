//! Groups of a batch: members, means, and the signs in a mean over pairs.

/// Who is in which group.
pub(super) struct Groups {
    pub(super) of_records: Vec<usize>,
    /// Positions by group.
    pub(super) members: Vec<Vec<usize>>,
}

impl Groups {
    pub(super) fn new(of_records: Vec<usize>, n_groups: usize) -> Self {
        let members = members(&of_records, n_groups);
        Self { of_records, members }
    }

    /// Weights of the records of a batch with which a mean over pairs of groups of `|m_a − m_b|`
    /// has the derivatives `weights[i]` with respect to record `i`'s value, `m_k` the mean of group
    /// `k`'s values.
    pub(super) fn pair_weights(&self, values: &[f64]) -> Vec<f64> {
        let signs = mean_signs(&group_means(values, &self.members));
        self.of_records.iter().map(|&group| signs[group] / self.members[group].len() as f64).collect()
    }
}

fn members(groups: &[usize], n_groups: usize) -> Vec<Vec<usize>> {
    let mut members = vec![Vec::new(); n_groups];
    for (i, &group) in groups.iter().enumerate() {
        members[group].push(i);
    }
    members
}

/// Mean over each group's positions; `None` for a group that is absent.
pub(super) fn group_means(values: &[f64], members: &[Vec<usize>]) -> Vec<Option<f64>> {
    let mean = |positions: &Vec<usize>| positions.iter().map(|&i| values[i]).sum::<f64>() / positions.len() as f64;
    members.iter().map(|positions| (!positions.is_empty()).then(|| mean(positions))).collect()
}

/// `c_k` with `Σ_k c_k m_k` the mean of `|m_a − m_b|` over all pairs of groups that are present.
fn mean_signs(means: &[Option<f64>]) -> Vec<f64> {
    let present = means.iter().flatten().count() as f64;
    let pairs = (present * (present - 1.0) / 2.0).max(1.0);
    let sign = |difference: f64| if difference == 0.0 { 0.0 } else { difference.signum() };
    means
        .iter()
        .map(|mean| {
            mean.map_or(0.0, |mean| means.iter().flatten().map(|other| sign(mean - other)).sum::<f64>() / pairs)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Means 3, 1, absent, 2: |3 − 1| + |3 − 2| + |1 − 2| = 4 over 3 pairs; c = (2, −2, 0, 0)/3.
    #[test]
    fn signs_by_hand() {
        let signs = mean_signs(&[Some(3.0), Some(1.0), None, Some(2.0)]);
        assert_eq!(signs, [2.0 / 3.0, -2.0 / 3.0, 0.0, 0.0]);
        assert_eq!(mean_signs(&[Some(3.0), None]), [0.0, 0.0]);
        assert_eq!(mean_signs(&[Some(3.0), Some(3.0)]), [0.0, 0.0]);
    }

    /// The means are 2 and 5: the derivatives of |2 − 5| are −½ for each of the first group and 1
    /// for the only one of the second.
    #[test]
    fn weights_of_pairs_by_hand() {
        assert_eq!(Groups::new(vec![0, 1, 0], 2).pair_weights(&[1.0, 5.0, 3.0]), [-0.5, 1.0, -0.5]);
    }
}
