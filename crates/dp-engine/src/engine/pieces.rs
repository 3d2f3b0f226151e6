//! Sums over the pieces of a batch, a stretch at a time.

use std::ops::Range;

use super::clipped_sum::{ClippedSum, ThreadSum};
use super::worker::Worker;
use super::{Engine, without};
use crate::collective::Collective;
use crate::dropout::DropoutKey;
use crate::error::{EngineError, Result};
use crate::grid::Grid;
use crate::models::Layers;
use crate::records::Records;

/// What [`Engine::differentiate_and_add`] found out about the records of a batch.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Differentiated {
    /// Loss of each record, `[batch]`.
    pub losses: Vec<f64>,
    /// L2 norm of each record's gradient, `[batch]`.
    pub norms: Vec<f64>,
    /// Positions of the records whose norm is not finite. They have scale 0.
    pub blanked: Vec<usize>,
}

/// A batch in pieces, each of whose scales follows from the record alone.
struct Batch<'a> {
    records: &'a Records,
    rows: &'a [usize],
    dropout: Option<DropoutKey>,
    /// The scale of the record at a position of the batch, whose gradient has this norm.
    scale: &'a (dyn Fn(usize, f64) -> f64 + Sync),
}

/// A stretch of a piece, as positions in the batch.
#[derive(Debug, Clone, PartialEq)]
struct Stretch {
    rows: Range<usize>,
    /// Whether it is the first of its piece.
    begins: bool,
}

/// What is still to be summed in the early layers.
struct Pending {
    /// Positions among the records whose factors the layers hold.
    rows: Range<usize>,
    scales: Vec<f64>,
    accumulate: bool,
}

impl Engine {
    /// Records of a piece that are summed at once, a *stretch*: as many as stay in the cache with
    /// their activations; all on a CUDA device, and where the parameters would take most of the cache.
    ///
    /// It follows from the model alone.
    pub fn stretch(&self) -> usize {
        self.first().network().stretch()
    }

    /// Adds `Σ_i scales[i] g_i` over the batch of [`Self::differentiate_pieces`], with the same
    /// pieces.
    ///
    /// **Guarantee.** The sum over a piece is a function of the scales, of the parameters and of
    /// its records in their order. If `scales[i]` times the norm of record `i` is at most the bound
    /// `S`, one record moves it by at most `S + 2 ρ S`, with `ρ` =
    /// [`rounding_of_piece`](crate::rounding_of_piece) for its length; a record of scale 0 adds 0, if
    /// it was blanked.
    ///
    /// With `ranks`, these are the last pieces of this rank, and every rank calls it: what it has of
    /// late layers is then on its way to the others while the last stretch of each thread is summed in
    /// the early layers. The sum must be one that these ranks divide.
    ///
    /// # Errors
    /// [`EngineError::Mismatch`] if no batch was differentiated, or there is not one scale
    /// per record; [`EngineError::Tensor`] if the device fails.
    pub fn add_pieces(
        &mut self,
        scales: &[f64],
        pieces: &[Range<usize>],
        sum: &mut ClippedSum,
        ranks: Option<&dyn Collective>,
    ) -> Result<()> {
        let parts = self.parts()?.to_vec();
        let expected = parts.last().map_or(0, |part| part.end);
        if scales.len() != expected {
            return Err(EngineError::mismatch("scales of a batch", expected, scales.len()));
        }
        let (grid, at_last, stretch) = (sum.grid(), at_last(ranks), self.stretch());
        let jobs = self.workers.iter_mut().zip(&parts).zip(sum.parts());
        let add = |((worker, part), to): ((&mut Worker, &Range<usize>), &mut ThreadSum)| {
            let of_part = pieces.iter().filter(|piece| part.contains(&piece.start));
            let stretches: Vec<Stretch> = of_part.flat_map(|piece| stretches(piece, stretch)).collect();
            add_stretches(worker, (to, grid), &stretches, &scales[part.clone()], &mut false, at_last)
        };
        let pending = self.threads.each(jobs, add).into_iter().collect::<Result<Vec<_>>>()?;
        self.finish(pending, sum, ranks)
    }

    /// Differentiates a batch and adds `Σ_i s_i g_i` over its pieces, each record once and a stretch
    /// at a time: [`Self::differentiate_pieces`] and [`Self::add_pieces`] in one, bit for bit, for
    /// scales that follow from the record alone. Afterwards the layers hold the factors of no batch.
    ///
    /// `scale` gives the scale of a record from its position in `rows` and its norm: 0 where that is
    /// not finite. A thread works on at most `at_once` records at a time, or on one stretch.
    ///
    /// **Guarantee** and `ranks` as for [`Self::add_pieces`].
    ///
    /// # Errors
    /// As [`Self::differentiate`] and [`Self::add_pieces`].
    pub fn differentiate_and_add(
        &mut self,
        records: &Records,
        (rows, pieces): (&[usize], &[Range<usize>]),
        at_once: usize,
        scale: &(dyn Fn(usize, f64) -> f64 + Sync),
        sum: &mut ClippedSum,
        ranks: Option<&dyn Collective>,
    ) -> Result<Differentiated> {
        let shares = self.shares(rows.len(), pieces);
        let (grid, at_last, stretch) = (sum.grid(), at_last(ranks), self.stretch());
        let batch = Batch { records, rows, dropout: self.dropout, scale };
        self.parts = None;
        let jobs = self.workers.iter_mut().zip(&shares).zip(sum.parts());
        let work = |((worker, pieces), to): ((&mut Worker, &&[Range<usize>]), &mut ThreadSum)| -> Result<_> {
            let (mut found, mut pending, mut has_begun) = (Differentiated::default(), None, false);
            let stretches: Vec<Stretch> = pieces.iter().flat_map(|piece| stretches(piece, stretch)).collect();
            let mut units = units(&stretches, at_once.min(stretch)).peekable();
            while let Some(unit) = units.next() {
                let scales = batch.differentiate(worker, unit, &mut found)?;
                let layers = if units.peek().is_some() { Layers::All } else { at_last };
                pending = add_stretches(worker, (to, grid), unit, &scales, &mut has_begun, layers)?;
            }
            Ok((found, pending))
        };
        let mut whole = Differentiated::default();
        let mut all_pending = Vec::new();
        for result in self.threads.each(jobs, work) {
            let (Differentiated { losses, norms, blanked }, pending) = result?;
            whole.losses.extend(losses);
            whole.norms.extend(norms);
            whole.blanked.extend(blanked);
            all_pending.push(pending);
        }
        self.finish(all_pending, sum, ranks)?;
        Ok(whole)
    }

    /// Shares the late layers, and sums what is pending in the early ones meanwhile.
    fn finish(
        &mut self,
        pending: Vec<Option<Pending>>,
        sum: &mut ClippedSum,
        ranks: Option<&dyn Collective>,
    ) -> Result<()> {
        let Some(ranks) = ranks else { return Ok(()) };
        sum.share_from(self.first().network().late_from(), ranks)?;
        let jobs = self.workers.iter_mut().zip(pending).zip(sum.parts());
        let add = |((worker, pending), to): ((&mut Worker, Option<Pending>), &mut ThreadSum)| match (
            pending,
            to.waiting().last(),
        ) {
            (Some(Pending { rows, scales, accumulate }), Some(vector)) => {
                worker.weighted_sum(Layers::Early, rows, &scales, vector, accumulate)
            }
            _ => Ok(()),
        };
        self.threads.each(jobs, add).into_iter().collect()
    }
}

impl Batch<'_> {
    /// Differentiates adjacent stretches, and notes losses and norms; gives the scales. The layers then
    /// hold the factors, in which a record whose gradient is not finite is blanked.
    fn differentiate(&self, worker: &mut Worker, unit: &[Stretch], found: &mut Differentiated) -> Result<Vec<f64>> {
        let all = rows_of(unit);
        let rows = &self.rows[all.clone()];
        worker.differentiate(self.records, rows, self.dropout)?;
        let norms = worker.gradient_norms()?;
        found.losses.extend(worker.losses()?);
        let blanked: Vec<usize> = (0..norms.len()).filter(|&i| !norms[i].is_finite()).collect();
        if let Some(others) = without(rows, &blanked)? {
            // The others' norms and what they add are the same, bit for bit.
            worker.differentiate(self.records, &others, self.dropout)?;
            worker.gradient_norms()?;
        }
        found.blanked.extend(blanked.into_iter().map(|i| all.start + i));
        let scales = norms.iter().enumerate().map(|(i, &norm)| (self.scale)(all.start + i, norm)).collect();
        found.norms.extend(norms);
        Ok(scales)
    }
}

/// The layers in which the last stretch is summed before they are shared.
fn at_last(ranks: Option<&dyn Collective>) -> Layers {
    if ranks.is_some() { Layers::Late } else { Layers::All }
}

/// The stretches of a piece.
fn stretches(piece: &Range<usize>, stretch: usize) -> impl Iterator<Item = Stretch> {
    let piece = piece.clone();
    piece.clone().step_by(stretch).map(move |start| {
        let end = start.saturating_add(stretch).min(piece.end);
        Stretch { rows: start..end, begins: start == piece.start }
    })
}

/// Adjacent stretches of at most `at_once` records together, or one.
fn units(stretches: &[Stretch], at_once: usize) -> impl Iterator<Item = &[Stretch]> {
    let mut rest = stretches;
    std::iter::from_fn(move || {
        let start = rest.first()?.rows.start;
        let fitting = rest.iter().take_while(|stretch| stretch.rows.end - start <= at_once).count();
        let (unit, after) = rest.split_at(fitting.max(1));
        rest = after;
        Some(unit)
    })
}

/// The positions that adjacent stretches hold.
fn rows_of(stretches: &[Stretch]) -> Range<usize> {
    let start = stretches.first().map_or(0, |stretch| stretch.rows.start);
    start..stretches.last().map_or(0, |stretch| stretch.rows.end)
}

/// Adds stretches to the sums of their pieces; `scales` are those of the records whose factors the
/// layers hold, of which these are the first. A stretch without a scale above 0 adds nothing.
///
/// The last one is summed in `at_last` alone; the rest of it is returned. `has_begun` tells whether
/// the piece in the making has a vector.
fn add_stretches(
    worker: &mut Worker,
    (to, grid): (&mut ThreadSum, Grid),
    stretches: &[Stretch],
    scales: &[f64],
    has_begun: &mut bool,
    at_last: Layers,
) -> Result<Option<Pending>> {
    let first = rows_of(stretches).start;
    let mut pending = None;
    for (i, stretch) in stretches.iter().enumerate() {
        *has_begun &= !stretch.begins;
        let rows = stretch.rows.start - first..stretch.rows.end - first;
        let scales = &scales[rows.clone()];
        if scales.iter().all(|&scale| scale == 0.0) {
            continue;
        }
        let accumulate = std::mem::replace(has_begun, true);
        let layers = if i + 1 == stretches.len() { at_last } else { Layers::All };
        let vector = to.vector(accumulate, grid, || worker.zero_gradient())?;
        worker.weighted_sum(layers, rows.clone(), scales, vector, accumulate)?;
        if layers == Layers::Late {
            pending = Some(Pending { rows, scales: scales.to_vec(), accumulate });
        }
    }
    Ok(pending)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use candle_core::{DType, Device};

    use super::*;
    use crate::collective::Alone;
    use crate::loss::Loss;
    use crate::models::{ImageShape, ModelConfig};
    use crate::records::PublicFacts;

    /// Whether a record is differentiated once or twice, on one thread or two; also if one has no
    /// finite gradient, or a whole stretch the scale 0.
    #[test]
    fn a_batch_in_one_pass_has_the_bits_of_two() {
        const N: usize = 45;
        let image = ImageShape { height: 28, width: 28, channels: 1 };
        let facts = PublicFacts { n_records: N, n_inputs: 784, n_classes: 10, n_groups: 1 };
        let mut values: Vec<f32> = (0..N * 784).map(|i| (i * 37 % 101) as f32 * 0.01).collect();
        values[20 * 784] = f32::INFINITY;
        let labels: Vec<u32> = (0..N as u32).map(|i| i % 10).collect();
        let records = Records::new(&values, &labels, &[0; N], facts, DType::F32, &Device::Cpu).unwrap();
        let engine = |n_threads| {
            let config = ModelConfig::EsipovaCnn { image };
            let engine = Engine::new(&config, Loss::SoftmaxCrossEntropy, &records, &Device::Cpu).unwrap();
            let parameters: Vec<f64> =
                (0..engine.model().parameters().len()).map(|i| (i % 83) as f64 * 1e-3 - 0.04).collect();
            engine.model().parameters().set(&parameters).unwrap();
            engine.with_threads(NonZeroUsize::new(n_threads).unwrap()).unwrap()
        };
        let rows: Vec<usize> = (0..N).collect();
        let pieces = [0..2, 2..32, 32..N];
        assert!(engine(1).stretch() < 15, "two pieces have several stretches");
        let of_norm = |norm: f64| if norm.is_finite() { (1.0 / norm).min(1.0) } else { 0.0 };
        let scale = |place: usize, norm: f64| if (2..17).contains(&place) { 0.0 } else { of_norm(norm) };
        let grid = Grid::for_gradients(1.0, N);
        let in_one_pass = |n_threads: usize, at_once: usize| {
            let mut engine = engine(n_threads);
            let mut sum = engine.clipped_sum().unwrap();
            sum.begin(grid);
            let batch = (&rows[..], &pieces[..]);
            let found = engine.differentiate_and_add(&records, batch, at_once, &scale, &mut sum, None).unwrap();
            (found, sum.values(&Alone).unwrap())
        };
        let mut engine = engine(2);
        let mut sum = engine.clipped_sum().unwrap();
        sum.begin(grid);
        let norms = engine.differentiate_pieces(&records, &rows, &[], &pieces).unwrap();
        let losses = engine.losses().unwrap();
        engine.differentiate_pieces(&records, &rows, &[20], &pieces).unwrap();
        let scales: Vec<f64> = norms.iter().enumerate().map(|(place, &norm)| scale(place, norm)).collect();
        engine.add_pieces(&scales, &pieces, &mut sum, None).unwrap();
        let expected = sum.values(&Alone).unwrap();
        assert!(expected.iter().any(|&value| value != 0.0));
        for (n_threads, at_once) in [(1, usize::MAX), (1, 1), (2, 256)] {
            let (found, values) = in_one_pass(n_threads, at_once);
            assert!(values == expected, "{n_threads} threads, {at_once} at once");
            assert_eq!(found.blanked, [20]);
            let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
            assert_eq!((bits(&found.norms), bits(&found.losses)), (bits(&norms), bits(&losses)));
        }
    }

    #[test]
    fn stretches_begin_with_their_piece() {
        let of = |rows, begins| Stretch { rows, begins };
        assert_eq!(stretches(&(3..10), 3).collect::<Vec<_>>(), [of(3..6, true), of(6..9, false), of(9..10, false)]);
        assert_eq!(stretches(&(3..10), usize::MAX).collect::<Vec<_>>(), [of(3..10, true)]);
        assert_eq!(stretches(&(3..3), 5).count(), 0);
    }

    #[test]
    fn units_hold_whole_stretches() {
        let all: Vec<Stretch> = [0..5, 5..9, 9..20, 20..21].map(|rows| Stretch { rows, begins: true }).into();
        let of = |at_once| units(&all, at_once).map(rows_of).collect::<Vec<_>>();
        assert_eq!(of(9), [0..9, 9..20, 20..21]);
        assert_eq!(of(1), [0..5, 5..9, 9..20, 20..21]);
        assert_eq!(units(&all, usize::MAX).count(), 1);
        assert_eq!(units(&[], 5).count(), 0);
    }
}
