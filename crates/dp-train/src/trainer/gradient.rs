//! How the gradient of a step is formed: losses and norms, scales, weighted sum, noise.

use std::ops::Range;

use candle_core::Tensor;
use dp_clipping::{AdvanceScale, ClipBatch, Clipped};
use dp_engine::noise::StepNoise;
use dp_engine::ops::{self, Privatise};
use dp_engine::{EngineError, ParameterVector, WeightedSum};

use super::{StepSum, Trainer, adds_noise};
use crate::error::{Result, TrainError};
use crate::loops::dot;

/// How much of each record enters the sum, and how much noise that takes.
#[derive(Default)]
pub(super) struct Weighting {
    pub(super) scales: Vec<f64>,
    pub(super) bound: f64,
    pub(super) group_bounds: Vec<f64>,
    pub(super) thresholds: Vec<f64>,
}

/// A batch's losses and norms, before any sum.
#[derive(Default)]
pub(super) struct Pass {
    pub(super) losses: Vec<f64>,
    pub(super) norms: Vec<f64>,
    pub(super) groups: Vec<usize>,
    /// Positions in the batch of records whose gradient is known not to be finite.
    pub(super) blanked: Vec<usize>,
}

impl Pass {
    /// A pass that has ended.
    pub(super) fn of(losses: Vec<f64>, norms: Vec<f64>, groups: Vec<usize>) -> Self {
        let blanked = (0..norms.len()).filter(|&i| !norms[i].is_finite()).collect();
        Self { losses, norms, groups, blanked }
    }

    /// As the clipping method sees it, with other norms where it has them.
    pub(super) fn clip_batch<'a>(&'a self, norms: Option<&'a [f64]>) -> ClipBatch<'a> {
        ClipBatch::new(norms.unwrap_or(&self.norms), &self.groups).with_losses(&self.losses[..])
    }

    /// The scales of the records at these positions, each out of its norm and group alone.
    pub(super) fn scales(&self, positions: Range<usize>, in_advance: &[AdvanceScale]) -> impl Iterator<Item = f64> {
        let records = self.norms[positions.clone()].iter().zip(&self.groups[positions]);
        records.map(|(&norm, &group)| in_advance[group].scale(norm))
    }
}

impl Trainer<'_> {
    /// The mean gradient of a batch in the place of its sum: private, if the plan is. Enters the
    /// ledger before anything is used.
    ///
    /// The stages, in order: losses and norms; scales and their bound; the weighted sum; noise and
    /// division by the public expected batch size. Couplings act between the first two and between
    /// the last two.
    pub(super) fn form_gradient(&mut self, rows: &[usize], wants_groups: bool) -> Result<(Pass, Weighting)> {
        let (mut pass, mut weighting) = self.clipped_sum(rows, wants_groups)?;
        if matches!(self.buffers.sum, StepSum::Clipped(_)) {
            self.privatise_certified(weighting.bound)?;
            return Ok((pass, weighting));
        }
        let mut finite = self.privatise(weighting.bound)?;
        if !finite && self.method.is_none() && !wants_groups {
            // A run that needs no norms does not know which records to leave out until one has
            // spoilt the sum.
            pass.blanked = self.first_pass(rows, true)?.blanked;
            weighting = self.weighting(&pass)?;
            self.second_pass(rows, &pass, &weighting.scales, wants_groups)?;
            finite = self.privatise(weighting.bound)?;
        }
        if finite { Ok((pass, weighting)) } else { Err(TrainError::Diverged { step: self.counts.steps }) }
    }

    /// Everything of a step up to the noise: losses and norms, scales and their bound, and the sum.
    pub(super) fn clipped_sum(&mut self, rows: &[usize], wants_groups: bool) -> Result<(Pass, Weighting)> {
        if matches!(self.buffers.sum, StepSum::Clipped(_)) {
            return self.certified_sum(rows, wants_groups);
        }
        let in_pieces = rows.len() > self.batching.micro_batch.min(self.engine.stretch()) && !wants_groups;
        if in_pieces && self.method.is_none() {
            let pass = self.plain_pass(rows)?;
            let weighting = self.weighting(&pass)?;
            self.enter(1)?;
            return Ok((pass, weighting));
        }
        let own = self.pass_of_fairlens(rows)?;
        let is_own = own.is_some();
        let mut pass = match own {
            Some(pass) => pass,
            None => self.first_pass(rows, self.method.is_some() || wants_groups)?,
        };
        let addition = self.regularise(rows, &mut pass)?;
        let weighting = self.weighting(&pass)?;
        // Before anything of the step is used: what cannot be recorded is not released.
        self.enter(1)?;
        // A sum that FairLens forms itself replaces this one.
        if wants_groups || !is_own {
            if is_own {
                self.first_pass(rows, false)?;
            }
            self.second_pass(rows, &pass, &weighting.scales, wants_groups)?;
        }
        self.couple(rows, &pass, &weighting, addition.as_ref())?;
        Ok((pass, weighting))
    }

    /// Losses and the sum of a batch that is not clipped, piece by piece, each computed once.
    fn plain_pass(&mut self, rows: &[usize]) -> Result<Pass> {
        /// Records of a piece on the CPU; see the certified sum's.
        const PIECE: usize = 256;
        let mut pass = self.pass_of(rows);
        let micro_batch = self.batching.micro_batch;
        let of_threads = self.engine.stretch().saturating_mul(self.engine.threads().count());
        let size = if self.execution.device.is_cuda() { micro_batch } else { micro_batch.min(PIECE).min(of_threads) };
        let StepSum::Plain(sum) = &mut self.buffers.sum else { return Ok(pass) };
        sum.clear();
        for rows in rows.chunks(size) {
            self.engine.differentiate(self.records, rows, &[])?;
            pass.losses.extend(self.engine.losses()?);
            self.engine.add_weighted(&vec![1.0; rows.len()], sum)?;
        }
        Ok(pass)
    }

    /// Losses and, where something needs them, norms of the whole batch. Afterwards the layers hold
    /// the factors of the last micro-batch: of the whole batch, if it fits.
    fn first_pass(&mut self, rows: &[usize], needs_norms: bool) -> Result<Pass> {
        let mut pass = self.pass_of(rows);
        for rows in rows.chunks(self.batching.micro_batch) {
            if needs_norms {
                pass.norms.extend(self.engine.differentiate_for_norms(self.records, rows)?);
            } else {
                self.engine.differentiate(self.records, rows, &[])?;
            }
            pass.losses.extend(self.engine.losses()?);
        }
        Ok(Pass::of(pass.losses, pass.norms, pass.groups))
    }

    /// A pass over these records that has not begun.
    pub(super) fn pass_of(&self, rows: &[usize]) -> Pass {
        let (_, groups) = self.records.labels_and_groups(rows);
        Pass { losses: Vec::with_capacity(rows.len()), norms: Vec::new(), groups, blanked: Vec::new() }
    }

    /// The clipping method's scales and bounds for a batch.
    pub(super) fn weighting(&mut self, pass: &Pass) -> Result<Weighting> {
        let Some(method) = &mut self.method else {
            let mut scales = vec![1.0; pass.losses.len()];
            for &i in &pass.blanked {
                scales[i] = 0.0;
            }
            return Ok(Weighting { scales, ..Weighting::default() });
        };
        let norms = self.by_group.as_ref().map(|by_group| by_group.norms(pass));
        let mut clipped = method.clip(&pass.clip_batch(norms.as_deref()), &mut self.streams.counts)?;
        if let Some(by_group) = &self.by_group {
            by_group.restrict(&mut clipped);
        }
        let Clipped { scales, bound, group_bounds, queries, thresholds, .. } = clipped;
        let made: Vec<f64> = queries.iter().map(|query| query.noise_multiplier).collect();
        let announced = self.plan.count_noise_multipliers();
        if made != announced {
            let (announced, made) = (format!("{announced:?}"), format!("{made:?}"));
            return Err(TrainError::mismatch("noise multipliers of the step's count queries", announced, made));
        }
        Ok(Weighting { scales, bound, group_bounds, thresholds })
    }

    /// `Σ s_i g_i` into the sum; also each group's mean gradient before clipping, if asked for.
    pub(super) fn second_pass(
        &mut self,
        rows: &[usize],
        pass: &Pass,
        scales: &[f64],
        wants_groups: bool,
    ) -> Result<()> {
        let size = self.batching.micro_batch;
        let n_chunks = rows.len().div_ceil(size).max(1);
        if wants_groups {
            self.begin_groups()?;
        }
        self.plain()?.clear();
        for chunk in 0..n_chunks {
            let range = chunk * size..((chunk + 1) * size).min(rows.len());
            let blanked: Vec<usize> =
                pass.blanked.iter().filter(|i| range.contains(i)).map(|i| i - range.start).collect();
            // The factors are still there if the batch is one chunk and nothing in it must be
            // blanked.
            if n_chunks > 1 || !blanked.is_empty() || rows.is_empty() {
                self.engine.differentiate(self.records, &rows[range.clone()], &blanked)?;
            }
            if let StepSum::Plain(sum) = &mut self.buffers.sum {
                self.engine.add_weighted(&scales[range.clone()], sum)?;
            }
            if wants_groups {
                self.add_groups(&pass.groups[range], &blanked)?;
            }
        }
        Ok(())
    }

    /// Makes the groups' gradients 0.
    pub(super) fn begin_groups(&mut self) -> Result<()> {
        if self.buffers.group_gradients.is_empty() {
            let n_groups = self.records.facts().n_groups;
            self.buffers.group_gradients =
                (0..n_groups).map(|_| self.engine.zero_gradient()).collect::<Result<_, EngineError>>()?;
        }
        for gradient in &self.buffers.group_gradients {
            ops::fill(gradient.flat(), 0.0)?;
        }
        Ok(())
    }

    /// Adds each group's gradient before clipping, over the records that the layers have the
    /// factors of.
    pub(super) fn add_groups(&mut self, groups: &[usize], blanked: &[usize]) -> Result<()> {
        for (group, gradient) in self.buffers.group_gradients.iter().enumerate() {
            let mut weights: Vec<f64> = groups.iter().map(|&g| f64::from(u8::from(g == group))).collect();
            for &i in blanked {
                weights[i] = 0.0;
            }
            self.engine.weighted_sum(&weights, gradient, true)?;
        }
        Ok(())
    }

    /// The sum of a step that is not certified.
    pub(super) fn plain(&mut self) -> Result<&mut WeightedSum> {
        match &mut self.buffers.sum {
            StepSum::Plain(sum) => Ok(sum),
            StepSum::Clipped(_) => {
                Err(TrainError::mismatch("sum of a step", "one without a guarantee", "a clipped sum"))
            }
        }
    }

    /// From the sum to the gradient: noise for the bound, and division by the public expected batch
    /// size. Whether it is finite.
    fn privatise(&mut self, bound: f64) -> Result<bool> {
        let privacy = self.plan.config().privacy.as_ref().filter(|_| adds_noise(self.plan.coupling()));
        let noise = match privacy.map(|privacy| privacy.noise_multiplier.get() * bound) {
            Some(std) if std.is_finite() && std > 0.0 => Some(StepNoise::draw(&mut self.streams.noise, std)),
            Some(std) => return Err(TrainError::invalid("noise_std", std, "a finite number above 0")),
            None => None,
        };
        let normaliser = self.plan.expected_batch_size();
        let StepSum::Plain(sum) = &mut self.buffers.sum else { return Ok(false) };
        let (gradient, others) = sum.gather()?;
        let others: Vec<&Tensor> = others.into_iter().map(ParameterVector::flat).collect();
        let how = Privatise { noise, source: self.execution.noise, normaliser, threads: self.engine.threads() };
        Ok(ops::privatise(gradient.flat(), &others, &how)?)
    }

    /// Norm of each group's mean gradient over the batch; `None` for a group without a usable
    /// record in it.
    pub(super) fn group_gradient_norms(&self, pass: &Pass) -> Result<Vec<Option<f64>>> {
        let Pass { groups, blanked, .. } = pass;
        let mut norms = Vec::with_capacity(self.buffers.group_gradients.len());
        for (group, gradient) in self.buffers.group_gradients.iter().enumerate() {
            let of_group =
                |positions: &mut dyn Iterator<Item = usize>| positions.filter(|&i| groups[i] == group).count();
            let n = of_group(&mut (0..groups.len())) - of_group(&mut blanked.iter().copied());
            let gradient = gradient.to_vec()?;
            let norm = dot(&gradient, &gradient).sqrt();
            norms.push((n > 0).then(|| norm / n as f64));
        }
        Ok(norms)
    }
}
