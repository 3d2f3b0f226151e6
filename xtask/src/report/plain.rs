//! A report that is not made from stored runs: text, results and plots of its own, found and described by the index like any other.

use std::fs;
use std::path::Path;

use anyhow::Context;
use serde::Serialize;

use super::staging;
use super::summary::{Plot as SummaryPlot, Summary, Tally};
use crate::plot::{self, Plot};

/// What it consists of.
pub(crate) struct PlainReport<'a> {
    /// Title in the index.
    pub(crate) title: &'a str,
    /// The report itself, Markdown.
    pub(crate) text: &'a str,
    /// Published figures that agree, and those that do not.
    pub(crate) agreeing: (usize, usize),
    /// A plot by the stem of its file name, and what it shows in words.
    pub(crate) plot: Option<(&'a str, &'a str, &'a Plot)>,
}

/// Writes `report.md`, `results.json`, `summary.json` and `plots/` to the directory `out`, as [`super::write`] does.
///
/// # Errors
/// If files cannot be written. An earlier report is then still in place.
pub(crate) fn write_plain(report: &PlainReport<'_>, results: &impl Serialize, out: &Path) -> anyhow::Result<()> {
    staging::replace_directory(out, |directory| {
        let write = |name: &str, bytes: &[u8]| {
            let path = directory.join(name);
            fs::write(&path, bytes).with_context(|| format!("writing {}", path.display()))
        };
        write("results.json", &serde_json::to_vec_pretty(results).context("serialising the results")?)?;
        write("report.md", report.text.as_bytes())?;
        let (good, bad) = report.agreeing;
        let summary = Summary {
            title: report.title.to_owned(),
            mark: None,
            rows: Tally { good, bad, ..Tally::default() },
            claims: Tally::default(),
            n_runs: 0,
            wall_seconds: 0.0,
            plot: report
                .plot
                .map(|(stem, alt, _)| SummaryPlot { file: format!("plots/{stem}.svg"), alt: alt.to_owned() }),
        };
        write("summary.json", &serde_json::to_vec_pretty(&summary).context("serialising the summary")?)?;
        if let Some((stem, _, plot)) = report.plot {
            let plots = directory.join("plots");
            fs::create_dir(&plots).with_context(|| format!("creating {}", plots.display()))?;
            let svg = plot.svg()?;
            write(&format!("plots/{stem}.svg"), svg.as_bytes())?;
            write(&format!("plots/{stem}.png"), &plot::png(&svg)?)?;
        }
        Ok(())
    })
}
