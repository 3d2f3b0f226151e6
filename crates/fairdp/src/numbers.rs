//! Quality of predicted numbers by group: from noisy sums for the release, exact for its owner.

use dp_accounting::NoiseMultiplier;
use dp_table::{Group, NumberLabel};
use dp_train::ranks::Collective;
use fair_decisions::ErrorCells;
use fair_metrics::noisy::{ErrorFigures, NoisyErrorSums, NoisyErrors, NoisyNumber};
use rand_chacha::ChaCha20Rng;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::fairness::{CONFIDENCE, at, listed};
use crate::mean_errors::MeanErrorCorrections;

/// A model's numbers for some records, in units of the label.
#[derive(Debug, Clone, Default)]
pub(crate) struct NumberAnswers {
    pub(crate) groups: Vec<u32>,
    /// Prediction and label of each.
    pub(crate) pairs: Vec<[f64; 2]>,
}

impl NumberAnswers {
    pub(crate) fn push(&mut self, group: u32, prediction: f64, label: f64) {
        self.groups.push(group);
        self.pairs.push([prediction, label]);
    }

    /// Gathers the answers of all ranks, in their order, on every rank.
    pub(crate) fn of_ranks(self, ranks: &dyn Collective) -> Result<Self> {
        if ranks.size() == 1 {
            return Ok(self);
        }
        let mut message = Vec::with_capacity(20 * self.groups.len());
        for (group, pair) in self.groups.iter().zip(&self.pairs) {
            message.extend(group.to_le_bytes());
            message.extend(pair.iter().flat_map(|number| number.to_le_bytes()));
        }
        let mut all = Self::default();
        for record in ranks.gather(message)?.iter().flat_map(|part| part.as_chunks::<20>().0) {
            let number = |at: usize| f64::from_le_bytes(std::array::from_fn(|i| record[at + i]));
            all.push(u32::from_le_bytes(std::array::from_fn(|i| record[i])), number(4), number(12));
        }
        Ok(all)
    }

    /// Releases the sums of their errors by group.
    ///
    /// **Guarantee.** That of [`ErrorCells::release`].
    pub(crate) fn release(
        &self,
        n_groups: usize,
        range: &NumberLabel,
        noise_multiplier: NoiseMultiplier,
        records_per_unit: u64,
        rng: &mut ChaCha20Rng,
    ) -> Result<Vec<NoisyErrorSums>> {
        let mut cells = ErrorCells::new(n_groups);
        let place = |value: f64| 0.5 * (value - range.middle()) / range.half();
        for (group, [prediction, label]) in self.groups.iter().zip(&self.pairs) {
            cells.add(*group as usize, place(*prediction), place(*label));
        }
        Ok(cells.release(noise_multiplier.get(), records_per_unit, rng)?)
    }

    /// Exact figures of those for which `is_meant` holds. **Not private.**
    pub(crate) fn exact(&self, is_meant: impl Fn(u32) -> bool) -> NumberDiagnostics {
        let meant = self.groups.iter().zip(&self.pairs).filter(|(group, _)| is_meant(**group));
        let meant: Vec<[f64; 2]> = meant.map(|(_, pair)| *pair).collect();
        let n = meant.len() as f64;
        let mean = |of: &dyn Fn(&[f64; 2]) -> f64| (n > 0.0).then(|| meant.iter().map(of).sum::<f64>() / n);
        let squares = mean(&|[prediction, label]| (prediction - label).powi(2));
        let middle = mean(&|[_, label]| *label);
        let spread = middle.and_then(|middle| mean(&|[_, label]| (label - middle).powi(2)));
        let r2 =
            squares.zip(spread).filter(|(_, spread)| *spread > 0.0).map(|(squares, spread)| 1.0 - squares / spread);
        NumberDiagnostics {
            records: meant.len(),
            r2,
            mean_absolute_error: mean(&|[prediction, label]| (prediction - label).abs()),
            root_mean_squared_error: squares.map(f64::sqrt),
            mean_error: mean(&|[prediction, label]| prediction - label),
        }
    }
}

/// Exact figures of predicted numbers, in units of the label. **Not private.**
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct NumberDiagnostics {
    /// Records that were measured.
    pub records: usize,
    /// Share of the label's variance that predictions explain.
    pub r2: Option<f64>,
    /// Mean magnitude of the errors.
    pub mean_absolute_error: Option<f64>,
    /// Root of the mean of their squares.
    pub root_mean_squared_error: Option<f64>,
    /// Mean of prediction less label.
    pub mean_error: Option<f64>,
}

/// Figures of predicted numbers of one group, or of all: in units of the label, but R².
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct NumberFigures {
    /// Which.
    pub group: Group,
    /// Its number of test records, with noise.
    pub records: f64,
    /// Share of the label's variance that predictions explain.
    pub r2: NoisyNumber,
    /// Mean magnitude of the errors.
    pub mean_absolute_error: NoisyNumber,
    /// Root of the mean of their squares.
    pub root_mean_squared_error: NoisyNumber,
    /// Mean of prediction less label: above 0 where predictions are too high.
    pub mean_error: NoisyNumber,
}

impl NumberFigures {
    fn of(group: Group, figures: ErrorFigures, width: f64) -> Self {
        let in_units = |figure: NoisyNumber| figure.mapped(|share| share * width);
        Self {
            group,
            records: figures.records,
            r2: figures.r2,
            mean_absolute_error: in_units(figures.mean_absolute_error),
            root_mean_squared_error: in_units(figures.root_mean_squared_error),
            mean_error: in_units(figures.mean_error),
        }
    }

    /// Whether there are too few records for any figure.
    pub fn is_unknown(&self) -> bool {
        self.mean_error.value.is_none()
    }
}

/// The part of `fairness.json` on predicted numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct NumberReport {
    /// The declared range, within which labels and predictions are.
    pub range: [f64; 2],
    /// All test records.
    pub overall: NumberFigures,
    /// Every group, however small.
    pub groups: Vec<NumberFigures>,
    /// Groups whose mean absolute error cannot be told from the largest: with the stated confidence the group
    /// that is served worst is one of them. Groups with too few records are among them.
    pub cannot_be_told_from_the_largest_error: Vec<Group>,
    /// The largest difference of mean errors between groups, with an interval that holds for all pairs
    /// together; unknown if a group's mean error is.
    pub mean_error_difference: Option<NoisyNumber>,
    /// The same without groups of too few records, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_error_difference_without_unknown: Option<NoisyNumber>,
    /// Groups of too few records for figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub too_few: Vec<Group>,
    /// What was taken off predictions by group, with `fairness = "mean-error"`; all other figures are those of
    /// predictions with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrections: Option<MeanErrorCorrections>,
}

impl NumberReport {
    pub(crate) fn of(sums: &[NoisyErrorSums], groups: &[Group], range: &NumberLabel) -> Result<Self> {
        let width = range.high - range.low;
        let found = NoisyErrors::of(sums, CONFIDENCE)?;
        // One group is all records.
        let has_groups = groups.len() > 1;
        let in_units = |figure: NoisyNumber| figure.mapped(|share| share * width);
        let figures = groups.iter().zip(&found.groups);
        Ok(Self {
            range: [range.low, range.high],
            overall: NumberFigures::of(Group::all(), found.overall, width),
            groups: figures.map(|(group, figures)| NumberFigures::of(group.clone(), *figures, width)).collect(),
            cannot_be_told_from_the_largest_error: if has_groups { at(&found.largest, groups) } else { Vec::new() },
            mean_error_difference: has_groups.then(|| in_units(found.mean_error_difference)),
            mean_error_difference_without_unknown: found.known_difference.map(in_units),
            too_few: at(&found.unknown, groups),
            corrections: None,
        })
    }

    /// Sentences on what was taken off predictions, and its price.
    pub fn remarks(&self) -> Vec<String> {
        self.corrections.as_ref().map_or_else(Vec::new, |corrections| corrections.remarks(&self.overall))
    }

    /// A sentence on the groups that may be served worst; `None` without groups.
    pub fn largest_error(&self) -> Option<String> {
        let named = &self.cannot_be_told_from_the_largest_error;
        if named.is_empty() {
            return None;
        }
        Some(if named.len() == self.groups.len() {
            "mean absolute error: no group can be told from the largest".into()
        } else {
            format!("mean absolute error: cannot be told from the largest: {}", listed(named))
        })
    }

    /// A sentence on the largest difference of mean errors, numbers as `number` writes them; `None` without
    /// groups.
    pub fn difference(&self, number: impl Fn(NoisyNumber) -> String) -> Option<String> {
        let difference = self.mean_error_difference?;
        if self.too_few.is_empty() {
            return Some(number(difference));
        }
        let unknown = listed(&self.too_few);
        Some(match self.mean_error_difference_without_unknown {
            Some(known) => format!("unknown; without {unknown}: {}", number(known)),
            None => format!("unknown: too few records of {unknown}"),
        })
    }
}

/// A figure with its interval, in three digits beyond the point or in five digits in all; `unknown`.
pub fn figure_in_words(figure: NoisyNumber) -> String {
    let number = |end: Option<f64>| end.map_or_else(|| "?".to_owned(), digits);
    match figure.value {
        None => "unknown".into(),
        Some(value) => format!("{} [{}, {}]", digits(value), number(figure.low), number(figure.high)),
    }
}

/// A number with three digits beyond the point, and fewer of large ones.
pub(crate) fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 10_000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        size if size >= 0.1 || size == 0.0 => 3,
        _ => return format!("{value:.2e}"),
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_as_many_digits_as_they_mean() {
        let texts = [123_456.7, 1_234.56, 12.345, 0.5, 0.0, 0.000_123, -2.0].map(digits);
        assert_eq!(texts, ["123457", "1234.6", "12.35", "0.500", "0.000", "1.23e-4", "-2.000"]);
        let figure = NoisyNumber { value: Some(0.25), low: None, high: Some(0.5) };
        assert_eq!(figure_in_words(figure), "0.250 [?, 0.500]");
        assert_eq!(figure_in_words(NoisyNumber::unknown([None, Some(1.0)])), "unknown");
    }

    /// Labels 0 and 10, predictions 1 and 8.
    #[test]
    fn exact_figures_by_hand() {
        let mut answers = NumberAnswers::default();
        answers.push(0, 1.0, 0.0);
        answers.push(1, 8.0, 10.0);
        let all = answers.exact(|_| true);
        assert_eq!((all.records, all.r2, all.mean_error), (2, Some(0.9), Some(-0.5)));
        assert_eq!((all.mean_absolute_error, all.root_mean_squared_error), (Some(1.5), Some(2.5_f64.sqrt())));
        let one = answers.exact(|group| group == 1);
        assert_eq!((one.records, one.r2, one.mean_error), (1, None, Some(-2.0)));
        assert_eq!(answers.exact(|_| false).mean_error, None);
    }
}
