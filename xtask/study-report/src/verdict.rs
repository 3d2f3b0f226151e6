//! When a reproduced row agrees with the published one. This file is the one place where that is
//! decided.
//!
//! A *figure* agrees if the interval of its difference from the printed one holds zero: both errors
//! combined, Student's quantiles, and the level of [`SIGNIFICANCE`] divided by the number of
//! figures of its row; or if the difference is within the [`tolerance`] of its metric. It is *too
//! wide* to say so if it agrees as well with most of the figures that the paper tells apart from
//! this one; or where it tells none apart, if half of the interval is wider than the figure (of
//! accuracies, than what is right or what is wrong).
//!
//! A *row* (one method of one table) *agrees* if every figure does, and is *too wide* if it would
//! agree but for figures that are. Otherwise it has the *same ordering* if our seeds show, each by
//! a test, that the method stands to every other method as in the paper, wherever the paper's
//! figures can be told apart; else it *differs*. Synthetic data and quick runs get no verdict.

use std::fmt;

use fair_metrics::{Compared, Estimate};

use super::metric::{Column, Metric, Subject};
use super::published::{PublishedCell, PublishedTable};
use super::statistics::{PublishedDifference, SIGNIFICANCE};

/// No difference of more than this share of the published figure counts as none: gaps and costs are
/// small figures, and an absolute tolerance alone would call a cost of 0.1 points and one of 0.5
/// the same.
pub const MAX_RELATIVE: f64 = 0.1;

/// The difference below which a reader would call two figures the same, in the metric's own unit:
/// half a percentage point for shares of records, 0.02 for losses (natural logarithm) and gradient
/// norms; and no more than [`MAX_RELATIVE`] of the published figure.
pub fn tolerance(metric: Metric, published: f64) -> f64 {
    absolute_tolerance(metric).min(MAX_RELATIVE * published.abs())
}

/// The part of the [`tolerance`] that does not depend on the figure.
pub fn absolute_tolerance(metric: Metric) -> f64 {
    if metric.is_rate() { 0.005 } else { 0.02 }
}

/// How large a figure is, as what an interval must not be wider than: of shares of right answers
/// also how far they are from all.
fn size(metric: Metric, published: f64) -> f64 {
    let size = match metric {
        Metric::Accuracy | Metric::MacroAccuracy | Metric::WorstClassAccuracy | Metric::F1 => {
            published.abs().min(1.0 - published)
        }
        _ => published.abs(),
    };
    size.max(absolute_tolerance(metric))
}

/// What our seeds give.
pub trait Ours {
    /// The figure of a method, as a fraction or a mean per record; `None` if it was not run.
    fn figure(&self, method: &str, column: &Column) -> Option<Estimate>;

    /// The method's figure as the smaller one, the other's as the larger; `None` if they share no
    /// seed.
    fn compare(&self, method: &str, other: &str, column: &Column) -> Option<Compared>;
}

/// Our figure against the published one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// Ours minus theirs, as a fraction or a mean per record.
    pub difference: f64,
    /// The same in combined standard errors; `None` if that error is zero.
    pub standard_errors: Option<f64>,
    /// Whether it agrees, and by which rule.
    pub agreement: Agreement,
}

/// Whether one figure agrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agreement {
    /// The interval of the difference holds zero.
    WithinErrors,
    /// It does not; the difference is within the metric's tolerance.
    WithinTolerance,
    /// It does, and would whatever we found: see the module.
    TooWide,
    /// Neither.
    Outside,
}

/// Compares one figure. `None` if ours is undefined or comes from fewer than three seeds, or if the
/// paper's has no defined unit.
///
/// # Errors
/// If the published figure is impossible.
pub fn compare(table: &PublishedTable, cell: &PublishedCell, ours: &Estimate) -> anyhow::Result<Option<Comparison>> {
    if cell.column.order_only || ours.n < LEAST_SEEDS {
        return Ok(None);
    }
    let published = cell.figure(table.runs);
    let Some(difference) = PublishedDifference::new(ours, &published)? else { return Ok(None) };
    let significance = SIGNIFICANCE / n_comparable(table, &cell.method) as f64;
    let agreement = if difference.agrees(significance)? {
        let half_width = difference.half_width(significance)?;
        let says_nothing = agrees_with_most(table, cell, ours, significance)?
            .unwrap_or(half_width > size(cell.column.metric, published.value));
        if says_nothing { Agreement::TooWide } else { Agreement::WithinErrors }
    } else if difference.difference.abs() <= tolerance(cell.column.metric, published.value) {
        Agreement::WithinTolerance
    } else {
        Agreement::Outside
    };
    let errors = difference.standard_error;
    let standard_errors = (errors > 0.0).then(|| difference.difference / errors);
    Ok(Some(Comparison { difference: difference.difference, standard_errors, agreement }))
}

/// Figures of a row that can be compared: the row may be told from the paper's by any of them.
fn n_comparable(table: &PublishedTable, method: &str) -> usize {
    table.row(method).filter(|cell| !cell.column.order_only).count().max(1)
}

/// Whether an interval this wide agrees as well with most of the figures that the paper tells apart
/// from this one: agreeing then says nothing. `None` if it tells none apart.
fn agrees_with_most(
    table: &PublishedTable,
    cell: &PublishedCell,
    ours: &Estimate,
    significance: f64,
) -> anyhow::Result<Option<bool>> {
    let (mut n_agreeing, mut n_others) = (0, 0);
    for other in table.cells.iter().filter(|other| other.column == cell.column && other.method != cell.method) {
        if distinguishable(table, (cell, ours), (other, ours)) {
            let difference = PublishedDifference::new(ours, &other.figure(table.runs))?;
            n_agreeing += usize::from(difference.map_or(Ok(false), |difference| difference.agrees(significance))?);
            n_others += 1;
        }
    }
    Ok((n_others > 0).then_some(2 * n_agreeing > n_others))
}

/// How one method's row compares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Every figure agrees.
    Agrees,
    /// Every figure agrees or is too uncertain to say so, and one is.
    TooWide,
    /// Shown to stand to the others as in the paper, by this many facts.
    SameOrdering(usize),
    /// Neither.
    Differs,
    /// No verdict, and why.
    None(&'static str),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agrees => f.write_str("agrees"),
            Self::TooWide => f.write_str("too wide to tell"),
            Self::SameOrdering(1) => f.write_str("same ordering (1 fact)"),
            Self::SameOrdering(n) => write!(f, "same ordering ({n} facts)"),
            Self::Differs => f.write_str("differs"),
            Self::None(reason) => write!(f, "no verdict: {reason}"),
        }
    }
}

/// Seeds that a verdict takes: with two, Student's quantile at one degree of freedom lets nearly any
/// two figures agree.
const LEAST_SEEDS: usize = 3;

/// The verdict on one method's row.
///
/// # Errors
/// If a published figure is impossible.
pub fn judge(table: &PublishedTable, method: &str, ours: &dyn Ours) -> anyhow::Result<Verdict> {
    let cells: Vec<&PublishedCell> = table.row(method).collect();
    let estimates: Option<Vec<Estimate>> = cells.iter().map(|cell| ours.figure(method, &cell.column)).collect();
    let Some(estimates) = estimates else { return Ok(Verdict::None("not run")) };
    if estimates.iter().any(|estimate| estimate.mean.is_none()) {
        return Ok(Verdict::None("a figure is undefined"));
    }
    if estimates.iter().any(|estimate| estimate.n < LEAST_SEEDS) {
        return Ok(Verdict::None("fewer than three seeds"));
    }
    let agreements = cells
        .iter()
        .zip(&estimates)
        .map(|(cell, estimate)| Ok(compare(table, cell, estimate)?.map(|comparison| comparison.agreement)))
        .collect::<anyhow::Result<Vec<Option<Agreement>>>>()?;
    let is_outside = |agreement: &Option<Agreement>| matches!(agreement, None | Some(Agreement::Outside));
    if !agreements.iter().any(is_outside) {
        let too_wide = agreements.contains(&Some(Agreement::TooWide));
        return Ok(if too_wide { Verdict::TooWide } else { Verdict::Agrees });
    }
    Ok(match facts(table, method, &cells, ours) {
        Some(facts) if facts > 0 => Verdict::SameOrdering(facts),
        _ => Verdict::Differs,
    })
}

/// How many facts show that the method stands to the others as in the paper; `None` if one is not
/// shown.
///
/// Every fact has to be significant on its own, which needs no correction. Accuracy, its change and
/// the privacy cost of a group order methods by one fact, and so do loss and excessive risk, and
/// two methods with the same results: each counts once.
fn facts(table: &PublishedTable, method: &str, cells: &[&PublishedCell], ours: &dyn Ours) -> Option<usize> {
    let mut facts: Vec<(Fact<'_>, &str)> = Vec::new();
    for cell in cells {
        for other in table.cells.iter().filter(|other| other.column == cell.column && other.method != method) {
            let Some(compared) = ours.compare(method, &other.method, &cell.column) else { continue };
            let is_smaller = cell.value.value < other.value.value;
            let (mine, theirs) = (ours.figure(method, &cell.column)?, ours.figure(&other.method, &cell.column)?);
            if !distinguishable(table, (cell, &mine), (other, &theirs)) {
                continue;
            }
            let p = if is_smaller { compared.p_smaller } else { compared.p_larger };
            if p > SIGNIFICANCE {
                return None;
            }
            let fact = Fact::of(&cell.column);
            let is_known = |(known, method): &(Fact<'_>, &str)| {
                *known == fact && (*method == other.method || is_same(ours, method, &other.method, &cell.column))
            };
            if !facts.iter().any(is_known) {
                facts.push((fact, &other.method));
            }
        }
    }
    Some(facts.len())
}

/// What orders methods in a column.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Fact<'a> {
    metric: Metric,
    subject: &'a Subject,
}

impl<'a> Fact<'a> {
    fn of(column: &'a Column) -> Self {
        let metric = match column.metric {
            // Differences from one reference.
            Metric::AccuracyChange | Metric::PrivacyCost => Metric::Accuracy,
            Metric::ExcessiveRisk => Metric::Loss,
            metric => metric,
        };
        Self { metric, subject: &column.subject }
    }
}

/// Whether two methods have the same figure for every seed.
fn is_same(ours: &dyn Ours, a: &str, b: &str, column: &Column) -> bool {
    let same = |compared: Compared| {
        compared.difference.mean == Some(0.0) && compared.difference.standard_error.unwrap_or(0.0) == 0.0
    };
    ours.compare(a, b, column).is_some_and(same)
}

/// Whether the paper tells two figures of a column apart: further apart than their rounding plus
/// the half-width of the interval of their difference, from the paper's errors or, where it prints
/// none, from the spread of ours in their stead.
///
/// In a column without a defined unit our spread is taken relative to our figure.
fn distinguishable(table: &PublishedTable, a: (&PublishedCell, &Estimate), b: (&PublishedCell, &Estimate)) -> bool {
    let (one, other) = (a.0.figure(table.runs), b.0.figure(table.runs));
    let error = |(cell, ours): (&PublishedCell, &Estimate), published: f64, printed: Option<f64>| {
        printed.unwrap_or_else(|| {
            let spread = ours.standard_error.unwrap_or(0.0) * (ours.n as f64 / table.runs as f64).sqrt();
            match ours.mean {
                Some(mean) if cell.column.order_only && mean != 0.0 => spread * (published / mean).abs(),
                _ => spread,
            }
        })
    };
    let error = error(a, one.value, one.standard_error).hypot(error(b, other.value, other.standard_error));
    let n = if one.standard_error.is_some() { table.runs } else { a.1.n.min(b.1.n) };
    let printed = PublishedDifference {
        difference: one.value - other.value,
        standard_error: error,
        degrees_of_freedom: n.saturating_sub(1).max(1) as f64,
        // The slack keeps a difference of exactly the rounding from passing by a rounding error of
        // ours.
        rounding: one.rounding + other.rounding + 1e-9,
    };
    printed.agrees(SIGNIFICANCE).is_ok_and(|agrees| !agrees)
}

#[cfg(test)]
mod tests {
    use fair_metrics::SeedValues;

    use super::*;

    /// Three methods with the standard errors of the second line over 101 seeds (quantiles near
    /// those of the normal distribution), one column.
    const TABLE: &str = "# citation: A\n# data: B\n# spread: over 101 seeds\nmethod\tgroup\tmetric\tvalue\tstandard_error\n\
        a\tmale\tloss\t0.40\t0.03\nb\tmale\tloss\t0.80\t0.00\nc\tmale\tloss\t0.81\t0.01\n";

    fn table() -> PublishedTable {
        PublishedTable::parse(TABLE).unwrap()
    }

    /// Methods a, b and c by their seeds.
    struct Seeds([Option<Vec<f64>>; 3]);

    impl Seeds {
        fn values(&self, method: &str) -> Option<SeedValues> {
            let index = ["a", "b", "c"].iter().position(|candidate| *candidate == method)?;
            Some(SeedValues::plain(self.0[index].as_ref()?).unwrap())
        }
    }

    impl Ours for Seeds {
        fn figure(&self, method: &str, _: &Column) -> Option<Estimate> {
            Some(self.values(method)?.estimate().unwrap())
        }

        fn compare(&self, method: &str, other: &str, _: &Column) -> Option<Compared> {
            Some(fair_metrics::compare(&self.values(method)?, &self.values(other)?).unwrap())
        }
    }

    /// Ten seeds around a mean, with standard error `spread/√9.5`-ish; the same pattern for all.
    fn seeds(mean: f64, spread: f64) -> Vec<f64> {
        (0..10).map(|seed| mean + spread * (f64::from(seed) - 4.5) / 4.5).collect()
    }

    fn verdict(means: [Option<f64>; 3], method: &str) -> Verdict {
        let ours = Seeds(means.map(|mean| mean.map(|mean| seeds(mean, 1e-4))));
        judge(&table(), method, &ours).unwrap()
    }

    fn comparison(method: &str, mean: f64, error: f64) -> Comparison {
        let table = table();
        let ours = Estimate { mean: Some(mean), standard_error: Some(error), n: 1001, n_undefined: 0 };
        compare(&table, table.row(method).next().unwrap(), &ours).unwrap().unwrap()
    }

    /// √(0.04² + 0.03²) = 0.05. At 586 degrees of freedom (Welch) t is 1.964, and rounding adds
    /// half of 0.01.
    #[test]
    fn errors_combine_in_quadrature() {
        let at = |mean| comparison("a", mean, 0.04);
        assert!((at(0.5).standard_errors.unwrap() - 2.0).abs() < 1e-9);
        assert_eq!(at(0.503).agreement, Agreement::WithinErrors);
        assert_eq!(at(0.504).agreement, Agreement::Outside);
    }

    /// Half a unit of 0.00 is 0.005: 1.984 × 0.005 + 0.005 = 0.0149, and the tolerance for losses
    /// is 0.02.
    #[test]
    fn an_error_printed_as_zero_counts_as_its_rounding() {
        assert!((comparison("b", 0.81, 0.0).standard_errors.unwrap() - 2.0).abs() < 1e-9);
        assert_eq!(comparison("b", 0.8148, 0.0).agreement, Agreement::WithinErrors);
        assert_eq!(comparison("b", 0.8199, 0.0).agreement, Agreement::WithinTolerance);
        assert_eq!(comparison("b", 0.8201, 0.0).agreement, Agreement::Outside);
    }

    /// 0.6 ± 0.3 is as near to 0.40 as to 0.80 and 0.81, which the paper tells apart from it.
    #[test]
    fn an_interval_that_agrees_with_the_others_too_says_nothing() {
        assert_eq!(comparison("a", 0.6, 0.3).agreement, Agreement::TooWide);
        assert_eq!(comparison("a", 0.45, 0.1).agreement, Agreement::WithinErrors);
        assert_eq!(comparison("a", 1.6, 0.3).agreement, Agreement::Outside);
        let ours = Seeds([seeds(0.6, 1.5), seeds(0.8, 1e-4), seeds(0.81, 1e-4)].map(Some));
        assert_eq!(judge(&table(), "a", &ours).unwrap(), Verdict::TooWide);
    }

    /// Ten seeds of ours with a standard deviation of 0.01 and a paper that prints no error: one
    /// more seed lies within 2.262 × 0.01 × √1.1 + 0.005 of the mean in 95 % of cases.
    #[test]
    fn a_figure_without_an_error_is_one_more_seed() {
        let table = PublishedTable::parse(
            "# citation: A\n# data: B\nmethod\tgroup\tmetric\tvalue\tstandard_error\na\tmale\tloss\t0.40\t-\nb\tmale\tloss\t0.80\t-\n",
        )
        .unwrap();
        let at = |mean| {
            let ours =
                Estimate { mean: Some(mean), standard_error: Some(0.01 / 10.0_f64.sqrt()), n: 10, n_undefined: 0 };
            compare(&table, &table.cells[0], &ours).unwrap().unwrap().agreement
        };
        assert_eq!(at(0.4286), Agreement::WithinErrors);
        assert_eq!(at(0.4290), Agreement::Outside);
    }

    /// The more our seeds vary, the less agreeing says.
    #[test]
    fn without_printed_errors_seeds_that_vary_much_say_nothing() {
        let table = |values: [&str; 3]| {
            let [a, b, c] = values;
            let rows = format!("a\tmale\tloss\t{a}\t-\nb\tmale\tloss\t{b}\t-\nc\tmale\tloss\t{c}\t-\n");
            let header = "# citation: A\n# data: B\nmethod\tgroup\tmetric\tvalue\tstandard_error\n";
            PublishedTable::parse(&format!("{header}{rows}")).unwrap()
        };
        let at = |values: [&str; 3], deviation: f64| {
            let error = Some(deviation / 10.0_f64.sqrt());
            let ours = Estimate { mean: Some(0.41), standard_error: error, n: 10, n_undefined: 0 };
            let table = table(values);
            compare(&table, &table.cells[0], &ours).unwrap().unwrap().agreement
        };
        assert_eq!(at(["0.40", "0.80", "0.90"], 0.02), Agreement::WithinErrors);
        assert_eq!(at(["0.40", "0.80", "0.90"], 0.1), Agreement::WithinErrors);
        assert_eq!(at(["0.40", "0.80", "0.90"], 0.4), Agreement::TooWide);
        assert_eq!(at(["0.40", "0.80", "0.90"], 4.0), Agreement::TooWide);
        // Nothing in the paper stands apart from it.
        assert_eq!(at(["0.40", "0.41", "0.39"], 0.02), Agreement::WithinErrors);
        assert_eq!(at(["0.40", "0.41", "0.39"], 0.1), Agreement::WithinErrors);
        assert_eq!(at(["0.40", "0.41", "0.39"], 0.2), Agreement::TooWide);
        assert!((size(Metric::Accuracy, 0.97) - 0.03).abs() < 1e-12 && size(Metric::PrivacyCost, 0.001) == 0.005);
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
        assert_eq!(verdict([Some(0.60), Some(0.80), Some(0.81)], "a"), Verdict::SameOrdering(2));
        assert_eq!(verdict([Some(0.90), Some(0.80), Some(0.81)], "a"), Verdict::Differs);
        // The paper cannot tell b from c (0.01 apart): swapping them is no difference in order.
        assert_eq!(verdict([Some(0.40), Some(0.90), Some(0.81)], "b"), Verdict::SameOrdering(1));
        // b and c have the same results: one fact.
        assert_eq!(verdict([Some(0.60), Some(0.81), Some(0.81)], "a"), Verdict::SameOrdering(1));
        // Nothing else was run: there is no order to agree with.
        assert_eq!(verdict([Some(0.60), None, None], "a"), Verdict::Differs);
        assert_eq!(verdict([None, Some(0.80), None], "a"), Verdict::None("not run"));
    }

    /// The mean is on the paper's side and the seeds do not show it.
    #[test]
    fn an_order_by_chance_is_none() {
        let noisy = Some(vec![0.5, 1.1, 0.6, 0.9, 0.7, 1.0, 0.62, 0.93, 0.58, 0.95]);
        let ours = Seeds([noisy, Some(seeds(0.80, 1e-4)), Some(seeds(0.81, 1e-4))]);
        assert_eq!(judge(&table(), "a", &ours).unwrap(), Verdict::Differs);
    }

    #[test]
    fn columns_of_one_fact() {
        let fact = |metric: &str, group: &str| {
            let column = Column::parse(metric, group).unwrap();
            format!("{:?}", Fact::of(&column))
        };
        assert_eq!(fact("accuracy", "male"), fact("privacy_cost_pct", "male"));
        assert_eq!(fact("accuracy_change", "male"), fact("privacy_cost", "male"));
        assert_eq!(fact("loss", "male"), fact("excessive_risk", "male"));
        assert_ne!(fact("loss", "male"), fact("loss", "female"));
        assert_ne!(fact("loss", "male"), fact("accuracy", "male"));
    }

    #[test]
    fn two_seeds_get_no_verdict() {
        let ours = Seeds([Some(vec![0.4, 0.5]), Some(vec![0.8, 0.9]), Some(vec![0.8, 0.9])]);
        assert_eq!(judge(&table(), "a", &ours).unwrap(), Verdict::None("fewer than three seeds"));
    }
}
