//! A run's configuration as a TOML document.

use std::ops::Range;

use dp_accounting::{Delta, Epsilon, NoiseMultiplier, PldAccountant, SamplingRate};
use dp_clipping::{ClipConfig, PresetParams, registry};
use dp_engine::{Loss, ModelConfig, OptimiserConfig, PublicFacts};
use serde::Deserialize;
use toml::de::{DeTable, DeValue};

use crate::batch_plan::BatchPlan;
use crate::early_stopping::EarlyStopping;
use crate::error::{Result, TrainError};
use crate::group_sampling::GroupSampling;
use crate::plan::Plan;
use crate::rates_by_loss::RatesByLoss;
use crate::schedule::LearningRate;
use crate::train_config::{PrivacyConfig, TrainConfig};

/// The document, before what depends on the data is worked out.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    model: ModelConfig,
    loss: Loss,
    batches: Batches,
    learning_rate: LearningRate,
    #[serde(default)]
    warm_up_steps: u64,
    #[serde(default)]
    optimiser: OptimiserConfig,
    #[serde(default)]
    l2: f64,
    early_stopping: Option<EarlyStopping>,
    privacy: Option<Privacy>,
}

/// Batches by rate or expected size, and length by epochs or steps.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Batches {
    #[serde(default)]
    sampler: Sampler,
    sampling_rate: Option<SamplingRate>,
    expected_size: Option<usize>,
    sampling: Option<Sampling>,
    epochs: Option<u64>,
    steps: Option<u64>,
    block_records: Option<usize>,
}

/// How batches are drawn.
#[derive(Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Sampler {
    /// Each record independently.
    #[default]
    Poisson,
    /// Known by name, so that it is refused with a reason.
    FixedSize,
}

/// Rates that are not the same for all records.
#[derive(Deserialize)]
#[serde(tag = "by", rename_all = "kebab-case", deny_unknown_fields)]
enum Sampling {
    Group { rates: Vec<SamplingRate> },
    Loss { least: SamplingRate, largest: SamplingRate },
}

impl Sampling {
    /// Candidates are drawn at the largest rate.
    fn largest_rate(&self) -> f64 {
        match self {
            Self::Group { rates } => rates.iter().map(|rate| rate.get()).fold(0.0, f64::max),
            Self::Loss { largest, .. } => largest.get(),
        }
    }
}

/// A method by name or by cell of the grid; noise by multiplier or by the ε it must meet.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Privacy {
    method: Option<String>,
    #[serde(default)]
    settings: PresetParams,
    clipping: Option<ClipConfig>,
    noise_multiplier: Option<NoiseMultiplier>,
    target_epsilon: Option<f64>,
    delta: Delta,
    #[serde(default)]
    allow_large_delta: bool,
    #[serde(default)]
    require_guarantee: bool,
}

impl TrainConfig {
    /// Reads a configuration from TOML, for data with these public facts: sizes become rates,
    /// epochs steps, and a target ε the smallest noise multiplier that meets it.
    ///
    /// Batches take one of `sampling_rate`, `expected_size`, `sampling = { by = "group", rates = […] }`
    /// ([`GroupSampling`]) and `sampling = { by = "loss", least = …, largest = … }` ([`RatesByLoss`]), and
    /// `epochs`, `steps` or both (`epochs` is then how steps are reported). Privacy takes one of `method` (a registered name,
    /// with `settings`) and `clipping` (any cell of the grid), and one of `noise_multiplier` and
    /// `target_epsilon`; without a `[privacy]` table the run is not private. Everything is checked
    /// as [`Plan::new`] does.
    ///
    /// **Guarantee.** The noise for a target ε is calibrated with the PLD accountant's upper bound
    /// for all steps and all queries of the run, at the stated δ: the run's ε does not exceed the
    /// target.
    ///
    /// # Errors
    /// [`TrainError::Config`] with the line, the parameter and what is accepted: unknown or missing
    /// names, numbers out of range, two settings that exclude each other, batches of fixed size, a
    /// target or a required guarantee for a method without one, and δ ≥ 1/n without
    /// `allow_large_delta`.
    ///
    /// **Example**
    /// ```
    /// use dp_train::{OptimiserConfig, PublicFacts, TrainConfig};
    /// let facts = PublicFacts { n_records: 10_000, n_inputs: 40, n_classes: 2, n_groups: 2 };
    /// let text = r#"
    /// loss = "bce-with-logits"
    /// learning_rate = { cosine = { first = 0.003, last = 0.0 } }
    /// warm_up_steps = 20
    ///
    /// [model]
    /// name = "mlp"
    /// hidden = [64]
    /// activation = "tanh"
    ///
    /// [batches]
    /// expected_size = 250
    /// epochs = 4
    ///
    /// [optimiser]
    /// name = "adam"
    ///
    /// [privacy]
    /// method = "dpsgd-f"
    /// settings = { clip_norm = 0.5 }
    /// target_epsilon = 3.0
    /// delta = 1e-6
    /// "#;
    /// let config = TrainConfig::from_toml(text, facts)?;
    /// assert_eq!((config.batches.sampling_rate.get(), config.batches.steps), (0.025, 160));
    /// assert_eq!(config.optimiser, OptimiserConfig::Adam { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-8 });
    ///
    /// let error = TrainConfig::from_toml(&text.replace("epochs = 4", "epochs = 0"), facts).unwrap_err();
    /// assert_eq!(error.to_string(), "line 13: batches.epochs = 0: expected at least 1");
    /// # Ok::<(), dp_train::TrainError>(())
    /// ```
    pub fn from_toml(text: &str, facts: PublicFacts) -> Result<Self> {
        let document = parse(text)?;
        let parameter_of = |error: &TrainError| match error {
            TrainError::InvalidParameter { parameter, .. } => *parameter,
            TrainError::Clipping(_) | TrainError::Accounting(_) => "privacy",
            _ => "",
        };
        resolve(document, facts).map_err(|error| {
            let line = line_of_path(text, parameter_of(&error));
            TrainError::Config { line, message: error.to_string() }
        })
    }
}

fn parse(text: &str) -> Result<Document> {
    let at = |span: Option<Range<usize>>, message: String| TrainError::Config {
        line: span.map_or(1, |span| line_at(text, span.start)),
        message,
    };
    let deserialiser =
        toml::Deserializer::parse(text).map_err(|error| at(error.span(), error.message().replace('\n', ", ")))?;
    serde_path_to_error::deserialize(deserialiser).map_err(|error| {
        let (path, error) = (error.path().to_string(), error.into_inner());
        let place = if path == "." { String::new() } else { format!("{path}: ") };
        at(error.span(), format!("{place}{}", error.message()))
    })
}

fn resolve(document: Document, facts: PublicFacts) -> Result<TrainConfig> {
    let batches = resolve_batches(&document.batches, facts)?;
    let mut config = TrainConfig {
        warm_up_steps: document.warm_up_steps,
        optimiser: document.optimiser,
        l2: document.l2,
        early_stopping: document.early_stopping,
        block_records: document.batches.block_records,
        ..TrainConfig::new(document.model, document.loss, batches, document.learning_rate)
    };
    match document.batches.sampling {
        Some(Sampling::Group { rates }) => config.group_sampling = Some(GroupSampling::new(rates)),
        Some(Sampling::Loss { least, largest }) => config.rates_by_loss = Some(RatesByLoss::new(least, largest)),
        None => {}
    }
    let Some(privacy) = document.privacy else { return Ok(Plan::new(config, facts)?.config().clone()) };
    let (privacy, target) = resolve_privacy(&privacy)?;
    config.privacy = Some(privacy);
    let plan = match target {
        None => Plan::new(config, facts)?,
        Some(target) => Plan::calibrated(config, facts, target, PldAccountant::new(Plan::RELATION), None)?,
    };
    Ok(plan.config().clone())
}

fn resolve_batches(batches: &Batches, facts: PublicFacts) -> Result<BatchPlan> {
    if batches.sampler == Sampler::FixedSize {
        // A batch of fixed size is not the Poisson batch that the event of a step describes, nor
        // amplified as one.
        let expected = "poisson, the only sampler that the accounting of a step is valid for";
        return Err(TrainError::invalid("batches.sampler", "fixed-size", expected));
    }
    let n = facts.n_records;
    let ways = "sampling_rate, expected_size and sampling";
    let sampling_rate = match (batches.sampling_rate, batches.expected_size, &batches.sampling) {
        (Some(rate), None, None) => rate,
        (None, Some(size), None) if size >= 1 && size <= n => SamplingRate::new(size as f64 / n as f64)?,
        (None, Some(size), None) => {
            let expected = format!("1 to {n}, the number of records");
            return Err(TrainError::invalid("batches.expected_size", size, expected));
        }
        (None, None, Some(sampling)) => SamplingRate::new(sampling.largest_rate())?,
        (None, None, None) => return Err(one_of("batches", "none", ways)),
        (.., Some(_)) => return Err(one_of("batches.sampling", "one of several", ways)),
        (Some(_), Some(_), None) => return Err(one_of("batches.expected_size", "one of several", ways)),
    };
    let (steps, epochs) = match (batches.steps, batches.epochs) {
        (_, Some(0)) => return Err(TrainError::invalid("batches.epochs", 0, "at least 1")),
        (Some(steps), Some(epochs)) => (steps, epochs),
        // An epoch is as many records as there are, on average.
        (Some(steps), None) => (steps, ((steps as f64 * sampling_rate.get()).round() as u64).clamp(1, steps.max(1))),
        (None, Some(epochs)) => match batches.expected_size {
            Some(size) => (BatchPlan::exact(facts, size, epochs)?.steps, epochs),
            None => (steps_at(sampling_rate, epochs)?, epochs),
        },
        (None, None) => return Err(one_of("batches", "neither", "epochs and steps, or both")),
    };
    Ok(BatchPlan::new(sampling_rate, steps, epochs))
}

/// Steps of `epochs` epochs. An epoch draws on average as many records as there are.
fn steps_at(rate: SamplingRate, epochs: u64) -> Result<u64> {
    const TOO_MANY: f64 = 18_446_744_073_709_551_616.0;
    let steps = (epochs as f64 / rate.get()).floor();
    if steps < TOO_MANY {
        return Ok(steps as u64);
    }
    let least = epochs as f64 / TOO_MANY;
    let expected = format!("above {least:e}, for 64 bits to count the steps of {epochs} epochs");
    Err(TrainError::invalid("batches.sampling_rate", format!("{:e}", rate.get()), expected))
}

/// The privacy of a run, and the ε that its noise is yet to be found for, if it is.
fn resolve_privacy(privacy: &Privacy) -> Result<(PrivacyConfig, Option<Epsilon>)> {
    let clipping = match (&privacy.method, privacy.clipping) {
        (Some(name), None) => {
            let Ok(entry) = registry::find(name) else {
                let known: Vec<&str> = registry::all().into_iter().map(|entry| entry.name).collect();
                return Err(TrainError::invalid("privacy.method", name, format!("one of {}", known.join(", "))));
            };
            entry.config(&privacy.settings)?
        }
        (None, Some(clipping)) => clipping,
        (Some(_), Some(_)) => return Err(one_of("privacy.clipping", "both", "method and clipping")),
        (None, None) => return Err(one_of("privacy", "neither", "method and clipping")),
    };
    let (noise_multiplier, target) = match (privacy.noise_multiplier, privacy.target_epsilon) {
        (Some(noise_multiplier), None) => (noise_multiplier, None),
        (None, Some(target)) if target.is_finite() && target > 0.0 => {
            (NoiseMultiplier::new(1.0)?, Some(Epsilon::new(target)?))
        }
        (None, Some(target)) => {
            return Err(TrainError::invalid("privacy.target_epsilon", target, "a finite number above 0"));
        }
        (Some(_), Some(_)) => {
            return Err(one_of("privacy.target_epsilon", "both", "noise_multiplier and target_epsilon"));
        }
        (None, None) => return Err(one_of("privacy", "neither", "noise_multiplier and target_epsilon")),
    };
    let config = PrivacyConfig {
        allow_large_delta: privacy.allow_large_delta,
        require_guarantee: privacy.require_guarantee || target.is_some(),
        ..PrivacyConfig::new(clipping, noise_multiplier, privacy.delta)
    };
    Ok((config, target))
}

fn one_of(parameter: &'static str, given: &str, names: &str) -> TrainError {
    TrainError::invalid(parameter, given, format!("one of {names}"))
}

/// 1-based line of a byte.
fn line_at(text: &str, byte: usize) -> usize {
    1 + text.as_bytes().iter().take(byte).filter(|&&b| b == b'\n').count()
}

/// Line of the longest part of a dotted path that the document has; 1 for none.
fn line_of_path(text: &str, path: &str) -> usize {
    let Ok(document) = DeTable::parse(text) else { return 1 };
    let (mut table, mut start) = (document.get_ref(), 0);
    for name in path.split('.') {
        let Some((key, value)) = table.iter().find(|(key, _)| key.get_ref() == name) else { break };
        start = key.span().start;
        match value.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ => break,
        }
    }
    line_at(text, start)
}
