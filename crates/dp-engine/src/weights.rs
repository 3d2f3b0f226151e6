//! Weights as safetensors, under the names and in the layout that PyTorch and candle use.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use candle_core::safetensors::Load;
use candle_core::{DType, Tensor};
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;
use whole_file::{Readers, WholeFile};

use crate::error::{EngineError, Result};
use crate::layers::{KernelCrop, ParameterSpec};
use crate::models::Model;
use crate::ops;

impl Model {
    /// Writes the parameters to a file that `torch` (`safetensors.torch.load_file`, then
    /// `load_state_dict`) and candle (`VarBuilder`) open: names of the architecture, number type of
    /// the model, PyTorch's layout (`[outputs, inputs]` for linear layers, `[outputs, inputs /
    /// groups, height, width]` for convolutions). Weights that meet no pixel of the model's images
    /// ([`KernelCrop`]) are written as 0.
    ///
    /// The file replaces one that was there only when it is complete. `metadata` is stored in its
    /// header, for people and tools; it is not interpreted.
    ///
    /// **Guarantee.** Weights are as private as the run that they come from. State of the
    /// optimiser, thresholds and random streams are not in the file.
    ///
    /// # Errors
    /// [`EngineError::Io`] if the file cannot be written.
    ///
    /// **Example**
    /// ```
    /// use std::collections::BTreeMap;
    /// use dp_engine::{DType, Device, Model, ModelConfig};
    /// let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("weights.safetensors");
    /// let model = Model::new(&ModelConfig::LogisticRegression, 2, 1, DType::F32, &Device::Cpu)?;
    /// model.parameters().set(&[0.5, -1.0, 2.0])?;
    /// model.save_weights(&path, &BTreeMap::from([("data".into(), "toy".into())]))?;
    ///
    /// let copy = Model::new(&ModelConfig::LogisticRegression, 2, 1, DType::F32, &Device::Cpu)?;
    /// assert_eq!(copy.load_weights(&path)?["data"], "toy");
    /// assert_eq!(copy.parameters().to_vec()?, [0.5, -1.0, 2.0]);
    ///
    /// let wider = Model::new(&ModelConfig::LogisticRegression, 3, 1, DType::F32, &Device::Cpu)?;
    /// let error = wider.load_weights(&path).err().map(|error| error.to_string()).unwrap_or_default();
    /// assert!(error.ends_with("linear.weight: expected shape [1, 3], got [1, 2]"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn save_weights(&self, path: &Path, metadata: &BTreeMap<String, String>) -> Result<()> {
        let bytes = self.weights_to_bytes(metadata)?;
        WholeFile::create(path, Readers::Default)
            .and_then(|file| file.write_bytes(&bytes))
            .map_err(|error| EngineError::io("write", path, error))
    }

    /// The bytes of the file that [`Self::save_weights`] writes.
    ///
    /// # Errors
    /// [`EngineError::Tensor`] if the device fails; [`EngineError::Weights`] for what the format has no
    /// room for.
    pub fn weights_to_bytes(&self, metadata: &BTreeMap<String, String>) -> Result<Vec<u8>> {
        let parameters = self.parameters();
        let tensors = parameters.specs().iter().zip(parameters.views()).map(|(spec, view)| to_pytorch(spec, view));
        let tensors = tensors.collect::<candle_core::Result<Vec<Tensor>>>()?;
        let tensors = parameters.specs().iter().map(|spec| spec.name.as_str()).zip(&tensors);
        let metadata: HashMap<String, String> = metadata.clone().into_iter().collect();
        let metadata = (!metadata.is_empty()).then_some(metadata);
        safetensors::serialize(tensors, metadata).map_err(|error| EngineError::weights(Path::new("weights"), error))
    }

    /// Overwrites the parameters with the tensors of a file, and returns its metadata.
    ///
    /// **Edge cases.** All or nothing: a file that does not fit leaves the model as it was. Values
    /// are not checked. Weights that meet no pixel of the model's images ([`KernelCrop`]) are
    /// dropped.
    ///
    /// # Errors
    /// [`EngineError::Weights`] with the path and every difference: tensors that are missing,
    /// unexpected, or of another shape or number type than the model's; also if the file is not in
    /// the format. [`EngineError::Io`] if it cannot be read.
    pub fn load_weights(&self, path: &Path) -> Result<BTreeMap<String, String>> {
        self.load_weights_from_bytes(path, &read(path)?)
    }

    /// [`Self::load_weights`] of a file's bytes; `path` is for messages.
    ///
    /// # Errors
    /// [`EngineError::Weights`] as there.
    pub fn load_weights_from_bytes(&self, path: &Path, bytes: &[u8]) -> Result<BTreeMap<String, String>> {
        let file = WeightsFile::new(path, bytes)?;
        let parameters = self.parameters();
        let tensors = file.tensors_of(parameters.specs(), parameters.flat().dtype())?;
        for ((spec, view), tensor) in parameters.specs().iter().zip(parameters.views()).zip(tensors) {
            ops::copy(view, &from_pytorch(spec, &tensor.load(view.device())?)?)?;
        }
        Ok(file.metadata)
    }
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| EngineError::io("read", path, error))
}

/// A file of weights: tensors by name, and what else its header says.
pub(crate) struct WeightsFile<'a> {
    path: &'a Path,
    tensors: SafeTensors<'a>,
    pub(crate) metadata: BTreeMap<String, String>,
}

impl<'a> WeightsFile<'a> {
    pub(crate) fn new(path: &'a Path, bytes: &'a [u8]) -> Result<Self> {
        let refused = |error: safetensors::SafeTensorError| EngineError::weights(path, error);
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(refused)?;
        let metadata = header.metadata().iter().flatten().map(|(key, value)| (key.clone(), value.clone())).collect();
        Ok(Self { path, tensors: SafeTensors::deserialize(bytes).map_err(refused)?, metadata })
    }

    /// The tensors of these parameters, in their order; an error with every difference unless they
    /// are all that there is.
    pub(crate) fn tensors_of(&self, specs: &[ParameterSpec], dtype: DType) -> Result<Vec<TensorView<'_>>> {
        let mut found: BTreeMap<&str, TensorView<'_>> = self.tensors.iter().collect();
        let mut differences = Vec::new();
        let mut tensors = Vec::with_capacity(specs.len());
        for spec in specs {
            let (name, shape) = (&spec.name, pytorch_shape(&spec.whole_shape()));
            match found.remove(name.as_str()) {
                None => differences.push(format!("{name}: missing, expected shape {shape:?}")),
                Some(tensor) => match difference(&tensor, &shape, dtype) {
                    Some(difference) => differences.push(format!("{name}: {difference}")),
                    None => tensors.push(tensor),
                },
            }
        }
        let unexpected: BTreeSet<&str> = found.into_keys().collect();
        differences.extend(unexpected.into_iter().map(|name| format!("{name}: unexpected")));
        if differences.is_empty() { Ok(tensors) } else { Err(EngineError::weights(self.path, differences.join("; "))) }
    }
}

/// `[filters, height, width, channels]`, the one shape of four dimensions here, as PyTorch's
/// `[filters, channels, height, width]`.
///
/// With zeros where a cropped kernel was cropped.
fn to_pytorch(spec: &ParameterSpec, view: &Tensor) -> candle_core::Result<Tensor> {
    let mut whole = view.clone();
    if let Some(KernelCrop { kernel, first }) = spec.crop {
        for axis in [1, 2] {
            whole = whole.pad_with_zeros(axis, first, kernel - first - whole.dim(axis)?)?;
        }
    }
    if view.rank() == 4 { whole.permute((0, 3, 1, 2))?.contiguous() } else { Ok(whole) }
}

/// The inverse of [`to_pytorch`].
fn from_pytorch(spec: &ParameterSpec, tensor: &Tensor) -> candle_core::Result<Tensor> {
    if tensor.rank() != 4 {
        return Ok(tensor.clone());
    }
    let mut part = tensor.permute((0, 2, 3, 1))?;
    if let Some(KernelCrop { first, .. }) = spec.crop {
        for axis in [1, 2] {
            part = part.narrow(axis, first, spec.shape[axis])?;
        }
    }
    part.contiguous()
}

fn pytorch_shape(shape: &[usize]) -> Vec<usize> {
    match *shape {
        [filters, height, width, channels] => vec![filters, channels, height, width],
        ref other => other.to_vec(),
    }
}

/// How a tensor of a file differs from what the model has.
fn difference(tensor: &TensorView<'_>, shape: &[usize], dtype: DType) -> Option<String> {
    let mut parts = Vec::new();
    if tensor.shape() != shape {
        parts.push(format!("expected shape {shape:?}, got {:?}", tensor.shape()));
    }
    if DType::try_from(tensor.dtype()).ok() != Some(dtype) {
        parts.push(format!("expected {}, got {}", dtype.as_str(), format!("{:?}", tensor.dtype()).to_lowercase()));
    }
    (!parts.is_empty()).then(|| parts.join(" and "))
}
