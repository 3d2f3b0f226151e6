//! The reports of `docs/results` are what the records beside them give, and every ε in them has its
//! mark.

use std::fs;

use xtask::{CommittedReport, presentation};

use crate::docs;

/// The figures of a report's columns of ε: how many carry their mark, and those that do not. The
/// column of printed ε has the papers'.
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
    let report =
        "| Method | ε of one run | ε, printed |\n|---|---|---|\n| **a** | 3.1 (certified), PLD<br>4.2 (RDP) | 3.1 |\n";
    assert_eq!(epsilons(report), (1, vec!["4.2 (RDP)".to_owned()]));
}

#[test]
fn no_committed_report_shows_an_unmarked_epsilon() {
    for report in CommittedReport::all().unwrap() {
        let path = report.folder.join("report.md");
        let text = fs::read_to_string(&path).unwrap();
        let (n_marked, unmarked) = epsilons(&text);
        assert_eq!(unmarked, Vec::<String>::new(), "{}", path.display());
        // Nor did the columns escape the test: every experiment but a search, and but an analysis
        // without noise, has a section of each.
        let sections = |title: &str| text.matches(&format!("\n### {title}\n")).count();
        let without_noise = text.matches("No noise is added and nothing is private").count();
        assert_eq!(sections("Privacy") + without_noise, sections("Fairness"), "{}", path.display());
        assert!(n_marked > 0 || sections("Privacy") == 0, "{}", path.display());
    }
}

#[test]
fn every_committed_report_has_its_records() {
    let of_records: Vec<_> = CommittedReport::all().unwrap().into_iter().map(|report| report.folder).collect();
    for entry in fs::read_dir(docs().join("results")).unwrap() {
        let folder = entry.unwrap().path();
        assert!(!folder.join("report.md").exists() || of_records.contains(&folder), "{}", folder.display());
    }
}

/// The whole report of a study, which is not committed, has what is committed and the rest.
#[test]
fn a_whole_report_has_every_plot_that_it_shows() {
    let reports = CommittedReport::all().unwrap();
    let report = reports.iter().find(|report| report.study == "direction-vs-magnitude").unwrap();
    let out = tempfile::tempdir().unwrap();
    let whole = report.write_whole(out.path()).unwrap();
    let text = fs::read_to_string(whole.join("report.md")).unwrap();
    let plots: Vec<&str> = text.split("](plots/").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    assert_eq!(plots.len(), 4);
    let committed: Vec<_> =
        report.files().unwrap().into_iter().filter(|(name, _)| name.starts_with("plots/")).collect();
    assert!(!committed.is_empty() && committed.len() < plots.len());
    for (name, bytes) in &committed {
        assert!(plots.contains(&name.trim_start_matches("plots/")), "{name}");
        assert_eq!(&fs::read(whole.join(name)).unwrap(), bytes, "{name}");
    }
    for plot in plots {
        assert!(fs::read_to_string(whole.join("plots").join(plot)).unwrap().starts_with("<svg "), "{plot}");
    }
    let records = docs().join("results/records/direction-vs-magnitude.runs.zst");
    assert_eq!(fs::read(whole.join("runs.zst")).unwrap(), fs::read(records).unwrap(), "packed again");
    let metrics = fs::read_to_string(out.path().join("direction-vs-magnitude-metrics.csv")).unwrap();
    assert!(metrics.starts_with("experiment,method,"));
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
        assert_eq!(n_plots, files.iter().filter(|(name, _)| name.starts_with("plots/")).count(), "{}", report.study);
    }
    assert!(stale.is_empty(), "`cargo xtask results render` writes these anew:\n{}", stale.join("\n"));
}
