//! The pages of the documentation, and the plots of reports that they show.

use std::fs;
use std::path::Path;

use anyhow::Context;

use crate::paths::workspace_root;

/// The texts of the README and of every page of the book but the reports.
pub(super) fn page_texts() -> anyhow::Result<Vec<String>> {
    let mut texts = Vec::new();
    add_pages(&workspace_root().join("docs"), &mut texts)?;
    texts.push(read(&workspace_root().join("README.md"))?);
    Ok(texts)
}

fn add_pages(folder: &Path, texts: &mut Vec<String>) -> anyhow::Result<()> {
    let reading = || format!("reading {}", folder.display());
    for entry in fs::read_dir(folder).with_context(reading)? {
        let path = entry.with_context(reading)?.path();
        if path.is_dir() {
            add_pages(&path, texts)?;
        } else if path.extension().is_some_and(|extension| extension == "md") && !path.ends_with("report.md") {
            texts.push(read(&path)?);
        }
    }
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
}

/// Names, without extension, of the plots of a study that a page shows or links to:
/// `…/STUDY/plots/NAME.svg`.
pub(super) fn plots_in(page: &str, study: &str) -> Vec<String> {
    let folder = format!("{study}/plots/");
    let places = page.match_indices(&folder).filter(|(start, _)| page[..*start].ends_with(['/', '(', '"']));
    let stems = places.filter_map(|(start, _)| page[start + folder.len()..].split_once(".svg"));
    let is_name = |stem: &&str| stem.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c));
    stems.map(|(stem, _)| stem).filter(is_name).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plots_of_a_study_are_found_in_a_page() {
        let page = "[a](results/dutch/plots/a-b.svg) <img src=\"dutch/plots/c.svg\"> ![d](../dutch/plots/d.svg)\n\
                    (results/analyse-dutch/plots/e.svg) dutch/plots/ and [f](adult/plots/f.svg)";
        assert_eq!(plots_in(page, "dutch"), ["a-b", "c", "d"]);
        assert_eq!(plots_in(page, "analyse-dutch"), ["e"]);
        assert_eq!(plots_in(page, "adult"), ["f"]);
        assert!(plots_in(page, "grid").is_empty());
    }

    #[test]
    fn pages_are_all_but_reports() {
        let texts = page_texts().unwrap();
        assert!(texts.iter().any(|text| text.starts_with("# Results\n")));
        assert!(texts.iter().all(|text| !text.contains("\n## How it was run\n")));
    }
}
