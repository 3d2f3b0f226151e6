//! A fitted transformation in a file, beside the model that was trained on its results.

use std::collections::HashMap;
use std::path::Path;

use candle_core::safetensors::Load;
use candle_core::{DType, Device, Tensor};
use dp_engine::TensorError;
use safetensors::SafeTensors;
use whole_file::{Readers, WholeFile};

use super::fit::{Conditioning, ConditioningConfig};
use super::triangular::Lower;
use crate::error::{LinearError, Result};

/// Key of the configuration in the file's metadata.
const CONFIG: &str = "conditioning";
/// Key of the number of features in it.
const N_FEATURES: &str = "n_features";
const MEAN: &str = "mean";
const FACTOR: &str = "covariance_factor";

impl Conditioning {
    /// Writes the released mean (`mean`, `[n_features]`), the Cholesky factor of the released
    /// covariance (`covariance_factor`, `[n_features, n_features]`) and the configuration, as
    /// safetensors.
    ///
    /// **Guarantee.** Everything in the file was released: it may be published with the model.
    ///
    /// # Errors
    /// [`LinearError::Io`] if the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        let tensor_of = |values: &[f64], shape: &[usize]| {
            Tensor::from_slice(values, shape, &Device::Cpu).map_err(TensorError::from)
        };
        let mut tensors = Vec::new();
        if let Some(mean) = &self.mean {
            tensors.push((MEAN, tensor_of(mean, &[mean.len()])?));
        }
        if let Some(factor) = &self.factor {
            tensors.push((FACTOR, tensor_of(&factor.values, &[factor.size, factor.size])?));
        }
        let config = serde_json::to_string(&self.config).map_err(|error| LinearError::file(path, error))?;
        let size = self.n_features.to_string();
        let metadata = HashMap::from([(CONFIG.to_owned(), config), (N_FEATURES.to_owned(), size)]);
        let bytes = safetensors::serialize(tensors, Some(metadata)).map_err(|error| LinearError::file(path, error))?;
        WholeFile::create(path, Readers::Default)
            .and_then(|file| file.write_bytes(&bytes))
            .map_err(|error| LinearError::io("write", path, error))
    }

    /// Reads what [`Self::save`] wrote.
    ///
    /// **Guarantee.** The transformation is the one that was saved, bit for bit.
    ///
    /// # Errors
    /// [`LinearError::Io`] if the file cannot be read; [`LinearError::File`] if it is no such file, or
    /// holds values that are not finite or a factor that is not triangular with a positive diagonal.
    pub fn load(path: &Path) -> Result<Self> {
        let refused = |problem: &str| LinearError::file(path, problem);
        let bytes = std::fs::read(path).map_err(|error| LinearError::io("read", path, error))?;
        let broken = |error: safetensors::SafeTensorError| LinearError::file(path, error);
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(broken)?;
        let entry = |name: &str| {
            let entry = header.metadata().as_ref().and_then(|metadata| metadata.get(name));
            entry.ok_or_else(|| refused(&format!("no `{name}` in the metadata")))
        };
        let config: ConditioningConfig =
            serde_json::from_str(entry(CONFIG)?).map_err(|error| LinearError::file(path, error))?;
        let file = SafeTensors::deserialize(&bytes).map_err(broken)?;
        let values = |name: &str, shape: &[usize]| -> Result<Vec<f64>> {
            let tensor = file.tensor(name).map_err(broken)?;
            if tensor.dtype() != safetensors::Dtype::F64 || tensor.shape() != shape {
                let (dtype, got) = (tensor.dtype(), tensor.shape());
                return Err(LinearError::file(path, format!("{name}: expected F64 {shape:?}, got {dtype:?} {got:?}")));
            }
            let values: Vec<f64> = tensor
                .load(&Device::Cpu)
                .and_then(|tensor| tensor.to_dtype(DType::F64)?.flatten_all()?.to_vec1())
                .map_err(TensorError::from)?;
            if values.iter().any(|value| !value.is_finite()) {
                return Err(LinearError::file(path, format!("{name}: a value that is not finite")));
            }
            Ok(values)
        };
        let size = entry(N_FEATURES)?.parse().map_err(|_| refused("n_features in the metadata: expected a number"))?;
        let mut conditioning = Self::unfitted(config, size)?;
        if config.mean.is_some() {
            conditioning.mean = Some(values(MEAN, &[size])?);
        }
        if config.covariance.is_some() {
            let values = values(FACTOR, &[size, size])?;
            let rows = || values.chunks_exact(size).enumerate();
            if rows().any(|(i, row)| row[i] <= 0.0 || row[i + 1..].iter().any(|&v| v != 0.0)) {
                return Err(refused("covariance_factor: expected a lower triangle with a positive diagonal"));
            }
            conditioning.set_factor(Lower { size, values });
        }
        Ok(conditioning)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use dp_accounting::{Ledger, NeighbouringRelation, NoiseMultiplier};

    use super::*;
    use dp_train::{Purpose, Randomness};

    #[test]
    fn what_is_saved_comes_back_and_does_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("conditioning.safetensors");
        let rows: Vec<f32> = (0..60).map(|i| ((i * 31) % 17) as f32 / 17.0).collect();
        let sigma = Some(NoiseMultiplier::new(0.5).unwrap());
        let (none, some) = (ConditioningConfig::default(), ConditioningConfig { mean: sigma, ..Default::default() });
        for config in [none, some, ConditioningConfig { covariance: sigma, ..some }] {
            let mut rng = Randomness::from_seed(5).stream(Purpose::Conditioning, 0, 0).unwrap();
            let mut ledger = Ledger::new(NeighbouringRelation::ZeroOut);
            let fitted = Conditioning::fit(&config, &rows, 6, NonZeroUsize::MIN, &mut rng, &mut ledger).unwrap();
            fitted.save(&path).unwrap();
            let loaded = Conditioning::load(&path).unwrap();
            assert_eq!(loaded, fitted);
            let apply = |c: &Conditioning| c.apply(&rows, NonZeroUsize::MIN).unwrap();
            assert_eq!(apply(&loaded), apply(&fitted));
        }
        std::fs::write(&path, b"nothing of the kind").unwrap();
        assert!(Conditioning::load(&path).unwrap_err().to_string().contains("conditioning.safetensors: "));
    }
}
