//! The clipped sum of a step, in integers.

use candle_core::Device;

use crate::error::{Result, TrainError};
use crate::ops::{self, Summand};
use crate::parameters::ParameterVector;
use crate::ranks::Collective;

/// Multiples of a public step, which sums over pieces are rounded to.
///
/// **Guarantee.** The step is a power of two of at most `2⁻³⁹` of the bound, or of `n 2⁻⁴⁹` of it
/// for more than a thousand records: so fine that rounding to it costs nothing, and so coarse that
/// the sum of all records is below 2⁵¹ steps, where 64-bit integers and double precision are exact.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Grid {
    step: f64,
}

/// A magnitude that no sum of clipped gradients reaches, in steps: 2⁵¹.
pub(crate) const CAPACITY: f64 = (1_u64 << 51) as f64;

impl Grid {
    /// For gradients of at most this norm, of a data set of so many records.
    pub(crate) fn new(bound: f64, n_records: usize) -> Self {
        let exponent = bound.log2().ceil() as i32;
        let records = f64::from(n_records.max(1).ilog2() + 1);
        Self { step: (f64::from(exponent) - 40.0 + (records - 10.0).max(0.0)).exp2() }
    }

    /// The step.
    pub(crate) fn step(self) -> f64 {
        self.step
    }
}

/// `Σ_i s_i g_i` over the pieces given to [`Engine::add_pieces`](super::Engine::add_pieces), one
/// part for each thread.
///
/// A piece's sum is in floating point. It is rounded to the [`Grid`] and added to the others' as
/// 64-bit integers: these associate, so that the sum is the same whoever summed which piece, and in
/// whatever order. A few pieces of each thread wait as they are until the noise is added, which
/// saves a pass over the integers.
pub(crate) struct ClippedSum {
    /// In the order of the threads.
    parts: Vec<Part>,
    grid: Grid,
}

/// Sums of pieces that a thread keeps before they become integers.
const WAITING: usize = 2;

/// A thread's part of a sum.
pub(crate) struct Part {
    /// The sums of its last pieces; the first vector of the first part is later the step's
    /// gradient.
    vectors: Vec<ParameterVector>,
    /// How many of the vectors are still to be added to the integers.
    n_waiting: usize,
    /// In steps of the grid; empty before there is anything.
    steps: Vec<i64>,
    /// Whether the integers count; otherwise they are stale.
    counts: bool,
    /// Whether every value so far was finite and within the capacity of the grid.
    finite: bool,
}

impl Part {
    fn new(first: ParameterVector) -> Self {
        Self { vectors: vec![first], n_waiting: 0, steps: Vec::new(), counts: false, finite: true }
    }

    /// A vector for the next piece, which from now on is part of the sum. What is in it is stale.
    pub(super) fn next_vector(
        &mut self,
        grid: Grid,
        new: impl Fn() -> Result<ParameterVector>,
    ) -> Result<&ParameterVector> {
        if self.n_waiting == WAITING {
            self.flush(grid)?;
        }
        if self.n_waiting == self.vectors.len() {
            self.vectors.push(new()?);
        }
        self.n_waiting += 1;
        Ok(&self.vectors[self.n_waiting - 1])
    }

    /// Empties the vectors into the integers.
    fn flush(&mut self, grid: Grid) -> Result<()> {
        if self.n_waiting == 0 {
            return Ok(());
        }
        if !std::mem::replace(&mut self.counts, true) {
            self.steps.clear();
            self.steps.resize(self.vectors[0].len(), 0);
        }
        for vector in &self.vectors[..std::mem::take(&mut self.n_waiting)] {
            let host;
            let vector = if let Device::Cpu = vector.flat().device() {
                vector.flat()
            } else {
                host = vector.flat().to_device(&Device::Cpu)?;
                &host
            };
            // NaN fails the comparison.
            self.finite &= ops::add_to_integers(vector, &mut self.steps, grid.step)? < CAPACITY;
        }
        Ok(())
    }
}

impl ClippedSum {
    pub(super) fn new(vectors: impl Iterator<Item = Result<ParameterVector>>) -> Result<Self> {
        let parts = vectors.map(|vector| vector.map(Part::new)).collect::<Result<Vec<_>>>()?;
        Ok(Self { parts, grid: Grid { step: 1.0 } })
    }

    /// Makes it the empty sum of gradients on this grid.
    pub(crate) fn begin(&mut self, grid: Grid) {
        self.grid = grid;
        for part in &mut self.parts {
            (part.n_waiting, part.counts, part.finite) = (0, false, true);
        }
    }

    /// The grid.
    pub(crate) fn grid(&self) -> Grid {
        self.grid
    }

    /// The parts of the threads.
    pub(super) fn parts(&mut self) -> &mut [Part] {
        &mut self.parts
    }

    /// Whether every value that became an integer was finite.
    pub(crate) fn is_finite(&self) -> bool {
        self.parts.iter().all(|part| part.finite)
    }

    /// The vector that becomes the step's gradient.
    pub(crate) fn gradient(&self) -> Result<&ParameterVector> {
        let first = self.parts.first().and_then(|part| part.vectors.first());
        first.ok_or_else(|| TrainError::mismatch("parts of a sum", "at least 1", 0))
    }

    /// What the sum is made of, for an operation whose destination is [`Self::gradient`].
    pub(crate) fn summands(&self) -> Vec<Summand<'_>> {
        let mut summands = Vec::with_capacity(2 * self.parts.len());
        for (i, part) in self.parts.iter().enumerate() {
            if part.counts {
                summands.push(Summand::Integers(&part.steps));
            }
            for (j, vector) in part.vectors[..part.n_waiting].iter().enumerate() {
                let in_place = (i, j) == (0, 0);
                summands.push(if in_place { Summand::InPlace } else { Summand::Vector(vector.flat()) });
            }
        }
        summands
    }

    /// Makes integers of all that is still waiting.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.parts.iter_mut().try_for_each(|part| part.flush(self.grid))
    }

    /// Adds the sums of all ranks, and leaves the result on each.
    ///
    /// # Errors
    /// If a rank is gone.
    pub(crate) fn share(&mut self, ranks: &dyn Collective) -> Result<()> {
        let mut sum = vec![0_i64; self.gradient()?.len()];
        for part in &mut self.parts {
            part.flush(self.grid)?;
            if std::mem::take(&mut part.counts) {
                for (sum, steps) in sum.iter_mut().zip(&part.steps) {
                    *sum += steps;
                }
            }
        }
        // With them goes the number of ranks on which a value was not finite.
        sum.push(i64::from(!self.is_finite()));
        ranks.sum(&mut sum)?;
        let is_finite = sum.pop() == Some(0);
        if let Some(first) = self.parts.first_mut() {
            (first.steps, first.counts, first.finite) = (sum, true, is_finite);
        }
        Ok(())
    }

    /// The sum as it stands.
    #[cfg(feature = "audit")]
    pub(crate) fn values(&mut self) -> Result<Vec<f64>> {
        self.flush()?;
        let mut sum = vec![0.0; self.gradient()?.len()];
        for part in self.parts.iter().filter(|part| part.counts) {
            for (sum, &steps) in sum.iter_mut().zip(&part.steps) {
                *sum += steps as f64;
            }
        }
        for sum in &mut sum {
            *sum *= self.grid.step;
        }
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_is_a_power_of_two_within_its_bounds() {
        assert_eq!(Grid::new(1.0, 1).step(), (-40.0_f64).exp2());
        assert_eq!(Grid::new(0.75, 1_000).step(), (-40.0_f64).exp2());
        assert_eq!(Grid::new(1.5, 1_000).step(), (-39.0_f64).exp2());
        assert_eq!(Grid::new(1.0, 60_000).step(), (-34.0_f64).exp2());
        for n in [1_usize, 1_000, 60_000, 1 << 22, 1 << 40] {
            for bound in [1e-18, 0.3, 1.0, 7.0, 1e18] {
                let step = Grid::new(bound, n).step();
                assert!(n as f64 * bound / step < CAPACITY, "{n} {bound}");
                assert!(step <= bound * (-39.0_f64).exp2() * (n as f64 / 500.0).max(1.0), "{n} {bound}");
            }
        }
    }
}
