//! The group that a model serves worst.

use fair_metrics::macro_accuracy;

use crate::record::{ClassRecalls, MetricsRecord};

/// Records of its rarest class that a group needs to be compared: the recall of 100 records has a
/// standard error of five points at most.
pub const LEAST_OF_A_CLASS: usize = 100;

impl ClassRecalls {
    /// Mean of the class recalls within the group.
    pub fn macro_accuracy(&self) -> Option<f64> {
        macro_accuracy(&self.recall)
    }

    /// Whether every class has enough records in the group.
    fn can_be_compared(&self) -> bool {
        self.sizes.iter().all(|&size| size >= LEAST_OF_A_CLASS)
    }
}

impl MetricsRecord {
    /// The least macro accuracy of a group, among those with [`LEAST_OF_A_CLASS`] records of every
    /// class; `None` if no group has so many.
    pub fn worst_group_macro_accuracy(&self) -> Option<f64> {
        let compared = self.group_recalls.iter().filter(|group| group.can_be_compared());
        compared.filter_map(ClassRecalls::macro_accuracy).reduce(f64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up as fixture;

    #[test]
    fn a_small_group_is_not_the_worst() {
        let group = |recall: [f64; 2], sizes: [usize; 2]| ClassRecalls {
            recall: recall.map(Some).to_vec(),
            sizes: sizes.to_vec(),
        };
        let mut metrics = fixture::study().experiments[0].methods[0].runs[0].test.clone();
        assert_eq!(metrics.worst_group_macro_accuracy(), None, "a record from before");
        metrics.group_recalls = vec![group([0.9, 0.7], [500, 100]), group([1.0, 0.5], [400, 200])];
        assert!((metrics.worst_group_macro_accuracy().unwrap() - 0.75).abs() < 1e-12);
        metrics.group_recalls.push(group([0.9, 0.1], [500, LEAST_OF_A_CLASS - 1]));
        assert!((metrics.worst_group_macro_accuracy().unwrap() - 0.75).abs() < 1e-12);
    }
}
