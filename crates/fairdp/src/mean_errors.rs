//! Predictions of a number whose mean error in each group is taken off: from what was released of the test, at
//! no further ε.

use dp_table::{Group, NumberLabel};
use fair_metrics::noisy::{NoisyErrorSums, NoisyNumber};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::numbers::{NumberFigures, NumberReport, digits, figure_in_words};

/// Standard errors that an interval of 95 % reaches.
const REACH: f64 = 1.96;

/// What is taken off the predictions of a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MeanErrorCorrection {
    /// The group.
    pub group: Group,
    /// Taken off its predictions, in units of the label; 0 where nothing is.
    pub subtracted: f64,
    /// Why nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The figures of its predictions without the correction.
    pub before: NumberFigures,
}

/// The corrections of all groups, and the figures of all records without them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MeanErrorCorrections {
    /// Each group's.
    pub groups: Vec<MeanErrorCorrection>,
    /// The figures of all records without them.
    pub before: NumberFigures,
}

impl MeanErrorCorrections {
    /// Those that follow from a report of predictions without any.
    ///
    /// A mean error that cannot be told from 0 stays. Another is taken off but for the share that its error of
    /// sampling and noise has in its square (James and Stein 1961): so a mean error that is hardly told is hardly
    /// moved.
    pub(crate) fn of(before: &NumberReport) -> Self {
        let of = |figures: &NumberFigures| {
            let (subtracted, reason) = match shrunk(figures.mean_error) {
                Ok(subtracted) => (subtracted, None),
                Err(reason) => (0.0, Some(reason)),
            };
            MeanErrorCorrection { group: figures.group.clone(), subtracted, reason, before: figures.clone() }
        };
        Self { groups: before.groups.iter().map(of).collect(), before: before.overall.clone() }
    }

    /// What is taken off, group by group; none where nothing is.
    pub(crate) fn subtracted(&self) -> Vec<f64> {
        if self.groups.iter().all(|group| group.subtracted == 0.0) {
            return Vec::new();
        }
        self.groups.iter().map(|group| group.subtracted).collect()
    }

    /// The report of predictions with these corrections, from the same sums.
    pub(crate) fn report(self, sums: &[NoisyErrorSums], groups: &[Group], range: &NumberLabel) -> Result<NumberReport> {
        let width = range.high - range.low;
        let shares = self.groups.iter().map(|group| group.subtracted / width);
        let moved: Vec<NoisyErrorSums> = sums.iter().zip(shares).map(|(sums, share)| sums.less(share)).collect();
        let mut report = NumberReport::of(&moved, groups, range)?;
        let records = |group: &MeanErrorCorrection| group.before.records.max(0.0);
        let total: f64 = self.groups.iter().map(records).sum();
        let moved: f64 = self.groups.iter().map(|group| records(group) * group.subtracted.abs()).sum();
        widen(&mut report.overall.mean_absolute_error, moved / total.max(1.0));
        for (figures, correction) in report.groups.iter_mut().zip(&self.groups) {
            widen(&mut figures.mean_absolute_error, correction.subtracted.abs());
        }
        report.corrections = Some(self);
        Ok(report)
    }

    /// A sentence on every group, and one on the price.
    pub fn remarks(&self, after: &NumberFigures) -> Vec<String> {
        let of = |correction: &MeanErrorCorrection| {
            let MeanErrorCorrection { group, subtracted, reason, before } = correction;
            match reason {
                Some(reason) => format!("{group}: nothing is taken off: {reason}"),
                None => format!(
                    "{group}: {} is taken off, of a mean error of {}",
                    digits(*subtracted),
                    figure_in_words(before.mean_error)
                ),
            }
        };
        let price = format!(
            "without what is taken off: R² {}, mean absolute error {}; with it: R² {}, mean absolute error {}",
            figure_in_words(self.before.r2),
            figure_in_words(self.before.mean_absolute_error),
            figure_in_words(after.r2),
            figure_in_words(after.mean_absolute_error),
        );
        let price = (!self.subtracted().is_empty()).then_some(price);
        self.groups.iter().map(of).chain(price).collect()
    }
}

/// The part of a mean error that is taken off, or why none is.
fn shrunk(mean: NoisyNumber) -> std::result::Result<f64, String> {
    let NoisyNumber { value: Some(value), low: Some(low), high: Some(high) } = mean else {
        return Err("too few records to know its mean error".into());
    };
    if low <= 0.0 && high >= 0.0 {
        return Err(format!("its mean error, {}, cannot be told from 0", figure_in_words(mean)));
    }
    let error = 0.5 * (high - low) / REACH;
    Ok(value * (1.0 - (error / value).powi(2)).max(0.0))
}

/// A mean of magnitudes moves by what is taken off at most.
fn widen(figure: &mut NoisyNumber, by: f64) {
    if figure.value.is_some() {
        figure.low = figure.low.map(|low| (low - by).max(0.0));
        figure.high = figure.high.map(|high| high + by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A half-width of 1.96 is a standard error of 1: of a mean error of 4 a sixteenth stays.
    #[test]
    fn what_is_told_from_nothing_is_taken_off() {
        let mean = |value: f64, half: f64| NoisyNumber {
            value: Some(value),
            low: Some(value - half),
            high: Some(value + half),
        };
        assert_eq!(shrunk(mean(4.0, 1.96)), Ok(4.0 * 15.0 / 16.0));
        assert_eq!(shrunk(mean(-4.0, 1.96)), Ok(-4.0 * 15.0 / 16.0));
        let message = shrunk(mean(1.0, 1.96)).unwrap_err();
        assert_eq!(message, "its mean error, 1.000 [-0.960, 2.960], cannot be told from 0");
        assert!(shrunk(NoisyNumber::unknown([Some(-1.0), Some(1.0)])).unwrap_err().starts_with("too few records"));
    }
}
