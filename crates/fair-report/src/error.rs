//! The errors of this crate.

use thiserror::Error;

/// Why a document or a plot could not be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReportError {
    /// A step of drawing or rendering failed.
    #[error("{step} failed")]
    Step {
        /// Which one.
        step: &'static str,
        /// The message of the library below.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The font that the crate carries cannot be parsed.
    #[error("the embedded font of plots cannot be parsed")]
    Font,
    /// A plot without points, or a picture without a width or a height.
    #[error("a plot has nothing to show")]
    Empty,
}

/// Results of this crate.
pub type Result<T, E = ReportError> = std::result::Result<T, E>;

/// Names the step that failed.
pub(crate) trait Context<T> {
    fn context(self, step: &'static str) -> Result<T>;
}

impl<T, E: std::error::Error + Send + Sync + 'static> Context<T> for std::result::Result<T, E> {
    fn context(self, step: &'static str) -> Result<T> {
        self.map_err(|error| ReportError::Step { step, source: Box::new(error) })
    }
}
