//! Where noise is made.

/// Where the noise of a run on a CUDA device is made; on the CPU there is no choice. Both give the
/// same values, bit for bit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoiseSource {
    /// On the device. The sum never leaves it.
    #[default]
    Device,
    /// On the host, by the code that makes it for the CPU; the sum is copied there and back.
    Host,
}
