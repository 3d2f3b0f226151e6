//! The reports under `docs/results`, rendered from the records that are committed with them.
//!
//! `docs/results/records/STUDY.json.gz` holds the records of `docs/results/STUDY`. A rule of a report can so be changed, and every
//! report with it, without training anything again; a test compares the reports with what their records give.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::Parser;
use flate2::Compression;
use flate2::write::GzEncoder;
use run_records::output::Output;
use run_records::{compact, metrics_csv};
use study_report::StudyPresentation;

use super::TRAINING;
use super::study::{Protocol, StudyArgs};
use crate::paths::exports_folder;
use crate::studies::analyse;

/// The end of the name of a file of records.
const SUFFIX: &str = ".json.gz";
/// A table of metrics above this size is committed compressed, in bytes.
const MAX_PLAIN: usize = 1 << 20;

/// The options of a study when none is given.
#[derive(Parser)]
struct Defaults {
    #[command(flatten)]
    study: StudyArgs,
}

/// A report that is committed, by its study's name.
pub(crate) struct CommittedReport {
    /// For example `adult`.
    pub(crate) study: String,
    records: PathBuf,
    folder: PathBuf,
}

/// A file of a report: its path in the report's folder, and what is in it.
pub(crate) type ReportFile = (String, Vec<u8>);

impl CommittedReport {
    /// Every report with committed records, by name; none where there is no such folder.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub(crate) fn all() -> anyhow::Result<Vec<Self>> {
        let folder = exports_folder().join("records");
        let mut reports = Vec::new();
        if !folder.is_dir() {
            return Ok(reports);
        }
        for entry in fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
            let path = entry.with_context(|| format!("reading {}", folder.display()))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if let Some(study) = name.strip_suffix(SUFFIX) {
                reports.push(Self {
                    study: study.to_owned(),
                    folder: exports_folder().join(study),
                    records: path.clone(),
                });
            }
        }
        reports.sort_by(|a, b| a.study.cmp(&b.study));
        Ok(reports)
    }

    /// Its files as the records give them: text, plots and metrics.
    ///
    /// # Errors
    /// If the records are not those of the study, or do not fit its presentation.
    pub(crate) fn files(&self) -> anyhow::Result<Vec<ReportFile>> {
        let results = compact::read(&self.records, &self.study)?;
        let mut files = study_report::committed(&results, &presentation(&self.study)?)?;
        let metrics = metrics_csv(&results)?;
        files.push(if metrics.len() > MAX_PLAIN {
            ("metrics.csv.gz".to_owned(), gzip(&metrics)?)
        } else {
            ("metrics.csv".to_owned(), metrics)
        });
        Ok(files)
    }

    /// Writes its files in the place of the earlier ones.
    ///
    /// # Errors
    /// As [`Self::files`], and if the folder cannot be written.
    pub(crate) fn render(&self) -> anyhow::Result<()> {
        let files = self.files()?;
        let plots = self.folder.join("plots");
        fs::create_dir_all(&plots).with_context(|| format!("creating {}", plots.display()))?;
        for (name, bytes) in &files {
            Output::new(&self.folder.join(name), &[])?.write_bytes(bytes)?;
        }
        // Drawings that the report no longer has.
        for entry in fs::read_dir(&plots).with_context(|| format!("reading {}", plots.display()))? {
            let path = entry.with_context(|| format!("reading {}", plots.display()))?.path();
            let is_drawn = files.iter().any(|(name, _)| self.folder.join(name) == path);
            if !is_drawn && path.extension().is_some_and(|extension| extension == "svg") {
                fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
            }
        }
        Ok(())
    }
}

/// What a study's report says beyond its records, with the study's usual options.
pub(crate) fn presentation(study: &str) -> anyhow::Result<StudyPresentation> {
    let mut args = Defaults::try_parse_from(["reproduce"]).context("the usual options of a study")?.study;
    let (study, protocol) = Protocol::of_report(study);
    args.protocol = protocol;
    if let Some(analysis) = analyse::study(study, &args)? {
        return Ok(analysis.presentation);
    }
    let (_, make) = TRAINING
        .iter()
        .find(|(name, _)| *name == study)
        .with_context(|| format!("records of {study}: no such study"))?;
    Ok(make(&args)?.presentation)
}

fn gzip(bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    use std::io::Write;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).context("packing the metrics")?;
    encoder.finish().context("packing the metrics")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures of a report's columns of ε: how many carry their mark, and those that do not. The column of printed ε has the papers'.
    fn epsilons(report: &str) -> (usize, Vec<String>) {
        const MARKS: [&str; 3] = ["(certified", "(conditional", "nominal, not a guarantee"];
        let (mut columns, mut n_marked, mut unmarked) = (Vec::new(), 0, Vec::new());
        for line in report.lines() {
            if line.starts_with("|---") {
                continue;
            }
            let Some(row) = line.strip_prefix("| ") else {
                columns.clear();
                continue;
            };
            let cells: Vec<&str> = row.split(" | ").collect();
            if columns.is_empty() {
                let is_ours = |cell: &&str| cell.trim().starts_with("ε") && !cell.contains("printed");
                columns = cells.iter().map(is_ours).collect();
                continue;
            }
            for (cell, _) in cells.iter().zip(&columns).filter(|(_, is_ours)| **is_ours) {
                for figure in cell.split("<br>").filter(|part| part.starts_with(|c: char| c.is_ascii_digit())) {
                    if MARKS.iter().any(|mark| figure.contains(mark)) {
                        n_marked += 1;
                    } else {
                        unmarked.push(figure.to_owned());
                    }
                }
            }
        }
        (n_marked, unmarked)
    }

    /// A table or claim about a method that is not trained would be left out of the report in silence.
    #[test]
    fn every_name_is_that_of_something_trained() {
        for protocol in [Protocol::Text, Protocol::Code] {
            let mut args = Defaults::try_parse_from(["reproduce"]).unwrap().study;
            args.protocol = protocol;
            for (_, make) in TRAINING {
                make(&args).unwrap().ensure_names().unwrap();
            }
            for study in ["analyse-adult", "analyse-dutch", "analyse-celeba", "analyse-mnist"] {
                analyse::study(study, &args).unwrap().unwrap().ensure_names().unwrap();
            }
        }
    }

    #[test]
    fn what_follows_the_code_stands_beside_the_text() {
        for study in ["adult", "dutch", "grid", "income", "mnist"] {
            let text = presentation(study).unwrap();
            let code = presentation(&format!("{study}-code")).unwrap();
            assert_eq!(code.title, format!("{}, as in the authors' code", text.title));
            // No published table but those of the text.
            assert!(code.tables.iter().all(|table| text.tables.iter().any(|other| other.id == table.id)), "{study}");
        }
    }

    #[test]
    fn an_unmarked_epsilon_is_seen() {
        let report = "| Method | ε of one run | ε, printed |\n|---|---|---|\n| **a** | 3.1 (certified), PLD<br>4.2 (RDP) | 3.1 |\n";
        assert_eq!(epsilons(report), (1, vec!["4.2 (RDP)".to_owned()]));
    }

    #[test]
    fn no_committed_report_shows_an_unmarked_epsilon() {
        for report in CommittedReport::all().unwrap() {
            let path = report.folder.join("report.md");
            let text = fs::read_to_string(&path).unwrap();
            let (n_marked, unmarked) = epsilons(&text);
            assert_eq!(unmarked, Vec::<String>::new(), "{}", path.display());
            // Nor did the columns escape the test.
            assert!(n_marked > 0, "{}", path.display());
        }
    }

    #[test]
    fn every_committed_report_has_its_records() {
        let of_records: Vec<_> = CommittedReport::all().unwrap().into_iter().map(|report| report.folder).collect();
        for entry in fs::read_dir(exports_folder()).unwrap() {
            let folder = entry.unwrap().path();
            assert!(!folder.join("report.md").exists() || of_records.contains(&folder), "{}", folder.display());
        }
    }

    /// Whoever changes a rule of the reports renders them again: `cargo xtask results render`.
    #[test]
    fn committed_reports_are_what_their_records_give() {
        let reports = CommittedReport::all().unwrap();
        let mut stale = Vec::new();
        for report in &reports {
            let files = report.files().unwrap();
            for (name, expected) in &files {
                let path = report.folder.join(name);
                if fs::read(&path).ok().as_ref() != Some(expected) {
                    stale.push(path.display().to_string());
                }
            }
            let n_plots = fs::read_dir(report.folder.join("plots")).map_or(0, Iterator::count);
            assert_eq!(
                n_plots,
                files.iter().filter(|(name, _)| name.starts_with("plots/")).count(),
                "{}",
                report.study
            );
        }
        assert!(stale.is_empty(), "`cargo xtask results render` writes these anew:\n{}", stale.join("\n"));
    }
}
