//! The report of a study: Markdown, HTML, plots and records, made from the records and from the
//! published figures beside them alone.
//!
//! [`write`](write()) makes a report of [`StudyResults`] and of what the study's author says about
//! it, a [`StudyPresentation`]: the published tables that it answers and the claims of the papers.
//! How a document looks is `fair-report`'s.

#[cfg(test)]
mod accessibility;
mod all_runs;
mod answer;
pub mod claims;
pub mod comparison;
mod counterparts;
mod curves;
mod decomposition;
mod estimate;
mod fairness;
mod figures;
#[cfg(test)]
mod fixture;
mod index;
mod judged;
mod label;
pub mod landscape;
mod losses;
pub mod metric;
mod plain;
pub mod pooled;
mod presentation;
mod privacy;
pub mod published;
mod published_difference;
mod ranking;
mod release;
mod search;
mod setting;
mod shares;
mod short;
mod side_by_side;
pub mod statistics;
mod summary;
mod terminal;
pub mod verdict;

use std::collections::BTreeSet;

use anyhow::Context;
use fair_report::plot;
use fair_report::{Block, Document, Section};
use run_records::coordinate::is_grid;
use run_records::mark::{Mark, marked};
use run_records::output::ReportFolder;
use run_records::{ExperimentResults, StudyResults, compact};

use self::answer::drawn;
pub use self::claims::Claim;
use self::comparison::Answer;
use self::figures::DrawnFigure;
pub use self::index::{refuse_foreign as refuse_foreign_index, write_index};
pub use self::judged::{Judged, Searched};
pub use self::plain::{PlainReport, write_plain};
pub use self::presentation::{Cause, StudyPresentation, TablePresentation};
pub use self::ranking::Ranked;
use self::release::Release;
use self::summary::Summary;
pub use self::terminal::short;
use self::verdict::Verdict;

/// Writes `report.md`, `report.html`, `release.json` (what ε covers), `results.json` (everything,
/// most of it not for release), `runs.zst`, `fairness.json`, `summary.json` and `plots/` to the
/// directory `out`, replacing an earlier report there as one step at the end; see
/// [`ReportFolder::replace`].
///
/// # Errors
/// If the records are inconsistent with the presentation (an unknown group), or if files cannot be
/// written. The earlier report is then still in place.
pub fn write(results: &StudyResults, presentation: &StudyPresentation, out: &ReportFolder) -> anyhow::Result<()> {
    let (document, figures) = compose(results, presentation)?;
    out.replace(|staging| {
        let mut write = |name: &str, bytes: &[u8]| staging.write(name, bytes);
        write("results.json", &serde_json::to_vec_pretty(results).context("serialising the records")?)?;
        write("runs.zst", &compact::pack(results)?)?;
        write("release.json", &serde_json::to_vec_pretty(&Release::of(results)).context("serialising the release")?)?;
        write("fairness.json", &serde_json::to_vec_pretty(&statements(results)?).context("serialising statements")?)?;
        write("report.md", fair_report::markdown(&document)?.as_bytes())?;
        write("report.html", fair_report::html(&document)?.as_bytes())?;
        for figure in &figures {
            let svg = figure.plot.svg().with_context(|| format!("drawing {}", figure.stem))?;
            write(&format!("plots/{}.svg", figure.stem), svg.as_bytes())?;
            let png = plot::png(&svg).with_context(|| format!("drawing {}", figure.stem))?;
            write(&format!("plots/{}.png", figure.stem), &png)?;
        }
        Ok(Summary::new(results, &document))
    })
}

/// The parts of a report that are committed, as paths and contents: its text without long tables
/// and lists, and the plots in it. Those of the details are there if their names, without extension,
/// are among `shown`.
///
/// # Errors
/// As [`write()`], but that no file is written.
pub fn committed(
    results: &StudyResults,
    presentation: &StudyPresentation,
    shown: &BTreeSet<String>,
) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let (mut document, figures) = compose(results, presentation)?;
    short::shorten(&mut document, &results.study, shown);
    let in_text = short::shown(&document);
    let mut files = vec![("report.md".to_owned(), fair_report::markdown(&document)?.into_bytes())];
    for figure in figures.iter().filter(|figure| in_text.contains(figure.stem.as_str())) {
        let svg = figure.plot.svg().with_context(|| format!("drawing {}", figure.stem))?;
        files.push((format!("plots/{}.svg", figure.stem), svg.into_bytes()));
    }
    if !presentation.ranked.is_empty() {
        let rows = serde_json::json!({ "rows": ranking::rows(results, &presentation.ranked) });
        files.push(("summary.json".to_owned(), serde_json::to_vec_pretty(&rows).context("serialising a ranking")?));
    }
    Ok(files)
}

/// Who pays for privacy, for every private method of every experiment that is not a grid.
fn statements(results: &StudyResults) -> anyhow::Result<Vec<fairness::MethodStatement>> {
    let experiments = results.experiments.iter().filter(|experiment| !is_grid(experiment));
    let statements = experiments
        .map(|experiment| fairness::statements(experiment, Mark::new(experiment.dataset.synthetic, results.quick)));
    Ok(statements.collect::<anyhow::Result<Vec<_>>>()?.concat())
}

/// The document and its plots.
fn compose(results: &StudyResults, presentation: &StudyPresentation) -> anyhow::Result<(Document, Vec<DrawnFigure>)> {
    let mark_of = |experiment: &ExperimentResults| Mark::new(experiment.dataset.synthetic, results.quick);
    let answers = answers(results, presentation)?;
    let mut figures = Vec::new();
    for experiment in &results.experiments {
        figures.push(figures_of(results, experiment, presentation, mark_of(experiment))?);
    }
    let (answer, mut all_figures) = match side_by_side::section(results, &presentation.ranked)? {
        Some((section, figures)) => (Some(section), figures),
        None => (answer::section(results, &figures)?, Vec::new()),
    };
    let is_shown = |figure: &DrawnFigure| answer.as_ref().is_some_and(|section| answer::shows(section, figure));
    let mut details = Vec::new();
    for (experiment, figures) in results.experiments.iter().zip(&figures) {
        let plots = figures.iter().filter(|figure| !is_shown(figure)).map(|figure| Ok(Block::Figure(drawn(figure)?)));
        let plots = plots.collect::<anyhow::Result<_>>()?;
        details.extend(experiment_sections(results, presentation, experiment, plots)?);
    }
    let mut sections: Vec<Section> = answer.into_iter().chain([release(results), summary(&answers)]).collect();
    sections.extend(claims::section(results, presentation)?);
    sections.extend(pooled::section(results, presentation)?);
    sections.extend(answers.iter().map(|(answer, mark)| answer.section(*mark).folded()));
    sections.extend(details);
    all_figures.extend(figures.into_iter().flatten());
    sections.push(Section::new("how-it-was-run", "How it was run", setting::study(results)).folded());
    let document = Document { title: presentation.title.clone(), mark: document_mark(results), sections };
    Ok((document, all_figures))
}

/// What a document is marked with.
fn document_mark(results: &StudyResults) -> Option<fair_report::Notice> {
    let mark = Mark::new(results.synthetic, results.quick)?;
    Some(fair_report::Notice { label: mark.label(), meaning: mark.meaning() })
}

/// The plots of one experiment.
fn figures_of(
    results: &StudyResults,
    experiment: &ExperimentResults,
    presentation: &StudyPresentation,
    mark: Option<Mark>,
) -> anyhow::Result<Vec<DrawnFigure>> {
    let mut figures = if is_grid(experiment) {
        let earlier = landscape::rungs_before(&results.experiments, &experiment.id);
        landscape::figures(experiment, &earlier, search_of(presentation, experiment)?.judged, mark)?
    } else {
        let mut figures = figures::figures(experiment, &presentation.tables, mark)?;
        figures.extend(decomposition::figures(experiment, mark)?);
        figures
    };
    counterparts::cite(&mut figures);
    for figure in &mut figures {
        figure.alt = marked(mark, &figure.alt);
    }
    Ok(figures)
}

/// Every published table whose experiment was run, answered.
fn answers<'a>(
    results: &'a StudyResults,
    presentation: &'a StudyPresentation,
) -> anyhow::Result<Vec<(Answer<'a>, Option<Mark>)>> {
    let mut answers = Vec::new();
    for table in &presentation.tables {
        if let Some(experiment) = results.experiments.iter().find(|experiment| experiment.id == table.experiment) {
            let mark = Mark::new(experiment.dataset.synthetic, results.quick);
            answers.push((Answer::new(table, experiment, mark)?, mark));
        }
    }
    Ok(answers)
}

/// The verdicts and the ε of every experiment, as Markdown.
///
/// # Errors
/// If the records are inconsistent with the presentation.
pub fn at_length(results: &StudyResults, presentation: &StudyPresentation) -> anyhow::Result<String> {
    let mut sections = vec![release(results), summary(&answers(results, presentation)?)];
    sections.extend(claims::section(results, presentation)?);
    for experiment in results.experiments.iter().filter(|experiment| !is_grid(experiment)) {
        let mark = Mark::new(experiment.dataset.synthetic, results.quick);
        let mut blocks = privacy::blocks(experiment, results.seed.is_some(), mark);
        if experiment.methods.iter().any(|method| method.method == metric::REFERENCE) {
            blocks.push(Block::List(fairness::in_words(experiment, mark)?));
        }
        sections.push(Section::new(&experiment.id, &experiment.title, blocks));
    }
    Ok(fair_report::markdown(&Document { title: presentation.title.clone(), mark: document_mark(results), sections })?)
}

/// What may be released of what follows.
fn release(results: &StudyResults) -> Section {
    Section::new("release", "What may be released", privacy::what_may_be_released(results))
}

fn summary(answers: &[(Answer<'_>, Option<Mark>)]) -> Section {
    let mut blocks = Vec::new();
    if answers.is_empty() {
        blocks.push(Block::Paragraph("No published table was run.".to_owned()));
    } else {
        let rows = || answers.iter().flat_map(|(answer, _)| &answer.rows);
        let count = |wanted: &dyn Fn(&Verdict) -> bool| rows().filter(|row| wanted(&row.verdict)).count();
        blocks.push(Block::Paragraph(format!(
            "Rows of published tables: {}. Agrees: {}; too wide to tell: {}; same ordering: {}; differs: {}; no verdict: {}.",
            rows().count(),
            count(&|verdict| *verdict == Verdict::Agrees),
            count(&|verdict| *verdict == Verdict::TooWide),
            count(&|verdict| matches!(verdict, Verdict::SameOrdering(_))),
            count(&|verdict| *verdict == Verdict::Differs),
            count(&|verdict| matches!(verdict, Verdict::None(_))),
        )));
        blocks.extend(answers.iter().map(|(answer, mark)| Block::Table(answer.summary(*mark))));
        blocks.push(Block::Paragraph("What the verdicts mean:".to_owned()));
        blocks.push(Block::List(comparison::verdict_definition()));
    }
    Section::new("verdicts", "Verdicts", blocks)
}

fn experiment_sections(
    results: &StudyResults,
    presentation: &StudyPresentation,
    experiment: &ExperimentResults,
    plots: Vec<Block>,
) -> anyhow::Result<Vec<Section>> {
    let mark = Mark::new(experiment.dataset.synthetic, results.quick);
    let part = |name: &str, title: &str, blocks| Section::part(format!("{}-{name}", experiment.id), title, blocks);
    let head = Section::new(&experiment.id, &experiment.title, Vec::new()).folded();
    let mut sections = vec![head];
    if is_grid(experiment) {
        let earlier = landscape::rungs_before(&results.experiments, &experiment.id);
        let search = search_of(presentation, experiment)?;
        sections.push(part("grid", "Grid", landscape::blocks(experiment, &earlier, search, mark)?));
    } else {
        let privacy = privacy::blocks(experiment, results.seed.is_some(), mark);
        if !privacy.is_empty() {
            sections.push(part("privacy", "Privacy", privacy));
        }
        sections.push(part("fairness", "Fairness", fairness::blocks(experiment, mark)?));
        let why = decomposition::blocks(experiment, mark)?;
        if !why.is_empty() {
            sections.push(part("why", "Why clipping is unfair", why));
        }
    }
    if !plots.is_empty() {
        sections.push(part("plots", "Plots", plots));
    }
    sections.push(part("setting", "Data, model and runs", setting::experiment(experiment, mark)));
    Ok(sections)
}

/// The search that an experiment's grid belongs to.
fn search_of<'a>(presentation: &'a StudyPresentation, grid: &ExperimentResults) -> anyhow::Result<&'a Searched> {
    presentation.search_of(&grid.id).with_context(|| format!("{}: a grid that no search of the study has", grid.id))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use run_records::output::Contents;

    use super::fixture::presentation;
    use super::*;

    fn claim(out: &Path) -> ReportFolder {
        ReportFolder::claim(out, "adult", &presentation().title, Contents::ReportAndRecords).unwrap()
    }

    fn markdown(results: &StudyResults) -> String {
        fair_report::markdown(&compose(results, &presentation()).unwrap().0).unwrap()
    }

    /// Captions of the tables of a Markdown report.
    fn captions(markdown: &str) -> Vec<&str> {
        markdown.lines().filter(|line| line.starts_with("**")).collect()
    }

    #[test]
    fn report_of_fixed_records() {
        insta::assert_snapshot!(markdown(&fixture::study()));
    }

    #[test]
    fn synthetic_records_are_marked_everywhere_and_never_judged() {
        let mut results = fixture::study();
        results.synthetic = true;
        results.experiments[0].dataset.synthetic = true;
        let (document, figures) = compose(&results, &presentation()).unwrap();
        let text = fair_report::markdown(&document).unwrap();
        assert!(captions(&text).len() >= 8);
        for caption in captions(&text) {
            assert!(caption.starts_with("**SYNTHETIC: "), "{caption}");
        }
        for figure in &figures {
            assert!(figure.caption.starts_with("SYNTHETIC: "), "{}", figure.caption);
            assert!(figure.alt.starts_with("SYNTHETIC: "), "{}", figure.alt);
            assert!(figure.plot.svg().unwrap().contains("SYNTHETIC"));
            for panel in figure.plot.panel_svgs().unwrap() {
                assert!(panel.contains("SYNTHETIC"));
            }
        }
        let statements = serde_json::to_value(statements(&results).unwrap()).unwrap();
        assert!(statements.as_array().unwrap().iter().all(|statement| statement["mark"] == "SYNTHETIC"));
        assert_eq!(serde_json::to_value(Release::of(&results)).unwrap()["mark"], "SYNTHETIC");
        for verdict in ["| agrees", "| same ordering", "| differs", "SE ✓", "same digits"] {
            assert!(!text.contains(verdict), "{verdict}");
        }
    }

    #[test]
    fn quick_runs_are_marked_and_never_judged() {
        let mut results = fixture::study();
        results.quick = true;
        let text = markdown(&results);
        assert!(captions(&text).iter().all(|caption| caption.starts_with("**QUICK: ")));
        assert!(!text.contains("| agrees"));
    }

    #[test]
    fn methods_groups_and_seeds_may_be_missing() {
        let mut results = fixture::study();
        let experiment = &mut results.experiments[0];
        experiment.methods.retain(|method| method.method != "non-private");
        experiment.methods[1].runs.clear();
        experiment.methods[2].runs.truncate(1);
        for run in &mut experiment.methods[3].runs {
            run.test.groups[1] = run_records::GroupMetrics { n: 0, accuracy: None, loss: None };
        }
        let text = markdown(&results);
        assert!(text.contains("undefined"));
        results.experiments.clear();
        assert!(markdown(&results).contains("No published table was run."));
    }

    #[test]
    fn failed_runs_are_listed_and_their_method_gets_no_verdict() {
        let mut results = fixture::study();
        let dpsgd = &mut results.experiments[0].methods[1];
        dpsgd.runs.truncate(4);
        dpsgd.failures = vec![run_records::FailureRecord { index: 4, reason: "it diverged".to_owned() }];
        let text = markdown(&results);
        assert!(text.contains("- DPSGD, seed 5: it diverged"), "{text}");
        assert!(text.contains("| **DPSGD** | no verdict: a run failed |"), "{text}");
    }

    #[test]
    fn an_unknown_group_is_an_error() {
        let mut results = fixture::study();
        results.experiments[0].dataset.groups[0].name = "men".to_owned();
        let error = compose(&results, &presentation()).err().unwrap();
        assert_eq!(error.to_string(), "experiment `esipova-adult` has no group `male`, only men, female");
    }

    #[test]
    fn everything_is_written_and_the_records_come_back() {
        let parent = tempfile::tempdir().unwrap();
        let out = parent.path().join("adult");
        let results = fixture::study();
        write(&results, &presentation(), &claim(&out)).unwrap();
        let json = fs::read(out.join("results.json")).unwrap();
        assert_eq!(serde_json::from_slice::<StudyResults>(&json).unwrap(), results);
        for stem in ["accuracy", "loss", "gradient-norm", "thresholds"] {
            let png = fs::read(out.join(format!("plots/esipova-adult-{stem}.png"))).unwrap();
            assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
        }
        assert!(fs::read_to_string(out.join("report.html")).unwrap().contains("</html>"));
    }

    #[test]
    fn a_report_that_cannot_be_drawn_leaves_the_earlier_one() {
        let parent = tempfile::tempdir().unwrap();
        let out = parent.path().join("adult");
        let mut results = fixture::study();
        write(&results, &presentation(), &claim(&out)).unwrap();
        let before = fs::read(out.join("results.json")).unwrap();
        results.experiments[0].id = "no/such/directory/at/all".to_owned();
        let error = write(&results, &presentation(), &claim(&out)).unwrap_err();
        assert!(format!("{error:#}").contains("no/such/directory/at/all"), "{error:#}");
        assert_eq!(fs::read(out.join("results.json")).unwrap(), before);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1);
    }
}
