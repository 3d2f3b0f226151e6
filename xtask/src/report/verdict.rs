//! When a reproduced row agrees with the published one. This file is the one place where that is decided.
//!
//! A *cell* agrees if the difference of the means is within [`MAX_STANDARD_ERRORS`] combined standard errors plus the
//! rounding of the published mean, or within the [`tolerance`] of its metric and figure. A *row* (one method of one table) then
//! *agrees* if every cell does. Otherwise it has the *same ordering* if our means rank the method as the paper does against
//! every other method, in every column, wherever the paper's figures can be told apart; else it *differs*.
//! Synthetic data and quick runs get no verdict.

use std::fmt;

use fair_metrics::Estimate;

use super::metric::{Column, Metric};
use super::published::{Printed, PublishedCell, PublishedTable};

/// Differences of up to this many combined standard errors agree.
pub(crate) const MAX_STANDARD_ERRORS: f64 = 2.0;

/// No difference of more than this share of the published figure counts as none: gaps and costs are small figures, and an absolute
/// tolerance alone would call a cost of 0.1 points and one of 0.5 the same.
pub(crate) const MAX_RELATIVE: f64 = 0.1;

/// The difference below which a reader would call two figures the same, in the metric's own unit: half a percentage point
/// for shares of records, 0.02 for losses (natural logarithm) and gradient norms; and no more than [`MAX_RELATIVE`] of the published figure.
pub(crate) fn tolerance(metric: Metric, published: f64) -> f64 {
    absolute_tolerance(metric).min(MAX_RELATIVE * published.abs())
}

/// The part of the [`tolerance`] that does not depend on the figure.
pub(crate) fn absolute_tolerance(metric: Metric) -> f64 {
    if metric.is_rate() { 0.005 } else { 0.02 }
}

/// Our figure against the published one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Comparison {
    /// Ours minus theirs, in the column's unit.
    pub(crate) difference: f64,
    /// The same in combined standard errors; `None` if that error is zero.
    pub(crate) standard_errors: Option<f64>,
    /// Whether it agrees, and by which rule.
    pub(crate) agreement: Agreement,
}

/// Whether one figure agrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agreement {
    /// Within the standard errors.
    WithinErrors,
    /// Outside the standard errors, within the metric's tolerance.
    WithinTolerance,
    /// Neither.
    Outside,
}

/// Compares one figure. `None` if ours is undefined or comes from fewer than two seeds, or if the paper's has no defined unit.
///
/// The combined standard error is `√(ours² + theirs²)`. Where the paper prints none, ours stands alone; where it prints
/// zero, half a unit of the last printed digit is used.
pub(crate) fn compare(ours: &Estimate, published: &PublishedCell) -> Option<Comparison> {
    let (mean, error) = (ours.mean?, ours.standard_error?);
    if published.column.order_only {
        return None;
    }
    let difference = mean - published.value.value;
    let combined = error.hypot(published.standard_error.map_or(0.0, uncertainty));
    let standard_errors = (combined > 0.0).then(|| difference / combined);
    let column = &published.column;
    let scale = if column.percent { 100.0 } else { 1.0 };
    let agreement = if difference.abs() <= MAX_STANDARD_ERRORS * combined + published.value.half_unit() {
        Agreement::WithinErrors
    } else if difference.abs() <= tolerance(column.metric, published.value.value / scale) * scale {
        Agreement::WithinTolerance
    } else {
        Agreement::Outside
    };
    Some(Comparison { difference, standard_errors, agreement })
}

/// A printed standard error; rounding stands in for one that is printed as zero.
fn uncertainty(printed: Printed) -> f64 {
    if printed.value > 0.0 { printed.value } else { printed.half_unit() }
}

/// How one method's row compares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Every cell agrees.
    Agrees,
    /// Ranked as in the paper in every column.
    SameOrdering,
    /// Neither.
    Differs,
    /// No verdict, and why.
    None(&'static str),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agrees => f.write_str("agrees"),
            Self::SameOrdering => f.write_str("same ordering"),
            Self::Differs => f.write_str("differs"),
            Self::None(reason) => write!(f, "no verdict: {reason}"),
        }
    }
}

/// The verdict on one method's row, given every estimate of ours in the table.
///
/// `ours(method, column)` is `None` for a method that was not run.
pub(crate) fn judge(table: &PublishedTable, method: &str, ours: &dyn Fn(&str, &Column) -> Option<Estimate>) -> Verdict {
    let cells: Vec<&PublishedCell> = table.row(method).collect();
    let Some(estimates) = cells.iter().map(|cell| ours(method, &cell.column)).collect::<Option<Vec<Estimate>>>() else {
        return Verdict::None("not run");
    };
    if estimates.iter().any(|estimate| estimate.mean.is_none()) {
        return Verdict::None("a figure is undefined");
    }
    if estimates.iter().any(|estimate| estimate.standard_error.is_none()) {
        return Verdict::None("fewer than two seeds");
    }
    let agrees = |(cell, estimate): (&&PublishedCell, &Estimate)| {
        compare(estimate, cell).is_some_and(|comparison| comparison.agreement != Agreement::Outside)
    };
    if cells.iter().zip(&estimates).all(agrees) {
        return Verdict::Agrees;
    }
    let mut n_ordered = 0;
    for (cell, mine) in cells.iter().zip(&estimates) {
        for other in table.cells.iter().filter(|other| other.column == cell.column && other.method != method) {
            let Some(theirs) = ours(&other.method, &cell.column) else { continue };
            let (Some(mean), Some(their_mean)) = (mine.mean, theirs.mean) else { continue };
            if !distinguishable((cell, mine), (other, &theirs)) {
                continue;
            }
            n_ordered += 1;
            let expected = cell.value.value.total_cmp(&other.value.value);
            if mean.total_cmp(&their_mean) != expected {
                return Verdict::Differs;
            }
        }
    }
    if n_ordered > 0 { Verdict::SameOrdering } else { Verdict::Differs }
}

/// Whether the paper tells two figures of a column apart: further apart than their rounding plus [`MAX_STANDARD_ERRORS`]
/// combined standard errors, the paper's or, where it prints none, ours in their stead.
fn distinguishable(a: (&PublishedCell, &Estimate), b: (&PublishedCell, &Estimate)) -> bool {
    let rounding = a.0.value.half_unit() + b.0.value.half_unit();
    let error = |(cell, ours): (&PublishedCell, &Estimate)| {
        cell.standard_error.map(uncertainty).or(ours.standard_error).unwrap_or(0.0)
    };
    // The slack keeps a difference of exactly the rounding from passing by a rounding error of ours.
    let slack = 1e-9;
    (a.0.value.value - b.0.value.value).abs() > MAX_STANDARD_ERRORS * error(a).hypot(error(b)) + rounding + slack
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three methods with the standard errors of the second line, one column.
    const TABLE: &str = "# citation: A\n# data: B\nmethod\tgroup\tmetric\tvalue\tstandard_error\n\
        a\tmale\tloss\t0.40\t0.03\nb\tmale\tloss\t0.80\t0.00\nc\tmale\tloss\t0.81\t0.01\n";

    fn ours(mean: f64, error: f64) -> Estimate {
        Estimate { mean: Some(mean), standard_error: Some(error), n: 5, n_undefined: 0 }
    }

    fn comparison(method: &str, mean: f64, error: f64) -> Comparison {
        let table = PublishedTable::parse(TABLE).unwrap();
        compare(&ours(mean, error), table.row(method).next().unwrap()).unwrap()
    }

    fn verdict(means: [Option<f64>; 3], method: &str) -> Verdict {
        let table = PublishedTable::parse(TABLE).unwrap();
        judge(&table, method, &|name, _| {
            let index = ["a", "b", "c"].iter().position(|candidate| *candidate == name)?;
            means[index].map(|mean| ours(mean, 0.0))
        })
    }

    #[test]
    fn errors_combine_in_quadrature() {
        // √(0.04² + 0.03²) = 0.05: a difference of 0.1 is 2 standard errors, and rounding adds half of 0.01.
        let at = |mean| comparison("a", mean, 0.04);
        assert!((at(0.5).standard_errors.unwrap() - 2.0).abs() < 1e-9);
        assert_eq!(at(0.5049).agreement, Agreement::WithinErrors);
        assert_eq!(at(0.5051).agreement, Agreement::Outside);
    }

    #[test]
    fn an_error_printed_as_zero_counts_as_its_rounding() {
        // Half a unit of 0.00 is 0.005: 2 × 0.005 + 0.005 = 0.015, and the tolerance for losses is 0.02.
        assert!((comparison("b", 0.81, 0.0).standard_errors.unwrap() - 2.0).abs() < 1e-9);
        assert_eq!(comparison("b", 0.8149, 0.0).agreement, Agreement::WithinErrors);
        assert_eq!(comparison("b", 0.8199, 0.0).agreement, Agreement::WithinTolerance);
        assert_eq!(comparison("b", 0.8201, 0.0).agreement, Agreement::Outside);
    }

    #[test]
    fn a_small_figure_has_a_small_tolerance() {
        assert!((tolerance(Metric::Loss, 0.4) - 0.02).abs() < 1e-12);
        assert!((tolerance(Metric::Loss, 0.05) - 0.005).abs() < 1e-12);
        assert!((tolerance(Metric::Accuracy, 0.8) - 0.005).abs() < 1e-12);
        assert!((tolerance(Metric::PrivacyCost, -0.002) - 0.0002).abs() < 1e-12);
    }

    #[test]
    fn rows() {
        assert_eq!(verdict([Some(0.40), Some(0.80), Some(0.81)], "a"), Verdict::Agrees);
        // Far off, but still below b and c, as in the paper.
        assert_eq!(verdict([Some(0.60), Some(0.80), Some(0.81)], "a"), Verdict::SameOrdering);
        assert_eq!(verdict([Some(0.90), Some(0.80), Some(0.81)], "a"), Verdict::Differs);
        // The paper cannot tell b from c (0.01 apart): swapping them is no difference in order.
        assert_eq!(verdict([Some(0.40), Some(0.90), Some(0.81)], "b"), Verdict::SameOrdering);
        // An equal mean is not the paper's order.
        assert_eq!(verdict([Some(0.90), Some(0.90), Some(0.81)], "b"), Verdict::Differs);
        // Nothing else was run: there is no order to agree with.
        assert_eq!(verdict([Some(0.60), None, None], "a"), Verdict::Differs);
        assert_eq!(verdict([None, Some(0.80), None], "a"), Verdict::None("not run"));
    }

    #[test]
    fn without_printed_errors_ours_decide_what_the_paper_can_tell_apart() {
        let table =
            PublishedTable::parse(&TABLE.replace("0.03\n", "-\n").replace("0.00\n", "-\n").replace("0.01\n", "-\n"));
        let table = table.unwrap();
        // b and c are 0.01 apart and both of ours are 0.9: with errors of 0.1 that is no order, without errors and with the
        // figures 0.05 apart it would be one.
        let with_error =
            |error: f64| judge(&table, "b", &move |name, _| Some(ours(if name == "a" { 0.4 } else { 1.2 }, error)));
        assert_eq!(with_error(0.1), Verdict::SameOrdering);
        let wide =
            PublishedTable::parse(&TABLE.replace("0.81\t0.01", "0.95\t-").replace("0.80\t0.00", "0.80\t-")).unwrap();
        let tied = judge(&wide, "b", &|name, _| Some(ours(if name == "a" { 0.4 } else { 1.2 }, 0.01)));
        assert_eq!(tied, Verdict::Differs);
    }

    #[test]
    fn one_seed_or_an_undefined_figure_gets_no_verdict() {
        let table = PublishedTable::parse(TABLE).unwrap();
        let one = |estimate: Estimate| judge(&table, "a", &move |_, _| Some(estimate));
        let full = ours(0.4, 0.1);
        assert_eq!(one(Estimate { standard_error: None, n: 1, ..full }), Verdict::None("fewer than two seeds"));
        assert_eq!(
            one(Estimate { mean: None, standard_error: None, n: 0, ..full }),
            Verdict::None("a figure is undefined")
        );
    }
}
