//! The reports under `docs/results`, rendered from the records that are committed with them.
//!
//! `docs/results/records/STUDY.json.gz` holds the records of `docs/results/STUDY`. A rule of a
//! report can so be changed, and every report with it, without training anything again; a test
//! compares the reports with what their records give.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::Parser;
use flate2::Compression;
use flate2::write::GzEncoder;
use run_records::output::Output;
use run_records::{compact, metrics_csv};
use study_report::StudyPresentation;

use super::study::{Protocol, StudyArgs};
use super::table;
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
pub struct CommittedReport {
    /// For example `adult`.
    pub study: String,
    /// Where it is.
    pub folder: PathBuf,
    records: PathBuf,
}

/// A file of a report: its path in the report's folder, and what is in it.
pub type ReportFile = (String, Vec<u8>);

impl CommittedReport {
    /// Every report with committed records, by name; none where there is no such folder.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn all() -> anyhow::Result<Vec<Self>> {
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
    pub fn files(&self) -> anyhow::Result<Vec<ReportFile>> {
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
    pub fn render(&self) -> anyhow::Result<()> {
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
///
/// # Errors
/// If there is no such study.
pub fn presentation(study: &str) -> anyhow::Result<StudyPresentation> {
    let mut args = Defaults::try_parse_from(["reproduce"]).context("the usual options of a study")?.study;
    let (study, protocol) = Protocol::of_report(study);
    args.protocol = protocol;
    if let Some(analysis) = analyse::study(study, &args)? {
        return Ok(analysis.presentation);
    }
    let known = table::find(study).with_context(|| format!("records of {study}: no such study"))?;
    Ok((known.make)(&args)?.presentation)
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

    /// A table or claim about a method that is not trained would be left out of the report in
    /// silence.
    #[test]
    fn every_name_is_that_of_something_trained() {
        for protocol in [Protocol::Text, Protocol::Code] {
            let mut args = Defaults::try_parse_from(["reproduce"]).unwrap().study;
            args.protocol = protocol;
            for study in table::TRAINING {
                let made = (study.make)(&args).unwrap();
                assert_eq!(Protocol::of_report(&made.name).0, study.name);
                made.ensure_names().unwrap();
                if study.analysis.is_some() {
                    analyse::study(&format!("analyse-{}", study.name), &args).unwrap().unwrap().ensure_names().unwrap();
                }
            }
        }
    }
}
