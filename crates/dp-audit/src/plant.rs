//! Faults that can be planted, to see that the replay finds them.

use std::rc::Rc;

use dp_clipping::serde_json::Value;
use dp_clipping::{AdvanceScale, ClipBatch, ClipError, ClipMethod, Clipped, MethodState, Weights};
use dp_engine::hook::{self, Substitute};
use dp_engine::noise::StepNoise;
use dp_train::TrainError;
use rand::CryptoRng;
use rand_chacha::ChaCha20Rng;
use strum::IntoStaticStr;

/// A fault of an engine whose sums move by more than is declared.
///
/// **Example**
/// ```
/// use std::num::NonZeroUsize;
/// use dp_audit::Fault;
/// use dp_audit::replay::Replay;
/// use dp_train::Device;
/// let (one, device, method) = (NonZeroUsize::MIN, Device::Cpu, Some("dpsgd".into()));
/// let plant = Some(Fault::NoCap);
/// let planted = Replay { cases: 20, seed: 1, method, layer: None, plant, threads: one, ranks: one, device };
/// assert!(planted.run(&|_| {})?.violations > 0);
/// # Ok::<(), dp_train::TrainError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
#[non_exhaustive]
pub enum Fault {
    /// Scales do not follow from norms: every gradient is scaled as a small one.
    NoCap,
    /// A matrix product rounds otherwise where it has one more row: with an odd number of rows it
    /// comes out larger by 2⁻¹⁶. Which numbers of rows a library tells apart, and by how much,
    /// depends on the processor.
    RowsCouple,
    /// Norms of records with several positions come from Gram matrices, without what rounding
    /// leaves of terms that cancel.
    GramNorm,
    /// A norm that is not a number is 0.
    NanZero,
    /// Sums of pieces are added in single precision.
    F32Stagnation,
    /// Groups are weighted by the losses of the step itself, without their noise.
    UnreleasedWeights,
    /// The sums of losses take each loss whole, beyond its bound.
    UnclampedLoss,
    /// Records of a group are clipped at the threshold of another, where groups are drawn at rates of
    /// their own.
    OtherThreshold,
    /// A rank of which no record was drawn does not take part in the step, although there are
    /// several ranks.
    SkippedPart,
    /// Each of several ranks adds separate noise, with its share of the standard deviation instead
    /// of the variance.
    RankNoise,
    /// Each of several ranks makes the noise of its range of parameters, all from the beginning of
    /// one stream.
    RankStream,
}

impl Fault {
    /// Every fault that shows before the noise.
    pub const ALL: &'static [Self] = &[
        Self::NoCap,
        Self::RowsCouple,
        Self::GramNorm,
        Self::NanZero,
        Self::F32Stagnation,
        Self::UnreleasedWeights,
        Self::UnclampedLoss,
        Self::OtherThreshold,
        Self::SkippedPart,
    ];

    /// Whether it takes several ranks to have it.
    pub fn needs_ranks(self) -> bool {
        matches!(self, Self::SkippedPart | Self::RankNoise | Self::RankStream)
    }

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl std::str::FromStr for Fault {
    type Err = TrainError;

    fn from_str(name: &str) -> Result<Self, TrainError> {
        let faults = Self::ALL.iter().copied();
        let names: Vec<&str> = faults.clone().map(Self::name).collect();
        let known = faults.into_iter().find(|fault| fault.name() == name);
        known.ok_or_else(|| TrainError::invalid("plant", name, format!("one of {}", names.join(", "))))
    }
}

/// Does the work with a fault planted on this thread, or with none.
pub(crate) fn with_planted<R>(fault: Option<Fault>, work: impl FnOnce() -> R) -> R {
    hook::with(fault.map(|fault| Rc::new(Planted(fault)) as Rc<dyn Substitute>), work)
}

/// A step with a fault.
struct Planted(Fault);

impl Substitute for Planted {
    fn left_factor(&self, rows: usize) -> Option<f64> {
        (self.0 == Fault::RowsCouple && rows % 2 == 1).then(|| 1.0 + 2_f64.powi(-16))
    }

    fn sq_norm(&self, sq_norm: f64) -> Option<f64> {
        let is_replaced = self.0 == Fault::NanZero || (self.0 == Fault::GramNorm && sq_norm.is_finite());
        is_replaced.then(|| sq_norm.max(0.0))
    }

    fn add_values(&self, steps: &mut [i64], values: &mut dyn Iterator<Item = f64>, grid: f64) -> Option<()> {
        (self.0 == Fault::F32Stagnation).then(|| {
            for (step, value) in steps.iter_mut().zip(values) {
                let sum = (*step as f64 * grid) as f32 + value as f32;
                *step = (f64::from(sum) / grid) as i64;
            }
        })
    }

    fn skips_step(&self, records: usize, ranks: usize) -> bool {
        self.0 == Fault::SkippedPart && records == 0 && ranks > 1
    }

    fn method(&self, own: Box<dyn ClipMethod>) -> Box<dyn ClipMethod> {
        match self.0 {
            Fault::NoCap => Box::new(Uncapped(own)),
            Fault::UnreleasedWeights => Box::new(ByExactLosses { own, weighs: true }),
            Fault::UnclampedLoss => Box::new(ByExactLosses { own, weighs: false }),
            _ => own,
        }
    }

    fn makes_noise(&self) -> bool {
        matches!(self.0, Fault::RankNoise | Fault::RankStream)
    }

    fn noisy(&self, sum: &[f64], std: f64, ranks: usize, rng: &mut ChaCha20Rng) -> Vec<f32> {
        let mut noisy: Vec<f32> = sum.iter().map(|&value| value as f32).collect();
        if self.0 == Fault::RankNoise {
            for _ in 0..ranks {
                let before: Vec<f64> = noisy.iter().copied().map(f64::from).collect();
                StepNoise::draw(rng, std / ranks as f64).add_exact(0, &before, &mut noisy);
            }
        } else {
            let noise = StepNoise::draw(rng, std);
            let of_rank = sum.len().div_ceil(ranks);
            for (sum, noisy) in sum.chunks(of_rank).zip(noisy.chunks_mut(of_rank)) {
                noise.add_exact(0, sum, noisy);
            }
        }
        noisy
    }
}

/// A method that scales every gradient as a small one.
#[derive(Debug)]
struct Uncapped(Box<dyn ClipMethod>);

impl ClipMethod for Uncapped {
    fn clip(&mut self, batch: &ClipBatch<'_>, rng: &mut dyn CryptoRng) -> Result<Clipped, ClipError> {
        let mut clipped = self.0.clip(batch, rng)?;
        // The method's scale of a record that needs no clipping.
        let norms = vec![f64::MIN_POSITIVE; batch.norms.len()];
        let uncapped = self.0.clip(&ClipBatch::new(&norms, batch.groups).with_losses(batch.losses), rng)?.scales;
        for (scale, uncapped) in clipped.scales.iter_mut().zip(uncapped) {
            *scale = if *scale > 0.0 { uncapped } else { 0.0 };
        }
        Ok(clipped)
    }

    fn scale_in_advance(&self, _group: usize) -> Option<AdvanceScale> {
        None
    }

    fn state(&self) -> Value {
        self.0.state()
    }

    fn restore(&mut self, state: &Value) -> Result<(), ClipError> {
        self.0.restore(state)
    }
}

/// A method with weights that follow losses, whose weights or sums have the losses as they are.
#[derive(Debug)]
struct ByExactLosses {
    own: Box<dyn ClipMethod>,
    /// Whether weights follow them, or else the sums that are released.
    weighs: bool,
}

impl ByExactLosses {
    /// The bound of the losses, of a method that has one.
    fn loss_bound(&self) -> Option<f64> {
        match MethodState::from_value(&self.own.state()).ok()?.config.weights {
            Weights::Multiplicative { loss_bound, .. } | Weights::RatesByLoss { loss_bound, .. } => Some(loss_bound),
            _ => None,
        }
    }
}

impl ClipMethod for ByExactLosses {
    fn clip(&mut self, batch: &ClipBatch<'_>, rng: &mut dyn CryptoRng) -> Result<Clipped, ClipError> {
        let mut clipped = self.own.clip(batch, rng)?;
        let (Some(losses), Some(bound)) = (batch.losses, self.loss_bound()) else { return Ok(clipped) };
        let mut sums = vec![0.0; clipped.group_bounds.len()];
        for ((loss, norm), &group) in losses.iter().zip(batch.norms).zip(batch.groups) {
            if loss.is_finite() && norm.is_finite() {
                sums[group] += loss.max(0.0) / bound;
            }
        }
        if self.weighs {
            let factors: Vec<f64> = sums.iter().map(|sum| 1.0 + sum.min(1.0)).collect();
            for (scale, &group) in clipped.scales.iter_mut().zip(batch.groups) {
                *scale *= factors[group];
            }
            for (bound, factor) in clipped.group_bounds.iter_mut().zip(factors) {
                *bound *= factor;
            }
            clipped.bound = clipped.group_bounds.iter().copied().fold(0.0, f64::max);
        } else if let Some(query) = clipped.queries.last_mut() {
            query.released = sums;
        }
        Ok(clipped)
    }

    fn state(&self) -> Value {
        self.own.state()
    }

    fn restore(&mut self, state: &Value) -> Result<(), ClipError> {
        self.own.restore(state)
    }
}
