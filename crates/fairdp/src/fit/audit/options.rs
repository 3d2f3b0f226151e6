//! How a run is attacked.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use dp_audit::one_run::Fault;
use serde::{Deserialize, Serialize};

use crate::error::{FairdpError, Result};

/// A fault that an audit puts into its own run, to see that it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum AuditFault {
    /// Half of the noise in every release.
    Noise,
    /// The first release is missing in the ledger.
    Uncharged,
    /// Records of the first group are drawn at twice the rate that is charged; in full batches they are
    /// there twice.
    GroupRate,
    /// Records of every group are clipped at the largest threshold, where groups have thresholds of their
    /// own by their rates.
    GroupThreshold,
}

impl AuditFault {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Noise, Self::Uncharged, Self::GroupRate, Self::GroupThreshold];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Noise => "noise",
            Self::Uncharged => "uncharged",
            Self::GroupRate => "group-rate",
            Self::GroupThreshold => "group-threshold",
        }
    }

    /// The part of it that is in the steps of a run.
    pub(super) const fn of_run(self) -> Option<Fault> {
        match self {
            Self::Noise => Some(Fault::Noise),
            Self::GroupRate => Some(Fault::Rate),
            Self::GroupThreshold => Some(Fault::Threshold),
            Self::Uncharged => None,
        }
    }
}

impl std::str::FromStr for AuditFault {
    type Err = FairdpError;

    fn from_str(name: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|fault| fault.name() == name);
        known.ok_or_else(|| FairdpError::invalid("--plant", name, Self::ALL.map(Self::name).join(", ")))
    }
}

/// Options of an audit.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditOptions {
    /// Canaries of the white-box attack, at least 8; at most as many enter as the model has weights.
    pub canaries: usize,
    /// Repetitions of every release in either world, at least 10; as many as find half of the noise,
    /// up to 20,000, unless given.
    pub repeats: Option<u32>,
    /// A fault that is put in.
    pub fault: Option<AuditFault>,
    /// The release that the run starts from, as that of a fit.
    pub from: Option<PathBuf>,
    /// Makes the audit repeatable.
    pub seed: Option<u64>,
    /// Threads.
    pub threads: NonZeroUsize,
    /// A folder to make, whose private part gets the report.
    pub out: Option<PathBuf>,
    /// The folder of a run of the same configuration, or its release. The audit then attacks a run on
    /// made-up records of its schema, and writes its release again with a line on what was found.
    pub release: Option<PathBuf>,
}

impl Default for AuditOptions {
    fn default() -> Self {
        Self {
            canaries: 1_000,
            repeats: None,
            fault: None,
            from: None,
            seed: None,
            threads: NonZeroUsize::MIN,
            out: None,
            release: None,
        }
    }
}

impl AuditOptions {
    pub(super) fn check(&self) -> Result<()> {
        const CANARIES: std::ops::RangeInclusive<usize> = 8..=100_000;
        const REPEATS: std::ops::RangeInclusive<u32> = 10..=10_000_000;
        if !CANARIES.contains(&self.canaries) {
            return Err(FairdpError::invalid("--canaries", self.canaries, "8 to 100000"));
        }
        if let Some(release) = &self.release {
            let refuse = |expected: &str| Err(FairdpError::invalid("--release", release.display(), expected));
            if self.fault.is_some() {
                return refuse("none with --plant: a run with a fault in it does not speak in public");
            }
            if self.out.is_none() {
                return refuse("--out DIR with it, for the release with a line on the attack");
            }
        }
        match self.repeats {
            Some(repeats) if !REPEATS.contains(&repeats) => {
                Err(FairdpError::invalid("--repeats", repeats, "10 to 10000000"))
            }
            _ => Ok(()),
        }
    }
}
