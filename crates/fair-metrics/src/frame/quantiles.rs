//! Quantiles of a frame over resamples, as Fairlearn's `MetricFrame` gives them.

use rand::Rng;

use super::attribute::Attribute;
use super::metric_frame::{Distance, MetricFrame, Stratum};
use crate::{Measured, MetricError};

/// One quantile of everything in a stratum, over resamples; undefined where a resample's statistic
/// was.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StratumQuantiles {
    /// Which quantile, in [0, 1].
    pub quantile: f64,
    /// Quantiles of the overall value.
    pub overall: Option<f64>,
    /// Quantiles of each group's value, in the frame's order.
    pub by_group: Vec<Option<f64>>,
    /// Quantiles of the least and the greatest value over groups.
    pub group_min: Option<f64>,
    /// See [`group_min`](Self::group_min).
    pub group_max: Option<f64>,
    /// Quantiles of the greatest difference between two groups.
    pub difference: Option<f64>,
    /// Quantiles of the least ratio between two groups.
    pub ratio: Option<f64>,
}

/// For each stratum of the frame that [`MetricFrame::new`] makes, its quantiles over bootstrap
/// resamples of the records.
///
/// Fairlearn's `ci_quantiles`, with `n_boot = n_resamples`: each quantile interpolates linearly
/// between order statistics, and a statistic that is undefined in some resample has none.
/// A quantile of the greatest difference is no bound on the true one: between two groups that are
/// alike every resample has some difference. [`Decisions::intervals`](crate::Decisions::intervals)
/// holds for differences, and at rates of 0 and 1.
///
/// # Errors
/// As [`MetricFrame::new`]; [`MetricError::InvalidParameter`] for a quantile outside [0, 1], and
/// [`MetricError::TooFew`] for no records or resamples.
pub fn frame_quantiles(
    attributes: &[Attribute],
    controls: &[Attribute],
    n_resamples: usize,
    quantiles: &[f64],
    rng: &mut impl Rng,
    metric: impl Fn(&[usize]) -> Result<Measured, MetricError>,
) -> Result<Vec<Vec<StratumQuantiles>>, MetricError> {
    if let Some(&value) = quantiles.iter().find(|quantile| !(0.0..=1.0).contains(*quantile)) {
        return Err(MetricError::invalid("quantiles", value, "a number in [0, 1]"));
    }
    if n_resamples == 0 {
        return Err(MetricError::TooFew { parameter: "n_resamples", length: 0, needed: 1 });
    }
    let frame = MetricFrame::new(attributes, controls, &metric)?;
    let n_records = attributes.first().map_or(0, |attribute| attribute.values().len());
    if n_records == 0 {
        return Err(MetricError::TooFew { parameter: "records", length: 0, needed: 1 });
    }
    let mut samples: Vec<Vec<Vec<Option<f64>>>> = vec![Vec::new(); frame.strata().len()];
    for _ in 0..n_resamples {
        let rows: Vec<usize> = (0..n_records).map(|_| rng.random_range(0..n_records)).collect();
        let resampled = MetricFrame::on_rows(&rows, attributes, controls, &metric)?;
        for (samples, stratum) in samples.iter_mut().zip(resampled.strata()) {
            samples.push(statistics(stratum));
        }
    }
    Ok(samples
        .iter()
        .map(|samples| quantiles.iter().map(|&quantile| at_quantile(samples, quantile)).collect())
        .collect())
}

/// Overall, least, greatest, difference, ratio, then the groups.
fn statistics(stratum: &Stratum) -> Vec<Option<f64>> {
    let summaries = [
        stratum.overall.value,
        stratum.group_min(),
        stratum.group_max(),
        stratum.difference(Distance::BetweenGroups),
        stratum.ratio(Distance::BetweenGroups),
    ];
    summaries.into_iter().chain(stratum.by_group.iter().map(|group| group.measured.value)).collect()
}

fn at_quantile(samples: &[Vec<Option<f64>>], quantile: f64) -> StratumQuantiles {
    let of = |index: usize| -> Option<f64> {
        let mut values: Vec<f64> = samples.iter().map(|sample| sample[index]).collect::<Option<_>>()?;
        values.sort_by(f64::total_cmp);
        let place = quantile * (values.len() - 1) as f64;
        let (below, part) = (place.floor() as usize, place.fract());
        let above = (below + 1).min(values.len() - 1);
        Some(values[below] + part * (values[above] - values[below]))
    };
    let n_statistics = samples.first().map_or(0, Vec::len);
    StratumQuantiles {
        quantile,
        overall: of(0),
        group_min: of(1),
        group_max: of(2),
        difference: of(3),
        ratio: of(4),
        by_group: (5..n_statistics).map(of).collect(),
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn quantiles_interpolate_as_numpy_does() {
        // numpy.quantile([1, 2, 4, 8], 0.3) = 1.9, and 0.5: 3.
        let samples: Vec<Vec<Option<f64>>> = [4.0, 1.0, 8.0, 2.0].map(|value| vec![Some(value); 6]).to_vec();
        assert!((at_quantile(&samples, 0.3).overall.unwrap() - 1.9).abs() < 1e-15);
        assert_eq!(at_quantile(&samples, 0.5).by_group, [Some(3.0)]);
        assert_eq!((at_quantile(&samples, 0.0).ratio, at_quantile(&samples, 1.0).ratio), (Some(1.0), Some(8.0)));
    }

    #[test]
    fn quantiles_of_a_frame_surround_its_values() {
        let values = [1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0];
        let groups = Attribute::new("group", &[0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1], ["a", "b", "empty"]).unwrap();
        let metric = |rows: &[usize]| Ok(Measured::mean(rows.iter().map(|row| values[*row]).sum(), rows.len()));
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let strata = frame_quantiles(&[groups], &[], 400, &[0.05, 0.95], &mut rng, metric).unwrap();
        let [quantiles] = &strata[..] else { panic!("one stratum") };
        let (low, high) = (&quantiles[0], &quantiles[1]);
        assert!(low.overall.unwrap() < 7.0 / 12.0 && high.overall.unwrap() > 7.0 / 12.0);
        assert!(low.by_group[0].unwrap() < 0.5 && high.by_group[1].unwrap() > 4.0 / 6.0);
        assert_eq!(low.by_group[2], None);
        let bad = frame_quantiles(&[], &[], 5, &[1.5], &mut rng, metric);
        insta::assert_snapshot!(bad.unwrap_err(), @"quantiles = 1.5: expected a number in [0, 1]");
    }
}
