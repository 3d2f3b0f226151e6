//! Claims of the papers, tested on our runs. This file is the one place where that is decided.
//!
//! A claim is a list of comparisons, each saying that one quantity is smaller than another. Each is tested over the seeds that both
//! have with a one-sided signed-rank test; p-values are multiplied by the number of comparisons (Bonferroni). The claim is
//! *reproduced* if all are significant, *not reproduced* if one points the other way although the seeds could have told, and *not
//! decidable* otherwise.

use std::fmt;

use fair_metrics::{Alternative, Estimate, bonferroni, wilcoxon_signed_rank};

use super::document::{Block, Cell, Mark, Row, Section, Table, Tone, marked};
use super::metric::{Column, RunValue};
use super::number;
use crate::results::StudyResults;

/// The level of a test.
const LEVEL: f64 = 0.05;

/// Something a paper says.
#[derive(Debug, Clone)]
pub(crate) struct Claim {
    /// One sentence.
    pub(crate) text: String,
    /// Where it is said, for example `Esipova 2023, 5.2`.
    pub(crate) source: &'static str,
    /// What it means in figures.
    pub(crate) comparisons: Vec<Smaller>,
}

/// The first quantity is smaller than the second.
#[derive(Debug, Clone)]
pub(crate) struct Smaller {
    pub(crate) smaller: Quantity,
    pub(crate) larger: Quantity,
}

/// A figure of one method.
#[derive(Debug, Clone)]
pub(crate) struct Quantity {
    experiment: String,
    method: String,
    column: Column,
}

impl Quantity {
    /// A metric by the names that published tables use.
    ///
    /// # Errors
    /// If the metric is not known.
    pub(crate) fn new(experiment: &str, method: &str, metric: &str, group: &str) -> anyhow::Result<Self> {
        let column = Column::parse(metric, group)?;
        Ok(Self { experiment: experiment.to_owned(), method: method.to_owned(), column })
    }
}

impl Claim {
    /// One method has a smaller value than each of the others.
    ///
    /// # Errors
    /// If the metric is not known.
    pub(crate) fn least(
        text: &str,
        source: &'static str,
        experiment: &str,
        (metric, group): (&str, &str),
        method: &str,
        others: &[&str],
    ) -> anyhow::Result<Self> {
        let of = |method: &str| Quantity::new(experiment, method, metric, group);
        let comparisons = others
            .iter()
            .map(|other| Ok(Smaller { smaller: of(method)?, larger: of(other)? }))
            .collect::<anyhow::Result<_>>()?;
        Ok(Self { text: text.to_owned(), source, comparisons })
    }

    /// One method has a greater value than each of the others.
    ///
    /// # Errors
    /// If the metric is not known.
    pub(crate) fn greatest(
        text: &str,
        source: &'static str,
        experiment: &str,
        column: (&str, &str),
        method: &str,
        others: &[&str],
    ) -> anyhow::Result<Self> {
        let mut claim = Self::least(text, source, experiment, column, method, others)?;
        for Smaller { smaller, larger } in &mut claim.comparisons {
            std::mem::swap(smaller, larger);
        }
        Ok(claim)
    }

    /// One method's value is smaller for one group than for another.
    ///
    /// # Errors
    /// If the metric is not known.
    pub(crate) fn smaller_for(
        text: &str,
        source: &'static str,
        experiment: &str,
        method: &str,
        metric: &str,
        (group, other): (&str, &str),
    ) -> anyhow::Result<Self> {
        let of = |group: &str| Quantity::new(experiment, method, metric, group);
        let comparisons = vec![Smaller { smaller: of(group)?, larger: of(other)? }];
        Ok(Self { text: text.to_owned(), source, comparisons })
    }
}

/// What became of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClaimVerdict {
    Reproduced,
    NotReproduced,
    NotDecidable,
}

impl fmt::Display for ClaimVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reproduced => "reproduced",
            Self::NotReproduced => "not reproduced",
            Self::NotDecidable => "not decidable",
        })
    }
}

/// One comparison, tested.
#[derive(Debug, Clone, PartialEq)]
struct Tested {
    smaller: Estimate,
    larger: Estimate,
    /// Corrected for the number of comparisons of the claim.
    p_value: f64,
    /// The least that so many seeds can give, corrected.
    least_p_value: f64,
    points_the_other_way: bool,
}

/// The claims of a study as a section; `None` if it has none whose experiments were run.
///
/// # Errors
/// If an experiment has no such group.
pub(crate) fn section(results: &StudyResults, claims: &[Claim]) -> anyhow::Result<Option<Section>> {
    let mut rows = Vec::new();
    for claim in claims {
        let Some(tests) = test(results, claim)? else { continue };
        let mark = claim.comparisons.first().and_then(|comparison| mark_of(results, &comparison.smaller));
        // The seeds that are left are those on which the method went well.
        let verdict = if has_failed(results, claim) { ClaimVerdict::NotDecidable } else { verdict(&tests) };
        let tone = match (mark, verdict) {
            (Some(_), _) => Cell::plain("no verdict"),
            (None, ClaimVerdict::Reproduced) => Cell::toned(verdict.to_string(), Tone::Good),
            (None, ClaimVerdict::NotReproduced) => Cell::toned(verdict.to_string(), Tone::Bad),
            (None, ClaimVerdict::NotDecidable) => Cell::toned(verdict.to_string(), Tone::Middling),
        };
        let figures = claim.comparisons.iter().zip(&tests).map(|(comparison, test)| words(comparison, test));
        let figures = Cell { prose: true, ..Cell::lines(figures.collect(), Tone::Plain) };
        let header = marked(mark, &format!("{} ({})", claim.text, claim.source));
        rows.push(Row { header, cells: vec![tone, figures] });
    }
    if rows.is_empty() {
        return Ok(None);
    }
    let mark = Mark::new(results.synthetic, results.quick);
    let table = Table {
        caption: marked(mark, "Claims of the papers"),
        columns: ["Claim", "Verdict", "Figures and tests"].map(str::to_owned).into(),
        rows,
        notes: vec![format!(
            "Each line: the smaller quantity as claimed, the larger, the p-value of a one-sided Wilcoxon signed-rank test over \
                 common seeds, multiplied by the number of the claim's comparisons (Bonferroni), and in brackets the least p-value \
                 that so many seeds can give. Reproduced: every p-value is below {LEVEL}. Not reproduced: a comparison that the \
                 seeds could decide points the other way. Not decidable: neither, or a run of a method failed."
        )],
    };
    Ok(Some(Section {
        id: "claims".to_owned(),
        title: "Claims".to_owned(),
        level: 2,
        blocks: vec![Block::Table(table)],
    }))
}

fn mark_of(results: &StudyResults, quantity: &Quantity) -> Option<Mark> {
    let experiment = results.experiments.iter().find(|experiment| experiment.id == quantity.experiment)?;
    Mark::new(experiment.dataset.synthetic, results.quick)
}

/// Whether a run of a method that the claim is about failed.
fn has_failed(results: &StudyResults, claim: &Claim) -> bool {
    let quantities = claim.comparisons.iter().flat_map(|comparison| [&comparison.smaller, &comparison.larger]);
    quantities
        .filter_map(|quantity| {
            let experiment = results.experiments.iter().find(|experiment| experiment.id == quantity.experiment)?;
            experiment.methods.iter().find(|method| method.method == quantity.method)
        })
        .any(|method| !method.failures.is_empty())
}

/// `None` if a method was not run, or shares no seed with what it is compared with.
fn test(results: &StudyResults, claim: &Claim) -> anyhow::Result<Option<Vec<Tested>>> {
    let mut tests = Vec::new();
    for Smaller { smaller, larger } in &claim.comparisons {
        let (Some(a), Some(b)) = (by_run(results, smaller)?, by_run(results, larger)?) else { return Ok(None) };
        let pairs = a.iter().filter_map(|(index, value)| {
            let (_, other) = b.iter().find(|(candidate, _)| candidate == index)?;
            Some(((*value)?, (*other)?))
        });
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.unzip();
        if a.is_empty() {
            return Ok(None);
        }
        let estimate = |values: &[f64]| Estimate::over_seeds(&values.iter().copied().map(Some).collect::<Vec<_>>());
        let test = wilcoxon_signed_rank(&a, &b, Alternative::Less)?;
        let (smaller, larger) = (estimate(&a)?, estimate(&b)?);
        tests.push(Tested {
            points_the_other_way: smaller.mean >= larger.mean,
            smaller,
            larger,
            p_value: test.p_value,
            least_p_value: test.smallest_p_value,
        });
    }
    let corrected = bonferroni(&tests.iter().map(|test| test.p_value).collect::<Vec<_>>())?;
    let least = bonferroni(&tests.iter().map(|test| test.least_p_value).collect::<Vec<_>>())?;
    for (test, (p_value, least_p_value)) in tests.iter_mut().zip(corrected.into_iter().zip(least)) {
        (test.p_value, test.least_p_value) = (p_value, least_p_value);
    }
    Ok(Some(tests))
}

fn by_run(results: &StudyResults, quantity: &Quantity) -> anyhow::Result<Option<Vec<RunValue>>> {
    let Some(experiment) = results.experiments.iter().find(|experiment| experiment.id == quantity.experiment) else {
        return Ok(None);
    };
    let Some(method) = experiment.methods.iter().find(|method| method.method == quantity.method) else {
        return Ok(None);
    };
    quantity.column.by_run(experiment, method).map(Some)
}

fn verdict(tests: &[Tested]) -> ClaimVerdict {
    if tests.iter().all(|test| test.p_value < LEVEL) {
        ClaimVerdict::Reproduced
    } else if tests.iter().any(|test| test.points_the_other_way && test.least_p_value < LEVEL) {
        ClaimVerdict::NotReproduced
    } else {
        ClaimVerdict::NotDecidable
    }
}

fn words(comparison: &Smaller, test: &Tested) -> String {
    let Smaller { smaller, larger } = comparison;
    let name = |quantity: &Quantity| {
        if smaller.method == larger.method && smaller.experiment == larger.experiment {
            quantity.column.to_string()
        } else {
            quantity.method.clone()
        }
    };
    format!(
        "{} {} against {} {}: p = {} [{}]",
        name(smaller),
        number::estimate(&test.smaller, 4),
        name(larger),
        number::estimate(&test.larger, 4),
        number::p_value(test.p_value),
        number::p_value(test.least_p_value),
    )
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    const EXPERIMENT: &str = "esipova-adult";

    fn verdict_of(claim: &Claim) -> Option<ClaimVerdict> {
        test(&fixture::study(), claim).unwrap().map(|tests| verdict(&tests))
    }

    fn least(method: &str, others: &[&str]) -> Claim {
        Claim::least("A claim.", "A paper", EXPERIMENT, ("privacy_cost", "male"), method, others).unwrap()
    }

    /// Five seeds: the least one-sided p-value is 1/32, below 0.05 for one comparison and above it for two.
    #[test]
    fn five_seeds_decide_one_comparison_and_not_two() {
        assert_eq!(verdict_of(&least("dpsgd-f", &["dpsgd"])), Some(ClaimVerdict::Reproduced));
        assert_eq!(verdict_of(&least("dpsgd", &["dpsgd-f"])), Some(ClaimVerdict::NotReproduced));
        assert_eq!(verdict_of(&least("dpsgd-f", &["dpsgd", "dpsgd-global"])), Some(ClaimVerdict::NotDecidable));
        assert_eq!(verdict_of(&least("dpsgd-f", &["fairlens"])), None);
    }

    #[test]
    fn greatest_is_least_turned_around() {
        let claim = Claim::greatest("A claim.", "A paper", EXPERIMENT, ("privacy_cost", "male"), "dpsgd", &["dpsgd-f"])
            .unwrap();
        assert_eq!(verdict_of(&claim), Some(ClaimVerdict::Reproduced));
        let claim =
            Claim::smaller_for("A claim.", "A paper", EXPERIMENT, "dpsgd", "privacy_cost", ("female", "male")).unwrap();
        assert_eq!(verdict_of(&claim), Some(ClaimVerdict::Reproduced));
    }

    #[test]
    fn claims_of_quick_runs_get_no_verdict() {
        let mut results = fixture::study();
        results.quick = true;
        let section = section(&results, &[least("dpsgd-f", &["dpsgd"])]).unwrap().unwrap();
        let Block::Table(table) = &section.blocks[0] else { panic!("a table") };
        assert_eq!(table.rows[0].cells[0], Cell::plain("no verdict"));
    }
}
