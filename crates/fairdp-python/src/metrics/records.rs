//! Decisions on records with their groups: what every metric is computed from.

use fair_metrics::noisy::{Gap, NoisyRate};
use fair_metrics::{
    Attribute, BinaryRate, Decisions, EmptyClass, Labels, Measured, MetricError, MetricFrame, Predictions,
};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error as NoSuchName;

use super::frame::Frame;
use crate::errors;

/// A column of groups: its name, each record's position in the list of its levels, and how many
/// levels there are.
type Column<'py> = (String, PyReadonlyArray1<'py, i64>, usize);
/// An interval's ends.
type Ends = (f64, f64);
/// Ends of a comparison of groups, the number of unknown groups, and whether two are known.
type GapEnds = (Ends, usize, bool);
/// Ends of one stratum: overall, by group, difference, ratio.
type StratumEnds = (Ends, Vec<Ends>, GapEnds, GapEnds);

/// Whether each record is positive and was predicted so, its weight and its groups.
#[pyclass(frozen, module = "fairdp._fairdp.metrics")]
pub(crate) struct Records {
    labels: Vec<bool>,
    predictions: Vec<bool>,
    weights: Option<Vec<f64>>,
    attributes: Vec<Attribute>,
    controls: Vec<Attribute>,
    empty_class: EmptyClass,
}

#[pymethods]
impl Records {
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over")]
    #[pyo3(signature = (labels, predictions, weights, attributes, controls, zero_where_empty))]
    fn new(
        labels: PyReadonlyArray1<'_, bool>,
        predictions: PyReadonlyArray1<'_, bool>,
        weights: Option<PyReadonlyArray1<'_, f64>>,
        attributes: Vec<Column<'_>>,
        controls: Vec<Column<'_>>,
        zero_where_empty: bool,
    ) -> PyResult<Self> {
        let records = Self {
            labels: labels.as_array().to_vec(),
            predictions: predictions.as_array().to_vec(),
            weights: weights.map(|weights| weights.as_array().to_vec()),
            attributes: attributes.into_iter().map(attribute).collect::<PyResult<_>>()?,
            controls: controls.into_iter().map(attribute).collect::<PyResult<_>>()?,
            empty_class: if zero_where_empty { EmptyClass::Zero } else { EmptyClass::Undefined },
        };
        records.decisions().map_err(errors::metric_error)?;
        Ok(records)
    }

    /// A rate over all records; `None` where it is undefined.
    fn rate(&self, py: Python<'_>, name: &str) -> PyResult<Option<f64>> {
        let rate = rate(name)?;
        let rows: Vec<usize> = (0..self.labels.len()).collect();
        let measured = py.detach(|| self.metric(rate)?(&rows));
        Ok(measured.map_err(errors::metric_error)?.value)
    }

    /// A rate over all records and by group. Records without weight are in no group.
    fn frame(&self, py: Python<'_>, name: &str) -> PyResult<Frame> {
        let rate = rate(name)?;
        let rows: Vec<usize> = (0..self.labels.len()).filter(|row| self.has_weight(*row)).collect();
        let frame = || MetricFrame::on_rows(&rows, &self.attributes, &self.controls, self.metric(rate)?);
        py.detach(frame).map(Frame).map_err(errors::metric_error)
    }

    /// The numbers of records, with weight or without.
    fn counts(&self, py: Python<'_>) -> PyResult<Frame> {
        let count = |rows: &[usize]| Ok(Measured::new(rows.len(), Some(rows.len() as f64)));
        let frame = || MetricFrame::new(&self.attributes, &self.controls, count);
        py.detach(frame).map(Frame).map_err(errors::metric_error)
    }

    /// Intervals of a rate: one entry per stratum.
    fn intervals(&self, py: Python<'_>, name: &str, level: f64) -> PyResult<Vec<StratumEnds>> {
        let rate = rate(name)?;
        let intervals = || self.decisions()?.intervals(&self.attributes, &self.controls, rate, level);
        let strata = py.detach(intervals).map_err(errors::metric_error)?;
        let ends = |rate: NoisyRate| (rate.low, rate.high);
        let gap = |gap: &Gap| (ends(gap.all), gap.unknown.len(), gap.known.is_some());
        let strata = strata.into_iter().map(|stratum| {
            let by_group = stratum.by_group.into_iter().map(ends).collect();
            (ends(stratum.overall), by_group, gap(&stratum.difference), gap(&stratum.ratio))
        });
        Ok(strata.collect())
    }
}

impl Records {
    fn decisions(&self) -> Result<Decisions<'_, bool>, MetricError> {
        let decisions = Decisions::new(Labels(&self.labels), Predictions(&self.predictions), &true)?
            .with_empty_class(self.empty_class);
        match &self.weights {
            Some(weights) => decisions.with_weights(weights),
            None => Ok(decisions),
        }
    }

    fn has_weight(&self, row: usize) -> bool {
        self.weights.as_ref().is_none_or(|weights| weights.get(row) != Some(&0.0))
    }

    /// A rate of some rows. A group without a record, or of records without weight, has none,
    /// whatever an empty class has.
    fn metric(&self, rate: BinaryRate) -> Result<impl Fn(&[usize]) -> Result<Measured, MetricError> + '_, MetricError> {
        let decisions = self.decisions()?;
        Ok(move |rows: &[usize]| {
            if !rows.iter().any(|row| self.has_weight(*row)) {
                return Ok(Measured::new(rows.len(), None));
            }
            Ok(decisions.on_rows(rows.iter().copied(), rate))
        })
    }
}

/// A rate by its name.
fn rate(name: &str) -> PyResult<BinaryRate> {
    BinaryRate::deserialize(name.into_deserializer())
        .map_err(|error: NoSuchName| PyValueError::new_err(error.to_string()))
}

fn attribute((name, positions, n_levels): Column<'_>) -> PyResult<Attribute> {
    // A negative position is beyond every list.
    let positions: Vec<usize> =
        positions.as_array().iter().map(|&position| usize::try_from(position).unwrap_or(usize::MAX)).collect();
    Attribute::new(name, &positions, (0..n_levels).map(|level| level.to_string())).map_err(errors::metric_error)
}
