//! The part of a checkpoint that is not tensors.

use std::collections::BTreeMap;

use dp_accounting::Ledger;
use dp_clipping::MethodState;
use dp_engine::{NUMERICS, PublicFacts, device_model, platform};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::early_stopping::Patience;
use crate::error::{Result, TrainError};
use crate::stream_state::StreamState;
use crate::trainer::{Execution, RunCounts};

/// Version of the format. A change of what is stored, or of what it means, is a new version; there
/// is no reading of old ones, since a run that continues under other code is not the run that was
/// interrupted.
pub(super) const VERSION: u64 = 7;

/// Everything but the tensors, as JSON.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    pub(super) version: u64,
    /// Revision of the code that wrote the checkpoint, if known. It is recorded, not compared: the
    /// properties that decide bits have separate fields.
    pub(super) code_revision: Option<String>,
    pub(super) config: Value,
    pub(super) facts: PublicFacts,
    /// Conditions of the guarantee.
    pub(super) given: Vec<String>,
    pub(super) data: DataDigests,
    pub(super) execution: ExecutionState,
    pub(super) counts: RunCounts,
    pub(super) method: Option<MethodState>,
    pub(super) streams: BTreeMap<String, StreamState>,
    /// Whether nobody but this file knows the streams.
    pub(super) private: bool,
    pub(super) ledger: Ledger,
    pub(super) patience: PatienceState,
    /// Memory of the run's observer.
    pub(super) observer: Value,
    /// Digest of the header and the tensors, made when both are put together. It is the last field,
    /// so that it covers everything before it.
    pub(super) digest: String,
}

/// Options that decide how sums are rounded. Two releases under one noise that are rounded
/// differently would differ by data alone.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExecutionState {
    /// Version of the arithmetic.
    numerics: u32,
    /// `None` for a certified run, whose sums do not depend on it.
    micro_batch: Option<usize>,
    /// `None` for a certified run, whose sums do not depend on it.
    threads: Option<usize>,
    /// The kind of device, and the model of a GPU.
    device: String,
    /// Kind of processor, its vectors, and the functions of the platform.
    instruction_set: String,
}

impl ExecutionState {
    pub(crate) fn of(execution: &Execution, certified: bool) -> Self {
        Self {
            numerics: NUMERICS,
            micro_batch: (!certified).then_some(execution.records_at_once()),
            threads: (!certified).then_some(execution.threads.get()),
            device: device_model(&execution.device),
            instruction_set: platform(),
        }
    }
}

/// SHA-256 of what a run was given to learn from.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DataDigests {
    pub(super) records: String,
    pub(super) validation: Option<String>,
}

/// The state of early stopping, except the best parameters.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PatienceState {
    /// Best figure of the criterion.
    pub(super) best_loss: Option<f64>,
    pub(super) epochs_without: u64,
    pub(super) stopped: bool,
}

impl PatienceState {
    pub(super) fn of(patience: &Patience) -> Self {
        Self {
            best_loss: patience.best.as_ref().map(|(loss, _)| *loss),
            epochs_without: patience.epochs_without,
            stopped: patience.stopped,
        }
    }

    pub(super) fn restored(&self, best: Option<(f64, Vec<f64>)>) -> Patience {
        Patience { best, epochs_without: self.epochs_without, stopped: self.stopped }
    }
}

/// A value as JSON.
pub(crate) fn to_value(value: &impl Serialize) -> Result<Value> {
    serde_json::to_value(value).map_err(|error| TrainError::mismatch("JSON of a checkpoint", "a value", error))
}
