//! The figures of the documentation that are of studies, checked against the records: those of the
//! pages in `docs/papers` and `docs/reproductions`, and of every other page that says of one figure
//! where it is from.
//!
//! A figure or a verdict in the text is followed by a comment that says where it is from, parts
//! separated by ` / `:
//!
//! | comment | what stands before it |
//! |---|---|
//! | `STUDY / EXPERIMENT / METHOD / METRIC / GROUP` | our mean over seeds, or after `±` its standard error |
//! | `paper / FILE / METHOD / METRIC / GROUP` | the figure that the paper prints |
//! | `STUDY / claim / TEXT / verdict` | the verdict on a claim |
//! | `STUDY / claim / TEXT / p` | its p-value |
//! | `STUDY / claim / TEXT / family` | its p-value after Holm's adjustment for all claims of the report |
//! | `STUDY / claims / least` | the least of these |
//! | `STUDY / claims / number` | how many claims there are |
//! | `STUDY / pooled / METHOD / OTHER` | p-value of a pooled test |
//! | `STUDY / table / ID / rows` | rows that agree, `4 of 6` |
//! | `STUDY / table / ID / verdicts` | the same with the other verdicts, `4 of 6, 1 in order, 1 too wide to tell` |
//! | `STUDY / table / ID / figures` | figures that agree |
//! | `STUDY / row / ID / METHOD` | the verdict on a row |
//! | `STUDY / EXPERIMENT / METHOD / ledger / N` | noise multiplier of the N-th entry of the ledger of one run |
//! | `STUDY / EXPERIMENT / METHOD / precision / N` | its `count/σ²`, `all`: of all entries |
//! | `STUDY / EXPERIMENT / METHOD / share / N` | its share of all precision, in per cent |
//! | `STUDY / EXPERIMENT / METHOD / epsilon / run` | the least ε of one run |
//! | `STUDY / EXPERIMENT / BASE / time / minutes` | of all runs of a method on two threads; `fastest`, `slowest`: a run, in seconds |
//! | `STUDY / EXPERIMENT / OTHER / rank / BASE` | rank correlation of a search's points after two rungs, by macro accuracy on validation records |
//!
//! Every number with a decimal point has to have one, or to be in a list of its page
//! ([`crate::lists`]).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use fair_report::number;
use run_records::{ExperimentResults, PrivacyRecord, StudyResults, compact, made_up};
use study_report::claims::judge;
use study_report::comparison::Answer;
use study_report::metric::{Column, Metric};
use study_report::pooled::{self, PooledTest};
use study_report::published::PublishedTable;
use study_report::verdict::Verdict;
use study_report::{StudyPresentation, TablePresentation};
use xtask::presentation;

use crate::docs;
use crate::lists::{self, Lists};

/// Studies by name, each read once.
#[derive(Default)]
struct Records(BTreeMap<String, (StudyResults, StudyPresentation)>);

impl Records {
    fn study(&mut self, name: &str) -> anyhow::Result<&(StudyResults, StudyPresentation)> {
        if !self.0.contains_key(name) {
            let path = docs().join(format!("results/records/{name}.runs.zst"));
            self.0.insert(name.to_owned(), (compact::read(&path, name)?, presentation(name)?));
        }
        self.0.get(name).context("just inserted")
    }

    /// Checks what stands before a comment.
    fn check(&mut self, before: &str, comment: &str) -> anyhow::Result<()> {
        let parts: Vec<&str> = comment.split(" / ").map(str::trim).collect();
        match parts[..] {
            ["paper", file, method, metric, group] => {
                let path = format!("{}/src/studies/published/{file}.tsv", env!("CARGO_MANIFEST_DIR"));
                let table = PublishedTable::parse(&std::fs::read_to_string(&path).context(path)?)?;
                let column = Column::parse(metric, group)?;
                expect(before, printed(&table, method, &column, is_error(before))?)
            }
            [study, "claim", text, what] => {
                let (results, presentation) = self.study(study)?;
                let judged = judge(results, presentation)?;
                let claim = judged.iter().find(|judged| judged.claim.text == text).context("no such claim")?;
                match what {
                    "verdict" => expect_words(before, &claim.verdict.to_string()),
                    "p" => expect(before, claim.tested.p_claim),
                    "family" => expect(before, claim.p_in_family),
                    _ => bail!("`{what}`: expected verdict, p or family"),
                }
            }
            [study, "claims", what] => {
                let (results, presentation) = self.study(study)?;
                let judged = judge(results, presentation)?;
                match what {
                    "number" => expect(before, judged.len() as f64),
                    "least" => expect(before, judged.iter().map(|judged| judged.p_in_family).fold(1.0, f64::min)),
                    _ => bail!("`{what}`: expected number or least"),
                }
            }
            [study, "pooled", method, other] => {
                let (results, presentation) = self.study(study)?;
                let tests = pooled::tests(results, presentation)?;
                let is_it = |test: &&PooledTest| (test.methods.0.as_str(), test.methods.1.as_str()) == (method, other);
                expect(before, tests.iter().find(is_it).context("no such test")?.p)
            }
            [study, "table", id, what] => {
                let (results, presentation) = self.study(study)?;
                let answer = answer(results, presentation, id)?;
                let words = match what {
                    "rows" => rows_that_agree(&answer),
                    "verdicts" => verdicts(&answer),
                    "figures" => {
                        let (agreeing, all) = answer.figures_that_agree();
                        format!("{agreeing} of {all}")
                    }
                    _ => bail!("`{what}`: expected rows, verdicts or figures"),
                };
                expect_words(before, &words)
            }
            [study, "row", id, method] => {
                let (results, presentation) = self.study(study)?;
                let answer = answer(results, presentation, id)?;
                let row = answer.rows.iter().find(|row| row.method == method).context("no such row")?;
                let words = row.verdict.to_string();
                expect_words(before, words.split(" (").next().unwrap_or(&words))
            }
            [study, experiment, other, "rank", base] => {
                let (results, _) = self.study(study)?;
                let of = |id: &str| results.experiments.iter().find(|e| e.id == id).context("no such experiment");
                expect(before, rank_correlation(of(experiment)?, of(other)?, base)?)
            }
            [study, experiment, base, "time", what] => {
                let (results, _) = self.study(study)?;
                let experiment =
                    results.experiments.iter().find(|e| e.id == experiment).context("no such experiment")?;
                let runs = experiment.methods.iter().filter(|method| method.base == base).flat_map(|m| &m.runs);
                let seconds: Vec<f64> = runs.map(|run| run.seconds).collect();
                ensure!(!seconds.is_empty(), "no such method");
                let value = match what {
                    "minutes" => seconds.iter().sum::<f64>() / 60.0 / 2.0,
                    "fastest" => seconds.iter().copied().fold(f64::INFINITY, f64::min),
                    "slowest" => seconds.iter().copied().fold(0.0, f64::max),
                    _ => bail!("`{what}`: expected minutes, fastest or slowest"),
                };
                expect(before, value)
            }
            [study, experiment, method, what @ ("ledger" | "precision" | "share" | "epsilon"), which] => {
                let (results, _) = self.study(study)?;
                let experiment =
                    results.experiments.iter().find(|e| e.id == experiment).context("no such experiment")?;
                let method = experiment.methods.iter().find(|m| m.method == method).context("no such method")?;
                let privacy = method.privacy.as_ref().context("a method without an ε")?;
                expect(before, released(privacy, what, which)?)
            }
            [study, experiment, method, metric, group] => {
                let (results, _) = self.study(study)?;
                let experiment =
                    results.experiments.iter().find(|e| e.id == experiment).context("no such experiment")?;
                let method = experiment.methods.iter().find(|m| m.method == method).context("no such method")?;
                let estimate = Column::parse(metric, group)?.estimate(experiment, method)?;
                let value = if is_error(before) { estimate.standard_error } else { estimate.mean };
                expect(before, value.context("undefined")?)
            }
            _ => bail!("not understood"),
        }
    }
}

/// What a paper prints, also where it prints shares and a page per cent, changes of accuracy and a page
/// their negatives, or sums over records and a page means.
fn printed(table: &PublishedTable, method: &str, column: &Column, is_error: bool) -> anyhow::Result<f64> {
    let change = Column { metric: Metric::AccuracyChange, ..column.clone() };
    let cost = column.metric == Metric::PrivacyCost;
    for (candidate, sign) in [(Some(column), 1.0), (cost.then_some(&change), -1.0)] {
        let Some(candidate) = candidate else { continue };
        for (candidate, unit) in [(candidate.clone(), 1.0), (Column { percent: false, ..candidate.clone() }, 100.0)] {
            if let Some(cell) = table.cell(method, &candidate) {
                let figure = if is_error { cell.standard_error.context("no error printed")? } else { cell.value };
                return Ok(sign * unit * figure.value / cell.summed);
            }
        }
    }
    bail!("the paper prints no such figure")
}

/// Spearman's correlation of the macro accuracy on validation records of the points of a method that
/// two rungs of a search share.
fn rank_correlation(first: &ExperimentResults, second: &ExperimentResults, base: &str) -> anyhow::Result<f64> {
    let by_macro_accuracy = Column::parse("macro_accuracy", "total")?;
    let of = |experiment: &ExperimentResults, name: &str| -> anyhow::Result<Option<f64>> {
        let Some(mut method) = experiment.methods.iter().find(|method| method.method == name).cloned() else {
            return Ok(None);
        };
        for run in &mut method.runs {
            run.test = run.validation.take().context("no validation records")?;
        }
        Ok(by_macro_accuracy.estimate(experiment, &method)?.mean)
    };
    let mut pairs = Vec::new();
    for method in second.methods.iter().filter(|method| method.base == base) {
        pairs.extend(of(first, &method.method)?.zip(of(second, &method.method)?));
    }
    ensure!(pairs.len() > 2, "{} points in both", pairs.len());
    let ranks = |values: Vec<f64>| -> Vec<f64> {
        let rank = |value: &f64| {
            let (below, equal) = values.iter().fold((0.0, 0.0), |(below, equal), other| {
                (below + f64::from(other < value), equal + f64::from(other == value))
            });
            below + f64::midpoint(equal, 1.0)
        };
        values.iter().map(rank).collect()
    };
    let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
    let (a, b) = (ranks(a), ranks(b));
    let middle = f64::midpoint(a.len() as f64, 1.0);
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - middle) * (b - middle)).sum::<f64>();
    Ok(product(&a, &b) / (product(&a, &a) * product(&b, &b)).sqrt())
}

/// A figure of what one run releases: of one entry of its ledger, or of all.
fn released(privacy: &PrivacyRecord, what: &str, which: &str) -> anyhow::Result<f64> {
    if what == "epsilon" {
        return Ok(privacy.least_epsilon());
    }
    let entries = privacy.ledger["entries"].as_array().context("a ledger has entries")?;
    let of_entry = |entry: &serde_json::Value| {
        let gaussian = &entry["event"]["gaussian"];
        let sampled = &entry["event"]["poisson-sampled"]["event"]["gaussian"];
        let sigma = [gaussian, sampled].into_iter().find_map(|event| event["noise_multiplier"].as_f64());
        let (sigma, count) = sigma.zip(entry["count"].as_f64()).context("no Gaussian mechanism")?;
        anyhow::Ok((sigma, count / sigma.powi(2)))
    };
    let all = entries.iter().map(of_entry).collect::<anyhow::Result<Vec<_>>>()?;
    let total: f64 = all.iter().map(|(_, precision)| precision).sum();
    if (what, which) == ("precision", "all") {
        return Ok(total);
    }
    let position: usize = which.parse().context("the number of an entry")?;
    let (sigma, precision) = all.get(position.wrapping_sub(1)).context("no such entry")?;
    Ok(match what {
        "ledger" => *sigma,
        "precision" => *precision,
        _ => 100.0 * precision / total,
    })
}

fn answer<'a>(results: &'a StudyResults, presentation: &'a StudyPresentation, id: &str) -> anyhow::Result<Answer<'a>> {
    let table = presentation.tables.iter().find(|table| table.id == id).context("no such table")?;
    let experiment =
        results.experiments.iter().find(|e| e.id == table.experiment).context("its experiment was not run")?;
    Answer::new(table, experiment, None)
}

fn rows_with(answer: &Answer<'_>, is: impl Fn(&Verdict) -> bool) -> usize {
    answer.rows.iter().filter(|row| is(&row.verdict)).count()
}

fn rows_that_agree(answer: &Answer<'_>) -> String {
    format!("{} of {}", rows_with(answer, |verdict| *verdict == Verdict::Agrees), answer.rows.len())
}

fn verdicts(answer: &Answer<'_>) -> String {
    let mut words = rows_that_agree(answer);
    let others = [
        (rows_with(answer, |verdict| matches!(verdict, Verdict::SameOrdering(_))), "in order"),
        (rows_with(answer, |verdict| *verdict == Verdict::TooWide), "too wide to tell"),
    ];
    for (n, name) in others.iter().filter(|(n, _)| *n > 0) {
        words.push_str(&format!(", {n} {name}"));
    }
    words
}

/// The number at the end of a text.
fn last_number(text: &str) -> &str {
    let start = text
        .rfind(|c: char| !(c.is_ascii_digit() || c == '.' || c == '−'))
        .map_or(0, |position| position + text[position..].chars().next().map_or(0, char::len_utf8));
    &text[start..]
}

/// The number at the end of a text, if it is written as `3.2e-11`.
fn in_powers_of_ten(text: &str) -> Option<&str> {
    let (mantissa, exponent) = text.rsplit_once("e-")?;
    let start = mantissa.len() - last_number(mantissa).len();
    let is_number = start < mantissa.len() && !exponent.is_empty() && exponent.chars().all(|c| c.is_ascii_digit());
    is_number.then_some(&text[start..])
}

fn is_error(before: &str) -> bool {
    before[..before.len() - last_number(before).len()].ends_with("± ")
}

fn expect(before: &str, value: f64) -> anyhow::Result<()> {
    if let Some(found) = in_powers_of_ten(before) {
        let expected =
            format!("{value:.*e}", found.split('e').next().map_or(0, |digits| digits.len().saturating_sub(2)));
        ensure!(found == expected, "`{found}` is {expected} in the records");
        return Ok(());
    }
    let found = last_number(before);
    let decimals = found.split_once('.').map_or(0, |(_, digits)| digits.len());
    let expected = number::fixed(value, decimals);
    ensure!(found == expected, "`{found}` is {expected} in the records");
    Ok(())
}

fn expect_words(before: &str, words: &str) -> anyhow::Result<()> {
    let before = before.trim_end_matches('*');
    let preceding = before.strip_suffix(words).with_context(|| format!("expected `{words}`"))?;
    // "not reproduced" does not say "reproduced".
    ensure!(!preceding.ends_with("not "), "expected `{words}`, found `not {words}`");
    Ok(())
}

/// Lines without code spans, addresses of links and comments; numbers with a decimal point in what
/// is left.
fn bare_decimals(line: &str) -> Vec<String> {
    let mut plain = String::new();
    let mut rest = line;
    while let Some(start) = rest.find(['`', '<', '(']) {
        let (text, after) = rest.split_at(start);
        plain.push_str(text);
        let (open, close) = match after.as_bytes()[0] {
            b'`' => ("`", "`"),
            b'<' if after.starts_with("<!--") => ("<!--", "-->"),
            b'(' if text.ends_with(']') => ("(", ")"),
            _ => {
                plain.push_str(&after[..1]);
                rest = &after[1..];
                continue;
            }
        };
        // An annotated figure is checked: it is taken out with its comment.
        if open == "<!--" {
            let figure = in_powers_of_ten(&plain).unwrap_or_else(|| last_number(&plain));
            let kept = plain.len() - figure.len();
            plain.truncate(kept);
        }
        rest = after[open.len()..].split_once(close).map_or("", |(_, rest)| rest);
    }
    plain.push_str(rest);
    let numbers = plain.split(|c: char| !(c.is_ascii_digit() || c == '.')).map(|number| number.trim_matches('.'));
    numbers.filter(|number| number.contains('.')).map(str::to_owned).collect()
}

/// What is wrong with the figures of a text, and how many are checked.
fn problems(text: &str, records: &mut Records) -> (Vec<String>, usize) {
    let lists = Lists::of(text);
    let (mut problems, mut n_checked) = (Vec::new(), 0);
    let mut prose = Vec::new();
    let mut in_code = false;
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !lists::is_list(line)) {
        // Blocks of code hold no results.
        in_code ^= line.starts_with("```");
        if in_code {
            continue;
        }
        let mut rest = line;
        let mut consumed = 0;
        while let Some((before, after)) = rest.split_once("<!-- ") {
            let (comment, following) = after.split_once(" -->").unwrap_or((after, ""));
            n_checked += 1;
            if let Err(error) = records.check(&line[consumed..consumed + before.len()], comment) {
                problems.push(format!("line {}: {comment}: {error:#}", index + 1));
            }
            consumed = line.len() - following.len();
            rest = following;
        }
        let numbers = bare_decimals(line);
        for number in numbers.iter().filter(|number| !lists.has(number)) {
            problems.push(format!("line {}: {number} has no source", index + 1));
        }
        prose.extend(numbers);
    }
    problems.extend(lists.problems(text, &prose));
    (problems, n_checked)
}

/// The pages of a folder and below; what follows from records is not among them.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(pages(&path));
        } else if path.extension().is_some_and(|ending| ending == "md") && !path.ends_with("report.md") {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn every_figure_of_the_documentation_is_in_the_records() {
    let docs = docs();
    let mut records = Records::default();
    let (mut all, mut n_checked, mut n_pages) = (Vec::new(), 0, 0);
    for path in pages(&docs) {
        let text = std::fs::read_to_string(&path).unwrap();
        let of_studies = ["papers", "reproductions"].map(|folder| docs.join(folder));
        let has_source = |line: &str| line.contains(" / ") && line.contains("<!-- ") || lists::is_list(line);
        if !of_studies.iter().any(|folder| path.starts_with(folder)) && !text.lines().any(has_source) {
            continue;
        }
        n_pages += 1;
        let (problems, n) = problems(&text, &mut records);
        all.extend(problems.into_iter().map(|problem| format!("{}, {problem}", path.display())));
        n_checked += n;
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
    assert!(n_checked >= 1000 && n_pages >= 17, "{n_checked} figures on {n_pages} pages");
}

/// Esipova's Table 4, answered by [`made_up::study`].
fn answering_made_up() -> StudyPresentation {
    let published = include_str!("../../src/studies/published/esipova2023-table4-adult.tsv");
    let table = TablePresentation::new("esipova2023-table-4", "esipova-adult", published, Vec::new()).unwrap();
    StudyPresentation {
        ranked: Vec::new(),
        searches: Vec::new(),
        pooled: None,
        title: "Adult".to_owned(),
        tables: vec![table],
        claims: Vec::new(),
    }
}

#[test]
fn wrong_figures_are_found() {
    let mut records = Records::default();
    records.0.insert("adult".to_owned(), (made_up::study(), answering_made_up()));
    let mut of = |text: &str| problems(text, &mut records).0.join("\n");
    assert_eq!(of("It has 69.9<!-- adult / esipova-adult / dpsgd / accuracy_pct / male --> %."), "");
    assert_eq!(
        of("0.12 ± 0.3<!-- paper / esipova2023-table4-adult / dpsgd-f / privacy_cost_gap_pct / gap -->"),
        "line 1: 0.12 has no source"
    );
    assert_eq!(
        of("It has 69.8<!-- adult / esipova-adult / dpsgd / accuracy_pct / male --> %."),
        "line 1: adult / esipova-adult / dpsgd / accuracy_pct / male: `69.8` is 69.9 in the records"
    );
    assert_eq!(of("`1.5` and [a link](1.5) are none."), "");
    assert_eq!(of("<!-- settings: 0.5 -->\nC = 0.5"), "");
    assert_eq!(
        of("C = 0.5\n<!-- settings: 0.4 -->"),
        "line 1: 0.5 has no source\nline 2: settings: 0.4 is not on the page"
    );
    assert_eq!(
        of("It has 26.3<!-- paper / esipova2023-table2-mnist / dpsgd / accuracy / 8 --> %."),
        "line 1: paper / esipova2023-table2-mnist / dpsgd / accuracy / 8: the paper prints no such figure"
    );
    assert_eq!(of("8.6<!-- paper / xu2020-table5-unbalanced-dutch / dpsgd / privacy_cost_pct / male -->"), "");
    assert_eq!(
        of("It has 7.0e-1<!-- adult / esipova-adult / dpsgd / accuracy / male -->, and\n```\n0.123\n```"),
        "",
        "and code is none"
    );
    assert!(
        of("7.1e-1<!-- adult / esipova-adult / dpsgd / accuracy / male -->")
            .ends_with("`7.1e-1` is 7.0e-1 in the records")
    );
    assert_eq!(of("**agrees**<!-- adult / row / esipova2023-table-4 / dpsgd -->"), "");
    assert!(of("differs<!-- adult / row / esipova2023-table-4 / dpsgd -->").ends_with("expected `agrees`"));
    assert!(of("x<!-- nonsense -->").ends_with("not understood"));
}

#[test]
fn every_published_table_parses_without_repeated_cells() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/studies/published");
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= 20);
    for path in files {
        let table = PublishedTable::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert!(!table.cells.is_empty(), "{}", path.display());
        for cell in &table.cells {
            let n = table.cells.iter().filter(|c| c.method == cell.method && c.column == cell.column).count();
            assert_eq!(n, 1, "{}: {} {}", table.citation, cell.method, cell.column);
        }
    }
}
