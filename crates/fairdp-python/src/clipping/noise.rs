//! Gaussian noise.

use std::sync::{Mutex, PoisonError};

use dp_clipping::kernels::{KernelExecution, add_noise};
use numpy::{PyReadwriteArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use rand_chacha::ChaCha20Rng;

use super::random::Stream;
use crate::errors;

/// Gaussian noise from a cryptographic stream, rounded exactly to a public grid.
#[pyclass(frozen, module = "fairdp.clipping")]
pub(crate) struct NoiseSource {
    stream: Mutex<Stream>,
    /// Whether the stream is keyed by the operating system: with a seed, nothing is private.
    #[pyo3(get)]
    is_private: bool,
}

#[pymethods]
impl NoiseSource {
    /// Keyed by the operating system, or by `seed` for experiments.
    #[new]
    #[pyo3(signature = (seed = None))]
    fn new(seed: Option<u64>) -> PyResult<Self> {
        Ok(Self { stream: Mutex::new(Stream::new(seed)?), is_private: seed.is_none() })
    }

    /// Adds noise of this standard deviation to a vector in place; values are rounded to multiples
    /// of about std/256.
    fn add_to(&self, values: &Bound<'_, PyUntypedArray>, std: f64) -> PyResult<()> {
        let py = values.py();
        let add = |work: &mut (dyn FnMut(&mut ChaCha20Rng) -> Result<(), dp_clipping::ClipError> + Send)| {
            py.detach(|| {
                let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
                work(stream.rng()?).map_err(errors::clip_error)
            })
        };
        let execution = KernelExecution::default();
        if let Ok(mut values) = values.extract::<PyReadwriteArray1<'_, f32>>() {
            let values = values.as_slice_mut()?;
            return add(&mut |rng| add_noise(values, std, rng, &execution));
        }
        if let Ok(mut values) = values.extract::<PyReadwriteArray1<'_, f64>>() {
            let values = values.as_slice_mut()?;
            return add(&mut |rng| add_noise(values, std, rng, &execution));
        }
        Err(PyTypeError::new_err(format!(
            "values are {} of {} dimensions, expected a writable vector of float32 or float64",
            values.dtype(),
            values.ndim()
        )))
    }

    fn __repr__(&self) -> &'static str {
        if self.is_private { "<NoiseSource>" } else { "<NoiseSource: seeded, not private>" }
    }
}
