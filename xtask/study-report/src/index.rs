//! One page over all reports of a folder.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use askama::Template;
use fair_report::number;
use run_records::output::Output;

use super::summary::{CLAIMS, ROWS, Summary, Tally};

/// In every index.
const TITLE: &str = "<title>Reproductions</title>";

/// A report in the index.
struct Entry {
    /// Study by its name on the command line.
    study: String,
    /// The report, relative to the index.
    link: String,
    /// `None` for reports that are not made from stored runs.
    summary: Option<Summary>,
}

/// A committed file.
struct Export {
    name: String,
    link: String,
}

#[derive(Template)]
#[template(path = "index.html")]
struct Index {
    style: &'static str,
    entries: Vec<Entry>,
    exports: Vec<Export>,
}

impl Index {
    fn runs(summary: &Summary) -> String {
        number::count(summary.n_runs as u64)
    }

    /// Verdicts in words, those that do not occur left out.
    fn verdicts(tally: Tally, [good, middling, bad]: [&str; 3]) -> String {
        let counts = [tally.good, tally.middling, tally.bad, tally.none];
        let words = [good, middling, bad, "without verdict"];
        let parts: Vec<String> = counts
            .iter()
            .zip(words)
            .filter(|(count, _)| **count > 0)
            .map(|(count, word)| format!("{} {word}", number::count(*count as u64)))
            .collect();
        if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
    }

    fn rows(summary: &Summary) -> String {
        Self::verdicts(summary.rows, ROWS)
    }

    fn claims(summary: &Summary) -> String {
        Self::verdicts(summary.claims, CLAIMS)
    }

    fn time(summary: &Summary) -> String {
        if summary.wall_seconds < 120.0 {
            format!("{:.0} s", summary.wall_seconds)
        } else {
            format!("{:.0} min", summary.wall_seconds / 60.0)
        }
    }
}

/// Writes `index.html` over all reports in the folders of `root`, and the files of `exports`, a
/// folder that is two levels above; returns where it is.
///
/// # Errors
/// If a folder or summary cannot be read, or the index not be written.
pub fn write_index(root: &Path, exports: Option<&Path>) -> anyhow::Result<PathBuf> {
    fs::create_dir_all(root).with_context(|| format!("creating {}", root.display()))?;
    let path = root.join("index.html");
    refuse_foreign(&path)?;
    let output = Output::new(&path, &[])?;
    let entries =
        names(root)?.iter().filter_map(|name| entry(root, name).transpose()).collect::<anyhow::Result<_>>()?;
    let exports = match exports {
        Some(folder) if folder.is_dir() => {
            names(folder)?.into_iter().map(|name| Export { link: format!("../../docs/results/{name}"), name }).collect()
        }
        _ => Vec::new(),
    };
    let page = Index { style: fair_report::STYLE, entries, exports }.render().context("rendering the index")?;
    output.write_bytes(page.as_bytes())?;
    Ok(path)
}

/// Refuses to replace a page that is no index of ours.
///
/// # Errors
/// Names the page.
pub fn refuse_foreign(path: &Path) -> anyhow::Result<()> {
    match fs::read_to_string(path) {
        Ok(page) if page.contains(TITLE) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Ok(_) => bail!("{} is no index of reports; it is not replaced", path.display()),
        Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
    }
}

/// Names in a folder, sorted, without those that begin with a dot.
fn names(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = fs::read_dir(folder)
        .and_then(|entries| {
            entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect::<Result<Vec<_>, _>>()
        })
        .with_context(|| format!("reading {}", folder.display()))?;
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    Ok(names)
}

/// `None` for a folder without a report.
fn entry(root: &Path, study: &str) -> anyhow::Result<Option<Entry>> {
    let folder = root.join(study);
    let Some(report) = ["report.html", "report.md"].into_iter().find(|name| folder.join(name).is_file()) else {
        return Ok(None);
    };
    let path = folder.join("summary.json");
    let summary = match fs::read(&path) {
        Ok(bytes) => Some(serde_json::from_slice(&bytes).with_context(|| format!("reading {}", path.display()))?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
    };
    Ok(Some(Entry { study: study.to_owned(), link: format!("{study}/{report}"), summary }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Plot;

    fn summary() -> Summary {
        Summary {
            title: "Adult & others".to_owned(),
            mark: None,
            rows: Tally { good: 12, middling: 3, bad: 0, none: 1 },
            claims: Tally::default(),
            n_runs: 1_250,
            wall_seconds: 754.0,
            plot: Some(Plot { file: "plots/a.svg".to_owned(), alt: "Bars.".to_owned() }),
        }
    }

    #[test]
    fn reports_are_found_and_described() {
        let root = tempfile::tempdir().unwrap();
        for name in ["adult", "toy", "unfinished", ".adult.partial-1"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        fs::write(root.path().join("adult/report.html"), "").unwrap();
        fs::write(root.path().join("adult/summary.json"), serde_json::to_vec(&summary()).unwrap()).unwrap();
        fs::write(root.path().join("toy/report.md"), "").unwrap();
        let exports = root.path().join("unfinished");
        fs::write(exports.join("adult-metrics.csv"), "").unwrap();
        let page = fs::read_to_string(write_index(root.path(), Some(&exports)).unwrap()).unwrap();
        insta::assert_snapshot!("index_page", page.split("<body>").nth(1).unwrap());
        for forbidden in ["<script", "http://", "https://", "@import", "url("] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
    }

    #[test]
    fn an_empty_folder_says_how_to_begin() {
        let root = tempfile::tempdir().unwrap();
        let page = fs::read_to_string(write_index(&root.path().join("new"), None).unwrap()).unwrap();
        assert!(page.contains("No report yet."), "{page}");
    }

    #[test]
    fn a_broken_summary_is_named() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("adult")).unwrap();
        fs::write(root.path().join("adult/report.html"), "").unwrap();
        fs::write(root.path().join("adult/summary.json"), "{").unwrap();
        let error = format!("{:#}", write_index(root.path(), None).unwrap_err());
        assert!(error.contains("adult/summary.json: EOF"), "{error}");
    }
}
