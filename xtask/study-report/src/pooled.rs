//! A paper's own test: loss gaps of all settings, seeds and attributes in one signed-rank test.

use fair_metrics::{Alternative, wilcoxon_signed_rank};
use fair_report::number;
use fair_report::{Block, Cell, Row, Section, Table};
use run_records::mark::{Mark, marked};
use run_records::{ExperimentResults, MethodResults, StudyResults};

use super::label::label;
use super::metric::Column;
use super::presentation::StudyPresentation;

/// Loss gaps that a paper pools, and the methods that it compares by them.
#[derive(Debug, Clone)]
pub struct Pooled {
    /// Where the paper does so.
    pub source: &'static str,
    /// Pairs of groups, one for each attribute: `male|female`.
    pub gaps: Vec<&'static str>,
    /// Registry names; every two are compared.
    pub methods: Vec<&'static str>,
}

/// Two methods, compared over everything that is pooled.
#[derive(Debug, Clone, PartialEq)]
pub struct PooledTest {
    /// The two methods, by their registry names.
    pub methods: (String, String),
    /// Pairs of gaps.
    pub n: usize,
    /// Share of the pairs in which the first method has the smaller gap.
    pub share_smaller: f64,
    /// Two-sided p-value times the number of comparisons.
    pub p: f64,
}

/// Every comparison of the pooled gaps; none if the presentation pools none.
///
/// # Errors
/// If an experiment has no such group.
pub fn tests(results: &StudyResults, presentation: &StudyPresentation) -> anyhow::Result<Vec<PooledTest>> {
    let Some(Pooled { gaps, methods, .. }) = &presentation.pooled else { return Ok(Vec::new()) };
    let columns = gaps.iter().map(|gap| Column::parse("loss_gap", gap)).collect::<anyhow::Result<Vec<_>>>()?;
    let pairs: Vec<(&str, &str)> =
        methods.iter().enumerate().flat_map(|(index, a)| methods[index + 1..].iter().map(move |b| (*a, *b))).collect();
    let mut tests = Vec::new();
    for &(a, b) in &pairs {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for experiment in &results.experiments {
            for (one, other) in matched(experiment, a, b) {
                for column in &columns {
                    // The gaps of single runs, without a sign, as the paper has them.
                    let by_seed = column.by_run(experiment, other)?;
                    for (index, gap) in column.by_run(experiment, one)? {
                        let same = by_seed.iter().find(|(other, _)| *other == index);
                        if let Some((gap, other)) = gap.zip(same.and_then(|(_, other)| *other)) {
                            ours.push(gap);
                            theirs.push(other);
                        }
                    }
                }
            }
        }
        if ours.is_empty() {
            continue;
        }
        let test = wilcoxon_signed_rank(&ours, &theirs, Alternative::TwoSided)?;
        let n_smaller = ours.iter().zip(&theirs).filter(|(ours, theirs)| ours < theirs).count();
        tests.push(PooledTest {
            methods: (a.to_owned(), b.to_owned()),
            n: ours.len(),
            share_smaller: n_smaller as f64 / ours.len() as f64,
            p: (test.p_value * pairs.len() as f64).min(1.0),
        });
    }
    Ok(tests)
}

/// The same settings of two methods.
fn matched<'a>(
    experiment: &'a ExperimentResults,
    a: &'a str,
    b: &'a str,
) -> impl Iterator<Item = (&'a MethodResults, &'a MethodResults)> {
    let of = |base: &'a str| experiment.methods.iter().filter(move |method| method.base == base);
    of(a).flat_map(move |one| of(b).filter(|other| other.coordinates == one.coordinates).map(move |other| (one, other)))
}

/// The tests as a section; `None` if the presentation pools none or nothing was run.
///
/// # Errors
/// As [`tests`].
pub(crate) fn section(results: &StudyResults, presentation: &StudyPresentation) -> anyhow::Result<Option<Section>> {
    let tests = tests(results, presentation)?;
    let Some(pooled) = presentation.pooled.as_ref().filter(|_| !tests.is_empty()) else { return Ok(None) };
    let mark = Mark::new(results.synthetic, results.quick);
    let rows = tests.iter().map(|test| Row {
        header: format!("{} against {}", label(&test.methods.0), label(&test.methods.1)),
        cells: vec![
            Cell::plain(number::count(test.n as u64)),
            Cell::plain(number::fixed(100.0 * test.share_smaller, 0)),
            Cell::plain(number::p_value(test.p)),
        ],
    });
    let table = Table {
        caption: marked(mark, &format!("Loss gaps pooled over settings, seeds and attributes ({})", pooled.source)),
        columns: ["Comparison", "Pairs", "Smaller gap of the first (%)", "P-value"].map(str::to_owned).into(),
        rows: rows.collect(),
        notes: vec![
            "Two-sided signed-rank test, times the number of comparisons (Bonferroni), as the paper makes it. It takes all pairs for independent, \
             which they are not: gaps of one model in several attributes move together, and all settings of a seed share a partition. Its p-values \
             are therefore too small, and no verdict here rests on them. Absolute gaps of single runs also favour the steadier method."
                .to_owned(),
        ],
    };
    Ok(Some(Section::new("pooled", "The paper's pooled test", vec![Block::Table(table)])))
}

#[cfg(test)]
mod tests_of_pooling {
    use super::*;
    use crate::fixture;

    /// One setting and five seeds; DPSGD-F's gap is the smaller one in each: two-sided 2/32, three
    /// comparisons.
    #[test]
    fn all_pairs_are_in_one_test() {
        let results = fixture::study();
        let pooled =
            Pooled { source: "A paper", gaps: vec!["male|female"], methods: vec!["dpsgd-f", "dpsgd", "dpsgd-global"] };
        let presentation = StudyPresentation { pooled: Some(pooled), ..fixture::presentation() };
        let tests = tests(&results, &presentation).unwrap();
        assert_eq!(tests[0].methods, ("dpsgd-f".to_owned(), "dpsgd".to_owned()));
        assert_eq!((tests[0].n, tests[0].share_smaller), (5, 1.0));
        let comparisons = 3.0;
        assert!((tests[0].p - comparisons * 2.0 / 32.0).abs() < 1e-12, "{}", tests[0].p);
        assert!(section(&results, &presentation).unwrap().is_some());
        assert!(section(&results, &fixture::presentation()).unwrap().is_none());
    }
}
