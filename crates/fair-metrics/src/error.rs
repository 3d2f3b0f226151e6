//! The errors of this crate.

use thiserror::Error;

/// Why a metric could not be computed.
///
/// Every variant names the argument and, where one value is at fault, its index.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum MetricError {
    /// Two arguments that describe the same records differ in length.
    #[error("`{name}` holds {found} values, expected {expected} (one for each of `{reference}`)")]
    LengthMismatch {
        /// Argument at fault.
        name: &'static str,
        /// Its length.
        found: usize,
        /// The argument it is compared with.
        reference: &'static str,
        /// The length of that one.
        expected: usize,
    },
    /// A group index is not below the number of groups.
    #[error("`groups[{index}]` is {value}, expected a group index below {n_groups}")]
    GroupOutOfRange {
        /// Index of the record.
        index: usize,
        /// Group given for it.
        value: usize,
        /// Number of groups.
        n_groups: usize,
    },
    /// A row is not the index of a record.
    #[error("`rows[{index}]` is {value}, expected the index of one of {n_records} records")]
    RowOutOfRange {
        /// Index of the row.
        index: usize,
        /// The row.
        value: usize,
        /// Number of records.
        n_records: usize,
    },
    /// A class index is not below the number of classes.
    #[error("`{name}[{index}]` is {value}, expected a class index below {n_classes}")]
    ClassOutOfRange {
        /// Argument at fault.
        name: &'static str,
        /// Index of the record.
        index: usize,
        /// Class given for it.
        value: u32,
        /// Number of classes.
        n_classes: usize,
    },
    /// A value is NaN or infinite.
    #[error("`{name}[{index}]` is {value}, expected a finite number")]
    NotFinite {
        /// Argument at fault.
        name: &'static str,
        /// Index of the value.
        index: usize,
        /// The value.
        value: f64,
    },
    /// A value is not a probability.
    #[error("`{name}[{index}]` is {value}, expected a probability between 0 and 1")]
    NotAProbability {
        /// Argument at fault.
        name: &'static str,
        /// Index of the value.
        index: usize,
        /// The value.
        value: f64,
    },
    /// A parameter lies outside its range.
    #[error("`{name}` is {value}, expected {accepted}")]
    OutOfRange {
        /// Parameter at fault.
        name: &'static str,
        /// Its value.
        value: f64,
        /// The accepted range, in words.
        accepted: &'static str,
    },
    /// An argument holds fewer values than the metric needs.
    #[error("`{name}` holds {found} values, expected at least {needed}")]
    TooFew {
        /// Argument at fault.
        name: &'static str,
        /// Its length.
        found: usize,
        /// Least length.
        needed: usize,
    },
}

/// Checks that `found` equals `expected`.
pub(crate) fn check_len(
    name: &'static str,
    found: usize,
    reference: &'static str,
    expected: usize,
) -> Result<(), MetricError> {
    if found == expected { Ok(()) } else { Err(MetricError::LengthMismatch { name, found, reference, expected }) }
}

/// Checks that every value is finite.
pub(crate) fn check_finite(name: &'static str, values: &[f64]) -> Result<(), MetricError> {
    match values.iter().position(|value| !value.is_finite()) {
        Some(index) => Err(MetricError::NotFinite { name, index, value: values[index] }),
        None => Ok(()),
    }
}

/// Checks that every defined value is finite.
pub(crate) fn check_defined_finite(name: &'static str, values: &[Option<f64>]) -> Result<(), MetricError> {
    for (index, value) in values.iter().enumerate() {
        if let Some(value) = *value
            && !value.is_finite()
        {
            return Err(MetricError::NotFinite { name, index, value });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        let errors = [
            MetricError::LengthMismatch { name: "labels", found: 2, reference: "predictions", expected: 3 },
            MetricError::GroupOutOfRange { index: 4, value: 2, n_groups: 2 },
            MetricError::RowOutOfRange { index: 1, value: 9, n_records: 5 },
            MetricError::ClassOutOfRange { name: "labels", index: 0, value: 7, n_classes: 2 },
            MetricError::NotFinite { name: "losses", index: 1, value: f64::NAN },
            MetricError::NotAProbability { name: "p_values", index: 3, value: 1.5 },
            MetricError::OutOfRange { name: "tolerance", value: -0.1, accepted: "a finite number of at least 0" },
            MetricError::TooFew { name: "values", found: 0, needed: 1 },
        ];
        let text: Vec<String> = errors.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(text.join("\n"), @r"
        `labels` holds 2 values, expected 3 (one for each of `predictions`)
        `groups[4]` is 2, expected a group index below 2
        `rows[1]` is 9, expected the index of one of 5 records
        `labels[0]` is 7, expected a class index below 2
        `losses[1]` is NaN, expected a finite number
        `p_values[3]` is 1.5, expected a probability between 0 and 1
        `tolerance` is -0.1, expected a finite number of at least 0
        `values` holds 0 values, expected at least 1
        ");
    }
}
