//! A model in one file with what it takes to use it again.

use std::collections::BTreeMap;
use std::path::Path;

use candle_core::{DType, Device};
use serde::{Deserialize, Serialize};

use crate::error::{EngineError, Result};
use crate::loss::Loss;
use crate::models::{Model, ModelConfig, Sizes};
use crate::weights::{WeightsFile, read};

/// Where the description stands in the file's metadata.
const KEY: &str = "dp-train";
const VERSION: u32 = 1;
/// Largest size of one dimension that a file may ask for. No model of these layers needs more, and
/// memory for it might not exist.
const LARGEST: u64 = 1 << 24;

/// The contents of a file that [`Model::load`] reads.
#[derive(Debug)]
#[non_exhaustive]
pub struct SavedModel {
    /// Architecture and parameters.
    pub model: Model,
    /// The loss that the model was trained with.
    pub loss: Loss,
    /// Whatever else was saved with it.
    pub metadata: BTreeMap<String, String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    version: u32,
    model: ModelConfig,
    loss: Loss,
    n_inputs: usize,
    n_outputs: usize,
    single_precision: bool,
}

impl Model {
    /// Writes parameters, architecture, loss and numbers of inputs and outputs to one file, of
    /// which [`Self::load`] makes the model again. To PyTorch and candle it is a file of weights,
    /// as [`Self::save_weights`] writes it.
    ///
    /// `metadata` is kept beside them and not interpreted.
    ///
    /// **Guarantee.** None beyond the run's: see [`Self::save_weights`]. A [`Loss`] with weights or
    /// priors that were taken from the records reveals them.
    ///
    /// # Errors
    /// [`EngineError::Io`] if the file cannot be written;
    /// [`EngineError::InvalidParameter`] if `metadata` has the key `dp-train`.
    ///
    /// **Example**
    /// ```
    /// use std::collections::BTreeMap;
    /// use dp_engine::{DType, Device, Loss, Model, ModelConfig};
    /// let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("model.safetensors");
    /// let model = Model::new(&ModelConfig::LogisticRegression, 2, 1, DType::F32, &Device::Cpu)?;
    /// model.parameters().set(&[1.0, -1.0, 0.5])?;
    /// model.save(&path, &Loss::BceWithLogits, &BTreeMap::from([("data".into(), "toy".into())]))?;
    ///
    /// let saved = Model::load(&path, &Device::Cpu)?;
    /// assert_eq!(saved.model.predict(&[1.0, 0.0])?, [1]);
    /// assert_eq!((saved.loss, &*saved.metadata["data"]), (Loss::BceWithLogits, "toy"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn save(&self, path: &Path, loss: &Loss, metadata: &BTreeMap<String, String>) -> Result<()> {
        if metadata.contains_key(KEY) {
            return Err(EngineError::invalid("metadata", KEY, "other keys: this one holds the architecture"));
        }
        let description = Description {
            version: VERSION,
            model: self.config().clone(),
            loss: loss.clone(),
            n_inputs: self.n_inputs(),
            n_outputs: self.n_outputs(),
            single_precision: self.parameters().flat().dtype() == DType::F32,
        };
        let description = serde_json::to_string(&description).map_err(|error| EngineError::weights(path, error))?;
        let mut metadata = metadata.clone();
        metadata.insert(KEY.into(), description);
        self.save_weights(path, &metadata)
    }

    /// The model of a file that [`Self::save`] wrote, with its parameters.
    ///
    /// # Errors
    /// [`EngineError::Io`] if the file cannot be read; [`EngineError::Weights`] with the path if it
    /// has no description or one of a later version, or if its tensors do not fit the architecture.
    pub fn load(path: &Path, device: &Device) -> Result<SavedModel> {
        let refused = |problem: String| EngineError::weights(path, problem);
        let bytes = read(path)?;
        let mut file = WeightsFile::new(path, &bytes)?;
        let text = file.metadata.remove(KEY).ok_or_else(|| {
            refused(format!("metadata: no `{KEY}`; a file of weights alone is read by `load_weights`"))
        })?;
        let broken = |error: serde_json::Error| refused(format!("metadata `{KEY}`: {error}"));
        let value: serde_json::Value = serde_json::from_str(&text).map_err(broken)?;
        if let Some(version) = value["version"].as_u64().filter(|version| *version > VERSION.into()) {
            return Err(refused(format!("version {version}: this program reads {VERSION}")));
        }
        if let Some(size) = largest(&value).filter(|size| *size > LARGEST) {
            return Err(refused(format!("metadata `{KEY}`: a size of {size}, expected at most {LARGEST}")));
        }
        let Description { model, loss, n_inputs, n_outputs, single_precision, .. } =
            serde_json::from_value(value).map_err(broken)?;
        let dtype = if single_precision { DType::F32 } else { DType::F64 };
        // Compared before memory is asked for.
        file.tensors_of(&model.parameters(&Sizes { n_inputs, n_outputs })?, dtype)?;
        let metadata = file.metadata;
        let model = Self::new(&model, n_inputs, n_outputs, dtype, device)?;
        model.load_weights(path)?;
        Ok(SavedModel { model, loss, metadata })
    }
}

/// The largest whole number in a document.
fn largest(value: &serde_json::Value) -> Option<u64> {
    match value {
        serde_json::Value::Number(number) => number.as_u64(),
        serde_json::Value::Array(values) => values.iter().filter_map(largest).max(),
        serde_json::Value::Object(fields) => fields.values().filter_map(largest).max(),
        _ => None,
    }
}
