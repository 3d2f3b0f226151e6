//! Every named method, in one list: the command line, help, tables, tests and benches iterate it.

use serde::{Deserialize, Serialize};

use crate::{ClipConfig, ClipError, CountNoise, methods};

/// The settings a study varies. A preset reads those it needs; `None` means the value of the method's paper.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PresetParams {
    /// Clipping norm: `C`, `C0`, or the first threshold of an adaptive method.
    pub clip_norm: f64,
    /// First (or constant) upper bound `Z` of the global methods; 50 by default.
    pub upper_bound: Option<f64>,
    /// Tolerance τ of the geometric controllers.
    pub tolerance: Option<f64>,
    /// Rate η_C of the geometric controllers.
    pub rate: Option<f64>,
    /// Target γ of the geometric controllers; η_Z of Global-Adapt.
    pub target: Option<f64>,
    /// Lower bound `C_LB` of the bounded methods; a tenth of the first threshold by default.
    pub lower_bound: Option<f64>,
    /// Noise of every count.
    pub count_noise: CountNoise,
    /// FairLens's γ1 and γ2; both 1 by default.
    pub fairlens_weights: Option<[f64; 2]>,
}

impl Default for PresetParams {
    fn default() -> Self {
        Self {
            clip_norm: 1.0,
            upper_bound: None,
            tolerance: None,
            rate: None,
            target: None,
            lower_bound: None,
            count_noise: CountNoise::default(),
            fairlens_weights: None,
        }
    }
}

/// A named method.
#[derive(Debug, Clone, Copy)]
pub struct MethodEntry {
    /// Its one name everywhere, for example `dpsgd-f`.
    pub name: &'static str,
    /// As papers and tables write it, for example `DPSGD-F`.
    pub label: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// Where this implementation differs from the published text or code, and why; empty if nowhere.
    pub differs: &'static str,
    /// Its cell of the grid.
    pub preset: fn(&PresetParams) -> ClipConfig,
}

impl MethodEntry {
    /// The configuration under these settings. It is checked when it is built.
    pub fn config(&self, params: &PresetParams) -> ClipConfig {
        (self.preset)(params)
    }
}

/// Every named method, in the order of the tables.
pub fn methods() -> &'static [MethodEntry] {
    const METHODS: &[MethodEntry] = &[
        methods::dpsgd::ENTRY,
        methods::dpsgd_normalised::ENTRY,
        methods::naive::ENTRY,
        methods::dpsgd_f::ENTRY,
        methods::dpsgd_global::ENTRY,
        methods::dpsgd_global_adapt::ENTRY,
        methods::adaptive::ENTRY,
        methods::unbounded_adaptive::ENTRY,
        methods::bounded_adaptive::ENTRY,
        methods::fixed_soft::ENTRY,
        methods::soft_adaptive::ENTRY,
        methods::automatic::ENTRY,
        methods::soft_global_adapt::ENTRY,
        methods::bounded_global_adapt::ENTRY,
        methods::bounded_soft_global_adapt::ENTRY,
        methods::bounded_soft_adaptive::ENTRY,
        methods::soft_dpsgd_f::ENTRY,
        methods::fairlens::ENTRY,
        methods::magnitude_only::ENTRY,
        methods::direction_only::ENTRY,
    ];
    METHODS
}

/// The method of this name.
///
/// # Errors
/// [`ClipError::UnknownMethod`], listing every name.
pub fn find(name: &str) -> Result<&'static MethodEntry, ClipError> {
    methods().iter().find(|entry| entry.name == name).ok_or_else(|| ClipError::UnknownMethod {
        name: name.to_owned(),
        known: methods().iter().map(|entry| entry.name).collect::<Vec<_>>().join(", "),
    })
}
