//! A weighted sum of gradients in the making.

use crate::error::{EngineError, Result};
use crate::ops;
use crate::parameters::ParameterVector;

/// `Σ_i weights[i] g_i` over the batches given to
/// [`Engine::add_weighted`](super::Engine::add_weighted), as one partial sum for each thread. The
/// partial sums are added up at the end.
pub struct WeightedSum {
    /// In the order of the threads.
    parts: Vec<ThreadVector>,
}

/// Without the sum, which has no noise yet.
impl std::fmt::Debug for WeightedSum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WeightedSum").field("threads", &self.parts.len()).finish_non_exhaustive()
    }
}

struct ThreadVector {
    vector: ParameterVector,
    /// Whether the vector is part of the sum; else what is in it is of the past.
    counts: bool,
}

impl WeightedSum {
    pub(super) fn new(vectors: impl Iterator<Item = Result<ParameterVector>>) -> Result<Self> {
        let part = |vector: Result<ParameterVector>| vector.map(|vector| ThreadVector { vector, counts: false });
        Ok(Self { parts: vectors.map(part).collect::<Result<_>>()? })
    }

    /// Makes it the empty sum.
    pub fn clear(&mut self) {
        for part in &mut self.parts {
            part.counts = false;
        }
    }

    /// The vectors of the first `n` threads, and whether what they hold is to be added to. From now
    /// on they count.
    pub(super) fn open(&mut self, n: usize) -> Result<Vec<(&ParameterVector, bool)>> {
        if n > self.parts.len() {
            return Err(EngineError::mismatch("parts of a sum", n, self.parts.len()));
        }
        let parts = self.parts[..n].iter_mut();
        Ok(parts.map(|ThreadVector { vector, counts }| (&*vector, std::mem::replace(counts, true))).collect())
    }

    /// The vector that becomes the sum, and what it lacks: the caller adds that to it, and it
    /// counts no longer.
    ///
    /// # Errors
    /// [`EngineError::Tensor`](crate::EngineError::Tensor) if the device fails.
    pub fn gather(&mut self) -> Result<(&ParameterVector, Vec<&ParameterVector>)> {
        let Some((first, others)) = self.parts.split_first_mut() else {
            return Err(EngineError::mismatch("parts of a sum", "at least 1", 0));
        };
        if !std::mem::replace(&mut first.counts, true) {
            ops::fill(first.vector.flat(), 0.0)?;
        }
        let counting = |part: &mut ThreadVector| std::mem::replace(&mut part.counts, false);
        let others = others.iter_mut().filter_map(|part| counting(part).then_some(&part.vector));
        Ok((&first.vector, others.collect()))
    }

    /// The vectors that add up to the sum.
    pub(super) fn parts(&self) -> impl Iterator<Item = &ParameterVector> {
        self.parts.iter().filter(|part| part.counts).map(|part| &part.vector)
    }

    /// The sum as it stands.
    ///
    /// # Errors
    /// [`EngineError::Tensor`](crate::EngineError::Tensor) if the device fails.
    pub fn to_vec(&self) -> Result<Vec<f64>> {
        let mut sum = vec![0.0; self.parts.first().map_or(0, |part| part.vector.len())];
        for part in self.parts() {
            for (sum, value) in sum.iter_mut().zip(part.to_vec()?) {
                *sum += value;
            }
        }
        Ok(sum)
    }

    /// Makes it these values.
    ///
    /// # Errors
    /// [`EngineError::Tensor`](crate::EngineError::Tensor) if the device fails.
    pub fn set(&mut self, values: &[f64]) -> Result<()> {
        self.clear();
        for (vector, _) in self.open(1)? {
            vector.set(values)?;
        }
        Ok(())
    }

    /// Adds `alpha` times these values.
    ///
    /// # Errors
    /// [`EngineError::Tensor`](crate::EngineError::Tensor) if the device fails.
    pub fn add(&mut self, alpha: f64, values: &[f64]) -> Result<()> {
        for (vector, counted) in self.open(1)? {
            if !counted {
                ops::fill(vector.flat(), 0.0)?;
            }
            ops::add_slice(vector.flat(), alpha, values)?;
        }
        Ok(())
    }
}
