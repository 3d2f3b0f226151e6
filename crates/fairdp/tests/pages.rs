//! What the pages tell a reader to type runs as it stands there: every shell block that calls `fairdp`, in the order of
//! the page, in one folder. What a page shows of an answer is the answer.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a failing test may panic")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A page, and what its reader does besides.
struct Page {
    path: &'static str,
    /// Before the first block.
    before: &'static str,
    /// Before each later one.
    between: &'static str,
}

const PAGES: [Page; 8] = [
    Page { path: "README.md", before: "", between: "" },
    Page { path: "docs/your-own-table.md", before: "fairdp example > table.csv", between: "" },
    Page {
        path: "docs/several-rows-of-one-person.md",
        before: "",
        between: "test ! -e fairdp.toml || $EDITOR fairdp.toml",
    },
    Page { path: "docs/read-a-release.md", before: RELEASE, between: "" },
    Page { path: "docs/fairness.md", before: RUN, between: "" },
    Page { path: "docs/command-line.md", before: RUN, between: "" },
    Page { path: "docs/audit.md", before: TABLE, between: "" },
    Page { path: "docs/production.md", before: TWELVE_FITS, between: "sed '$d' months.json > year.json" },
];

/// The one begins with an installation and goes on like the README; tests of images do what the other says.
const ELSEWHERE: [&str; 2] = ["docs/train.md", "docs/images.md"];

const RUN: &str = "fairdp example > table.csv
fairdp init table.csv --label outcome --group group --accept-uncovered --out fairdp.toml
fairdp fit fairdp.toml --seed 1 --out run
gzip table.csv";
const TABLE: &str = "fairdp example > table.csv
fairdp init table.csv --label outcome --group group --epsilon 4 --accept-uncovered --out fairdp.toml";
const RELEASE: &str = "fairdp example > table.csv
fairdp init table.csv --label outcome --group group --accept-uncovered --out fairdp.toml
fairdp fit fairdp.toml --seed 1 --out run
mv run/release release";
const TWELVE_FITS: &str = "for month in 1 2 3 4 5 6 7 8 9 10 11 12; do
  fairdp example --seed $month > table.csv
  fairdp init table.csv --label outcome --accept-uncovered > fairdp.toml
  printf '%s\\n' '/^epsilon = /s/.*/epsilon = 0.2576/' '/^epsilon = /a\\' 'total_epsilon = 1' > edit
  sed -f edit fairdp.toml > month.toml
  fairdp fit month.toml --seed $month --out run-$month --ledger months.json --witness seen.json
done";

/// Stands for a reader who declares every entry.
const EDITOR: &str = "#!/bin/sh
sed 's/from = \"data\"/public = true/' \"$1\" > \"$1.new\" && mv \"$1.new\" \"$1\"
";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The shell blocks of a page that call the program, each with its language.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let fenced = page.split("```").skip(1).step_by(2);
    let calls = |line: &str| line.trim_start_matches("$ ").starts_with("fairdp ") || line.contains("| fairdp ");
    fenced
        .filter_map(|block| block.split_once('\n'))
        .filter(|(language, block)| matches!(*language, "sh" | "console") && block.lines().any(calls))
        .collect()
}

fn shell(folder: &Path, script: &str) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_fairdp")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-euc", script]).current_dir(folder).env("PATH", path).env("EDITOR", folder.join("declare"));
    shell.output().unwrap()
}

fn done(folder: &Path, script: &str, page: &str) {
    let output = shell(folder, script);
    assert!(output.status.success(), "{page}:\n{script}\n{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn blocks_run() {
    for page in &PAGES {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        fs::write(here.join("declare"), EDITOR).unwrap();
        fs::set_permissions(here.join("declare"), fs::Permissions::from_mode(0o755)).unwrap();
        done(here, page.before, page.path);
        let text = fs::read_to_string(root().join(page.path)).unwrap();
        for (index, (language, block)) in blocks(&text).into_iter().enumerate() {
            if index > 0 {
                done(here, page.between, page.path);
            }
            if language == "sh" {
                done(here, block, page.path);
                continue;
            }
            // A command behind `$`, then what it says.
            let (command, expected) = block.split_once('\n').unwrap();
            let output = shell(here, command.strip_prefix("$ ").unwrap());
            let said = [output.stdout, output.stderr].concat();
            assert_eq!(String::from_utf8_lossy(&said), expected, "{}: {command}", page.path);
        }
    }
}

#[test]
fn every_page_with_such_a_block_is_listed() {
    let pages = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = pages.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let with_blocks: BTreeSet<String> = pages
        .filter(|path| !blocks(&fs::read_to_string(path).unwrap()).is_empty())
        .map(|path| format!("docs/{}", path.file_name().unwrap().to_string_lossy()))
        .chain(["README.md".to_owned()])
        .collect();
    let listed = PAGES.iter().map(|page| page.path).chain(ELSEWHERE).map(str::to_owned).collect();
    assert_eq!(with_blocks, listed);
}
