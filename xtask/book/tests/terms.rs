//! Names of types, and the page that lists them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

type Failure = Box<dyn std::error::Error>;

/// Crates whose types mirror others' on purpose: the Python package has the classes of the crates
/// that it wraps, and every data set of `dp-data` has its own `Options` and `Records`.
const MIRRORS: [&str; 2] = ["fairdp-python", "dp-data"];

/// Names that say nothing to a newcomer.
const EMPTY: [&str; 8] = ["Further", "Given", "Kept", "Known", "Place", "Seat", "Thing", "Way"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The names of types that are declared under a folder; of public ones alone, or of all.
fn types(folder: &Path, public_alone: bool, found: &mut BTreeSet<String>) -> Result<(), Failure> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            types(&path, public_alone, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path)?;
            found.extend(text.lines().filter_map(|line| declared(line, public_alone)).map(str::to_owned));
        }
    }
    Ok(())
}

fn declared(line: &str, public_alone: bool) -> Option<&str> {
    let line = line.trim_start();
    let rest = match line.strip_prefix("pub ") {
        Some(rest) => rest,
        None if public_alone => return None,
        None => line.strip_prefix("pub(crate) ").or_else(|| line.strip_prefix("pub(super) ")).unwrap_or(line),
    };
    let name = ["struct ", "enum ", "trait "].iter().find_map(|kind| rest.strip_prefix(kind))?;
    name.split(|c: char| !c.is_alphanumeric()).next()
}

/// The published crates: names and folders.
fn crates() -> Result<Vec<(String, PathBuf)>, Failure> {
    let mut crates = Vec::new();
    for entry in fs::read_dir(root().join("crates"))? {
        let folder = entry?.path();
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        crates.push((name, folder.join("src")));
    }
    Ok(crates)
}

#[test]
fn a_public_type_has_a_name_of_its_own_or_is_on_the_page() -> Result<(), Failure> {
    let mut owners: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, folder) in crates()?.into_iter().filter(|(name, _)| !MIRRORS.contains(&&**name)) {
        let mut found = BTreeSet::new();
        types(&folder, true, &mut found)?;
        for item in found {
            owners.entry(item).or_default().insert(name.clone());
        }
    }
    assert!(owners.len() > 300, "only {} types were found", owners.len());
    owners.retain(|_, crates| crates.len() > 1);

    let page = fs::read_to_string(root().join("docs/terms.md"))?;
    let (_, section) =
        page.split_once("## Types that share a name").ok_or("docs/terms.md: no section on shared names")?;
    let listed: BTreeMap<String, BTreeSet<String>> = section
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|line| {
            let (name, crates) = line.split_once('`')?;
            // Names of crates are in code spans.
            let crates = crates.split('`').skip(1).step_by(2).filter(|span| root().join("crates").join(span).exists());
            Some((name.to_owned(), crates.map(str::to_owned).collect()))
        })
        .collect();
    assert_eq!(listed, owners, "docs/terms.md lists the left, the code has the right");
    Ok(())
}

#[test]
fn no_type_has_a_name_that_says_nothing() -> Result<(), Failure> {
    let mut found = BTreeSet::new();
    for (_, folder) in crates()? {
        types(&folder, false, &mut found)?;
    }
    types(&root().join("xtask/src"), false, &mut found)?;
    let empty: Vec<&&str> = EMPTY.iter().filter(|name| found.contains(**name)).collect();
    assert!(empty.is_empty(), "types called {empty:?}");
    Ok(())
}
