//! Options and images that do not fit.

/// Why there are no features.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScatteringError {
    /// An option is out of range.
    #[error("{parameter} = {value}: expected {expected}")]
    InvalidParameter {
        /// The option.
        parameter: &'static str,
        /// Value received.
        value: String,
        /// The range.
        expected: String,
    },
    /// Pixels that are no whole number of images.
    #[error("pixels of all images: expected a multiple of {size}, the size of an image, got {got}")]
    Pixels {
        /// Values of an image.
        size: usize,
        /// Values received.
        got: usize,
    },
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, ScatteringError>;

impl ScatteringError {
    pub(crate) fn invalid(parameter: &'static str, value: usize, expected: impl Into<String>) -> Self {
        Self::InvalidParameter { parameter, value: value.to_string(), expected: expected.into() }
    }
}
