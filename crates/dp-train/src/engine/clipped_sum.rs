//! The clipped sum of a step, in integers.

use crate::error::{Result, TrainError};
#[cfg(feature = "cuda")]
use crate::ops::DeviceIntegers;
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
    /// The same on a CUDA device, until they are asked for.
    #[cfg(feature = "cuda")]
    on_device: Option<DeviceIntegers>,
    /// Whether the integers count; otherwise they are stale.
    counts: bool,
    /// Whether every value so far was finite and within the capacity of the grid.
    finite: bool,
}

impl Part {
    fn new(first: ParameterVector) -> Self {
        Self {
            vectors: vec![first],
            n_waiting: 0,
            steps: Vec::new(),
            #[cfg(feature = "cuda")]
            on_device: None,
            counts: false,
            finite: true,
        }
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
        #[cfg(feature = "cuda")]
        if self.vectors[0].flat().device().is_cuda() {
            return self.flush_on_device(grid);
        }
        if !std::mem::replace(&mut self.counts, true) {
            self.steps.clear();
            self.steps.resize(self.vectors[0].len(), 0);
        }
        for vector in &self.vectors[..std::mem::take(&mut self.n_waiting)] {
            // NaN fails the comparison.
            self.finite &= ops::add_to_integers(vector.flat(), &mut self.steps, grid.step)? < CAPACITY;
        }
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn flush_on_device(&mut self, grid: Grid) -> Result<()> {
        let (n_waiting, vectors) = (std::mem::take(&mut self.n_waiting), &self.vectors);
        let integers = match &mut self.on_device {
            Some(integers) => integers,
            none => none.insert(DeviceIntegers::new(vectors[0].flat().device(), vectors[0].len())?),
        };
        for vector in &vectors[..n_waiting] {
            let is_first = !std::mem::replace(&mut self.counts, true);
            integers.add(vector.flat(), grid.step, is_first)?;
        }
        Ok(())
    }

    /// Brings the integers to the host, if they are on a device.
    #[cfg(feature = "cuda")]
    fn fetch(&mut self) -> Result<()> {
        if let Some(integers) = self.on_device.as_ref().filter(|_| self.counts) {
            self.finite &= integers.read(&mut self.steps)?;
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

    /// Makes integers of all that is still waiting, on the host.
    pub(crate) fn on_host(&mut self) -> Result<()> {
        for part in &mut self.parts {
            part.flush(self.grid)?;
            #[cfg(feature = "cuda")]
            part.fetch()?;
        }
        Ok(())
    }

    /// Makes integers of all that is still waiting, on the device: the step's gradient is made from
    /// them.
    ///
    /// # Errors
    /// [`TrainError::Mismatch`] if the sum is in several parts, which no device's is.
    #[cfg(feature = "cuda")]
    pub(crate) fn on_device(&mut self) -> Result<(&ParameterVector, &DeviceIntegers)> {
        let (grid, n_parts) = (self.grid, self.parts.len());
        let [part] = self.parts.as_mut_slice() else {
            return Err(TrainError::mismatch("parts of a sum on a device", 1, n_parts));
        };
        part.flush(grid)?;
        let first = &part.vectors[0];
        let integers = match &mut part.on_device {
            Some(integers) => integers,
            none => none.insert(DeviceIntegers::new(first.flat().device(), first.len())?),
        };
        if !std::mem::replace(&mut part.counts, true) {
            integers.clear()?;
        }
        Ok((first, integers))
    }

    /// Adds the sums of all ranks, and leaves the result on each.
    ///
    /// # Errors
    /// If a rank is gone.
    pub(crate) fn share(&mut self, ranks: &dyn Collective) -> Result<()> {
        self.on_host()?;
        let mut sum = vec![0_i64; self.gradient()?.len()];
        for part in &mut self.parts {
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
        self.on_host()?;
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
