//! Links between pages, and the pages that the book names.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

type Failure = Box<dyn std::error::Error>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every Markdown file in this folder and below.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            pages(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    Ok(())
}

/// A page without its blocks of code.
fn prose(page: &Path) -> Result<String, Failure> {
    let text = fs::read_to_string(page)?;
    let mut in_code = false;
    let prose = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    });
    Ok(prose.collect::<Vec<_>>().join("\n"))
}

/// The targets of `[text](target)`, `![text](target)`, `<img src="target">` and `<source srcset="target">`.
fn targets(prose: &str) -> impl Iterator<Item = &str> {
    let links = prose.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    let of_pictures = ["<img src=\"", " srcset=\""].into_iter().flat_map(|start| prose.split(start).skip(1));
    links.chain(of_pictures.filter_map(|rest| rest.split('"').next()))
}

/// Whether a page has a heading that is linked to by this name.
fn has_heading(page: &Path, name: &str) -> Result<bool, Failure> {
    let anchor = |heading: &str| -> String {
        let kept = heading.trim().to_lowercase();
        let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    let text = prose(page)?;
    let mut headings = text.lines().filter(|line| line.starts_with('#'));
    Ok(headings.any(|line| anchor(line.trim_start_matches('#')) == name))
}

/// The pages that people read: READMEs, CONTRIBUTING and the book.
fn sources() -> Result<Vec<PathBuf>, Failure> {
    let mut sources = vec![root().join("README.md"), root().join("CONTRIBUTING.md"), root().join("datasets/README.md")];
    pages(&root().join("docs"), &mut sources)?;
    for entry in fs::read_dir(root().join("crates"))?.chain(fs::read_dir(root().join("xtask"))?) {
        let folder = entry?.path();
        sources
            .extend(["README.md", "METHODS.md"].map(|name| folder.join(name)).into_iter().filter(|page| page.exists()));
    }
    Ok(sources)
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() -> Result<(), Failure> {
    let (mut n_links, mut broken) = (0, Vec::new());
    for source in sources()? {
        let text = prose(&source)?;
        // An address, or an item of a crate.
        for target in targets(&text).filter(|target| !target.contains("::") && !target.contains("://")) {
            n_links += 1;
            let (path, heading) = target.split_once('#').unwrap_or((target, ""));
            let file = if path.is_empty() { source.clone() } else { source.with_file_name(path) };
            if !file.exists() || !(heading.is_empty() || has_heading(&file, heading)?) {
                broken.push(format!("{}: {target}", source.display()));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
    assert!(n_links > 200, "only {n_links} links were found");
    Ok(())
}

/// Every source file in this folder and below, one after the other.
fn code(folder: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            text.push_str(&code(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(&path)?);
        }
    }
    Ok(text)
}

/// Addresses on docs.rs of items of our crates: `CRATE/latest/MODULE/KIND.NAME.html`, or
/// `CRATE/latest/…/MODULE/index.html`.
#[test]
fn every_item_that_is_linked_is_in_its_crate() -> Result<(), Failure> {
    let (mut n_items, mut missing) = (0, Vec::new());
    for source in sources()? {
        let text = fs::read_to_string(&source)?;
        for address in text.split("https://docs.rs/").skip(1) {
            let address = address.split(['#', ')', '\n']).next().unwrap_or_default();
            let Some((name, path)) = address.split_once("/latest/") else { continue };
            let folder = root().join("crates").join(name).join("src");
            let mut parts = path.rsplit('/');
            let (Some(file), Some(module), true) = (parts.next(), parts.next(), folder.exists()) else { continue };
            let item = match file.strip_suffix(".html").and_then(|item| item.split_once('.')) {
                Some((kind, item)) => format!("pub {} {item}", kind.replace("constant", "const")),
                None => format!("pub mod {module}"),
            };
            n_items += 1;
            let text = code(&folder)?;
            let is_whole = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
            if !text.split(&item).skip(1).any(is_whole) {
                missing.push(format!("{}: {address}: no `{item}`", source.display()));
            }
        }
    }
    assert!(missing.is_empty(), "items that are not there:\n{}", missing.join("\n"));
    assert!(n_items > 70, "only {n_items} items were found");
    Ok(())
}

/// `crates/…`, `docs/…` and `xtask/…` in code spans; a name in capitals stands for any.
#[test]
fn every_file_that_is_named_is_there() -> Result<(), Failure> {
    let (mut n_paths, mut missing) = (0, Vec::new());
    for source in sources()? {
        let text = prose(&source)?;
        for span in text.split('`').skip(1).step_by(2) {
            let is_path = ["crates/", "docs/", "xtask/"].iter().any(|folder| span.starts_with(folder));
            if !is_path || span.chars().any(|c| c.is_uppercase() || !(c.is_alphanumeric() || "/._-".contains(c))) {
                continue;
            }
            n_paths += 1;
            if !root().join(span).exists() {
                missing.push(format!("{}: {span}", source.display()));
            }
        }
    }
    assert!(missing.is_empty(), "files that are not there:\n{}", missing.join("\n"));
    assert!(n_paths > 20, "only {n_paths} paths were found");
    Ok(())
}

#[test]
fn the_summary_names_every_page_once() -> Result<(), Failure> {
    let docs = root().join("docs");
    let mut there = Vec::new();
    pages(&docs, &mut there)?;
    let there: BTreeSet<PathBuf> = there.into_iter().filter(|page| !page.ends_with("SUMMARY.md")).collect();

    let summary = fs::read_to_string(docs.join("SUMMARY.md"))?;
    let named: Vec<PathBuf> = targets(&summary).map(|target| docs.join(target)).collect();
    let once: BTreeSet<PathBuf> = named.iter().cloned().collect();
    assert_eq!(named.len(), once.len(), "SUMMARY.md names a page twice");
    let missing: Vec<_> = there.difference(&once).collect();
    assert!(missing.is_empty(), "SUMMARY.md does not name {missing:?}");
    Ok(())
}

#[test]
fn examples_in_rust_are_doctests_of_a_crate() -> Result<(), Failure> {
    let docs = root().join("docs");
    let mut libraries = String::new();
    for entry in fs::read_dir(root().join("crates"))? {
        let library = entry?.path().join("src/lib.rs");
        if library.exists() {
            libraries += &fs::read_to_string(library)?;
        }
    }
    let mut found = Vec::new();
    pages(&docs, &mut found)?;
    for page in found {
        let name = page.strip_prefix(&docs)?.display().to_string();
        let has_example = fs::read_to_string(&page)?.lines().any(|line| line.trim_start().starts_with("```rust"));
        let is_tested = libraries.contains(&format!("include_str!(\"../../../docs/{name}\")"));
        assert_eq!(has_example, is_tested, "docs/{name}: examples in Rust, and the `lib.rs` that includes the page");
    }
    Ok(())
}

/// Longer sentences are read twice.
const MOST_WORDS: usize = 40;

/// The sentences of a page: no headings, tables and comments; what is code is one word, a link's
/// address none.
fn sentences(prose: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    for line in prose.lines() {
        let text = line.trim_start();
        let is_listed = ["- ", "* "].iter().any(|mark| text.starts_with(mark))
            || text.split_once(". ").is_some_and(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit()));
        let is_no_prose = text.is_empty() || ["#", "|", "<"].iter().any(|mark| text.starts_with(mark));
        if is_no_prose || is_listed || text.starts_with('[') && text.contains("]: ") {
            paragraphs.push(String::new());
        }
        if let Some(last) = paragraphs.last_mut().filter(|_| !is_no_prose) {
            let text = if is_listed { text.split_once(' ').map_or(text, |(_, rest)| rest) } else { text };
            last.push_str(text);
            last.push(' ');
        }
    }
    let plain = |paragraph: String| -> String {
        let mut parts = paragraph.split("<!--");
        let first = parts.next().unwrap_or_default().to_owned();
        let paragraph = parts.fold(first, |text, part| text + part.split_once("-->").map_or("", |(_, rest)| rest));
        let words = paragraph.split('`').enumerate().map(|(place, part)| if place % 2 == 0 { part } else { "code" });
        let words = words.collect::<String>();
        let mut parts = words.split("](");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| text + part.split_once(')').map_or(part, |(_, rest)| rest))
    };
    let ends = |word: &str| word.trim_end_matches([')', '"', '*', '_', ']']).ends_with(['.', '!', '?']);
    paragraphs
        .into_iter()
        .map(plain)
        .flat_map(|text| {
            let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            words.split_inclusive(|word| ends(word)).map(|words| words.join(" ")).collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn no_sentence_is_too_long() -> Result<(), Failure> {
    let mut long = Vec::new();
    // Reports are made by a program, a paragraph for each table; pages of crates are for programmers.
    let (results, crates) = (root().join("docs/results"), root().join("crates"));
    let is_written = |page: &&PathBuf| page.parent() == Some(&*results) || !page.starts_with(&results);
    for page in sources()?.iter().filter(is_written).filter(|page| !page.starts_with(&crates)) {
        for sentence in sentences(&prose(page)?) {
            if sentence.split_whitespace().count() > MOST_WORDS {
                long.push(format!("{}: {sentence}", page.display()));
            }
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
    let text = "## A heading\n1. One `a. b` two. Three\nfour!\n| a | b |\n- [Five](x.md) six";
    assert_eq!(sentences(text).join("/"), "One code two./Three four!/[Five six");
    Ok(())
}

/// The files of a table `| file | change |` under a heading, with `NAME` filled in.
fn files_of_table(heading: &str, name: &str) -> Result<BTreeSet<String>, Failure> {
    let page = fs::read_to_string(root().join("docs/extend.md"))?;
    let part = page.split(heading).nth(1).ok_or_else(|| format!("docs/extend.md: no {heading}"))?;
    let table = part.split("| file | change |\n|---|---|\n").nth(1).ok_or("docs/extend.md: no table")?;
    let rows = table.lines().take_while(|line| line.starts_with("| `"));
    let file = |row: &str| row.split('`').nth(1).map(|file| file.replace("NAME", name)).ok_or("a row without a file");
    Ok(rows.map(file).collect::<Result<_, _>>()?)
}

/// Files below a folder that hold one of these words.
fn files_with(folder: &Path, words: &[&str], found: &mut BTreeSet<String>) -> Result<(), Failure> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files_with(&path, words, found)?;
        } else if path.to_string_lossy().contains(words[0])
            || fs::read_to_string(&path).is_ok_and(|text| words.iter().any(|word| text.contains(word)))
        {
            found.insert(path.strip_prefix(root())?.to_string_lossy().into_owned());
        }
    }
    Ok(())
}

/// A method touches the files that the page lists, and no other. `soft-dpsgd-f` is in no study and no
/// other test. The count of certified methods is a number, and names none.
#[test]
fn the_files_that_a_method_touches_are_those_of_the_page() -> Result<(), Failure> {
    let mut expected = files_of_table("\n### 1. One file\n", "soft_dpsgd_f")?;
    let counted = "crates/dp-audit/src/replay/search.rs";
    assert!(expected.remove(counted) && fs::read_to_string(root().join(counted))?.contains("by_method.len()"));
    let mut found = BTreeSet::new();
    for folder in ["crates", "xtask/src", "xtask/study-report", "xtask/run-records"] {
        files_with(&root().join(folder), &["soft_dpsgd_f", "soft-dpsgd-f"], &mut found)?;
    }
    assert_eq!(found, expected);
    Ok(())
}

#[test]
fn the_files_of_layers_and_studies_are_there() -> Result<(), Failure> {
    for (heading, name) in [("\n## A layer of this workspace\n", "norm"), ("\n### 4. A study\n", "fashion")] {
        let files = files_of_table(heading, name)?;
        assert!(files.len() > 4, "{heading}");
        let missing: Vec<_> =
            files.iter().filter(|file| !file.contains("PAPER") && !root().join(file).exists()).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
    Ok(())
}
