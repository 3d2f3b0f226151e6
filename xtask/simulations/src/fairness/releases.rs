//! One release: counts of drawn records with noise, and what is printed of them.

use fair_metrics::MetricError;
use fair_metrics::noisy::{Gap, NoisyCounts, NoisyFigures, Share, least_ratio};

use super::clamped;
use super::settings::LEVEL;
use super::settings::Setting;
use crate::draws::Draws;

/// How figures are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// As everywhere in this project.
    Printed,
    /// With a planted fault: ends of recalls are clamped, then added in quadrature, and the group of
    /// the lowest estimate is named where another one is better.
    Clamped,
}

/// What is printed of one release.
pub(super) struct Release {
    pub(super) figures: NoisyFigures,
    /// Of selection rates.
    pub(super) ratio: Gap,
}

impl Release {
    pub(super) fn draw(setting: &Setting, method: Method, draws: &mut Draws<'_>) -> Result<Self, MetricError> {
        let n_groups = setting.groups.len();
        let mut values = Vec::with_capacity(4 * n_groups);
        for group in &setting.groups {
            let positive = draws.binomial_of_many(group.records, group.base_rate);
            let negative = group.records - positive;
            let hits = draws.binomial_of_many(positive, group.true_positive_rate);
            let alarms = draws.binomial_of_many(negative, group.false_positive_rate);
            for count in [negative - alarms, alarms, positive - hits, hits] {
                let noise = if setting.noise_std > 0.0 { setting.noise_std * draws.normal() } else { 0.0 };
                values.push((count as f64 + noise).round());
            }
        }
        let counts = NoisyCounts::new(values, n_groups, 2, setting.noise_std)?;
        let mut figures = NoisyFigures::of(&counts, LEVEL)?;
        if method == Method::Clamped {
            clamped::replace(&counts, &mut figures);
        }
        let selected =
            |group: usize| -> Vec<Share> { vec![counts.share(&[group], |_, _| true, |_, answer| answer == 1)] };
        let shares: Vec<Vec<Share>> = (0..n_groups).map(selected).collect();
        Ok(Self { figures, ratio: least_ratio(&shares, LEVEL) })
    }
}
