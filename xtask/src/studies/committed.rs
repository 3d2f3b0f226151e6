//! The reports under `docs/results`, rendered from the records that are committed with them.
//!
//! `docs/results/records/STUDY.runs.zst` holds the records of `docs/results/STUDY`. A rule of a
//! report can so be changed, and every report with it, without training anything again; a test
//! compares the reports with what their records give.
//!
//! Committed is what is read: the text without long tables and lists, the plots that it shows
//! outside its details, and those that another page shows. The rest is in the whole report, which
//! follows from the same records.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Parser;
use run_records::join::SUFFIX;
use run_records::output::{Contents, Output, ReportFolder};
use run_records::{StudyResults, compact, metrics_csv};
use study_report::StudyPresentation;

use super::pages::{page_texts, plots_in};
use super::study::{Protocol, StudyArgs};
use super::table;
use crate::paths::exports_folder;
use crate::studies::analyse;

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
    /// Names of the plots that pages show, without extension.
    shown: BTreeSet<String>,
}

/// A file of a report: its path in the report's folder, and what is in it.
pub type ReportFile = (String, Vec<u8>);

impl CommittedReport {
    /// Every report with committed records, by name; none where there is no such folder.
    ///
    /// # Errors
    /// If the folder or a page of the documentation cannot be read.
    pub fn all() -> anyhow::Result<Vec<Self>> {
        let folder = exports_folder().join("records");
        let mut reports = Vec::new();
        if !folder.is_dir() {
            return Ok(reports);
        }
        let pages = page_texts()?;
        for entry in fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
            let path = entry.with_context(|| format!("reading {}", folder.display()))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if let Some(study) = name.strip_suffix(SUFFIX) {
                reports.push(Self {
                    study: study.to_owned(),
                    folder: exports_folder().join(study),
                    records: path.clone(),
                    shown: pages.iter().flat_map(|page| plots_in(page, study)).collect(),
                });
            }
        }
        reports.sort_by(|a, b| a.study.cmp(&b.study));
        Ok(reports)
    }

    fn read(&self) -> anyhow::Result<(StudyResults, StudyPresentation)> {
        Ok((compact::read(&self.records, &self.study)?, presentation(&self.study)?))
    }

    /// Its files as the records give them.
    ///
    /// # Errors
    /// If the records are not those of the study, or do not fit its presentation.
    pub fn files(&self) -> anyhow::Result<Vec<ReportFile>> {
        let (results, presentation) = self.read()?;
        study_report::committed(&results, &presentation, &self.shown)
    }

    /// Writes its files in the place of the earlier ones.
    ///
    /// # Errors
    /// As [`Self::files`], and if the folder cannot be written.
    pub(crate) fn renew(&self) -> anyhow::Result<()> {
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

    /// Writes the whole report to a folder in `out` that is named after the study, and the table of
    /// its metrics beside it. Returns the folder.
    ///
    /// # Errors
    /// As [`Self::files`], and if `out` holds something else or cannot be written.
    pub fn write_whole(&self, out: &Path) -> anyhow::Result<PathBuf> {
        let (results, presentation) = self.read()?;
        let path = out.join(&self.study);
        let folder = ReportFolder::claim(&path, &self.study, &presentation.title, Contents::Report)?;
        let metrics = Output::new(&out.join(format!("{}-metrics.csv", self.study)), &[&self.records])?;
        study_report::write(&results, &presentation, &folder)?;
        metrics.write_bytes(&metrics_csv(&results)?)?;
        Ok(path)
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
