//! How much work an analysis may do.

use crate::error::{Result, TrainError};

/// How much work goes into one evaluation of the decomposition, and with it how large the standard
/// errors are.
///
/// Gradients of the whole data and of its groups are always exact. All else are expectations,
/// estimated without bias.
///
/// **Example**
/// ```
/// use dp_train::analysis::{AnalysisSettings, EigenvalueSearch};
/// // The error in direction and in magnitude of 20 steps' batches, and the largest eigenvalues.
/// let settings = AnalysisSettings {
///     batches: 20,
///     eigenvalues: Some(EigenvalueSearch { iterations: 30, records: 256 }),
///     ..AnalysisSettings::default()
/// };
/// assert_eq!((settings.batches, settings.probes), (20, 100));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnalysisSettings {
    /// Poisson batches drawn, at least 2: with one there would be no standard error.
    pub batches: usize,
    /// Records of each group, drawn anew for each batch, over which the Hessian along its gradients
    /// is averaged. All of a group's records, if it has no more.
    pub curvature_records: usize,
    /// Random vectors for the trace of each group's Hessian, at least 2.
    pub probes: usize,
    /// Records of each group, drawn anew for every five of those vectors.
    pub probe_records: usize,
    /// Largest eigenvalues, which need many products each: only where asked for.
    pub eigenvalues: Option<EigenvalueSearch>,
    /// Records differentiated at once, at least 1.
    pub micro_batch: usize,
    /// Threads, at least 1. They change nothing but the time.
    pub threads: usize,
}

/// How far largest eigenvalues are searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EigenvalueSearch {
    /// Hessian-vector products for each group; each search starts from where the one before ended.
    pub iterations: usize,
    /// Records of each group the Hessian is averaged over, drawn once. Fewer than all make the
    /// eigenvalue too large on average.
    pub records: usize,
}

impl Default for AnalysisSettings {
    fn default() -> Self {
        Self {
            batches: 8,
            curvature_records: 16,
            probes: 100,
            probe_records: 8,
            eigenvalues: None,
            micro_batch: 512,
            threads: 1,
        }
    }
}

impl AnalysisSettings {
    pub(super) fn validate(&self) -> Result<()> {
        for (parameter, value, least) in [
            ("analysis.batches", self.batches, 2),
            ("analysis.curvature_records", self.curvature_records, 1),
            ("analysis.probes", self.probes, 2),
            ("analysis.probe_records", self.probe_records, 1),
            ("analysis.micro_batch", self.micro_batch, 1),
            ("analysis.threads", self.threads, 1),
            ("analysis.eigenvalues.iterations", self.eigenvalues.map_or(1, |search| search.iterations), 1),
            ("analysis.eigenvalues.records", self.eigenvalues.map_or(1, |search| search.records), 1),
        ] {
            if value < least {
                return Err(TrainError::invalid(parameter, value, format!("at least {least}")));
            }
        }
        Ok(())
    }
}
