//! From a file to a study: methods at their points, a search where there are several, and what is
//! compared.

use anyhow::{Context, ensure};
use dp_accounting::{Delta, Epsilon};
use dp_clipping::MethodEntry;
use dp_train::LearningRate;
use run_records::coordinate::{BOUND, RATE, coordinate};
use run_records::{ExperimentResults, LEAST_OF_A_CLASS};
use study_report::landscape::{Part, best_points};
use study_report::{Claim, Searched, StudyPresentation};

use super::super::study::Study;
use super::entries::{AccountantName, Batch, Batches, By, ComparisonFile};
use super::records::Records;
use crate::run::data_setting::{DataSetting, EvaluationPart, Source, Splits};
use crate::run::experiment::{BatchCounting, BatchSize, Experiment, MethodSetting, NON_PRIVATE, Noise};
use crate::run::features::Features;

/// Epochs and points of a quick run.
const QUICK_EPOCHS: u64 = 3;
const QUICK_POINTS: usize = 2;
/// The share of the training records that an early stop looks at, unless given.
const WATCHED: f64 = 0.2;

/// A file, and the methods that are asked for.
pub(super) struct Comparison<'a> {
    pub(super) file: &'a ComparisonFile,
    pub(super) methods: Vec<&'static MethodEntry>,
    pub(super) quick: bool,
}

impl Comparison<'_> {
    /// The study.
    ///
    /// # Errors
    /// If a setting is refused.
    pub(super) fn study(&self, records: Records) -> anyhow::Result<Study> {
        let (source, own) = match records {
            Records::Published(source) => (source, None),
            Records::Own(data) => (Source::Own, Some(data)),
        };
        let frame = self.frame(source)?;
        let (name, title) = (self.file.name.as_str(), self.title());
        let presentation = StudyPresentation {
            title,
            tables: Vec::new(),
            claims: self.claims()?,
            ranked: Vec::new(),
            searches: self
                .file
                .search
                .map(|search| Searched { experiment: name.to_owned(), judged: search.by.judged(), published: None })
                .into_iter()
                .collect(),
            pooled: None,
        };
        let study = if self.file.search.is_none() {
            Study::new(name, presentation, vec![self.all(frame)?])
        } else {
            let grids = self.epsilons().into_iter().map(|epsilon| self.grid(&frame, epsilon));
            let grids = grids.collect::<anyhow::Result<_>>()?;
            let epsilons = self.epsilons();
            let by = (self.by(), self.file.privacy.accountant);
            // What the best points are made of, without the file.
            let candidates = self.candidates();
            let next = move |results: &[ExperimentResults]| best(&frame, &candidates, &epsilons, by, results);
            Study::new(name, presentation, grids).followed_by(Box::new(next))
        };
        Ok(match own {
            Some(data) => study.on_own(data),
            None => study,
        })
    }

    fn title(&self) -> String {
        self.file.title.clone().unwrap_or_else(|| self.file.name.clone())
    }

    fn by(&self) -> By {
        self.file.search.map(|search| search.by).unwrap_or_default()
    }

    /// In a quick run the first and the last.
    fn epsilons(&self) -> Vec<f64> {
        let all = self.file.privacy.epsilon.as_slice();
        match all {
            [first, .., last] if self.quick => vec![*first, *last],
            all => all.to_vec(),
        }
    }

    /// The experiment without methods: records, model and training.
    fn frame(&self, source: Source) -> anyhow::Result<Experiment> {
        let file = self.file;
        let training = &file.training;
        let evaluation = match training.early_stopping {
            Some(_) => EvaluationPart::TestAndValidation { share: training.validation.unwrap_or(WATCHED) },
            None => EvaluationPart::Test,
        };
        let splits = if file.search.is_some() { Splits::First } else { Splits::BySeed };
        let epsilon = Epsilon::new(file.privacy.epsilon.as_slice().first().copied().unwrap_or(1.0))?;
        Ok(Experiment {
            id: file.name.clone(),
            title: self.title(),
            departures: vec![
                "Methods by name have their papers' settings where the file gives none (crates/dp-clipping/METHODS.md).".to_owned(),
            ],
            data: DataSetting { features: Features::AsEncoded, evaluation, splits, ..source.into() },
            seeds: file.seeds,
            is_search: false,
            model: file.model.clone(),
            loss: training.loss.clone(),
            batch_size: batch_size(training.batch_size),
            epochs: self.epochs(training.epochs),
            begins: None,
            counting: match training.batches {
                Batches::Exact => BatchCounting::Exact,
                Batches::Loader => BatchCounting::LoaderLength,
            },
            early_stopping: training.early_stopping,
            l2: training.l2,
            // Every method states its own ε.
            noise: Noise::WithinByPld(epsilon),
            delta: Delta::new(file.privacy.delta)?,
            matches_dpsgd_budget: false,
            methods: Vec::new(),
            published: None,
        })
    }

    fn epochs(&self, epochs: u64) -> u64 {
        if self.quick { epochs.min(QUICK_EPOCHS) } else { epochs }
    }

    /// Every method at its one point, at every ε.
    fn all(&self, frame: Experiment) -> anyhow::Result<Experiment> {
        let mut methods = Vec::new();
        for candidate in self.candidates() {
            methods.extend(candidate.points.into_iter().take(1).map(|point| (candidate.name, point)));
        }
        let mut all = Vec::new();
        for (name, point) in methods {
            if name == NON_PRIVATE {
                all.push(point);
                continue;
            }
            for &epsilon in &self.epsilons() {
                all.push(within(point.clone(), epsilon, self.file.privacy.accountant)?);
            }
        }
        Ok(Experiment { methods: all, ..frame })
    }

    /// Every method at every point at this ε; the reference, which has none, at the first.
    fn grid(&self, frame: &Experiment, epsilon: f64) -> anyhow::Result<Experiment> {
        let search = self.file.search.as_ref().context("a grid is searched")?;
        let mut methods = Vec::new();
        for candidate in self.candidates() {
            if candidate.name == NON_PRIVATE && self.epsilons().first() != Some(&epsilon) {
                continue;
            }
            for point in candidate.points {
                let coordinates = (rate_of(&point), point.params.clip_norm);
                let is_private = candidate.name != NON_PRIVATE;
                let point = if is_private { within(point, epsilon, self.file.privacy.accountant)? } else { point };
                let point = point.at(RATE, coordinates.0);
                methods.push(if is_private { point.at(BOUND, coordinates.1) } else { point });
            }
        }
        let mut departures = frame.departures.clone();
        departures.push(format!(
            "{} % of the training records are held out for validation; heat maps and best points are computed on them. The search is not \
             accounted for in ε.",
            100.0 * search.held_out
        ));
        Ok(Experiment {
            id: format!("{}-grid-{epsilon}", frame.id),
            title: format!("{}: rate and bound searched for at ε = {epsilon}", frame.title),
            departures,
            data: DataSetting {
                evaluation: EvaluationPart::TestAndValidation { share: search.held_out },
                ..frame.data
            },
            seeds: search.seeds,
            is_search: true,
            methods,
            ..frame.clone()
        })
    }

    /// The reference and every method, each at all of its points.
    fn candidates(&self) -> Vec<Candidate> {
        let training = &self.file.training;
        let few = |numbers: &[f64]| -> Vec<f64> {
            numbers.iter().copied().take(if self.quick { QUICK_POINTS } else { usize::MAX }).collect()
        };
        let reference = training.reference.as_ref();
        let rates = reference.and_then(|entry| entry.learning_rate.as_ref()).unwrap_or(&training.learning_rate);
        let own_batches = reference.filter(|entry| entry.epochs.is_some() || entry.batch_size.is_some());
        let batches = own_batches.map(|entry| {
            let size = batch_size(entry.batch_size.unwrap_or(training.batch_size));
            (size, self.epochs(entry.epochs.unwrap_or(training.epochs)))
        });
        let setting = |name, rate, params| MethodSetting {
            optimiser: training.optimiser,
            ..MethodSetting::new(name, LearningRate::Constant(rate), params)
        };
        let points = few(rates.as_slice())
            .into_iter()
            .map(|rate| MethodSetting { batches, ..setting(NON_PRIVATE, rate, dp_clipping::PresetParams::default()) });
        let mut all = vec![Candidate { name: NON_PRIVATE, points: points.collect() }];
        for method in &self.methods {
            let entry = self.file.method.iter().find(|entry| entry.name == method.name);
            let rates = entry.and_then(|entry| entry.learning_rate.as_ref()).unwrap_or(&training.learning_rate);
            let bounds = entry.and_then(|entry| entry.clip_norm.as_ref());
            let settings = entry.and_then(|entry| entry.settings).unwrap_or_default();
            let bounds = few(bounds.unwrap_or(&training.clip_norm).as_slice());
            let mut points = Vec::new();
            for rate in few(rates.as_slice()) {
                for &clip_norm in &bounds {
                    points.push(setting(method.name, rate, dp_clipping::PresetParams { clip_norm, ..settings }));
                }
            }
            all.push(Candidate { name: method.name, points });
        }
        all
    }

    /// Every method against the first of them, by what the file compares by.
    fn claims(&self) -> anyhow::Result<Vec<Claim>> {
        let Some((baseline, others)) = self.methods.split_first() else { return Ok(Vec::new()) };
        let (baseline, others) = match self.methods.iter().find(|method| method.name == BASELINE) {
            Some(dpsgd) => (*dpsgd, self.methods.iter().filter(|method| method.name != BASELINE).copied().collect()),
            None => (*baseline, others.to_vec()),
        };
        let judged = self.by().judged();
        let mut claims = Vec::new();
        for epsilon in self.epsilons() {
            for method in &others {
                let text = format!(
                    "{} has a greater {} than {} at ε = {epsilon}",
                    method.label,
                    judged.words(),
                    baseline.label
                );
                let of = |method: &MethodEntry| format!("{} ε={epsilon}", method.name);
                claims.push(
                    Claim::greatest(
                        &text,
                        "the file",
                        &self.file.name,
                        (judged.metric(), "total"),
                        &of(method),
                        &[&of(baseline)],
                    )?
                    .ours("no paper claims it"),
                );
            }
        }
        Ok(claims)
    }
}

/// The method that others are compared with, where it is among them.
const BASELINE: &str = "dpsgd";

/// A method at all of its points.
#[derive(Debug, Clone)]
struct Candidate {
    name: &'static str,
    points: Vec<MethodSetting>,
}

fn rate_of(setting: &MethodSetting) -> f64 {
    match setting.learning_rate {
        LearningRate::Constant(rate) => rate,
        _ => f64::NAN,
    }
}

fn batch_size(batch: Batch) -> BatchSize {
    match batch {
        Batch::Records(records) => BatchSize::Records(records),
        Batch::Full(_) => BatchSize::Full,
    }
}

fn within(point: MethodSetting, epsilon: f64, accountant: AccountantName) -> anyhow::Result<MethodSetting> {
    match accountant {
        AccountantName::Pld => point.within_by_pld(epsilon),
        AccountantName::Rdp => point.within(epsilon),
    }
}

/// Every method at its best point at every ε whose grid is there; nothing until one is.
fn best(
    frame: &Experiment,
    candidates: &[Candidate],
    epsilons: &[f64],
    (by, accountant): (By, AccountantName),
    results: &[ExperimentResults],
) -> anyhow::Result<Vec<Experiment>> {
    let mut methods = Vec::new();
    let mut chosen = Vec::new();
    for &epsilon in epsilons {
        let id = format!("{}-grid-{epsilon}", frame.id);
        let Some(grid) = results.iter().find(|experiment| experiment.id == id) else { continue };
        let found = best_points(grid, Part::Validation, by.judged())?;
        ensure!(
            found.iter().any(|method| method.base != NON_PRIVATE),
            "search.by: the {} of the held-out records has no value at any point of {id}: {}; expected another figure, more records or a \
             larger search.held_out",
            by.judged().words(),
            match by {
                By::WorstGroup =>
                    format!("no group has {LEAST_OF_A_CLASS} of them in every class, or every run diverged"),
                _ => "every run diverged, or a class has none of them".to_owned(),
            }
        );
        for best in found {
            let rate = coordinate(best, RATE).context("a point of the grid has a rate")?;
            let bound = coordinate(best, BOUND);
            let candidate = candidates.iter().find(|candidate| candidate.name == best.base);
            let is_it = |point: &&MethodSetting| {
                rate_of(point).to_bits() == rate.to_bits()
                    && bound.is_none_or(|bound| point.params.clip_norm.to_bits() == bound.to_bits())
            };
            let point = candidate.and_then(|candidate| candidate.points.iter().find(is_it));
            let point = point.with_context(|| format!("{} is no point of the grid", best.method))?.clone();
            chosen.push(match bound {
                Some(bound) => format!("{} at ε = {epsilon}: rate {rate}, bound {bound}", best.base),
                None => format!("{}: rate {rate}", best.base),
            });
            methods.push(if bound.is_some() { within(point, epsilon, accountant)? } else { point });
        }
    }
    if methods.is_empty() {
        return Ok(Vec::new());
    }
    let mut departures = frame.departures.clone();
    departures.push(format!(
        "Points with the greatest {} on validation records; the test part was held out of the search and is the same for every seed, so \
         that seeds differ in initial parameters, batches and noise. {}.",
        by.judged().words(),
        chosen.join("; ")
    ));
    Ok(vec![Experiment { departures, methods, ..frame.clone() }])
}
