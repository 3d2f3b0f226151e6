//! The pieces of work that an evaluation consists of.

use std::ops::Range;

use candle_core::DType;
use dp_clipping::{ClipBatch, ClipConfig, MethodState};
use dp_engine::Records;
use rand::CryptoRng;
use rand::seq::index;
use rand_chacha::ChaCha20Rng;

use super::curvature::{Eigenvalue, random_signs};
use super::distinct::Distinct;
use super::sampled_batch::SampledBatch;
use super::settings::AnalysisSettings;
use super::vector::{mean, scale};
use super::worker::Worker;
use crate::error::Result;
use crate::loops::add_scaled;
use crate::plan::Plan;
use crate::sampler::PoissonSampler;
use crate::trainer::Usable;

/// Pieces that a group's exact gradient is computed in, so that threads share the work; sums do not
/// depend on who did what.
const PARTS: usize = 2;
/// Probes of a trace that are evaluated as one piece of work, on the same records.
const PROBES_AT_ONCE: usize = 5;

/// A piece of work; its result depends on nothing but itself and its random stream.
#[derive(Debug, Clone)]
pub(super) enum Task {
    /// `rows` are positions among the different records of the group.
    Gradient {
        group: usize,
        rows: Range<usize>,
    },
    Batch,
    Probes(usize),
    Eigenvalue {
        group: usize,
    },
}

pub(super) enum Outcome {
    /// Sum of gradients over some records of a group and those like them.
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

/// The run that is analysed. It stays the same from evaluation to evaluation.
pub(super) struct Subject<'a> {
    pub(super) plan: &'a Plan,
    pub(super) clipping: ClipConfig,
    pub(super) records: &'a Records,
    pub(super) settings: AnalysisSettings,
    pub(super) sampler: PoissonSampler,
    /// Rows by group.
    pub(super) members: Vec<Vec<usize>>,
    /// Different records, by group.
    pub(super) distinct: Vec<Distinct>,
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
        for (group, Distinct { rows, .. }) in self.distinct.iter().enumerate() {
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
                let Distinct { rows: all, counts } = &self.distinct[*group];
                let (rows, counts) = (&all[rows.clone()], &counts[rows.clone()]);
                let sum = worker.gradient_sum(self.records, rows, counts, self.settings.micro_batch)?;
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
        let (losses, mut norms) = worker.losses_and_norms(self.records, &rows, self.settings.micro_batch)?;
        let mut clipping = self.clipping.build(self.plan.context())?;
        clipping.restore(&method.to_value())?;
        let expected_batch_size = self.plan.expected_batch_size();
        let positions: Vec<usize> = (0..rows.len()).collect();
        let batch = Usable { positions: &positions, rows: &rows, norms: &mut norms };
        let addition = worker.regularise(clipping.as_ref(), self.records, batch, expected_batch_size)?;
        let clipped = clipping.clip(&ClipBatch::new(&norms, &groups).with_losses(&losses[..]), rng)?;
        let ones = vec![1.0; rows.len()];
        let mut sums =
            worker.weighted_sums(self.records, &rows, [&ones, &clipped.scales], self.settings.micro_batch)?;
        if let Some(addition) = addition {
            add_scaled(&mut sums[1], clipped.scales.iter().sum(), &addition);
        }
        for sum in &mut sums {
            scale(sum, 1.0 / expected_batch_size);
        }
        let mut by_group = vec![Vec::new(); self.members.len()];
        for ((&group, norm), factor) in groups.iter().zip(&norms).zip(&clipped.scales) {
            by_group[group].push([*norm, norm * factor]);
        }
        let [plain, clipped_sum] = sums;
        let sample = self.sample(self.settings.curvature_records, rng)?;
        let forms =
            worker.curvature.quadratic_forms(&sample.records, &sample.rows, &[plain.as_slice(), &clipped_sum])?;
        let [plain_bends, clipped_bends] = [0, 1].map(|vector| sample.means(&forms[vector]));
        Ok(SampledBatch {
            plain,
            clipped: clipped_sum,
            bound: clipped.bound,
            thresholds: clipped.thresholds,
            norms: by_group,
            bends: plain_bends.into_iter().zip(clipped_bends).map(|(plain, clipped)| [plain, clipped]).collect(),
        })
    }

    /// Mean of `zᵀH_a z` over `n` vectors of random signs and over records that are drawn once, by
    /// group.
    fn probes(&self, worker: &mut Worker, n: usize, rng: &mut ChaCha20Rng) -> Result<Vec<f64>> {
        let probes: Vec<Vec<i8>> = (0..n).map(|_| random_signs(worker.n_params(), rng)).collect();
        let sample = self.sample(self.settings.probe_records, rng)?;
        let forms = worker.curvature.sign_forms(&sample.records, &sample.rows, &probes)?;
        let by_group: Vec<Vec<f64>> = forms.iter().map(|form| sample.means(form)).collect();
        Ok((0..self.members.len())
            .map(|group| by_group.iter().map(|form| form[group]).sum::<f64>() / n as f64)
            .collect())
    }

    /// `n` records of each group.
    fn sample(&self, n: usize, rng: &mut ChaCha20Rng) -> Result<GroupSample> {
        let drawn: Vec<Vec<usize>> = self.members.iter().map(|rows| choose(rows, n, rng)).collect();
        let records = self.records.select(&drawn.concat(), DType::F64)?;
        Ok(GroupSample { rows: (0..records.len()).collect(), records, sizes: drawn.iter().map(Vec::len).collect() })
    }
}

/// Records drawn from each group, group by group, in `f64`.
struct GroupSample {
    records: Records,
    rows: Vec<usize>,
    sizes: Vec<usize>,
}

impl GroupSample {
    /// Mean of a value of each record, by group.
    fn means(&self, values: &[f64]) -> Vec<f64> {
        let mut rest = values;
        self.sizes
            .iter()
            .map(|&size| {
                let (of_group, others) = rest.split_at(size);
                rest = others;
                mean(of_group)
            })
            .collect()
    }
}

/// `n` of these rows without replacement, or all of them if there are no more.
pub(super) fn choose(rows: &[usize], n: usize, rng: &mut dyn CryptoRng) -> Vec<usize> {
    if rows.len() <= n {
        return rows.to_vec();
    }
    index::sample(rng, rows.len(), n).into_iter().map(|i| rows[i]).collect()
}
