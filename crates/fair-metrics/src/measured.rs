//! A metric together with the number of records behind it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A mean over records, or *undefined* when there is no record to average; never a 0 that stands
/// for "nothing".
///
/// # Example
/// ```
/// use fair_metrics::Measured;
///
/// assert_eq!(Measured::mean(3.0, 4).value, Some(0.75));
/// assert_eq!(Measured::mean(0.0, 0).to_string(), "undefined (n = 0)");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Measured {
    /// Records the value is computed from: the denominator of a rate.
    pub n: usize,
    /// The value; `None` when it is undefined.
    pub value: Option<f64>,
}

impl Measured {
    /// `sum / n`, undefined for `n = 0`.
    pub fn mean(sum: f64, n: usize) -> Self {
        Self { n, value: (n > 0).then(|| sum / n as f64) }
    }

    /// A value of `n` records; undefined without one.
    pub const fn new(n: usize, value: Option<f64>) -> Self {
        Self { n, value }
    }

    /// The values alone, as costs and gaps take them.
    ///
    /// ```
    /// use fair_metrics::{Measured, privacy_cost};
    ///
    /// let [plain, private] = [[9.0, 8.0], [6.0, 8.0]].map(|sums| sums.map(|sum| Measured::mean(sum, 10)));
    /// let cost = privacy_cost(&Measured::values(&plain), &Measured::values(&private))?;
    /// assert!((cost[0].unwrap() - 0.3).abs() < 1e-15 && cost[1] == Some(0.0));
    /// # Ok::<(), fair_metrics::MetricError>(())
    /// ```
    pub fn values(measured: &[Self]) -> Vec<Option<f64>> {
        measured.iter().map(|measured| measured.value).collect()
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value {
            Some(value) => {
                match f.precision() {
                    Some(precision) => write!(f, "{value:.precision$}")?,
                    None => write!(f, "{value}")?,
                }
                write!(f, " (n = {})", self.n)
            }
            None => write!(f, "undefined (n = {})", self.n),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_honours_the_precision() {
        assert_eq!(format!("{:.2}", Measured::mean(1.0, 3)), "0.33 (n = 3)");
    }
}
