//! One metric over all records and by group.

use fair_metrics::{Distance, MetricFrame, Stratum};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A metric of every stratum (one, without control features) and of every group in it; `None` where
/// it is undefined.
#[pyclass(frozen, module = "fairdp._fairdp.metrics")]
pub(crate) struct Frame(pub(super) MetricFrame);

#[pymethods]
impl Frame {
    /// Figures of each stratum.
    fn overall(&self) -> Vec<Option<f64>> {
        self.of(|stratum| stratum.overall.value)
    }

    /// Figures of each group of each stratum, the last feature varying fastest.
    fn by_group(&self) -> Vec<Vec<Option<f64>>> {
        self.of(|stratum| stratum.by_group.iter().map(|group| group.measured.value).collect())
    }

    /// Records of each group of each stratum.
    fn n_records(&self) -> Vec<Vec<usize>> {
        self.of(|stratum| stratum.by_group.iter().map(|group| group.n_records).collect())
    }

    /// Least value over groups.
    fn group_min(&self) -> Vec<Option<f64>> {
        self.of(Stratum::group_min)
    }

    /// Greatest value over groups.
    fn group_max(&self) -> Vec<Option<f64>> {
        self.of(Stratum::group_max)
    }

    /// Greatest difference.
    fn difference(&self, method: &str) -> PyResult<Vec<Option<f64>>> {
        let distance = distance(method)?;
        Ok(self.of(|stratum| stratum.difference(distance)))
    }

    /// Least ratio.
    fn ratio(&self, method: &str) -> PyResult<Vec<Option<f64>>> {
        let distance = distance(method)?;
        Ok(self.of(|stratum| stratum.ratio(distance)))
    }
}

impl Frame {
    fn of<T>(&self, value: impl Fn(&Stratum) -> T) -> Vec<T> {
        self.0.strata().iter().map(value).collect()
    }
}

fn distance(method: &str) -> PyResult<Distance> {
    match method {
        "between_groups" => Ok(Distance::BetweenGroups),
        "to_overall" => Ok(Distance::ToOverall),
        _ => Err(PyValueError::new_err(format!("method = {method:?}: expected \"between_groups\" or \"to_overall\""))),
    }
}
