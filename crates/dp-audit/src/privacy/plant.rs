//! Faults that an audit must find, and the eye that watches a method.

use std::sync::{Arc, Mutex, PoisonError};

use dp_clipping::serde_json::Value;
use dp_clipping::{
    ClipBatch, ClipConfig, ClipError, ClipMethod, Clipped, Controller, CountNoise, MethodEntry, MethodState,
    PresetParams, PublicContext, Weights,
};
use dp_train::{Result, TrainError};
use rand::CryptoRng;
use strum::{IntoStaticStr, VariantArray};

use crate::plant::Fault;

/// A fault that breaks the guarantee.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
#[non_exhaustive]
pub enum Plant {
    /// Scales without a cap: a record enters the sum with its whole gradient, up to many times the
    /// bound.
    NoCap,
    /// Division by the number of drawn records that are not blank, in place of the expected batch
    /// size.
    PrivateDivisor,
    /// A count that is released without its noise.
    SilentCount,
    /// Inputs divided by the largest among the records.
    DataScaling,
    /// Noise for the base threshold in place of the largest of the groups', where that follows this
    /// step's counts.
    SmallNoise,
    /// Every candidate stays in the batch, whatever the rate of its group.
    UnchargedRate,
    /// Records of a group are clipped at the threshold of another, where groups are drawn at rates of
    /// their own.
    OtherThreshold,
    /// Two releases under the same random streams.
    SeedReuse,
    /// Each of several ranks adds separate noise, with its share of the standard deviation instead
    /// of the variance.
    RankNoise,
    /// Each of several ranks makes the noise of its range of parameters, all from the beginning of
    /// one stream.
    RankStream,
}

impl Plant {
    /// Every fault.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The fault with this name.
    ///
    /// # Errors
    /// [`TrainError::InvalidParameter`] naming all of them.
    pub fn find(name: &str) -> Result<Self> {
        Self::ALL.iter().copied().find(|plant| plant.name() == name).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|plant| plant.name()).collect();
            TrainError::invalid("plant", name, format!("one of {}", names.join(", ")))
        })
    }

    /// Whether a method can have it.
    pub fn applies_to(self, config: &ClipConfig) -> bool {
        let per_group =
            matches!(config.controller, Controller::PerGroup { .. }) || matches!(config.weights, Weights::Naive { .. });
        match self {
            Self::SilentCount => {
                let context = PublicContext { n_groups: 2, expected_batch_size: 1.0, noise_multiplier: 1.0 };
                !config.queries(&context).is_empty()
            }
            Self::SmallNoise => per_group,
            Self::UnchargedRate | Self::OtherThreshold => matches!(config.controller, Controller::ByRate { .. }),
            Self::NoCap
            | Self::PrivateDivisor
            | Self::DataScaling
            | Self::SeedReuse
            | Self::RankNoise
            | Self::RankStream => true,
        }
    }

    /// The fault of the trainer that it is, if it takes several ranks to have it.
    pub(super) fn of_ranks(self) -> Option<Fault> {
        match self {
            Self::RankNoise => Some(Fault::RankNoise),
            Self::RankStream => Some(Fault::RankStream),
            _ => None,
        }
    }
}

/// The releases of one step of a method, besides the noisy gradient.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Seen {
    /// The bound that the noise is scaled to.
    pub(super) bound: f64,
    /// Sum of the noisy counts.
    pub(super) counts: f64,
}

/// A method whose releases are noted, with a fault or without.
#[derive(Debug)]
pub(super) struct Watched {
    inner: Box<dyn ClipMethod>,
    plant: Option<Plant>,
    announced: Vec<f64>,
    base_bound: f64,
    /// The weights of groups that its state has, in the place of its own.
    weights: Option<&'static [f64]>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Watched {
    /// The method of a registry entry; what it releases is pushed to `seen`. Rates that follow losses
    /// are those at `weights`.
    pub(super) fn new(
        entry: &MethodEntry,
        params: &PresetParams,
        context: &PublicContext,
        (plant, weights): (Option<Plant>, Option<&'static [f64]>),
        seen: Arc<Mutex<Vec<Seen>>>,
    ) -> Result<Self> {
        let config = (entry.preset)(params);
        let silent = PresetParams { count_noise: CountNoise::Multiplier(0.0), ..*params };
        let inner = if plant == Some(Plant::SilentCount) { (entry.preset)(&silent) } else { config };
        Ok(Self {
            inner: inner.build(context)?,
            plant,
            announced: config.count_noise_multipliers(context),
            weights,
            base_bound: config.rule.bound(config.controller.first_threshold()),
            seen,
        })
    }
}

/// How many bounds a record without a cap adds at most. The sum of all canaries must stay within
/// the range of its integers, 2,048 bounds: a step beyond it stops the run, which is not what the
/// attack is to find.
const BEYOND: f64 = 16.0;

impl ClipMethod for Watched {
    fn clip(&mut self, batch: &ClipBatch<'_>, rng: &mut dyn CryptoRng) -> Result<Clipped, ClipError> {
        let mut clipped = self.inner.clip(batch, rng)?;
        for (query, &announced) in clipped.queries.iter_mut().zip(&self.announced) {
            query.noise_multiplier = announced;
        }
        match self.plant {
            Some(Plant::NoCap) => {
                for (scale, norm) in clipped.scales.iter_mut().zip(batch.norms) {
                    let within_range = BEYOND * clipped.bound / norm;
                    *scale = if norm.is_finite() { within_range.min(1.0) } else { 0.0 };
                }
            }
            Some(Plant::SmallNoise) => clipped.bound = self.base_bound,
            _ => {}
        }
        let counts = clipped.queries.iter().flat_map(|query| &query.released).sum();
        let seen = Seen { bound: clipped.bound, counts };
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
        Ok(clipped)
    }

    fn state(&self) -> Value {
        let own = self.inner.state();
        let Some(weights) = self.weights else { return own };
        match MethodState::from_value(&own) {
            Ok(state) => MethodState { weights: Some(weights.to_vec()), ..state }.to_value(),
            Err(_) => own,
        }
    }

    fn restore(&mut self, state: &Value) -> Result<(), ClipError> {
        self.inner.restore(state)
    }
}
