//! Records that are alike, once.

use dp_engine::Records;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::error::Result;

/// The different records of a group. Records with the same features and label have the same
/// gradient, so a sum over the group needs each kind once: of the Dutch census a third is left.
#[derive(Debug, Default)]
pub(super) struct Distinct {
    /// The first record of each kind.
    pub(super) rows: Vec<usize>,
    /// Records of the kind.
    pub(super) counts: Vec<f64>,
}

impl Distinct {
    /// The kinds among these rows, in the order in which they occur.
    pub(super) fn among(records: &Records, rows: &[usize]) -> Result<Self> {
        let mut kinds = Self::default();
        let mut positions = HashMap::new();
        for &row in rows {
            match positions.entry(records.row_digest(row)?) {
                Entry::Occupied(position) => kinds.counts[*position.get()] += 1.0,
                Entry::Vacant(position) => {
                    position.insert(kinds.rows.len());
                    kinds.rows.push(row);
                    kinds.counts.push(1.0);
                }
            }
        }
        Ok(kinds)
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device};

    use super::*;
    use crate::PublicFacts;

    /// Record 3 is record 0 again; record 1 has its features and another label, record 2 its label
    /// and another feature.
    #[test]
    fn features_and_label_make_a_kind() {
        let facts = PublicFacts { n_records: 4, n_inputs: 2, n_classes: 2, n_groups: 1 };
        let features = [0.5, 1.0, 0.5, 1.0, 0.5, -1.0, 0.5, 1.0];
        let records = Records::new(&features, &[1, 0, 1, 1], &[0; 4], facts, DType::F32, &Device::Cpu).unwrap();
        let kinds = Distinct::among(&records, &[3, 0, 1, 2]).unwrap();
        assert_eq!((kinds.rows, kinds.counts), (vec![3, 1, 2], vec![2.0, 1.0, 1.0]));
        assert!(Distinct::among(&records, &[]).unwrap().rows.is_empty());
    }
}
