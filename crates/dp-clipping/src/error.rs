//! The errors of this crate.

/// An invalid parameter, batch or state; the crate has no other failures.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ClipError {
    /// A parameter is out of range, or without effect.
    #[error("{parameter} = {value}: expected {expected}")]
    InvalidParameter {
        /// Name of the parameter, as the caller wrote it.
        parameter: &'static str,
        /// The value received.
        value: String,
        /// The accepted range, in words.
        expected: String,
    },
    /// Two arguments that describe the same records or parameters differ in length.
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
    /// A name that is not in the registry.
    #[error("method = {name}: expected one of {known}")]
    UnknownMethod {
        /// The name received.
        name: String,
        /// Every registered name, separated by commas.
        known: String,
    },
    /// An array whose rows are not contiguous in memory.
    #[error("gradients: expected rows that are contiguous in memory")]
    NotRowMajor,
    /// A saved state that belongs to another configuration.
    #[error("state: its {what} differs from the method's")]
    StateMismatch {
        /// The differing part.
        what: &'static str,
    },
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "values are turned into text at once; `&` at every call says nothing"
)]
impl ClipError {
    /// A parameter that is out of range.
    pub fn invalid(parameter: &'static str, value: impl ToString, expected: impl Into<String>) -> Self {
        Self::InvalidParameter { parameter, value: value.to_string(), expected: expected.into() }
    }
}

/// An error that names the parameter unless the value is finite and inside the range.
pub(crate) fn check(
    parameter: &'static str,
    value: f64,
    range: impl std::ops::RangeBounds<f64>,
    expected: &'static str,
) -> Result<(), ClipError> {
    if value.is_finite() && range.contains(&value) {
        Ok(())
    } else {
        Err(ClipError::invalid(parameter, value, expected))
    }
}

/// An error if two lengths differ.
pub(crate) fn check_lengths(
    parameter: &'static str,
    length: usize,
    reference: &'static str,
    expected: usize,
) -> Result<(), ClipError> {
    if length == expected { Ok(()) } else { Err(ClipError::LengthMismatch { parameter, length, reference, expected }) }
}
