//! The clipped sum of a step, in integers.

use std::ops::Range;

use candle_core::Tensor;

use super::division::Division;
use crate::collective::{Collective, DIVIDED_FROM};
use crate::error::{EngineError, Result};
use crate::grid::Grid;
use crate::noise::BLOCK;
#[cfg(feature = "cuda")]
use crate::ops::DeviceIntegers;
use crate::ops::{self, Summand};
use crate::parameters::ParameterVector;

/// `Σ_i s_i g_i` over the pieces given to [`Engine::add_pieces`](super::Engine::add_pieces), one
/// part for each thread.
///
/// A piece's sum is in floating point, a [stretch](super::Engine::stretch) at a time. It is rounded
/// to the [`Grid`] and added to the others' as 64-bit integers: these associate, so that the sum is
/// the same whoever summed which piece, and in whatever order. A few pieces of each thread wait as
/// they are until the noise is added, which saves a pass over the integers.
///
/// Ranks that share many parameters divide them: each has the sum of its range alone, out of what
/// the others gave for it.
///
/// **Example**
/// ```
/// use dp_engine::collective::Alone;
/// use dp_engine::{Blocks, DType, Device, Engine, Grid, Loss, ModelConfig, PublicFacts, Records};
/// let facts = PublicFacts { n_records: 2, n_inputs: 1, n_classes: 2, n_groups: 1 };
/// let records = Records::new(&[3.0, 0.0], &[1, 0], &[0, 0], facts, DType::F64, &Device::Cpu)?;
/// let mut engine = Engine::new(&ModelConfig::LogisticRegression, Loss::BceWithLogits, &records, &Device::Cpu)?;
///
/// // One piece for each record. The gradients are (−1.5, −0.5) and (0, 0.5); the scales make both at most 1 long.
/// let rows = [0, 1];
/// let pieces = Blocks::new(2, 1.0, Some(1)).pieces(&rows);
/// let norms = engine.differentiate_pieces(&records, &rows, &[], &pieces)?;
/// let scales: Vec<f64> = norms.iter().map(|norm| (1.0 / norm).min(1.0)).collect();
/// let mut sum = engine.clipped_sum()?;
/// sum.begin(Grid::for_gradients(1.0, 2));
/// engine.add_pieces(&scales, &pieces, &mut sum, None)?;
///
/// sum.on_host()?;
/// let values = sum.values(&Alone)?;
/// assert!((values[0] + 1.5 * scales[0]).abs() < 1e-9);
/// assert!((values[1] + 0.5 * scales[0] - 0.5).abs() < 1e-9);
/// # Ok::<(), dp_engine::EngineError>(())
/// ```
pub struct ClippedSum {
    /// In the order of the threads.
    parts: Vec<ThreadSum>,
    grid: Grid,
    division: Division,
}

/// Without the sum, which has no noise yet.
impl std::fmt::Debug for ClippedSum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClippedSum")
            .field("threads", &self.parts.len())
            .field("grid", &self.grid)
            .finish_non_exhaustive()
    }
}

/// The way in which ranks add up their sums.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Reduction {
    /// One rank has the whole sum.
    Alone,
    /// The devices add up the integers, without the host.
    OnDevices,
    /// In one message, which can have other numbers with it: [`ClippedSum::share_with`].
    OneMessage,
    /// Each rank adds up its ranges of parameters. The ranks can exchange late layers while they
    /// still sum early ones.
    Divided {
        /// Whether they do.
        overlaps: bool,
    },
}

/// Sums of pieces that a thread keeps before they become integers.
const WAITING: usize = 2;

/// A thread's part of a sum.
pub(super) struct ThreadSum {
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
    /// Whether the integers on the device are newer than those here.
    #[cfg(feature = "cuda")]
    is_newer: bool,
    /// Whether the integers count; otherwise they are stale.
    counts: bool,
    /// Whether every value so far was finite and within the capacity of the grid.
    finite: bool,
}

impl ThreadSum {
    fn new(first: ParameterVector) -> Self {
        Self {
            vectors: vec![first],
            n_waiting: 0,
            steps: Vec::new(),
            #[cfg(feature = "cuda")]
            on_device: None,
            #[cfg(feature = "cuda")]
            is_newer: false,
            counts: false,
            finite: true,
        }
    }

    /// Makes it empty.
    fn clear(&mut self) {
        (self.n_waiting, self.counts, self.finite) = (0, false, true);
        #[cfg(feature = "cuda")]
        {
            self.is_newer = false;
        }
    }

    /// The vector of the piece in the making: unless that `has_begun` a new one, in which what is
    /// there is stale. From now on it is part of the sum.
    pub(super) fn vector(
        &mut self,
        has_begun: bool,
        grid: Grid,
        new: impl Fn() -> Result<ParameterVector>,
    ) -> Result<&ParameterVector> {
        if !has_begun || self.n_waiting == 0 {
            if self.n_waiting == WAITING {
                self.flush(grid)?;
            }
            if self.n_waiting == self.vectors.len() {
                self.vectors.push(new()?);
            }
            self.n_waiting += 1;
        }
        Ok(&self.vectors[self.n_waiting - 1])
    }

    /// The vectors that are still to be added to the integers, that of the last piece last.
    pub(super) fn waiting(&self) -> &[ParameterVector] {
        &self.vectors[..self.n_waiting]
    }

    /// The integers, if there are any.
    pub(super) fn integers(&self) -> Option<&[i64]> {
        self.counts.then_some(&self.steps)
    }

    /// Notes whether further values were finite and within the capacity of the grid.
    pub(super) fn note(&mut self, is_finite: bool) {
        self.finite &= is_finite;
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
            self.finite &= ops::add_to_integers(vector.flat(), &mut self.steps, grid.step())?;
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
            integers.add(vector.flat(), grid.step(), is_first)?;
            self.is_newer = true;
        }
        Ok(())
    }

    /// Brings the integers to the host, if they are on a device.
    #[cfg(feature = "cuda")]
    fn fetch(&mut self) -> Result<()> {
        if let Some(integers) = self.on_device.as_ref().filter(|_| self.is_newer) {
            self.finite &= integers.read(&mut self.steps)?;
            self.is_newer = false;
        }
        Ok(())
    }
}

impl ClippedSum {
    pub(super) fn new(vectors: impl Iterator<Item = Result<ParameterVector>>) -> Result<Self> {
        let parts = vectors.map(|vector| vector.map(ThreadSum::new)).collect::<Result<Vec<_>>>()?;
        Ok(Self { parts, grid: Grid::for_counts(), division: Division::default() })
    }

    /// Makes it the empty sum of gradients on this grid.
    pub fn begin(&mut self, grid: Grid) {
        self.grid = grid;
        self.division.end();
        for part in &mut self.parts {
            part.clear();
        }
    }

    /// The grid.
    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// The parts of the threads.
    pub(super) fn parts(&mut self) -> &mut [ThreadSum] {
        &mut self.parts
    }

    /// Whether every value that became an integer was finite.
    pub fn is_finite(&self) -> bool {
        self.parts.iter().all(|part| part.finite)
    }

    /// The vector that becomes the step's gradient.
    ///
    /// # Errors
    /// [`EngineError::Mismatch`] if the sum has no part.
    pub fn gradient(&self) -> Result<&ParameterVector> {
        let first = self.parts.first().and_then(|part| part.vectors.first());
        first.ok_or_else(|| EngineError::mismatch("parts of a sum", "at least 1", 0))
    }

    /// The ranges of the parameters whose sum is here: all in one, unless ranks divide them. They
    /// begin at multiples of [`BLOCK`].
    ///
    /// # Errors
    /// [`EngineError::Mismatch`] if the sum has no part.
    pub fn ranges(&self) -> Result<Vec<Range<usize>>> {
        let own: Vec<_> = self.division.own().collect();
        Ok(if own.is_empty() { vec![0..self.gradient()?.len(); 1] } else { own })
    }

    /// The terms of the sum over one range of the parameters, for an operation that writes to this
    /// range of [`Self::gradient`]. `number` is the range's index in [`Self::ranges`].
    ///
    /// # Errors
    /// [`EngineError::Mismatch`] if the sum has no part.
    pub fn summands(&self, number: usize, range: &Range<usize>) -> Result<Vec<Summand<'_>>> {
        let mut summands = self.division.received(number)?;
        for (i, part) in self.parts.iter().enumerate() {
            if let Some(steps) = part.integers() {
                summands.push(Summand::Integers(&steps[range.clone()]));
            }
            for (j, vector) in part.waiting().iter().enumerate() {
                let in_place = (i, j) == (0, 0);
                summands.push(if in_place { Summand::InPlace } else { Summand::Vector(vector.range(range)?) });
            }
        }
        Ok(summands)
    }

    /// Makes integers of all that is still waiting, on the host.
    ///
    /// # Errors
    /// [`EngineError::Tensor`] if the device fails.
    pub fn on_host(&mut self) -> Result<()> {
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
    /// [`EngineError::Mismatch`] if the sum is in several parts, which no device's is.
    #[cfg(feature = "cuda")]
    pub fn on_device(&mut self) -> Result<(&ParameterVector, &mut DeviceIntegers)> {
        let (grid, n_parts) = (self.grid, self.parts.len());
        let [part] = self.parts.as_mut_slice() else {
            return Err(EngineError::mismatch("parts of a sum on a device", 1, n_parts));
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

    /// The way in which these ranks add up the sum.
    ///
    /// # Errors
    /// [`EngineError::Mismatch`] if the sum has no part.
    pub fn reduction(&self, ranks: &dyn Collective) -> Result<Reduction> {
        let gradient = self.gradient()?;
        let is_cpu = gradient.flat().device().is_cpu();
        Ok(match gradient.len() {
            _ if ranks.size() == 1 => Reduction::Alone,
            _ if !is_cpu && ranks.sums_on_devices() => Reduction::OnDevices,
            len if len < DIVIDED_FROM => Reduction::OneMessage,
            _ => Reduction::Divided { overlaps: is_cpu },
        })
    }

    /// Begins to share the parameters from `first` on, of a sum that is divided.
    ///
    /// # Errors
    /// If a rank is gone.
    pub(super) fn share_from(&mut self, first: usize, ranks: &dyn Collective) -> Result<()> {
        let end = self.division.undivided(self.gradient()?.len());
        let parameters = first.next_multiple_of(BLOCK).min(end)..end;
        if parameters.is_empty() {
            return Ok(());
        }
        self.division.begin(parameters, &mut self.parts, self.grid, ranks)
    }

    /// Adds the sums of all ranks, and leaves the result on each; of many parameters, each rank's
    /// ranges of it. A rank then knows whether its own values were finite, not whether others' were.
    ///
    /// # Errors
    /// If a rank is gone.
    pub fn share(&mut self, ranks: &dyn Collective) -> Result<()> {
        match self.reduction(ranks)? {
            Reduction::Alone => Ok(()),
            Reduction::OneMessage => self.share_with(&mut Vec::new(), ranks),
            #[cfg(feature = "cuda")]
            Reduction::OnDevices => {
                let (_, integers) = self.on_device()?;
                integers.share(ranks)?;
                if let Some(part) = self.parts.first_mut() {
                    part.is_newer = true;
                }
                Ok(())
            }
            _ => {
                if !self.gradient()?.flat().device().is_cpu() {
                    self.on_host()?;
                }
                self.share_from(0, ranks)?;
                self.division.finish()
            }
        }
    }

    /// Adds the sums of all ranks and these numbers of each, as many on every rank, in one message,
    /// and leaves the results on each.
    ///
    /// # Errors
    /// If a rank is gone, or the ranks have not equally many numbers.
    pub fn share_with(&mut self, numbers: &mut Vec<i64>, ranks: &dyn Collective) -> Result<()> {
        self.on_host()?;
        let len = self.gradient()?.len();
        let is_finite = self.is_finite();
        let Some((first, others)) = self.parts.split_first_mut() else { return Ok(()) };
        if !std::mem::replace(&mut first.counts, true) {
            first.steps.clear();
            first.steps.resize(len, 0);
        }
        for part in others.iter_mut().filter(|part| part.counts) {
            add(&mut first.steps, &part.steps);
            part.counts = false;
        }
        // With them goes the number of ranks on which a value was not finite.
        first.steps.append(numbers);
        first.steps.push(i64::from(!is_finite));
        ranks.sum(&mut first.steps)?;
        first.finite = first.steps.pop() == Some(0);
        *numbers = first.steps.split_off(len);
        Ok(())
    }

    /// Completes a gradient, of which each rank has made its range, on all of them. Whether it is
    /// finite on each.
    ///
    /// # Errors
    /// If a rank is gone.
    pub fn complete(&mut self, gradient: &Tensor, is_finite: bool, ranks: &dyn Collective) -> Result<bool> {
        self.division.complete(gradient, is_finite, ranks)
    }

    /// The sum as it stands, of all ranks that share it.
    ///
    /// # Errors
    /// [`EngineError::Tensor`] if the device fails.
    pub fn values(&mut self, ranks: &dyn Collective) -> Result<Vec<f64>> {
        self.on_host()?;
        let mut whole = vec![0.0; self.gradient()?.len()];
        for (number, range) in self.ranges()?.into_iter().enumerate() {
            let mut sum = vec![0_i64; range.len()];
            for summand in self.summands(number, &range)? {
                match summand {
                    Summand::Integers(steps) => add(&mut sum, steps),
                    Summand::Words(words) => {
                        let values = self.gradient()?.range(&range)?.zeros_like()?;
                        ops::take_words(&values, words)?;
                        ops::add_to_integers(&values, &mut sum, self.grid.step())?;
                    }
                    Summand::Vector(_) | Summand::InPlace => {}
                }
            }
            let of_all = if self.division.own().next().is_some() {
                self.division.gather(number, &sum, ranks)?
            } else {
                vec![(range, sum)]
            };
            for (range, sum) in of_all {
                for (value, steps) in whole[range].iter_mut().zip(sum) {
                    *value = steps as f64 * self.grid.step();
                }
            }
        }
        Ok(whole)
    }
}

/// Adds integers to a sum.
pub(super) fn add(sum: &mut [i64], steps: &[i64]) {
    for (sum, steps) in sum.iter_mut().zip(steps) {
        *sum += steps;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::CAPACITY;

    /// Whatever form the parts of the ranks have: none, one vector, several, integers; at once, or
    /// late parameters first.
    #[test]
    fn ranks_that_divide_a_sum_have_all_of_it() {
        use candle_core::{DType, Device};

        use crate::collective::on_threads;
        use crate::layers::{Initial, ParameterSpec};

        const LEN: usize = DIVIDED_FROM + 71;
        let n_pieces = [0, 1, 2, 5];
        let in_segments = |late_from: Option<usize>| {
            on_threads(n_pieces.len(), |ranks| {
                let specs = [ParameterSpec {
                    name: "w".into(),
                    shape: vec![LEN],
                    initial: Initial::Zeros,
                    decays: true,
                    crop: None,
                }];
                let new = || ParameterVector::zeros(&specs, DType::F32, &Device::Cpu);
                let mut sum = ClippedSum::new([new(), new()].into_iter())?;
                sum.begin(Grid::of_step(0.25));
                for piece in 0..n_pieces[ranks.rank()] {
                    let vector = sum.parts[piece % 2].vector(false, Grid::of_step(0.25), new)?;
                    vector.set(
                        &(0..LEN).map(|i| ((i * (piece + 3 * ranks.rank())) % 101) as f64 * 0.5).collect::<Vec<_>>(),
                    )?;
                }
                if let Some(first) = late_from {
                    sum.share_from(first, &*ranks)?;
                }
                sum.share(&*ranks)?;
                let whole = sum.values(&*ranks)?;
                let share = Tensor::new(&whole[..], &Device::Cpu)?.to_dtype(DType::F32)?;
                let finite = sum.complete(&share, ranks.rank() != 2, &*ranks)?;
                Ok::<_, EngineError>((whole, finite))
            })
        };
        let expected = |i: usize| {
            let pieces = (0..4).flat_map(|rank| (0..n_pieces[rank]).map(move |piece| piece + 3 * rank));
            pieces.map(|piece| ((i * piece) % 101) as f64 * 0.5).sum::<f64>()
        };
        for (whole, finite) in [None, Some(LEN / 3), Some(0)].into_iter().flat_map(|first| in_segments(first).unwrap())
        {
            assert!(!finite, "a rank's values are not finite");
            assert!((0..LEN).all(|i| whole[i] == expected(i)));
        }
    }

    #[test]
    fn the_grid_is_a_power_of_two_within_its_bounds() {
        assert_eq!(Grid::for_gradients(1.0, 1).step(), (-40.0_f64).exp2());
        assert_eq!(Grid::for_gradients(0.75, 1_000).step(), (-40.0_f64).exp2());
        assert_eq!(Grid::for_gradients(1.5, 1_000).step(), (-39.0_f64).exp2());
        assert_eq!(Grid::for_gradients(1.0, 60_000).step(), (-34.0_f64).exp2());
        for n in [1_usize, 1_000, 60_000, 1 << 22, 1 << 40] {
            for bound in [1e-18, 0.3, 1.0, 7.0, 1e18] {
                let step = Grid::for_gradients(bound, n).step();
                assert!(n as f64 * bound / step < CAPACITY, "{n} {bound}");
                assert!(step <= bound * (-39.0_f64).exp2() * (n as f64 / 500.0).max(1.0), "{n} {bound}");
            }
        }
    }
}
