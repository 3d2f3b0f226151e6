//! The errors of this crate.

/// An invalid parameter, batch or state; the crate has no other failures.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ClipError {
    /// A number outside its range.
    #[error("{name} is {value}, expected {accepted}")]
    InvalidParameter {
        /// Parameter, by its name in the code.
        name: &'static str,
        /// The value received.
        value: f64,
        /// The accepted range, in words.
        accepted: &'static str,
    },
    /// Two slices that describe the same records differ in length.
    #[error("{left} has {left_len} entries but {right} has {right_len}, expected equal lengths")]
    LengthMismatch {
        /// First slice.
        left: &'static str,
        /// Its length.
        left_len: usize,
        /// Second slice.
        right: &'static str,
        /// Its length.
        right_len: usize,
    },
    /// A record claims a group that was not declared.
    #[error("record {record} has group {group}, expected 0..{n_groups}")]
    GroupOutOfRange {
        /// Position in the batch.
        record: usize,
        /// The group received.
        group: usize,
        /// Number of groups declared in the context.
        n_groups: usize,
    },
    /// A name that is not in the registry.
    #[error("unknown clipping method `{name}`, expected one of {known}")]
    UnknownMethod {
        /// The name received.
        name: String,
        /// Every registered name, separated by commas.
        known: String,
    },
    /// An array whose rows are not contiguous in memory.
    #[error("rows of the gradient array are not contiguous, expected row-major layout")]
    NotRowMajor,
    /// A saved state that belongs to another configuration.
    #[error("saved state does not fit this method: {what} differs")]
    StateMismatch {
        /// The differing part.
        what: &'static str,
    },
}

/// `value` if it is finite and inside the range, else the error that names it.
pub(crate) fn check(
    name: &'static str,
    value: f64,
    range: impl std::ops::RangeBounds<f64>,
    accepted: &'static str,
) -> Result<(), ClipError> {
    if value.is_finite() && range.contains(&value) {
        Ok(())
    } else {
        Err(ClipError::InvalidParameter { name, value, accepted })
    }
}

/// An error if two lengths differ.
pub(crate) fn check_lengths(
    left: &'static str,
    left_len: usize,
    right: &'static str,
    right_len: usize,
) -> Result<(), ClipError> {
    if left_len == right_len { Ok(()) } else { Err(ClipError::LengthMismatch { left, left_len, right, right_len }) }
}
