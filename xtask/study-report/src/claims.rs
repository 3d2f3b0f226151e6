//! Claims of the papers, tested on our runs. This file is the one place where that is decided.
//!
//! A claim is a list of comparisons, each saying that one quantity is smaller than another. Each is
//! tested over the seeds that both have with one-sided signed-rank tests in both directions
//! ([`fair_metrics::compare`]). The claim is
//!
//! - *reproduced* if all are significant as claimed,
//! - *not reproduced* if one is significant the other way,
//! - *not decidable* otherwise, or if a run of a method failed.
//!
//! Beside that stands the size: our difference with its interval, and the paper's where it prints
//! one ([`EffectAnswer`]).

use std::fmt;

use fair_metrics::{Compared, Estimate, Interval, compare, holm, resampled_t_interval};
use fair_report::number;
use fair_report::{Block, Cell, Row, Section, Table, Tone};
use run_records::mark::{Mark, marked};
use run_records::{ExperimentResults, MethodResults, StudyResults};

use super::estimate::mean_and_error;
use super::label::label;
use super::metric::{Column, paired_within};
use super::presentation::StudyPresentation;
use super::published_difference::{PublishedEffect, published_effect};
use super::statistics::{Direction, EffectAnswer, SIGNIFICANCE, Size, TestedClaim};

/// Coverage of the intervals.
const LEVEL: f64 = 0.95;

/// Something a paper says, or we ask in addition.
#[derive(Debug, Clone)]
pub struct Claim {
    /// One sentence.
    pub text: String,
    /// Where it is said, for example `Esipova 2023, 6.2`.
    pub source: &'static str,
    /// What it means in figures.
    pub comparisons: Vec<Smaller>,
    /// Why it is ours and not the paper's, if it is.
    pub addition: Option<&'static str>,
}

/// The first quantity is smaller than the second, or no more than a margin larger.
#[derive(Debug, Clone)]
pub struct Smaller {
    /// What the claim says is the smaller one.
    pub smaller: Quantity,
    /// What it says is the larger one.
    pub larger: Quantity,
    /// How much the first may exceed the second: zero, but in a claim that they are alike.
    pub margin: f64,
}

/// A figure of one method.
#[derive(Debug, Clone)]
pub struct Quantity {
    experiment: String,
    method: String,
    column: Column,
}

impl Quantity {
    /// A metric by the names that published tables use.
    ///
    /// # Errors
    /// If the metric is not known.
    pub fn new(experiment: &str, method: &str, metric: &str, group: &str) -> anyhow::Result<Self> {
        let column = Column::parse(metric, group)?;
        Ok(Self { experiment: experiment.to_owned(), method: method.to_owned(), column })
    }

    /// The experiment and the method; `None` if it was not run.
    fn find<'a>(&self, results: &'a StudyResults) -> Option<(&'a ExperimentResults, &'a MethodResults)> {
        let experiment = results.experiments.iter().find(|experiment| experiment.id == self.experiment)?;
        Some((experiment, experiment.methods.iter().find(|method| method.method == self.method)?))
    }
}

impl Smaller {
    fn without_margin(smaller: Quantity, larger: Quantity) -> Self {
        Self { smaller, larger, margin: 0.0 }
    }
}

impl Claim {
    fn of(text: &str, source: &'static str, comparisons: Vec<Smaller>) -> Self {
        Self { text: text.to_owned(), source, comparisons, addition: None }
    }

    /// What it compares of this experiment.
    pub(crate) fn columns_of<'a>(&'a self, experiment: &'a str) -> impl Iterator<Item = &'a Column> {
        let quantities = self.comparisons.iter().flat_map(|comparison| [&comparison.smaller, &comparison.larger]);
        quantities.filter(move |quantity| quantity.experiment == experiment).map(|quantity| &quantity.column)
    }

    /// One method has a smaller value than each of the others.
    ///
    /// # Errors
    /// If the metric is not known.
    pub fn least(
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
            .map(|other| Ok(Smaller::without_margin(of(method)?, of(other)?)))
            .collect::<anyhow::Result<_>>()?;
        Ok(Self::of(text, source, comparisons))
    }

    /// One method has a greater value than each of the others.
    ///
    /// # Errors
    /// If the metric is not known.
    pub fn greatest(
        text: &str,
        source: &'static str,
        experiment: &str,
        column: (&str, &str),
        method: &str,
        others: &[&str],
    ) -> anyhow::Result<Self> {
        let mut claim = Self::least(text, source, experiment, column, method, others)?;
        for Smaller { smaller, larger, .. } in &mut claim.comparisons {
            std::mem::swap(smaller, larger);
        }
        Ok(claim)
    }

    /// One method's value is smaller for one group than for another.
    ///
    /// # Errors
    /// If the metric is not known.
    pub fn smaller_for(
        text: &str,
        source: &'static str,
        experiment: &str,
        method: &str,
        metric: &str,
        (group, other): (&str, &str),
    ) -> anyhow::Result<Self> {
        let of = |group: &str| Quantity::new(experiment, method, metric, group);
        let comparisons = vec![Smaller::without_margin(of(group)?, of(other)?)];
        Ok(Self::of(text, source, comparisons))
    }

    /// One method's values for two groups differ by at most a margin: two one-sided tests
    /// (Schuirmann 1987), of which one that is significant the other way contradicts the claim.
    ///
    /// # Errors
    /// If the metric is not known.
    pub fn alike(
        text: &str,
        source: &'static str,
        experiment: &str,
        method: &str,
        metric: &str,
        (group, other): (&str, &str),
        margin: f64,
    ) -> anyhow::Result<Self> {
        let of = |group: &str| Quantity::new(experiment, method, metric, group);
        let comparisons = vec![
            Smaller { smaller: of(group)?, larger: of(other)?, margin },
            Smaller { smaller: of(other)?, larger: of(group)?, margin },
        ];
        Ok(Self::of(text, source, comparisons))
    }

    /// One metric of a group and a method is smaller than another.
    ///
    /// # Errors
    /// If a metric is not known.
    pub fn smaller_metric(
        text: &str,
        source: &'static str,
        experiment: &str,
        method: &str,
        group: &str,
        (smaller, larger): (&str, &str),
    ) -> anyhow::Result<Self> {
        let of = |metric: &str| Quantity::new(experiment, method, metric, group);
        let comparisons = vec![Smaller::without_margin(of(smaller)?, of(larger)?)];
        Ok(Self::of(text, source, comparisons))
    }

    /// One method's value is greater for one group than for each of the others.
    ///
    /// # Errors
    /// If the metric is not known.
    pub fn greatest_for(
        text: &str,
        source: &'static str,
        experiment: &str,
        (method, metric): (&str, &str),
        group: &str,
        others: &[&str],
    ) -> anyhow::Result<Self> {
        let of = |group: &str| Quantity::new(experiment, method, metric, group);
        let comparisons = others
            .iter()
            .map(|other| Ok(Smaller::without_margin(of(other)?, of(group)?)))
            .collect::<anyhow::Result<_>>()?;
        Ok(Self::of(text, source, comparisons))
    }

    /// The experiments and methods that it is about.
    pub fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        let quantities = self.comparisons.iter().flat_map(|comparison| [&comparison.smaller, &comparison.larger]);
        quantities.map(|quantity| (quantity.experiment.as_str(), quantity.method.as_str()))
    }

    /// Marks a claim that the paper does not make, and says why it is ours.
    #[must_use]
    pub fn ours(self, why: &'static str) -> Self {
        Self { addition: Some(why), ..self }
    }
}

/// What became of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimVerdict {
    /// Every comparison is significant.
    Reproduced,
    /// The opposite of a comparison is significant.
    NotReproduced,
    /// Neither.
    NotDecidable,
}

impl From<Direction> for ClaimVerdict {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Confirmed => Self::Reproduced,
            Direction::Contradicted => Self::NotReproduced,
            Direction::Undecided => Self::NotDecidable,
        }
    }
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
    compared: Compared,
    /// Direction and size beside the paper's.
    effect: EffectAnswer,
    published: Option<PublishedEffect>,
    /// Of the difference on new records; `None` where every seed has the same partition.
    on_new_records: Option<Interval>,
}

/// A claim with its tests.
pub struct Judged<'a> {
    /// The claim.
    pub claim: &'a Claim,
    mark: Option<Mark>,
    tests: Vec<Tested>,
    /// All its comparisons together.
    pub tested: TestedClaim,
    /// What became of it.
    pub verdict: ClaimVerdict,
    /// After Holm's adjustment for all claims of the report.
    pub p_in_family: f64,
}

/// The claims of a study as a section; `None` if it has none whose experiments were run.
///
/// # Errors
/// If an experiment has no such group.
pub fn section(results: &StudyResults, presentation: &StudyPresentation) -> anyhow::Result<Option<Section>> {
    let judged = judge(results, presentation)?;
    let mark = Mark::new(results.synthetic, results.quick);
    let mut blocks = Vec::new();
    for (title, is_ours) in [("Claims of the papers", false), ("Further claims, ours", true)] {
        let rows: Vec<Row> =
            judged.iter().filter(|judged| judged.claim.addition.is_some() == is_ours).map(row).collect();
        if !rows.is_empty() {
            blocks.push(Block::Table(Table {
                caption: marked(mark, title),
                columns: ["Claim", "Verdict", "P-values", "Figures and tests"].map(str::to_owned).into(),
                rows,
                notes: Vec::new(),
            }));
        }
    }
    if blocks.is_empty() {
        return Ok(None);
    }
    blocks.push(Block::List(notes(judged.len())));
    Ok(Some(Section::new("claims", "Claims", blocks)))
}

/// Every claim whose methods were run, with its verdict.
///
/// # Errors
/// If an experiment has no such group.
pub fn judge<'a>(results: &StudyResults, presentation: &'a StudyPresentation) -> anyhow::Result<Vec<Judged<'a>>> {
    let mut judged = Vec::new();
    for claim in &presentation.claims {
        let Some(tests) = test(results, presentation, claim)? else { continue };
        let tested = TestedClaim::new(&tests.iter().map(|test| test.compared).collect::<Vec<_>>());
        // The seeds that are left are those on which the method went well.
        let verdict =
            if has_failed(results, claim) { ClaimVerdict::NotDecidable } else { tested.direction(SIGNIFICANCE).into() };
        let mark = claim.comparisons.first().and_then(|comparison| mark_of(results, &comparison.smaller));
        judged.push(Judged { claim, mark, tests, tested, verdict, p_in_family: 1.0 });
    }
    let family = holm(&judged.iter().map(|judged| judged.tested.p_claim).collect::<Vec<_>>())?;
    for (judged, p) in judged.iter_mut().zip(family) {
        judged.p_in_family = p;
    }
    Ok(judged)
}

fn row(judged: &Judged<'_>) -> Row {
    let Judged { claim, mark, tests, tested, verdict, p_in_family } = judged;
    let tone = match (mark, verdict) {
        (Some(_), _) => Cell::plain("no verdict"),
        (None, ClaimVerdict::Reproduced) => Cell::toned(verdict.to_string(), Tone::Good),
        (None, ClaimVerdict::NotReproduced) => Cell::toned(verdict.to_string(), Tone::Bad),
        (None, ClaimVerdict::NotDecidable) => Cell::toned(verdict.to_string(), Tone::Middling),
    };
    let p_values = vec![
        format!("as claimed {} [{}]", number::p_value(tested.p_claim), number::p_value(tested.least_p_claim)),
        format!("opposite {}", number::p_value(tested.p_contradiction)),
        format!("in the family {}", number::p_value(*p_in_family)),
    ];
    let figures = claim.comparisons.iter().zip(tests).map(|(comparison, test)| words(comparison, test, mark.is_none()));
    let figures = Cell { prose: true, ..Cell::lines(figures.collect(), Tone::Plain) };
    let source = match claim.addition {
        Some(why) => format!("after {}; {why}", claim.source),
        None => claim.source.to_owned(),
    };
    let header = marked(*mark, &format!("{} ({source})", claim.text));
    Row { header, cells: vec![tone, Cell::lines(p_values, Tone::Plain), figures] }
}

fn notes(n_claims: usize) -> Vec<String> {
    vec![
        format!(
            "Reproduced: every comparison is significant as claimed, at {} % each; no correction is due, since the claim is false as soon as one of \
             them is. Not reproduced: one is significant the other way, corrected for the number of comparisons. Not decidable: neither, or a run \
             of a method failed. Of equal methods at most {0} % are called better, and at most {0} % worse.",
            100.0 * SIGNIFICANCE
        ),
        format!(
            "P-values: of the claim (the largest of its comparisons'; in brackets the least that so many seeds can give), of its contradiction, and \
             of the claim after Holm's adjustment for the {n_claims} claims of this report. Verdicts are by the first two: each claim for itself."
        ),
        "Each comparison: the smaller quantity as claimed, the larger, ± standard error; their difference with its 95 % interval over partitions of \
         this pool of records, initial parameters and noise; after the semicolon the interval for new records, which is wider because the partitions \
         share records (Nadeau and Bengio 2003). Where every seed has the same partition, the interval is over initial parameters and noise alone."
            .to_owned(),
        "A gap is that of the means over seeds (Esipova 2023, after Eq. 1 and 2), not the mean of the seeds' gaps, which is larger the noisier a \
         method is. Its sign is chosen by the data, which doubles its p-values (two groups). Of more groups the pair is chosen too: p-values pay \
         for that, an interval would not, and none is given."
            .to_owned(),
        "Size: confirmed if our difference is certain to lie within half of the paper's around it (two one-sided tests); excluded if the interval of \
         ours minus the paper's does not hold zero. The paper's error is the printed one; where it prints none, that of one run more."
            .to_owned(),
    ]
}

fn mark_of(results: &StudyResults, quantity: &Quantity) -> Option<Mark> {
    let experiment = results.experiments.iter().find(|experiment| experiment.id == quantity.experiment)?;
    Mark::new(experiment.dataset.synthetic, results.quick)
}

/// Whether a run of a method that the claim is about failed.
fn has_failed(results: &StudyResults, claim: &Claim) -> bool {
    let quantities = claim.comparisons.iter().flat_map(|comparison| [&comparison.smaller, &comparison.larger]);
    quantities.filter_map(|quantity| quantity.find(results)).any(|(_, method)| !method.failures.is_empty())
}

/// `None` if a method was not run, or shares no seed with what it is compared with.
fn test(
    results: &StudyResults,
    presentation: &StudyPresentation,
    claim: &Claim,
) -> anyhow::Result<Option<Vec<Tested>>> {
    let mut tests = Vec::new();
    for Smaller { smaller, larger, margin } in &claim.comparisons {
        let (Some((experiment, a)), Some((other_experiment, b))) = (smaller.find(results), larger.find(results)) else {
            return Ok(None);
        };
        let Some((one, other)) =
            paired_within((&smaller.column, experiment, a), (&larger.column, other_experiment, b), *margin)?
        else {
            return Ok(None);
        };
        let compared = compare(&one, &other)?;
        let published = (experiment.id == other_experiment.id && *margin == 0.0)
            .then(|| {
                let (smaller, larger) =
                    ((smaller.method.as_str(), &smaller.column), (larger.method.as_str(), &larger.column));
                published_effect(&presentation.tables, experiment, smaller, larger)
            })
            .flatten();
        let figure = published.as_ref().map(|published| &published.figure);
        tests.push(Tested {
            smaller: one.estimate()?,
            larger: other.estimate()?,
            effect: EffectAnswer::new(&compared, figure, SIGNIFICANCE)?,
            published,
            on_new_records: if compared.is_chosen { None } else { on_new_records(experiment, &compared.difference)? },
            compared,
        });
    }
    Ok(Some(tests))
}

/// The interval of a difference on new records, from seeds that partition one pool.
fn on_new_records(experiment: &ExperimentResults, difference: &Estimate) -> anyhow::Result<Option<Interval>> {
    if experiment.dataset.one_partition {
        return Ok(None);
    }
    let groups = &experiment.dataset.groups;
    let n_train = groups.iter().map(|group| group.n_train).sum();
    let n_test = groups.iter().map(|group| group.n_test).sum();
    Ok(resampled_t_interval(difference, n_train, n_test, LEVEL)?)
}

fn words(comparison: &Smaller, test: &Tested, with_size: bool) -> String {
    let Smaller { smaller, larger, margin } = comparison;
    let name = |quantity: &Quantity| {
        if smaller.method == larger.method && smaller.experiment == larger.experiment {
            quantity.column.to_string()
        } else {
            label(&quantity.method)
        }
    };
    // The larger figure has the margin in it.
    let plus = if *margin == 0.0 { String::new() } else { format!(" (with the margin of {margin})") };
    let mut text = format!(
        "{} {} against {} {}{plus}: difference {}",
        name(smaller),
        mean_and_error(&test.smaller, 4),
        name(larger),
        mean_and_error(&test.larger, 4),
        difference(&test.effect),
    );
    if let Some(interval) = test.on_new_records {
        text.push_str(&format!("; new records {}", range(&interval)));
    }
    if let Some(PublishedEffect { figure, citation }) = test.published.as_ref().filter(|_| with_size) {
        let paper = match figure.standard_error {
            Some(error) => format!("{} ± {error:.4}", number::fixed(figure.value, 4)),
            None => number::fixed(figure.value, 4),
        };
        let size = match test.effect.size {
            Some(Size::Confirmed) => "size confirmed",
            Some(Size::Excluded) => "this size is excluded",
            Some(Size::Undecided) => "size not decidable",
            None => "size unknown",
        };
        text.push_str(&format!("; paper {paper} ({citation}): {size}"));
    }
    text
}

/// A difference with its interval.
fn difference(effect: &EffectAnswer) -> String {
    let mean = effect.difference.mean.map_or_else(|| "undefined".to_owned(), |mean| number::fixed(mean, 4));
    match &effect.interval {
        Some(interval) => format!("{mean} {}", range(interval)),
        None => mean,
    }
}

fn range(interval: &Interval) -> String {
    format!("[{}, {}]", number::fixed(interval.low, 4), number::fixed(interval.high, 4))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    const EXPERIMENT: &str = "esipova-adult";

    fn presentation(claim: Claim) -> StudyPresentation {
        StudyPresentation { claims: vec![claim], ..fixture::presentation() }
    }

    fn verdict_of(claim: Claim) -> Option<ClaimVerdict> {
        let (results, presentation) = (fixture::study(), presentation(claim));
        judge(&results, &presentation).unwrap().first().map(|judged| judged.verdict)
    }

    fn least(method: &str, others: &[&str]) -> Claim {
        Claim::least("A claim.", "A paper", EXPERIMENT, ("privacy_cost", "male"), method, others).unwrap()
    }

    /// Five seeds: the least one-sided p-value is 1/32. Every comparison of a claim may have it; to
    /// contradict one of two, it counts twice.
    #[test]
    fn five_seeds_confirm_two_comparisons_and_contradict_one() {
        assert_eq!(verdict_of(least("dpsgd-f", &["dpsgd"])), Some(ClaimVerdict::Reproduced));
        assert_eq!(verdict_of(least("dpsgd", &["dpsgd-f"])), Some(ClaimVerdict::NotReproduced));
        assert_eq!(verdict_of(least("dpsgd-f", &["dpsgd", "dpsgd-global"])), Some(ClaimVerdict::Reproduced));
        assert_eq!(verdict_of(least("dpsgd", &["dpsgd-f", "dpsgd-global"])), Some(ClaimVerdict::NotDecidable));
        assert_eq!(verdict_of(least("dpsgd-f", &["fairlens"])), None);
    }

    #[test]
    fn a_failed_run_decides_nothing() {
        let mut results = fixture::study();
        let failure = run_records::FailureRecord { index: 9, reason: "it diverged".to_owned() };
        results.experiments[0].methods[1].failures.push(failure);
        let presentation = presentation(least("dpsgd-f", &["dpsgd"]));
        assert_eq!(judge(&results, &presentation).unwrap()[0].verdict, ClaimVerdict::NotDecidable);
    }

    #[test]
    fn greatest_is_least_turned_around() {
        let claim = Claim::greatest("A claim.", "A paper", EXPERIMENT, ("privacy_cost", "male"), "dpsgd", &["dpsgd-f"]);
        assert_eq!(verdict_of(claim.unwrap()), Some(ClaimVerdict::Reproduced));
        let claim = Claim::smaller_for("A claim.", "A paper", EXPERIMENT, "dpsgd", "privacy_cost", ("female", "male"));
        assert_eq!(verdict_of(claim.unwrap()), Some(ClaimVerdict::Reproduced));
    }

    /// The fixture's gaps: 1.7 points of DPSGD-F, 6.9 of DPSGD; the paper's 0.2 ± 0.3 and 6.9 ±
    /// 0.3.
    #[test]
    fn a_claim_with_its_size() {
        let column = ("privacy_cost_gap", "gap");
        let claim = Claim::least("A claim.", "A paper", EXPERIMENT, column, "dpsgd-f", &["dpsgd"]).unwrap();
        let presentation = presentation(claim.ours("a reason"));
        let section = section(&fixture::study(), &presentation).unwrap().unwrap();
        let Block::Table(table) = &section.blocks[0] else { panic!("a table") };
        assert_eq!(table.caption, "Further claims, ours");
        let lines: Vec<&str> = table.rows[0].cells.iter().flat_map(|cell| &cell.lines).map(String::as_str).collect();
        insta::assert_snapshot!(format!("{}\n{}", table.rows[0].header, lines.join("\n")));
    }

    #[test]
    fn claims_of_quick_runs_get_no_verdict() {
        let mut results = fixture::study();
        results.quick = true;
        let section = section(&results, &presentation(least("dpsgd-f", &["dpsgd"]))).unwrap().unwrap();
        let Block::Table(table) = &section.blocks[0] else { panic!("a table") };
        assert_eq!(table.rows[0].cells[0], Cell::plain("no verdict"));
        assert!(!table.rows[0].cells[2].lines[0].contains("size"));
    }
    /// DPSGD costs men 6.9 points more than women in the fixture.
    #[test]
    fn groups_are_alike_within_a_margin() {
        let within = |method, margin| {
            let groups = ("male", "female");
            verdict_of(Claim::alike("A claim.", "A paper", EXPERIMENT, method, "privacy_cost", groups, margin).unwrap())
        };
        assert_eq!(within("dpsgd", 0.2), Some(ClaimVerdict::Reproduced));
        assert_eq!(within("dpsgd-f", 0.05), Some(ClaimVerdict::Reproduced));
        // Five seeds cannot contradict one of two comparisons: the least p-value is 1/16.
        assert_eq!(within("dpsgd", 0.05), Some(ClaimVerdict::NotDecidable));
    }
}
