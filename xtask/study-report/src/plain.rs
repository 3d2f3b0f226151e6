//! A report that is not made from stored runs: text, results and plots of its own, found and
//! described by the index like any other.

use anyhow::Context;
use fair_report::plot::{self, Plot};
use run_records::output::ReportFolder;
use serde::Serialize;

use super::summary::{Plot as SummaryPlot, Summary, Tally};

/// What it consists of.
pub struct PlainReport<'a> {
    /// Title in the index.
    pub title: &'a str,
    /// The report itself, Markdown.
    pub text: &'a str,
    /// Published figures that agree, and those that do not.
    pub agreeing: (usize, usize),
    /// A plot by the stem of its file name, and what it shows in words.
    pub plot: Option<(&'a str, &'a str, &'a Plot)>,
}

/// Writes `report.md`, `results.json`, `summary.json` and `plots/` to the directory `out`, as
/// [`super::write`] does.
///
/// # Errors
/// If files cannot be written. An earlier report is then still in place.
pub fn write_plain(report: &PlainReport<'_>, results: &impl Serialize, out: &ReportFolder) -> anyhow::Result<()> {
    out.replace(|staging| {
        let mut write = |name: &str, bytes: &[u8]| staging.write(name, bytes);
        write("results.json", &serde_json::to_vec_pretty(results).context("serialising the results")?)?;
        write("report.md", report.text.as_bytes())?;
        if let Some((stem, _, plot)) = report.plot {
            let svg = plot.svg()?;
            write(&format!("plots/{stem}.svg"), svg.as_bytes())?;
            write(&format!("plots/{stem}.png"), &plot::png(&svg)?)?;
        }
        let (good, bad) = report.agreeing;
        Ok(Summary {
            title: report.title.to_owned(),
            mark: None,
            rows: Tally { good, bad, ..Tally::default() },
            claims: Tally::default(),
            n_runs: 0,
            wall_seconds: 0.0,
            plot: report
                .plot
                .map(|(stem, alt, _)| SummaryPlot { file: format!("plots/{stem}.svg"), alt: alt.to_owned() }),
        })
    })
}
