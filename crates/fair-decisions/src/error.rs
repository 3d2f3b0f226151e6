/// An error of a release of scores.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DecisionError {
    /// A value out of its range.
    #[error("{parameter} = {value}: expected {expected}")]
    InvalidParameter {
        /// What it is for.
        parameter: &'static str,
        /// The value.
        value: String,
        /// Its range.
        expected: String,
    },
}

impl DecisionError {
    pub(crate) fn invalid(parameter: &'static str, value: impl std::fmt::Display, expected: impl Into<String>) -> Self {
        Self::InvalidParameter { parameter, value: value.to_string(), expected: expected.into() }
    }
}
