//! Purposes of random streams.

/// The purpose of a stream. Each purpose has a separate stream, so that, for example, a method that
/// draws more count noise trains on the same batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Purpose {
    /// Data sampling and splitting.
    Split,
    /// Initial parameters.
    Initialisation,
    /// Poisson batches.
    Sampling,
    /// Gradient noise.
    Noise,
    /// Noise of counts.
    Counts,
    /// Batches and probes of an analysis; no stream of a training run.
    Analysis,
    /// Dropout masks.
    Dropout,
    /// Noise of the releases before training: means, covariances, class counts.
    Conditioning,
}
