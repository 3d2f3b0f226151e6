//! Evaluates the decomposition at one point: exact gradients, sampled batches, sampled curvature.

use std::sync::atomic::{AtomicUsize, Ordering};

use candle_core::DType;
use dp_clipping::{Coupling, FairlensForm, MethodState};
use dp_engine::{OptimiserConfig, Records};
use rand::{CryptoRng, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::decomposition::{GroupTerms, LargestEigenvalue, StepDecomposition};
use super::distinct::Distinct;
use super::error_bound::ErrorBound;
use super::sampled::Sampled;
use super::sampled_batch::SampledBatch;
use super::settings::AnalysisSettings;
use super::terms::{BatchOnGroup, clipping_terms};
use super::vector::{dot, mean, norm, scale};
use super::work::{Outcome, Subject, Task, choose};
use super::worker::Worker;
use crate::error::{Result, TrainError};
use crate::loops::add_scaled;
use crate::observer::StepState;
use crate::plan::Plan;
use crate::sampler::PoissonSampler;

/// Takes steps of a private run apart.
///
/// First-order terms use the exact gradients of the data and of its groups, in the number type of
/// the records; expectations over batches use separate batches, drawn and clipped like the run's.
/// Second-order terms are quadratic forms of the groups' Hessians in `f64`
/// ([`Curvature`](super::Curvature)), averaged over records drawn anew for each batch and each
/// probe: unbiased, and the standard errors cover that draw.
///
/// With FairLens the clipped gradient is that of the regularised loss and the plain one is not:
/// what the regularisers do to a group is part of the errors of clipping.
///
/// **Edge cases.** A batch without a record enters as zeros. A record whose gradient is not finite
/// is an error: nothing can be said about its group then.
pub struct Analyser<'a> {
    subject: Subject<'a>,
    key: [u8; 32],
    /// Where the last search for each group's largest eigenvalue ended.
    eigenvectors: Vec<Option<Vec<f64>>>,
    workers: Vec<Worker>,
}

/// Without records and key.
impl std::fmt::Debug for Analyser<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Analyser").field("workers", &self.workers.len()).finish_non_exhaustive()
    }
}

impl<'a> Analyser<'a> {
    /// An analyser of runs of this plan on these records. The analyser draws its key from `rng`.
    ///
    /// # Errors
    /// [`TrainError::InvalidParameter`] if a setting is too small, the plan is not private (nothing
    /// is clipped then), trains with one error of clipping alone, draws groups at rates of
    /// their own, or does not train by plain gradient steps; [`TrainError::Mismatch`] if the records do not fit the plan.
    pub fn new(
        plan: &'a Plan,
        records: &'a Records,
        settings: AnalysisSettings,
        rng: &mut dyn CryptoRng,
    ) -> Result<Self> {
        settings.validate()?;
        let config = plan.config();
        let Some(privacy) = &config.privacy else {
            return Err(TrainError::invalid(
                "privacy",
                "none",
                "a private plan: without clipping there is no error of it",
            ));
        };
        if config.group_sampling.is_some() || config.rates_by_loss.is_some() {
            let expected = "none: a batch of an analysis is drawn at one rate";
            return Err(TrainError::invalid("batches.sampling", "by group", expected));
        }
        let taken_apart = match privacy.clipping.coupling {
            Coupling::None | Coupling::Fairlens { form: FairlensForm::Paper, .. } => true,
            Coupling::Fairlens { form: FairlensForm::Code, .. } | Coupling::MagnitudeOnly | Coupling::DirectionOnly => {
                false
            }
        };
        if !taken_apart {
            let coupling = format!("{:?}", privacy.clipping.coupling);
            return Err(TrainError::invalid(
                "privacy.clipping.coupling",
                coupling,
                "None or the paper's Fairlens, whose steps have both errors of clipping and noise",
            ));
        }
        if config.optimiser != (OptimiserConfig::Sgd {}) {
            let optimiser = format!("{:?}", config.optimiser);
            return Err(TrainError::invalid("optimiser", optimiser, "Sgd, whose step is the gradient's"));
        }
        if records.facts() != plan.facts() {
            let (expected, got) = (format!("{:?}", plan.facts()), format!("{:?}", records.facts()));
            return Err(TrainError::mismatch("records of the plan", expected, got));
        }
        let mut members = vec![Vec::new(); plan.facts().n_groups];
        for (row, &group) in records.groups().iter().enumerate() {
            members[group].push(row);
        }
        let mut key = [0; 32];
        rng.fill_bytes(&mut key);
        let mut eigenvalue_records = Vec::new();
        if let Some(search) = settings.eigenvalues {
            for rows in &members {
                eigenvalue_records.push(records.select(&choose(rows, search.records, rng), DType::F64)?);
            }
        }
        let distinct = members.iter().map(|rows| Distinct::among(records, rows)).collect::<Result<_>>()?;
        let workers = (0..settings.threads).map(|_| Worker::new(plan, records)).collect::<Result<_>>()?;
        let sampler = PoissonSampler::new(records.len(), config.batches.sampling_rate)?;
        Ok(Self {
            eigenvectors: vec![None; members.len()],
            subject: Subject {
                plan,
                clipping: privacy.clipping,
                records,
                settings,
                sampler,
                members,
                distinct,
                eigenvalue_records,
            },
            key,
            workers,
        })
    }

    /// The decomposition of the step that starts at this state.
    ///
    /// # Errors
    /// [`TrainError::Mismatch`] if the state is of another plan or a gradient is not finite;
    /// [`TrainError::Clipping`] if the state of the clipping method is of another configuration.
    pub fn analyse(&mut self, state: &StepState<'_>) -> Result<StepDecomposition> {
        let Some(method) = state.method else {
            return Err(TrainError::mismatch("state of a clipping method", "one", "none"));
        };
        for worker in &mut self.workers {
            worker.set_parameters(state.parameters)?;
        }
        let tasks = self.subject.tasks();
        let outcomes = self.work(&tasks, state.step, method)?;
        self.combine(outcomes, state)
    }

    /// Outcomes in the order of the tasks.
    fn work(&mut self, tasks: &[Task], step: u64, method: &MethodState) -> Result<Vec<Outcome>> {
        let Self { subject, key, eigenvectors, workers } = self;
        let (subject, key, eigenvectors) = (&*subject, *key, &*eigenvectors);
        let next = AtomicUsize::new(0);
        let run = |worker: &mut Worker| -> Result<Vec<(usize, Outcome)>> {
            let mut done = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(task) = tasks.get(index) else { return Ok(done) };
                let mut rng = ChaCha20Rng::from_seed(key);
                rng.set_stream(step << 24 | index as u64);
                done.push((index, subject.run(worker, task, method, eigenvectors, &mut rng)?));
            }
        };
        let results = match workers.split_first_mut() {
            None => Vec::new(),
            Some((first, rest)) => std::thread::scope(|scope| {
                let handles: Vec<_> = rest.iter_mut().map(|worker| scope.spawn(|| run(worker))).collect();
                let mut results = vec![run(first)];
                results.extend(handles.into_iter().map(|handle| {
                    handle.join().unwrap_or_else(|_| {
                        Err(TrainError::mismatch("a thread of the analysis", "a result", "a panic"))
                    })
                }));
                results
            }),
        };
        let mut outcomes: Vec<(usize, Outcome)> = Vec::with_capacity(tasks.len());
        for result in results {
            outcomes.extend(result?);
        }
        outcomes.sort_by_key(|(index, _)| *index);
        Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
    }

    fn combine(&mut self, outcomes: Vec<Outcome>, state: &StepState<'_>) -> Result<StepDecomposition> {
        let n_groups = self.subject.members.len();
        let mut gradients: Vec<Vec<f64>> = vec![Vec::new(); n_groups];
        let mut batches = Vec::new();
        let mut probes = Vec::new();
        let mut eigenvalues: Vec<Option<LargestEigenvalue>> = vec![None; n_groups];
        for outcome in outcomes {
            match outcome {
                Outcome::Gradient { group, sum } if gradients[group].is_empty() => gradients[group] = sum,
                Outcome::Gradient { group, sum } => add_scaled(&mut gradients[group], 1.0, &sum),
                Outcome::Batch(batch) => batches.push(batch),
                Outcome::Probes(values) => probes.push(values),
                Outcome::Eigenvalue { group, found } => {
                    eigenvalues[group] = Some(LargestEigenvalue {
                        value: found.value,
                        residual: found.residual,
                        n_records: self.subject.eigenvalue_records[group].len(),
                    });
                    self.eigenvectors[group] = Some(found.vector);
                }
            }
        }
        let mut whole = vec![0.0; state.parameters.len()];
        for (gradient, rows) in gradients.iter_mut().zip(&self.subject.members) {
            add_scaled(&mut whole, 1.0 / self.subject.records.len().max(1) as f64, gradient);
            scale(gradient, 1.0 / rows.len().max(1) as f64);
        }
        if !whole.iter().all(|g| g.is_finite()) {
            return Err(TrainError::mismatch("gradient of the data", "finite values", "one that is not"));
        }
        let sq_norm =
            |of: fn(&SampledBatch) -> &Vec<f64>| Sampled::over(batches.iter().map(|batch| dot(of(batch), of(batch))));
        let sq_bound = mean(&batches.iter().map(|batch| batch.bound * batch.bound).collect::<Vec<f64>>());
        let sigma = self.subject.plan.context().noise_multiplier;
        let noise = state.learning_rate.powi(2) / 2.0 * sigma * sigma * sq_bound;
        let group_terms = |group: usize| {
            let (gradient, rows) = (&gradients[group], &self.subject.members[group]);
            if rows.is_empty() {
                return None;
            }
            let on_group: Vec<BatchOnGroup> = batches.iter().map(|batch| batch.on(group, gradient)).collect();
            let terms = clipping_terms(&on_group, norm(gradient), dot(gradient, &whole), state.learning_rate);
            let trace = Sampled::over(probes.iter().map(|probe| probe[group]));
            let share = rows.len() as f64 / self.subject.records.len() as f64;
            let norms = || batches.iter().flat_map(|batch| &batch.norms[group]);
            let n = norms().count() as f64;
            let mean_norm = |after: usize| (n > 0.0).then(|| norms().map(|pair| pair[after]).sum::<f64>() / n);
            // The expected length of the noise over its bound, at most.
            let w = sigma * (state.parameters.len() as f64).sqrt();
            let errors: Vec<[f64; 2]> =
                batches.iter().filter_map(|batch| batch.bias_and_best_bound(group, w)).collect();
            let expected_size = self.subject.plan.expected_batch_size() * share;
            let error = (!errors.is_empty()).then(|| ErrorBound {
                bias: Sampled::over(errors.iter().map(|error| error[0])),
                noise: Sampled::over(batches.iter().map(|batch| batch.bound)).times(w / expected_size),
                best: Sampled::over(errors.iter().map(|error| error[1])),
            });
            Some(GroupTerms {
                share,
                gradient_norm: norm(gradient),
                sample_norm: mean_norm(0),
                clipped_sample_norm: mean_norm(1),
                error,
                clip: terms.clip,
                noise: trace.times(noise / self.subject.plan.expected_batch_size().powi(2)),
                noise_as_printed: trace.times(noise),
                magnitude: terms.magnitude,
                direction: terms.direction,
                magnitude_star: terms.magnitude_star,
                direction_star: terms.direction_star,
                direction_slope: terms.direction_slope,
                direction_star_slope: terms.direction_star_slope,
                plain_cosine: terms.plain_cosine,
                clipped_cosine: terms.clipped_cosine,
                plain_angle: terms.plain_angle,
                clipped_angle: terms.clipped_angle,
                trace,
                largest_eigenvalue: eigenvalues[group],
            })
        };
        Ok(StepDecomposition {
            step: state.step,
            learning_rate: state.learning_rate,
            thresholds: batches.first().map_or_else(Vec::new, |batch| batch.thresholds.clone()),
            gradient_norm: norm(&whole),
            plain_sq_norm: sq_norm(|batch| &batch.plain),
            clipped_sq_norm: sq_norm(|batch| &batch.clipped),
            bound: sq_bound.sqrt(),
            groups: (0..n_groups).map(group_terms).collect(),
        })
    }
}
