//! Databases of runs, one line each.

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::database::Database;
use crate::mark::Mark;
use crate::shell;

/// Every `records*.db` in `root` and in its folders, sorted; none if there is no `root`.
///
/// # Errors
/// If a folder cannot be read.
pub fn databases(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if !root.exists() {
        return Ok(found);
    }
    let is_database = |path: &PathBuf| {
        file_name(path).starts_with("records.") && path.extension().is_some_and(|extension| extension == "db")
    };
    for entry in entries(root)? {
        // Names with a dot in front are reports that are being written.
        if entry.is_dir() && !file_name(&entry).starts_with('.') {
            found.extend(entries(&entry)?.into_iter().filter(is_database));
        } else if is_database(&entry) {
            found.push(entry);
        }
    }
    found.sort();
    Ok(found)
}

fn entries(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    std::fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
        .with_context(|| format!("reading {}", folder.display()))
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// One line per database, and what is wrong with those that cannot be read.
pub fn table(files: &[PathBuf]) -> (String, Vec<anyhow::Error>) {
    if files.is_empty() {
        return ("No records. `cargo xtask reproduce STUDY` makes some.\n".to_owned(), Vec::new());
    }
    let mut text =
        format!("{:<32} {:>6} {:>12} {:>33}  {:<20} file\n", "study", "runs", "experiments", "seed", "last run (UTC)");
    let mut bad = Vec::new();
    for file in files {
        // One that cannot be read does not keep the others from being listed.
        match line(file) {
            Ok(line) => text.push_str(&line),
            Err(error) => bad.push(error),
        }
    }
    (text, bad)
}

fn line(file: &Path) -> anyhow::Result<String> {
    let database = Database::read(file)?;
    let source = database.source()?;
    let counts = database.query(
        "SELECT count(*), count(DISTINCT experiment), coalesce(max(finished), '–'), coalesce(max(synthetic), 0),
             coalesce(max(quick), 0)
         FROM run_summary",
        |row| {
            let mark = Mark::new(row.get(3)?, row.get::<_, bool>(4)? || source.quick);
            Ok((row.get::<_, u64>(0)?, row.get::<_, u64>(1)?, row.get::<_, String>(2)?, mark))
        },
    )?;
    let (runs, experiments, last, mark) = counts.into_iter().next().unwrap_or_default();
    let mark = mark.map_or_else(String::new, |mark| format!(" ({})", mark.label()));
    let seed = source.seed.map_or_else(|| "from the system".to_owned(), |seed| format!("{seed}, not private"));
    Ok(format!(
        "{:<32} {runs:>6} {experiments:>12} {seed:>33}  {last:<20} {}\n",
        format!("{}{mark}", source.study),
        shell::path(file)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;
    use crate::fixture::{fill, source};

    #[test]
    fn databases_are_found_and_listed() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(databases(&root.path().join("absent")).unwrap(), Vec::<PathBuf>::new());
        for folder in ["adult", "dutch", ".adult.partial-1"] {
            std::fs::create_dir(root.path().join(folder)).unwrap();
            fill(&root.path().join(folder).join("records.db"), &source(), &crate::made_up::study());
        }
        std::fs::write(root.path().join("adult/report.md"), "").unwrap();
        let found = databases(root.path()).unwrap();
        assert_eq!(found, ["adult/records.db", "dutch/records.db"].map(|name| root.path().join(name)));
        let not_one = root.path().join("adult/report.md");
        let unseeded = root.path().join("records.unseeded.db");
        fill(&unseeded, &Source { seed: None, ..source() }, &crate::made_up::study());
        let (text, bad) = table(&[not_one, found[0].clone(), unseeded]);
        assert!(bad.len() == 1 && format!("{:#}", bad[0]).contains("adult/report.md"), "{bad:?}");
        let lines: Vec<&str> = text.lines().collect();
        let column = |line: usize| lines[line].split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(column(1).starts_with("adult 25 1 18446744073709551615, not private 2"), "{text}");
        assert!(column(2).starts_with("adult 25 1 from the system 2"), "{text}");
        assert!(table(&[]).0.starts_with("No records."));
    }
}
