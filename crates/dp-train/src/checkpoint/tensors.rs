//! Checkpoints as safetensors files.

use std::collections::HashMap;

use candle_core::DType;
use dp_engine::ParameterVector;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use sha2::{Digest, Sha256};

use super::header::{Header, VERSION};
use crate::error::{Result, TrainError};

/// The key under which the header is kept among the file's metadata.
const HEADER: &str = "dp-train checkpoint";

/// Which vector of the layout of the parameters a tensor is a part of.
#[derive(Clone, Copy)]
pub(super) enum Group<'a> {
    /// The parameters, under their own names, so that other programs find them.
    Parameters,
    /// A moment of the optimiser.
    Moment(&'a str),
    /// Parameters of the best epoch so far.
    Best,
}

impl Group<'_> {
    fn tensor_name(&self, parameter: &str) -> String {
        match self {
            Self::Parameters => parameter.to_owned(),
            Self::Moment(name) => format!("optimiser/{name}/{parameter}"),
            Self::Best => format!("best/{parameter}"),
        }
    }
}

/// Vectors on their way into a file.
pub(super) struct TensorFile<'a> {
    layout: &'a ParameterVector,
    tensors: Vec<(String, Vec<usize>, Vec<u8>)>,
}

impl<'a> TensorFile<'a> {
    pub(super) fn new(layout: &'a ParameterVector) -> Self {
        Self { layout, tensors: Vec::new() }
    }

    /// Adds a vector, as one tensor per parameter tensor, in the number type of the parameters.
    pub(super) fn add(&mut self, group: Group<'_>, values: &[f64]) -> Result<()> {
        if values.len() != self.layout.len() {
            return Err(TrainError::mismatch("values of a vector of parameters", self.layout.len(), values.len()));
        }
        let mut rest = values;
        for spec in self.layout.specs() {
            let (values, others) = rest.split_at(spec.len());
            let bytes = match self.layout.flat().dtype() {
                // Exact: the values were single precision.
                DType::F32 => values.iter().flat_map(|&v| (v as f32).to_le_bytes()).collect(),
                _ => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            };
            self.tensors.push((group.tensor_name(&spec.name), spec.shape.clone(), bytes));
            rest = others;
        }
        Ok(())
    }

    /// The file. The header is sealed together with all tensors.
    pub(super) fn to_bytes(&self, header: &Header) -> Result<Vec<u8>> {
        let failed = |error: &dyn std::fmt::Display| TrainError::mismatch("checkpoint", "a file", error.to_string());
        let dtype = file_dtype(self.layout.flat().dtype());
        let views = self.tensors.iter().map(|(name, shape, bytes)| {
            let view = TensorView::new(dtype, shape.clone(), bytes).map_err(|error| failed(&error))?;
            Ok((name.as_str(), view))
        });
        let views = views.collect::<Result<Vec<_>>>()?;
        let json = serde_json::to_string(header).map_err(|error| failed(&error))?;
        let open = json.strip_suffix(END).ok_or_else(|| failed(&"a header ends with its digest"))?;
        let digest = digest(open, views.iter().map(|(name, view)| (*name, view.data())).collect());
        // One entry alone: a map has no order, and a checkpoint's bytes follow from the run.
        let metadata = HashMap::from([(HEADER.to_owned(), format!("{open}{digest}{END}"))]);
        safetensors::serialize(views, Some(metadata)).map_err(|error| failed(&error))
    }
}

fn file_dtype(dtype: DType) -> Dtype {
    if dtype == DType::F32 { Dtype::F32 } else { Dtype::F64 }
}

/// Digits of a digest, SHA-256 in hexadecimal.
const DIGITS: usize = 64;
/// The end of a header, after the digits of its digest.
const END: &str = "\"}";

/// Over the header up to its digest, and names and bytes of the tensors in the order of the names.
fn digest(open: &str, mut tensors: Vec<(&str, &[u8])>) -> String {
    tensors.sort_unstable_by_key(|(name, _)| *name);
    let mut hasher = Sha256::new();
    hasher.update((open.len() as u64).to_le_bytes());
    hasher.update(open);
    for (name, bytes) in tensors {
        hasher.update((name.len() as u64).to_le_bytes());
        hasher.update(name);
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    }
    hex::encode(hasher.finalize())
}

/// The tensors of a file that was read.
pub(super) struct ReadTensors<'a>(SafeTensors<'a>);

/// Takes a file apart. The error is the reason alone.
pub(super) fn read(bytes: &[u8]) -> Result<(Header, ReadTensors<'_>), String> {
    let (_, metadata) =
        SafeTensors::read_metadata(bytes).map_err(|error| format!("not a safetensors file: {error}"))?;
    let json = metadata.metadata().as_ref().and_then(|metadata| metadata.get(HEADER));
    let json = json.ok_or("a safetensors file, but not a checkpoint")?;
    // The version first: another one may have other fields.
    let value: serde_json::Value = serde_json::from_str(json).map_err(|error| format!("header: {error}"))?;
    match value.get("version").and_then(serde_json::Value::as_u64) {
        Some(VERSION) => {}
        Some(version) => return Err(format!("version {version} of the format: expected {VERSION}")),
        None => return Err(format!("no version of the format: expected {VERSION}")),
    }
    let tensors = SafeTensors::deserialize(bytes).map_err(|error| format!("damaged: {error}"))?;
    let sealed = json.strip_suffix(END).and_then(|json| json.split_at_checked(json.len().saturating_sub(DIGITS)));
    let (open, expected) = sealed.ok_or("damaged: no digest at the end of the header")?;
    let found = digest(open, tensors.iter().map(|(name, view)| (name, view.data())).collect());
    if found != expected {
        return Err(format!("damaged: the digest is {found}, expected {expected}"));
    }
    // Not from the value: numbers keep their last bit only when they are read from text.
    let header: Header = serde_json::from_str(json).map_err(|error| format!("header: {error}"))?;
    Ok((header, ReadTensors(tensors)))
}

impl ReadTensors<'_> {
    /// A vector in the layout of the parameters. The error is the reason alone.
    pub(super) fn get(&self, layout: &ParameterVector, group: Group<'_>) -> Result<Vec<f64>, String> {
        let mut values = Vec::with_capacity(layout.len());
        let dtype = file_dtype(layout.flat().dtype());
        for spec in layout.specs() {
            let name = group.tensor_name(&spec.name);
            let view = self.0.tensor(&name).map_err(|_| format!("no tensor `{name}`"))?;
            if (view.dtype(), view.shape()) != (dtype, spec.shape.as_slice()) {
                return Err(format!(
                    "tensor `{name}`: expected {dtype:?} {:?}, got {:?} {:?}",
                    spec.shape,
                    view.dtype(),
                    view.shape()
                ));
            }
            match dtype {
                Dtype::F32 => {
                    let words = view.data().chunks_exact(4);
                    values.extend(words.map(|b| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]]))));
                }
                _ => values.extend(
                    view.data()
                        .chunks_exact(8)
                        .map(|b| f64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]])),
                ),
            }
        }
        Ok(values)
    }
}
