//! Figures and differences beside published ones.

use fair_metrics::{Estimate, MetricError, SeedValues, compare};
use study_report::statistics::{EffectAnswer, PublishedDifference, PublishedFigure, SIGNIFICANCE, Size};

use super::{Scenario, Sink};
use crate::draws::Draws;

/// A figure over `n` seeds of ours and, printed, over `runs` of a paper, of the same quantity.
fn figures(
    draws: &mut Draws<'_>,
    n: usize,
    runs: usize,
    with_error: bool,
) -> Result<(Estimate, PublishedFigure), MetricError> {
    let ours = Estimate::of(&draws.normals(n, 0.8, 0.01))?;
    let theirs = Estimate::of(&draws.normals(runs, 0.8, 0.01))?;
    let standard_error = theirs.standard_error.filter(|_| with_error);
    Ok((ours, PublishedFigure { value: theirs.mean.unwrap_or(0.0), standard_error, runs, rounding: 0.0 }))
}

/// Whether a row of independent figures is said to differ.
fn row_differs(
    draws: &mut Draws<'_>,
    n_figures: usize,
    (n, runs): (usize, usize),
    with_error: bool,
) -> Result<bool, MetricError> {
    let mut differs = false;
    for _ in 0..n_figures {
        let (ours, published) = figures(draws, n, runs, with_error)?;
        let agrees = PublishedDifference::new(&ours, &published)?
            .map_or(Ok(true), |difference| difference.agrees(SIGNIFICANCE / n_figures as f64))?;
        differs |= !agrees;
    }
    Ok(differs)
}

/// What is said of the size of a difference of ours over ten seeds, beside a paper's over five.
fn size(draws: &mut Draws<'_>, ours: f64, theirs: f64, deviation: f64) -> Result<Option<Size>, MetricError> {
    let (smaller, larger) = (vec![0.0; 10], draws.normals(10, ours, deviation));
    let compared = compare(&SeedValues::plain(&smaller)?, &SeedValues::plain(&larger)?)?;
    let printed = Estimate::of(&draws.normals(5, theirs, deviation))?;
    let value = printed.mean.unwrap_or(0.0);
    let published = PublishedFigure { value, standard_error: printed.standard_error, runs: 5, rounding: 0.0 };
    Ok(EffectAnswer::new(&compared, Some(&published), SIGNIFICANCE)?.size)
}

/// The same where the paper's difference is known exactly: the border of the margin is then a
/// number.
fn size_of_exact(draws: &mut Draws<'_>, ours: f64, theirs: f64, deviation: f64) -> Result<Option<Size>, MetricError> {
    let (smaller, larger) = (vec![0.0; 10], draws.normals(10, ours, deviation));
    let compared = compare(&SeedValues::plain(&smaller)?, &SeedValues::plain(&larger)?)?;
    let published = PublishedFigure { value: theirs, standard_error: Some(0.0), runs: 5, rounding: 0.0 };
    Ok(EffectAnswer::new(&compared, Some(&published), SIGNIFICANCE)?.size)
}

pub(super) fn simulate(sink: Sink<'_>) -> Result<(), MetricError> {
    const DIFFERS: &str = "row of a published table: differs";
    sink(Scenario {
        rule: DIFFERS,
        truth: "the same; 1 figure without an error, ten seeds of ours",
        trial: &|d| row_differs(d, 1, (10, 1), false),
    })?;
    sink(Scenario {
        rule: DIFFERS,
        truth: "the same; 4 figures without errors, ten seeds of ours",
        trial: &|d| row_differs(d, 4, (10, 1), false),
    })?;
    sink(Scenario {
        rule: DIFFERS,
        truth: "the same; 10 figures with errors of five runs, ten seeds of ours",
        trial: &|d| row_differs(d, 10, (10, 5), true),
    })?;
    sink(Scenario {
        rule: DIFFERS,
        truth: "the same; 4 figures without errors, three seeds of ours",
        trial: &|d| row_differs(d, 4, (3, 1), false),
    })?;
    sink(Scenario {
        rule: DIFFERS,
        truth: "the same; 4 figures with errors of five runs, three seeds of ours",
        trial: &|d| row_differs(d, 4, (3, 5), true),
    })?;
    sink(Scenario {
        rule: "published size: excluded",
        truth: "our size is the published one",
        trial: &|d| Ok(size(d, 1.0, 1.0, 0.5)? == Some(Size::Excluded)),
    })?;
    sink(Scenario {
        rule: "published size: confirmed",
        truth: "our size is half of the published one",
        trial: &|d| Ok(size_of_exact(d, 0.5, 1.0, 0.2)? == Some(Size::Confirmed)),
    })?;
    sink(Scenario {
        rule: "published size: confirmed",
        truth: "our size is half more than the published one",
        trial: &|d| Ok(size_of_exact(d, 1.5, 1.0, 0.2)? == Some(Size::Confirmed)),
    })
}
