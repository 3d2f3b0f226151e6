//! Features of texts on the disk, for an encoder takes its time.

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use ndarray::Array2;
use run_records::output::Output;
use run_records::shell;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView, serialize};
use sha2::{Digest, Sha256};

use crate::terminal::{self, say};

const TENSOR: &str = "features";

/// A file that belongs to one encoder and one list of texts.
#[derive(Debug)]
pub(super) struct FeatureFile {
    path: PathBuf,
    key: String,
    shape: [usize; 2],
}

impl FeatureFile {
    /// In `folder`, named after the key, which stands for everything that features depend on.
    pub(super) fn new(folder: &Path, key: String, shape: [usize; 2]) -> Self {
        Self { path: folder.join(format!("features-{}.safetensors", &key[..16])), key, shape }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The features of the file, else those of `compute`, which are then written. A file that is
    /// damaged is replaced, with a message.
    ///
    /// # Errors
    /// If the folder cannot be written to, which is seen before anything is computed; as `compute`.
    pub(super) fn read_or(&self, compute: impl FnOnce() -> anyhow::Result<Array2<f32>>) -> anyhow::Result<Array2<f32>> {
        match fs::read(&self.path) {
            Ok(bytes) => match self.parse(&bytes) {
                Ok(features) => return Ok(features),
                Err(error) => {
                    let reason = terminal::message(&error);
                    say!("{}: {reason}; the texts are encoded again", shell::path(&self.path))?;
                }
            },
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| self.path.display().to_string()),
        }
        self.write_after(compute).with_context(|| self.path.display().to_string())
    }

    fn parse(&self, bytes: &[u8]) -> anyhow::Result<Array2<f32>> {
        let (_, header) = SafeTensors::read_metadata(bytes)?;
        let noted = |name: &str| header.metadata().as_ref().and_then(|notes| notes.get(name)).map(String::as_str);
        ensure!(noted("key") == Some(&self.key), "made from other texts or by another encoder");
        let tensors = SafeTensors::deserialize(bytes)?;
        let tensor = tensors.tensor(TENSOR)?;
        ensure!(tensor.dtype() == Dtype::F32 && tensor.shape() == self.shape, "of another shape");
        ensure!(noted("sha256") == Some(&digest(tensor.data())), "damaged");
        let values = tensor.data().as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        Ok(Array2::from_shape_vec(self.shape, values)?)
    }

    /// Opens a temporary file beside the path, computes, and renames: the path never holds half of
    /// a file. Only the owner may read it, for features tell of the texts.
    fn write_after(&self, compute: impl FnOnce() -> anyhow::Result<Array2<f32>>) -> anyhow::Result<Array2<f32>> {
        let folder = self.path.parent().context("no folder")?;
        fs::create_dir_all(folder)?;
        let output = Output::private(&self.path)?;
        let features = compute()?;
        ensure!(features.dim() == self.shape.into(), "computed features of another shape");
        let data: Vec<u8> = features.iter().flat_map(|value| value.to_le_bytes()).collect();
        let notes = HashMap::from([("key".to_owned(), self.key.clone()), ("sha256".to_owned(), digest(&data))]);
        let tensor = TensorView::new(Dtype::F32, self.shape.to_vec(), &data)?;
        output.write_bytes(&serialize([(TENSOR, tensor)], Some(notes))?)?;
        Ok(features)
    }
}

fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    fn file(folder: &Path, key: &str) -> FeatureFile {
        FeatureFile::new(folder, format!("0123456789abcdef{key}"), [2, 2])
    }

    fn features() -> Array2<f32> {
        array![[1.0, -0.5], [f32::MIN_POSITIVE, 3e38]]
    }

    fn refuse() -> anyhow::Result<Array2<f32>> {
        anyhow::bail!("computed")
    }

    #[test]
    fn what_was_computed_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("not/yet/there");
        assert_eq!(file(&cache, "a").read_or(|| Ok(features())).unwrap(), features());
        assert_eq!(file(&cache, "a").read_or(refuse).unwrap(), features());
        assert_eq!(fs::read_dir(&cache).unwrap().count(), 1, "no temporary file is left");
        // The name begins like the key; the whole key is inside.
        assert!(format!("{:#}", file(&cache, "b").read_or(refuse).unwrap_err()).ends_with("computed"));
        let other = array![[0.0, 0.0], [0.0, 0.0]];
        assert_eq!(file(&cache, "b").read_or(|| Ok(other.clone())).unwrap(), other);
        assert_eq!(file(&cache, "b").read_or(refuse).unwrap(), other);
    }

    #[test]
    fn a_damaged_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = file(folder.path(), "a");
        file.read_or(|| Ok(features())).unwrap();
        let whole = fs::read(file.path()).unwrap();
        for position in [0, 20, whole.len() - 1] {
            let mut bytes = whole.clone();
            bytes[position] ^= 1;
            fs::write(file.path(), &bytes).unwrap();
            assert!(file.read_or(refuse).is_err(), "byte {position}");
        }
        fs::write(file.path(), &whole[..whole.len() / 2]).unwrap();
        assert_eq!(file.read_or(|| Ok(features())).unwrap(), features());
        assert_eq!(file.read_or(refuse).unwrap(), features());
    }

    #[test]
    fn a_computation_that_fails_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        assert!(file(folder.path(), "a").read_or(refuse).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        // Where a file is in the way of the folder, nothing is computed.
        let taken = folder.path().join("taken");
        fs::write(&taken, "").unwrap();
        let error = file(&taken, "a").read_or(refuse).unwrap_err();
        assert!(!format!("{error:#}").contains("computed"), "{error:#}");
    }
}
