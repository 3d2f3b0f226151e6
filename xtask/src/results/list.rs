//! Databases of runs, one line each.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::database::Database;

/// Every `records*.db` in the folders of `root`, sorted; none if there is no `root`.
///
/// # Errors
/// If a folder cannot be read.
pub(super) fn databases(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if !root.exists() {
        return Ok(found);
    }
    for study in entries(root)? {
        // Names with a dot in front are reports that are being written.
        if study.is_dir() && !file_name(&study).starts_with('.') {
            found.extend(entries(&study)?.into_iter().filter(|path| {
                file_name(path).starts_with("records.") && path.extension().is_some_and(|extension| extension == "db")
            }));
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

/// One line per database.
///
/// # Errors
/// If one of them is none.
pub(super) fn table(files: &[PathBuf]) -> anyhow::Result<String> {
    if files.is_empty() {
        return Ok("No records. `cargo xtask reproduce STUDY` makes some.\n".to_owned());
    }
    let mut text =
        format!("{:<24} {:>6} {:>12} {:>20}  {:<20} file\n", "study", "runs", "experiments", "seed", "last run (UTC)");
    for file in files {
        let database = Database::read(file)?;
        let source = database.source()?;
        let counts = database
            .query("SELECT count(*), count(DISTINCT experiment), coalesce(max(finished), '–') FROM run", |row| {
                Ok((row.get::<_, u64>(0)?, row.get::<_, u64>(1)?, row.get::<_, String>(2)?))
            })?;
        let (runs, experiments, last) = counts.into_iter().next().unwrap_or_default();
        let quick = if source.quick { " (QUICK)" } else { "" };
        let seed = source.seed.map_or_else(|| "from the system".to_owned(), |seed| seed.to_string());
        // Writing to a `String` cannot fail.
        let _ = writeln!(
            text,
            "{:<24} {runs:>6} {experiments:>12} {seed:>20}  {last:<20} {}",
            format!("{}{quick}", source.study),
            file.display()
        );
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{fill, source};
    use super::*;

    #[test]
    fn databases_are_found_and_listed() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(databases(&root.path().join("absent")).unwrap(), Vec::<PathBuf>::new());
        for folder in ["adult", "dutch", ".adult.partial-1"] {
            std::fs::create_dir(root.path().join(folder)).unwrap();
            fill(&root.path().join(folder).join("records.db"), &source(), &crate::report::fixture::study());
        }
        std::fs::write(root.path().join("adult/report.md"), "").unwrap();
        let found = databases(root.path()).unwrap();
        assert_eq!(found, ["adult/records.db", "dutch/records.db"].map(|name| root.path().join(name)));
        let text = table(&found[..1]).unwrap();
        let line: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(line[..4], ["adult", "25", "1", "18446744073709551615"]);
        assert!(table(&[]).unwrap().starts_with("No records."));
    }
}
