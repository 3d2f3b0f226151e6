//! The pieces of work that an evaluation consists of.

use std::ops::Range;

use candle_core::DType;
use dp_clipping::{ClipBatch, ClipConfig, MethodState};
use rand::RngCore;
use rand::seq::index;
use rand_chacha::ChaCha20Rng;

use super::curvature::{Eigenvalue, random_signs};
use super::sampled_batch::SampledBatch;
use super::settings::AnalysisSettings;
use super::vector::{mean, scale};
use super::worker::Worker;
use crate::error::Result;
use crate::plan::Plan;
use crate::records::Records;
use crate::sampler::PoissonSampler;

/// Pieces that a group's exact gradient is computed in, so that threads share the work; sums do not depend on who did what.
const PARTS: usize = 2;
/// Probes of a trace that are evaluated as one piece of work, on the same records.
const PROBES_AT_ONCE: usize = 5;

/// A piece of work; its result depends on nothing but itself and its random stream.
#[derive(Debug, Clone)]
pub(super) enum Task {
    Gradient { group: usize, rows: Range<usize> },
    Batch,
    Probes(usize),
    Eigenvalue { group: usize },
}

pub(super) enum Outcome {
    /// Sum of gradients over some records of a group.
    Gradient {
        group: usize,
        sum: Vec<f64>,
    },
    Batch(SampledBatch),
    /// Mean of `zᵀHz` over some probes, by group.
    Probes(Vec<f64>),
    Eigenvalue {
        group: usize,
        found: Eigenvalue,
    },
}

/// What is analysed: it stays the same from evaluation to evaluation.
pub(super) struct Subject<'a> {
    pub(super) plan: &'a Plan,
    pub(super) clipping: ClipConfig,
    pub(super) records: &'a Records,
    pub(super) settings: AnalysisSettings,
    pub(super) sampler: PoissonSampler,
    /// Rows by group.
    pub(super) members: Vec<Vec<usize>>,
    /// Records of each group the largest eigenvalue is about; empty unless asked for.
    pub(super) eigenvalue_records: Vec<Records>,
}

impl Subject<'_> {
    /// Largest pieces first, so that threads finish together.
    pub(super) fn tasks(&self) -> Vec<Task> {
        let mut tasks = Vec::new();
        if self.settings.eigenvalues.is_some() {
            tasks.extend((0..self.members.len()).map(|group| Task::Eigenvalue { group }));
        }
        for (group, rows) in self.members.iter().enumerate() {
            let part = rows.len().div_ceil(PARTS).max(1);
            let starts = (0..rows.len()).step_by(part);
            tasks.extend(starts.map(|start| Task::Gradient { group, rows: start..(start + part).min(rows.len()) }));
        }
        tasks.extend((0..self.settings.batches).map(|_| Task::Batch));
        // At least two pieces, since the standard error is taken over pieces.
        let pieces = (self.settings.probes / PROBES_AT_ONCE).max(2);
        tasks.extend((0..pieces).map(|i| Task::Probes((self.settings.probes + i) / pieces)));
        tasks
    }

    /// Does one piece of work. `eigenvectors` are where the last searches ended, by group.
    pub(super) fn run(
        &self,
        worker: &mut Worker,
        task: &Task,
        method: &MethodState,
        eigenvectors: &[Option<Vec<f64>>],
        rng: &mut ChaCha20Rng,
    ) -> Result<Outcome> {
        match task {
            Task::Gradient { group, rows } => {
                let sum = worker.gradient_sum(
                    self.records,
                    &self.members[*group][rows.clone()],
                    self.settings.micro_batch,
                )?;
                Ok(Outcome::Gradient { group: *group, sum })
            }
            Task::Batch => Ok(Outcome::Batch(self.batch(worker, method, rng)?)),
            Task::Probes(n) => Ok(Outcome::Probes(self.probes(worker, *n, rng)?)),
            Task::Eigenvalue { group } => {
                let iterations = self.settings.eigenvalues.map_or(0, |search| search.iterations);
                let records = &self.eigenvalue_records[*group];
                let rows: Vec<usize> = (0..records.len()).collect();
                let start = eigenvectors[*group].as_deref();
                let found = worker.curvature.largest_eigenvalue(records, &rows, iterations, start, rng)?;
                Ok(Outcome::Eigenvalue { group: *group, found })
            }
        }
    }

    /// Draws a batch, clips it, and evaluates what it does to each group to second order.
    fn batch(&self, worker: &mut Worker, method: &MethodState, rng: &mut ChaCha20Rng) -> Result<SampledBatch> {
        let mut rows = Vec::new();
        self.sampler.next_batch(rng, &mut rows);
        let groups: Vec<usize> = rows.iter().map(|&row| self.records.groups()[row]).collect();
        let norms = worker.norms(self.records, &rows, self.settings.micro_batch)?;
        let mut clipping = self.clipping.build(self.plan.context())?;
        clipping.restore(method)?;
        let clipped = clipping.clip(&ClipBatch { norms: &norms, groups: &groups }, rng)?;
        let ones = vec![1.0; rows.len()];
        let per_record = 1.0 / self.plan.expected_batch_size();
        let mut sums =
            worker.weighted_sums(self.records, &rows, [&ones, &clipped.scales], self.settings.micro_batch)?;
        for sum in &mut sums {
            scale(sum, per_record);
        }
        let mut by_group = vec![[0.0; 3]; self.members.len()];
        for ((&group, norm), factor) in groups.iter().zip(&norms).zip(&clipped.scales) {
            for (total, value) in by_group[group].iter_mut().zip([*norm, norm * factor, 1.0]) {
                *total += value;
            }
        }
        let [plain, clipped_sum] = sums;
        let bends = self.forms(worker, self.settings.curvature_records, &[&plain, &clipped_sum], rng)?;
        Ok(SampledBatch {
            plain,
            clipped: clipped_sum,
            bound: clipped.bound,
            thresholds: clipped.thresholds,
            norms: by_group,
            bends: (0..self.members.len()).map(|group| [bends[0][group], bends[1][group]]).collect(),
        })
    }

    /// Mean of `zᵀH_a z` over `n` vectors of random signs and over records that are drawn once, by group.
    fn probes(&self, worker: &mut Worker, n: usize, rng: &mut ChaCha20Rng) -> Result<Vec<f64>> {
        let probes: Vec<Vec<f64>> = (0..n).map(|_| random_signs(worker.n_params(), rng)).collect();
        let probes: Vec<&[f64]> = probes.iter().map(Vec::as_slice).collect();
        let forms = self.forms(worker, self.settings.probe_records, &probes, rng)?;
        Ok((0..self.members.len()).map(|group| forms.iter().map(|form| form[group]).sum::<f64>() / n as f64).collect())
    }

    /// `vᵀH_a v` averaged over `n` records drawn from each group, `[vectors][groups]`.
    fn forms(&self, worker: &mut Worker, n: usize, vectors: &[&[f64]], rng: &mut ChaCha20Rng) -> Result<Vec<Vec<f64>>> {
        let drawn: Vec<Vec<usize>> = self.members.iter().map(|rows| choose(rows, n, rng)).collect();
        let sample = self.records.select(&drawn.concat(), DType::F64)?;
        let rows: Vec<usize> = (0..sample.len()).collect();
        let forms = worker.curvature.quadratic_forms(&sample, &rows, vectors)?;
        let by_group = |forms: &Vec<f64>| {
            let mut start = 0;
            drawn
                .iter()
                .map(|rows| {
                    start += rows.len();
                    mean(&forms[start - rows.len()..start])
                })
                .collect()
        };
        Ok(forms.iter().map(by_group).collect())
    }
}

/// `n` of these rows without replacement, or all of them if there are no more.
pub(super) fn choose(rows: &[usize], n: usize, rng: &mut dyn RngCore) -> Vec<usize> {
    if rows.len() <= n {
        return rows.to_vec();
    }
    index::sample(rng, rows.len(), n).into_iter().map(|i| rows[i]).collect()
}
