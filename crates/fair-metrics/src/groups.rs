//! Records assigned to groups.

use crate::MetricError;

/// The group of every record, validated once.
///
/// # Shapes
/// `assignment` is `[records]` with values in `0..n_groups`.
///
/// # Edge cases
/// A group with no record is allowed: its metrics are undefined and its count is 0.
///
/// # Errors
/// [`MetricError::GroupOutOfRange`] names the first record whose group is out of range.
///
/// # Example
/// ```
/// use fair_metrics::Groups;
///
/// let groups = Groups::new(&[0, 1, 1], 3)?;
/// assert_eq!(groups.counts(), [1, 2, 0]);
/// # Ok::<(), fair_metrics::MetricError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Groups<'a> {
    assignment: &'a [usize],
    counts: Vec<usize>,
}

impl<'a> Groups<'a> {
    /// Checks the assignment and counts the records of each group.
    ///
    /// # Errors
    /// A group index of `n_groups` or more.
    pub fn new(assignment: &'a [usize], n_groups: usize) -> Result<Self, MetricError> {
        let mut counts = vec![0; n_groups];
        for (index, &value) in assignment.iter().enumerate() {
            match counts.get_mut(value) {
                Some(count) => *count += 1,
                None => return Err(MetricError::GroupOutOfRange { index, value, n_groups }),
            }
        }
        Ok(Self { assignment, counts })
    }

    /// The group of each record.
    pub fn assignment(&self) -> &'a [usize] {
        self.assignment
    }

    /// Records by group.
    pub fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// Number of groups, empty ones included.
    pub fn n_groups(&self) -> usize {
        self.counts.len()
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.assignment.len()
    }

    /// True when there is no record at all.
    pub fn is_empty(&self) -> bool {
        self.assignment.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_record_that_is_out_of_range() {
        let error = Groups::new(&[0, 1, 2], 2).unwrap_err();
        assert_eq!(error, MetricError::GroupOutOfRange { index: 2, value: 2, n_groups: 2 });
    }

    #[test]
    fn no_records_is_not_an_error() {
        let groups = Groups::new(&[], 2).unwrap();
        assert!(groups.is_empty());
        assert_eq!(groups.counts(), [0, 0]);
    }
}
