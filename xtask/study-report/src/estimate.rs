//! Estimates as tables print them.

use fair_metrics::Estimate;
use fair_report::number::fixed;

/// `12.3 ± 0.4`, `12.3` without a standard error, `undefined` without a mean.
pub(crate) fn mean_and_error(estimate: &Estimate, decimals: usize) -> String {
    match (estimate.mean, estimate.standard_error) {
        (Some(mean), Some(error)) => format!("{} ± {error:.decimals$}", fixed(mean, decimals)),
        (Some(mean), None) => fixed(mean, decimals),
        (None, _) => format!("undefined (n = {})", estimate.n),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates() {
        let full = Estimate { mean: Some(-1.25), standard_error: Some(0.5), n: 2, n_undefined: 0 };
        assert_eq!(mean_and_error(&full, 2), "−1.25 ± 0.50");
        assert_eq!(mean_and_error(&Estimate { standard_error: None, ..full }, 0), "−1");
        assert_eq!(mean_and_error(&Estimate { mean: None, n: 0, ..full }, 2), "undefined (n = 0)");
    }
}
