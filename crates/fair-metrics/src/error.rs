//! The errors of this crate.

use thiserror::Error;

/// Why a metric could not be computed.
///
/// Every variant names the argument and, where one value is at fault, its index.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum MetricError {
    /// A parameter is out of range.
    #[error("{parameter} = {value}: expected {expected}")]
    InvalidParameter {
        /// Name of the parameter, as the caller wrote it.
        parameter: &'static str,
        /// The value received.
        value: String,
        /// The accepted range, in words.
        expected: String,
    },
    /// Two arguments that describe the same records differ in length.
    #[error("length of {parameter} = {length}: expected {expected}, the length of {reference}")]
    LengthMismatch {
        /// Argument at fault.
        parameter: &'static str,
        /// Its length.
        length: usize,
        /// The argument it is compared with.
        reference: &'static str,
        /// The length of that one.
        expected: usize,
    },
    /// An argument holds fewer values than the metric needs.
    #[error("length of {parameter} = {length}: expected at least {needed}")]
    TooFew {
        /// Argument at fault.
        parameter: &'static str,
        /// Its length.
        length: usize,
        /// Least length.
        needed: usize,
    },
    /// A group index is not below the number of groups.
    #[error("groups[{index}] = {value}: expected a group index below {n_groups}")]
    GroupOutOfRange {
        /// Index of the record.
        index: usize,
        /// Group given for it.
        value: usize,
        /// Number of groups.
        n_groups: usize,
    },
    /// A row is not the index of a record.
    #[error("rows[{index}] = {value}: expected the index of one of {n_records} records")]
    RowOutOfRange {
        /// Index of the row.
        index: usize,
        /// The row.
        value: usize,
        /// Number of records.
        n_records: usize,
    },
    /// A class index is not below the number of classes.
    #[error("{parameter}[{index}] = {value}: expected a class index below {n_classes}")]
    ClassOutOfRange {
        /// Argument at fault.
        parameter: &'static str,
        /// Index of the record.
        index: usize,
        /// Class given for it.
        value: u32,
        /// Number of classes.
        n_classes: usize,
    },
    /// A value is NaN or infinite.
    #[error("{parameter}[{index}] = {value}: expected a finite number")]
    NotFinite {
        /// Argument at fault.
        parameter: &'static str,
        /// Index of the value.
        index: usize,
        /// The value.
        value: f64,
    },
    /// A value is not a probability.
    #[error("{parameter}[{index}] = {value}: expected a probability in [0, 1]")]
    NotAProbability {
        /// Argument at fault.
        parameter: &'static str,
        /// Index of the value.
        index: usize,
        /// The value.
        value: f64,
    },
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "values are turned into text at once; `&` at every call says nothing"
)]
impl MetricError {
    /// A parameter that is out of range.
    pub fn invalid(parameter: &'static str, value: impl ToString, expected: impl Into<String>) -> Self {
        Self::InvalidParameter { parameter, value: value.to_string(), expected: expected.into() }
    }
}

/// Checks that `length` equals `expected`.
pub(crate) fn check_len(
    parameter: &'static str,
    length: usize,
    reference: &'static str,
    expected: usize,
) -> Result<(), MetricError> {
    if length == expected {
        Ok(())
    } else {
        Err(MetricError::LengthMismatch { parameter, length, reference, expected })
    }
}

/// Checks that every value is finite.
pub(crate) fn check_finite(parameter: &'static str, values: &[f64]) -> Result<(), MetricError> {
    match values.iter().position(|value| !value.is_finite()) {
        Some(index) => Err(MetricError::NotFinite { parameter, index, value: values[index] }),
        None => Ok(()),
    }
}

/// Checks that every defined value is finite.
pub(crate) fn check_defined_finite(parameter: &'static str, values: &[Option<f64>]) -> Result<(), MetricError> {
    for (index, value) in values.iter().enumerate() {
        if let Some(value) = *value
            && !value.is_finite()
        {
            return Err(MetricError::NotFinite { parameter, index, value });
        }
    }
    Ok(())
}
