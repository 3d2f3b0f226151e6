//! Scale rules: `s` from a gradient's norm and a threshold, with the bound on `s‖g‖`.
//!
//! The modules give each formula in real arithmetic; [`crate::bound::cap`] makes its bound hold in
//! floating point.

pub mod automatic;
pub mod global_clip;
pub mod global_drop;
pub mod global_tanh;
pub mod hard;
pub mod normalised;
pub mod tanh;

use serde::{Deserialize, Serialize};

use crate::{ClipError, bound::check_threshold, error::check};

/// How a record's scale follows from its norm and the threshold in force.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ScaleRule {
    /// `min(1, C/‖g‖)`, bound `C`; see [`hard`].
    Hard,
    /// `min(1/C, 1/‖g‖)`, bound 1; see [`normalised`].
    Normalised,
    /// `C0/Z` up to norm `Z`, nothing above; bound `C0`; see [`global_drop`].
    GlobalDrop {
        /// `C0`.
        clip_norm: f64,
    },
    /// `C0/Z` up to norm `Z`, `C0/‖g‖` above; bound `C0`; see [`global_clip`].
    GlobalClip {
        /// `C0`.
        clip_norm: f64,
    },
    /// `(C0/Z)·tanh(Z/(‖g‖ + 1e-6))`, bound `C0`; see [`global_tanh`].
    GlobalTanh {
        /// `C0`.
        clip_norm: f64,
    },
    /// `tanh(C/(‖g‖ + 1e-6))`, bound `C`; see [`mod@tanh`].
    Tanh,
    /// `C/(‖g‖ + γ)`, bound `C`; see [`automatic`].
    Automatic {
        /// Stability constant γ.
        stability: f64,
    },
}

impl ScaleRule {
    /// `s` for a finite norm. Not yet capped.
    pub fn scale(&self, norm: f64, threshold: f64) -> f64 {
        match *self {
            Self::Hard => hard::scale(norm, threshold),
            Self::Normalised => normalised::scale(norm, threshold),
            Self::GlobalDrop { clip_norm } => global_drop::scale(norm, threshold, clip_norm),
            Self::GlobalClip { clip_norm } => global_clip::scale(norm, threshold, clip_norm),
            Self::GlobalTanh { clip_norm } => global_tanh::scale(norm, threshold, clip_norm),
            Self::Tanh => tanh::scale(norm, threshold),
            Self::Automatic { stability } => automatic::scale(norm, threshold, stability),
        }
    }

    /// Bound on `s‖g‖` under a threshold.
    pub fn bound(&self, threshold: f64) -> f64 {
        match *self {
            Self::Hard | Self::Tanh | Self::Automatic { .. } => threshold,
            Self::Normalised => 1.0,
            Self::GlobalDrop { clip_norm } | Self::GlobalClip { clip_norm } | Self::GlobalTanh { clip_norm } => {
                clip_norm
            }
        }
    }

    /// Name in tables, the same as in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Hard => "hard",
            Self::Normalised => "normalised",
            Self::GlobalDrop { .. } => "global-drop",
            Self::GlobalClip { .. } => "global-clip",
            Self::GlobalTanh { .. } => "global-tanh",
            Self::Tanh => "tanh",
            Self::Automatic { .. } => "automatic",
        }
    }

    pub(crate) fn validate(&self) -> Result<(), ClipError> {
        match *self {
            Self::Hard | Self::Normalised | Self::Tanh => Ok(()),
            Self::GlobalDrop { clip_norm } | Self::GlobalClip { clip_norm } | Self::GlobalTanh { clip_norm } => {
                check_threshold("clip_norm", clip_norm)
            }
            Self::Automatic { stability } => check("stability", stability, 0.0.., "a finite number of at least 0"),
        }
    }
}
