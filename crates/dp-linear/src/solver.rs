//! Private logistic, softmax and least-squares regression on sparse rows, by few steps over all records.
//!
//! 1. *Class counts* with noise: the intercepts start at the logarithms of the classes' shares, so
//!    that no step is spent on learning which class is rare. Of a number [its mean and
//!    spread](crate::Spread) are released in their place.
//! 2. *Mean squares* of all features with noise: each feature is scaled to mean square 1. A common
//!    value and a rare one then learn at their own speeds, and each has noise in proportion to how
//!    often it occurs.
//! 3. *Gradients over all records.* A scaled row is shortened to the public length `√(mean square)`
//!    where it is longer. That weighs records by their features alone, so the model that is right
//!    for all records stays right. No sampling: at equal ε the noise of a run is least when every
//!    step uses every record.
//!
//! A record's weight, between 0 and 1, multiplies its term in each of the three sums.
//!
//! All three are Gaussian mechanisms on all records, so ε is in closed form: `μ² = Σ 1/σ²`. The
//! weights apply to the unscaled features: they are a sum over columns, which can be drawn.
//!
//! **In floating point.** Every sum over records is exact ([`sum_rows`]), so one record moves it by
//! its own contribution, and neither threads nor the order of the records change a bit. Noise is
//! rounded to a public grid by `dp_clipping::noise`.

use std::ops::Range;

use dp_accounting::NoiseMultiplier;
use dp_engine::Grid;

use crate::class_counts::ClassCounts;
use crate::descent::{self, State};
use crate::error::{LinearError, Result};
use crate::exact::sum_rows;
use crate::exact_sum::ExactSum;
use crate::linear::Linear;
use crate::rows::RowSource;
use crate::scales::{FeatureFacts, Scales};
use crate::settings::{Settings, Streams};
use crate::spread::Spread;
use crate::weight_noise::WeightNoise;

/// What is known of the label before its first gradient, and the weight of all records.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Priors {
    /// Shares of the classes; none of a number.
    pub priors: Vec<f64>,
    /// Mean and spread of a number; `None` of classes.
    pub spread: Option<Spread>,
    /// Weight of all records together: their number, which is public, or released with the class
    /// counts.
    pub total: f64,
}

impl Priors {
    /// What is known of classes with these shares, and of records of this weight.
    pub fn of_classes(priors: Vec<f64>, total: f64) -> Self {
        Self { priors, spread: None, total }
    }
}

/// Releases class counts, of which several records may belong to one unit of privacy: with weights
/// the weight that each class has.
///
/// # Errors
/// [`LinearError::Train`](crate::LinearError::Train) if a rank is gone.
pub fn class_priors(
    rows: &impl RowSource,
    n_classes: usize,
    noise_multiplier: NoiseMultiplier,
    records_per_unit: u64,
    streams: &impl Streams,
) -> Result<Priors> {
    let is_weighted = rows.is_weighted();
    let grid = if is_weighted { Grid::for_values(1.0, rows.len()) } else { Grid::for_counts() };
    let counts = sum_rows(
        rows,
        n_classes,
        || (),
        |(), _, row, sum| {
            if let Some(count) = sum.get_mut(row.label) {
                *count += if is_weighted { grid.place(f64::from(row.weight)) } else { 1.0 };
            }
        },
    )?;
    // A record adds at most 1.
    let std = noise_multiplier.get() * records_per_unit as f64;
    let counts = ClassCounts::of(streams.release("class counts", 0, ExactSum::new(grid, counts, std)), std);
    let n = rows.len() as f64;
    let total = if is_weighted { counts.at_least_noise().iter().sum::<f64>().min(n) } else { n };
    Ok(Priors { priors: counts.priors(), spread: None, total })
}

/// The same of a number: releases where its values are ([`Spread::fit`]).
///
/// # Errors
/// [`LinearError::Train`](crate::LinearError::Train) if a rank is gone.
pub fn number_priors(
    rows: &impl RowSource,
    noise_multiplier: NoiseMultiplier,
    records_per_unit: u64,
    streams: &impl Streams,
) -> Result<Priors> {
    let (spread, total) = Spread::fit(rows, noise_multiplier, records_per_unit, streams)?;
    Ok(Priors { priors: Vec::new(), spread: Some(spread), total })
}

/// Trains a model on what was released first; `progress` is called after every step with the state
/// that the run can be continued from.
///
/// # Errors
/// [`LinearError::Train`](crate::LinearError::Train) if a rank is gone.
pub fn train<E: From<LinearError>>(
    rows: &impl RowSource,
    prepared: &Prepared,
    facts: FeatureFacts,
    settings: &Settings,
    streams: &impl Streams,
    saved: Option<State>,
    progress: &mut (dyn FnMut(&State) -> Result<(), E> + Send),
) -> Result<Linear, E> {
    descent::descend(rows, prepared, facts, settings, streams, saved, progress)
}

/// The releases before the first gradient.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Prepared {
    /// Shares of the classes; none of a number.
    pub priors: Vec<f64>,
    /// Mean and spread of a number; `None` of classes.
    pub spread: Option<Spread>,
    /// Weight of all records together: their number, which is public, or released with the class
    /// counts.
    pub total: f64,
    /// Factors of the features, and the length of a row.
    pub scales: Scales,
    /// The model that the training corrects; `None` where it begins with the shares of the classes.
    pub start: Option<Linear>,
}

impl Prepared {
    /// The same for a training that starts from a model that was released before, and corrects it.
    ///
    /// **Guarantee.** None of it changes: what a record adds to a gradient is bounded whatever the weights.
    ///
    /// # Errors
    /// [`LinearError::Mismatch`] for a model of other features or classes.
    pub fn starting_from(mut self, start: Linear) -> Result<Self> {
        start.check_start(self.scales.factors.len(), self.priors.len())?;
        self.start = Some(start);
        Ok(self)
    }

    /// How much noise the weights of a model have that was [trained](train) on this.
    pub fn weight_noise(&self, facts: FeatureFacts, settings: &Settings) -> WeightNoise<'static> {
        descent::weight_noise(self, facts, settings)
    }

    /// Whether a feature that is mostly 0 is too rare to be told from the noise.
    pub fn is_too_rare(&self, column: usize) -> bool {
        self.scales.mean_squares[column] <= self.scales.least
    }
}

/// Releases class counts, or without classes the moments of a number, and mean squares.
///
/// # Errors
/// [`LinearError::Train`](crate::LinearError::Train) if a rank is gone.
pub fn prepare(
    rows: &impl RowSource,
    n_classes: usize,
    facts: FeatureFacts,
    settings: &Settings,
    streams: &impl Streams,
) -> Result<Prepared> {
    let (noise, units) = (settings.counts, settings.records_per_unit);
    let Priors { priors, spread, total } = match n_classes {
        0 => number_priors(rows, noise, units, streams)?,
        n_classes => class_priors(rows, n_classes, noise, units, streams)?,
    };
    let units = settings.records_per_unit as f64;
    let scales = Scales::fit(rows, total, facts, settings.squares, units, streams)?;
    Ok(Prepared { priors, spread, total, scales, start: None })
}

/// The steps that a run takes: more where the rarest class is rare, since the curvature of its loss
/// is small.
pub fn steps_for(n_records: usize) -> u64 {
    // A pass over ten million rows takes seconds; a table of thousands takes milliseconds.
    const RECORDS: Range<usize> = 2_000_000..20_000_000;
    if n_records < RECORDS.start {
        100
    } else if n_records < RECORDS.end {
        60
    } else {
        40
    }
}
