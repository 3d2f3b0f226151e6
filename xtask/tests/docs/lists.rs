//! Numbers of a page that have no comment beside them: the page lists them in comments of their own.
//!
//! | list | what is in it | what is checked |
//! |---|---|---|
//! | `settings:` | what was chosen, in a run or by a paper | a study or dp-linear has the number or its hundredth in its source, or it is part of a method's name in a comment |
//! | `printed:` | what a paper prints outside its tables of results | `printed.tsv` has it, with the place |
//! | `arithmetic:` | `A / B = C` or `A - B = C` | the result, as far as it is printed |
//! | `goals:` | what we wanted to reach | the section says "goal" |
//! | `suspected:` | figures of runs that are not committed | the section says so |
//!
//! Every number of a list, of arithmetic every result, has to stand on the page, so that none waits for
//! a figure to come.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use anyhow::{Context, ensure};
use fair_report::number;

const KINDS: [&str; 5] = ["settings", "printed", "arithmetic", "goals", "suspected"];

/// Numbers that are chosen in the source of the studies and of conditioned training.
static CHOSEN: LazyLock<Vec<f64>> = LazyLock::new(|| {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&xtask.join("src/studies"), &mut files);
    sources(&xtask.join("../crates/dp-linear/src"), &mut files);
    files.iter().flat_map(|path| decimals(&std::fs::read_to_string(path).unwrap())).collect()
});

/// What papers print outside their tables of results.
static PRINTED: LazyLock<Vec<f64>> = LazyLock::new(|| {
    let lines = include_str!("printed.tsv").lines().skip(1);
    lines.map(|line| line.split('\t').next().unwrap().parse().unwrap()).collect()
});

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
}

/// Numbers with a decimal point, with or without `_` between digits.
fn decimals(text: &str) -> Vec<f64> {
    let words = text.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'));
    let words = words.map(|word| word.trim_matches(['.', '_']).replace('_', ""));
    words.filter(|word| word.contains('.')).filter_map(|word| word.parse().ok()).collect()
}

/// One list of a page.
struct List<'a> {
    /// 0-based.
    line: usize,
    kind: &'static str,
    entries: Vec<&'a str>,
}

fn list(line: &str) -> Option<(&'static str, &str)> {
    let inner = line.trim_start().strip_prefix("<!-- ")?.strip_suffix(" -->")?;
    let (kind, entries) = inner.split_once(": ")?;
    Some((KINDS.into_iter().find(|known| *known == kind)?, entries))
}

/// Whether a line is a list and no prose.
pub(crate) fn is_list(line: &str) -> bool {
    list(line).is_some()
}

/// The lists of a page.
pub(crate) struct Lists<'a>(Vec<List<'a>>);

impl<'a> Lists<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        let lists = text.lines().enumerate().filter_map(|(line, text)| {
            list(text).map(|(kind, entries)| List { line, kind, entries: entries.split(", ").collect() })
        });
        Self(lists.collect())
    }

    /// Whether one of them has this number.
    pub(crate) fn has(&self, number: &str) -> bool {
        self.0.iter().any(|list| list.numbers().any(|listed| listed == number))
    }

    /// What is wrong with them on a page with these numbers in its prose.
    pub(crate) fn problems(&self, text: &str, prose: &[String]) -> Vec<String> {
        let mut problems = silent(text, "suspected", "suspect", "figures that no committed run has");
        problems.extend(silent(text, "goals", "goal", "goals that it does not call so"));
        for list in &self.0 {
            let mut wrong = |what: String| problems.push(format!("line {}: {}: {what}", list.line + 1, list.kind));
            for number in list.found().filter(|listed| !prose.iter().any(|number| number == listed)) {
                wrong(format!("{number} is not on the page"));
            }
            for entry in &list.entries {
                if let Err(error) = check(list.kind, entry, text) {
                    wrong(format!("{entry}: {error:#}"));
                }
            }
        }
        problems
    }
}

impl<'a> List<'a> {
    /// What has to stand on the page without a source: of arithmetic the results.
    fn found(&self) -> impl Iterator<Item = &'a str> {
        let entries = self.entries.iter().map(|entry| entry.rsplit(' ').next().unwrap_or(entry));
        entries.filter(|number| number.contains('.'))
    }

    /// The numbers with a decimal point in it.
    fn numbers(&self) -> impl Iterator<Item = &'a str> {
        let words = self.entries.iter().flat_map(|entry| entry.split(' '));
        words.filter(|word| word.contains('.'))
    }
}

fn check(kind: &str, entry: &str, text: &str) -> anyhow::Result<()> {
    if kind == "arithmetic" {
        return calculate(entry);
    }
    let value: f64 = entry.parse().context("expected a number")?;
    match kind {
        "settings" => {
            let is_it = |chosen: f64| (chosen - value).abs() < 1e-12 || (100.0 * chosen - value).abs() < 1e-10;
            let is_chosen = CHOSEN.iter().copied().any(is_it) || in_names(text).into_iter().any(is_it);
            ensure!(is_chosen, "no study chooses this: a result has a comment with its source");
        }
        "printed" => ensure!(PRINTED.contains(&value), "not in printed.tsv"),
        _ => {}
    }
    Ok(())
}

/// Coordinates in the names of methods, as in `dpsgd C=1.5`.
fn in_names(text: &str) -> Vec<f64> {
    let comments = text.split("<!-- ").skip(1).filter_map(|rest| rest.split(" -->").next());
    comments
        .filter(|comment| comment.contains(" / "))
        .flat_map(|comment| {
            let coordinates = comment.split('=').skip(1).filter_map(|rest| rest.split([' ', ',']).next());
            coordinates.filter_map(|word| word.parse().ok()).collect::<Vec<f64>>()
        })
        .collect()
}

fn calculate(entry: &str) -> anyhow::Result<()> {
    let words: Vec<&str> = entry.split(' ').collect();
    let [a, operation, b, "=", c] = words[..] else { anyhow::bail!("expected A / B = C or A - B = C") };
    let [x, y] = [a, b].map(str::parse::<f64>);
    let result = match operation {
        "/" => x? / y?,
        "-" => x? - y?,
        _ => anyhow::bail!("expected / or -, found {operation}"),
    };
    let decimals = c.split_once('.').map_or(0, |(_, digits)| digits.len());
    let expected = number::fixed(result, decimals);
    ensure!(c == expected, "it is {expected}");
    Ok(())
}

/// Sections with a list of this kind and without the word.
fn silent(text: &str, kind: &str, word: &str, what: &str) -> Vec<String> {
    let has_list = |section: &str| section.lines().any(|line| list(line).is_some_and(|(found, _)| found == kind));
    let says_so = |section: &str| section.lines().any(|line| !is_list(line) && line.to_lowercase().contains(word));
    let silent = sections(text).into_iter().filter(|(_, section)| has_list(section) && !says_so(section));
    silent.map(|(line, _)| format!("line {}: a section with {what}", line + 1)).collect()
}

/// The sections of a text, with the number of the first line of each.
fn sections(text: &str) -> Vec<(usize, String)> {
    let mut sections = vec![(0, String::new())];
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('#') {
            sections.push((index, String::new()));
        }
        if let Some((_, section)) = sections.last_mut() {
            section.push_str(line);
            section.push('\n');
        }
    }
    sections
}

#[test]
fn a_list_has_no_results() {
    let of = |text: &str, prose: &[&str]| {
        Lists::of(text).problems(text, &prose.iter().map(|number| (*number).to_owned()).collect::<Vec<_>>()).join("\n")
    };
    assert_eq!(of("<!-- settings: 0.5, 0.4 -->", &["0.5", "0.4"]), "", "C of the censuses, and a share in per cent");
    assert_eq!(
        of("<!-- settings: 0.87654 -->", &["0.87654"]),
        "line 1: settings: 0.87654: no study chooses this: a result has a comment with its source"
    );
    assert_eq!(of("x<!-- a / b / dpsgd C=1.23, ε=1 / loss / total -->\n<!-- settings: 1.23 -->", &["1.23"]), "");
    assert_eq!(of("<!-- settings: 0.5 -->", &[]), "line 1: settings: 0.5 is not on the page");
    assert_eq!(of("<!-- printed: 0.1, 0.4828 -->", &["0.1", "0.4828"]), "line 1: printed: 0.1: not in printed.tsv");
    assert_eq!(of("<!-- arithmetic: 14.0957 / 32 = 0.440 -->", &["14.0957", "0.440"]), "");
    assert_eq!(
        of("<!-- arithmetic: 0.834 - 0.086 = 0.76 -->", &["0.834", "0.086", "0.76"]),
        "line 1: arithmetic: 0.834 - 0.086 = 0.76: it is 0.75"
    );
    assert_eq!(of("# A\nOur goal.\n<!-- goals: 0.7 -->", &["0.7"]), "");
    assert_eq!(of("<!-- goals: 0.7 -->", &["0.7"]), "line 1: a section with goals that it does not call so");
    assert_eq!(of("# A\nSuspected: 0.7.\n<!-- suspected: 0.7 -->", &["0.7"]), "");
    assert_eq!(
        of("Suspected.\n# A\n0.7\n<!-- suspected: 0.7 -->", &["0.7"]),
        "line 2: a section with figures that no committed run has"
    );
}
