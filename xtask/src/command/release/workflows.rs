//! The workflows of the repository: checked by linters, and by a test that their commands are ours.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Context;

use super::summary::Summary;
use super::tools::{Tools, finish};

/// Workflows against their schema, for what is unsafe in them, and by `actionlint` where it is
/// installed.
///
/// # Errors
/// If a linter cannot be installed or finds something.
pub(super) fn check(root: &Path, tools: &Tools, summary: &mut Summary) -> anyhow::Result<()> {
    let schema = |name: &str| -> anyhow::Result<Command> {
        let mut command = tools.python_tool("check-jsonschema")?;
        command.args(["--builtin-schema", name]);
        Ok(command)
    };
    let folder = root.join(".github/workflows");
    let mut workflows = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
        workflows.push(entry?.path());
    }
    workflows.sort();
    finish(schema("vendor.github-workflows")?.args(&workflows))?;
    finish(schema("vendor.dependabot")?.arg(root.join(".github/dependabot.yml")))?;
    finish(tools.python_tool("zizmor")?.args(["--offline", "--no-progress", "--quiet"]).arg(&folder))?;
    summary
        .done(format_args!("workflows: {} keep to their schema, and zizmor finds nothing unsafe", workflows.len()))?;
    if Command::new("actionlint").arg("--version").output().is_ok() {
        finish(Command::new("actionlint").args(&workflows))?;
        return summary.done("workflows: actionlint finds nothing");
    }
    summary.skipped("actionlint", "it is not installed")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use clap::Parser;

    use super::super::program::TARGETS;
    use crate::command::Cli;
    use crate::paths;

    /// What a runner installs, packs and uploads, beside commands of ours.
    const OTHERS: [&str; 6] = [
        "cargo install ",
        "cp target/release-files/",
        "gh release ",
        "mkdir packages",
        "rustup default ",
        "rustup toolchain install ",
    ];

    fn file(name: &str) -> String {
        fs::read_to_string(paths::workspace_root().join(name)).unwrap()
    }

    /// The commands of all workflows, those of a matrix too, each with its file.
    fn commands() -> Vec<(PathBuf, String)> {
        let mut found = Vec::new();
        for entry in fs::read_dir(paths::workspace_root().join(".github/workflows")).unwrap() {
            let path = entry.unwrap().path();
            for line in fs::read_to_string(&path).unwrap().lines() {
                let item = line.trim_start().trim_start_matches("- ");
                let command = item.strip_prefix("run: ").unwrap_or(item);
                let is_of_matrix = command.starts_with("cargo ") || command.starts_with(".ci/");
                if (item != command || is_of_matrix) && command != "${{ matrix.command }}" {
                    found.extend(command.split(" && ").map(|part| (path.clone(), part.to_owned())));
                }
            }
        }
        found
    }

    #[test]
    fn every_command_of_a_workflow_is_one_of_ours_or_installs_a_tool() {
        let script = file(".ci/run");
        let is_check = |word: &str| script.contains(&format!("\ncheck_{word}() {{"));
        let (mut n_scripts, mut n_tasks) = (0, 0);
        for (path, command) in commands() {
            let place = path.display();
            let filled = command.replace("\"$GITHUB_RUN_ID\"", "1").replace("${{ matrix.targets }}", TARGETS[0]);
            let filled = filled.replace("${{ matrix.check }}", "bert");
            let words: Vec<_> = filled.split_whitespace().collect();
            if command.starts_with(".ci/") {
                assert!(paths::workspace_root().join(words[0]).is_file(), "{place}: {command}: no such script");
                let mut checks = words[1..].iter().filter(|word| words[0] == ".ci/run" && !word.starts_with("--"));
                assert!(checks.all(|word| is_check(word)), "{place}: {command}: no such check");
                n_scripts += 1;
            } else if command.starts_with("cargo xtask ") {
                let parsed = Cli::try_parse_from(&words[1..]).map(|_| ()).map_err(|error| error.to_string());
                assert_eq!(parsed, Ok(()), "{place}: {command}");
                n_tasks += 1;
            } else {
                assert!(
                    OTHERS.iter().any(|other| command.starts_with(other)),
                    "{place}: {command}: a command of its own"
                );
            }
        }
        assert!(
            n_scripts >= 6 && n_tasks >= 8,
            "{n_scripts} scripts and {n_tasks} tasks: workflows are written another way"
        );
        let optional = file(".github/workflows/check.yml");
        let (_, names) = optional.split_once("check: [").unwrap();
        assert!(names.split_once(']').unwrap().0.split(", ").all(is_check), "check.yml: no such check");
    }

    #[test]
    fn a_release_has_a_runner_for_every_system() {
        let workflow = file(".github/workflows/release.yml");
        let lists = workflow.lines().filter_map(|line| line.trim().strip_prefix("targets: "));
        let mut built: Vec<_> = lists.flat_map(|list| list.split(',')).collect();
        let mut promised = TARGETS.to_vec();
        built.sort_unstable();
        promised.sort_unstable();
        assert_eq!(built, promised);
    }

    #[test]
    fn the_oldest_rust_is_checked() {
        let install = format!("rustup toolchain install {} ", env!("CARGO_PKG_RUST_VERSION"));
        assert!(file(".github/workflows/check.yml").contains(&install), "check.yml: expected `{install}`");
    }
}
