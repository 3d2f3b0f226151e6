//! Every error of the crates has an entry on the page of troubleshooting, and no entry is of an error that is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

type Failure = Box<dyn std::error::Error>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The variants of each crate's error, from its `error.rs`.
fn variants() -> Result<BTreeMap<String, BTreeSet<String>>, Failure> {
    let mut variants = BTreeMap::new();
    for entry in fs::read_dir(root().join("crates"))? {
        let folder = entry?.path();
        let source = folder.join("src/error.rs");
        if !source.exists() {
            continue;
        }
        let file = syn::parse_file(&fs::read_to_string(source)?)?;
        let errors = file.items.iter().filter_map(|item| match item {
            syn::Item::Enum(item) if item.ident.to_string().ends_with("Error") => Some(&item.variants),
            _ => None,
        });
        let names = errors.flatten().map(|variant| variant.ident.to_string()).collect();
        variants.insert(folder.file_name().unwrap_or_default().to_string_lossy().into_owned(), names);
    }
    Ok(variants)
}

/// The names in the first column of the tables beneath each heading, under every crate that the heading names.
fn entries() -> Result<BTreeMap<String, BTreeSet<String>>, Failure> {
    let page = fs::read_to_string(root().join("docs/troubleshooting.md"))?;
    let mut entries: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut crates: Vec<String> = Vec::new();
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            crates = heading.split(", ").map(str::to_owned).collect();
        } else if let Some(row) = line.strip_prefix("| `") {
            let first = row.split(" | ").next().unwrap_or_default();
            for name in first.split(['`', ',', ' ']).filter(|name| !name.is_empty()) {
                for of in &crates {
                    entries.entry(of.clone()).or_default().insert(name.to_owned());
                }
            }
        }
    }
    Ok(entries)
}

#[test]
fn every_error_has_an_entry() -> Result<(), Failure> {
    let (variants, entries) = (variants()?, entries()?);
    let none = BTreeSet::new();
    for (of, names) in &variants {
        let missing: Vec<_> = names.difference(entries.get(of).unwrap_or(&none)).collect();
        assert!(missing.is_empty(), "docs/troubleshooting.md: {of} lacks {missing:?}");
    }
    let all: BTreeSet<_> = variants.values().flatten().collect();
    let gone: Vec<_> = entries.values().flatten().filter(|name| !all.contains(name)).collect();
    assert!(gone.is_empty(), "docs/troubleshooting.md has entries of no error: {gone:?}");
    Ok(())
}
