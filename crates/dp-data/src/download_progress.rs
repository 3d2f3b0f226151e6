//! How far a download is.

/// Told how a download goes, for example to draw a bar.
pub trait DownloadProgress: Send + Sync {
    /// A file begins; `already` of its `total` bytes are on disk from an earlier attempt.
    fn started(&self, file: &str, total: u64, already: u64);
    /// `bytes` more have arrived.
    fn advanced(&self, bytes: u64);
    /// The file is complete and verified, or given up.
    fn finished(&self);
}

/// Says nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl DownloadProgress for Silent {
    fn started(&self, _file: &str, _total: u64, _already: u64) {}
    fn advanced(&self, _bytes: u64) {}
    fn finished(&self) {}
}
