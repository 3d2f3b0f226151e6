//! A batch script that trains a study's parts as an array job under Slurm.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, ensure};
use rand::TryRngCore;
use rand::rngs::OsRng;

use super::options::StudyOptions;
use crate::shell;

/// Cores of a task where the command names no number of threads.
const DEFAULT_CORES: u16 = 4;

/// The script that runs this command as an array job.
///
/// # Errors
/// If the command names a part or a file of records, which the script does itself.
pub(super) fn script(study: &str, options: &StudyOptions, parts: u32) -> anyhow::Result<String> {
    ensure!(options.shard.is_none(), "--slurm {parts}: the script numbers the parts itself, leave --shard out");
    ensure!(!options.has_own_records(), "--slurm {parts}: each part has a file of its own, leave --records out");
    let mut words = words(std::env::args_os().skip(1));
    if options.seed.is_none() && options.split_seed.is_none() {
        // All parts must use the same partitions.
        let seed = OsRng.try_next_u64().context("a seed for the partitions, from the operating system")?;
        words.extend(["--split-seed".into(), seed.to_string().into()]);
    }
    let array = Array {
        words: &words,
        study,
        parts,
        threads: options.threads(),
        program: &std::env::current_exe().context("the path of this program")?,
        folder: &std::env::current_dir().context("the current folder")?,
        out: &options.out(study),
    };
    Ok(array.script())
}

/// What the script is made from.
struct Array<'a> {
    /// The command without the program, `--slurm N`, `--resume` and `--offline`.
    words: &'a [OsString],
    study: &'a str,
    parts: u32,
    /// Given on the command line.
    threads: Option<u16>,
    /// This program.
    program: &'a Path,
    /// Where the command was given, for its relative paths.
    folder: &'a Path,
    /// The report's directory.
    out: &'a Path,
}

impl Array<'_> {
    /// To be handed to `sbatch`.
    fn script(&self) -> String {
        let Self { study, parts, .. } = self;
        let program = shell::path(self.program);
        let command = self.words.iter().map(|word| shell::quote(word)).collect::<Vec<_>>().join(" ");
        let cores = self.threads.unwrap_or(DEFAULT_CORES);
        let threads = if self.threads.is_none() { r#" --threads "$SLURM_CPUS_PER_TASK""# } else { "" };
        let out = shell::path(self.out);
        format!(
            r#"#!/bin/bash
#SBATCH --job-name=reproduce-{study}
#SBATCH --array=1-{parts}
#SBATCH --cpus-per-task={cores}
#SBATCH --requeue
# Each task trains one of {parts} parts of the study and stores it in a file of its own.
#
# Assumed: all nodes share this file system; the program was built for their processors (on several types, results are equal up to
# rounding only); the data files are in place, for nothing is downloaded; `sbatch` passes DP_DATA_DIR on. Add what your cluster
# asks for: partition, account, time, memory.
#
# A task that was stopped goes on where it was when it is queued again. When all have ended:
#   {program} results merge {out}/records.db {out}/records.shard-*-of-{parts}.db
#   {program} {command} --resume --offline
set -euo pipefail
cd {folder}
exec {program} {command} --resume --offline --shard "$SLURM_ARRAY_TASK_ID/{parts}"{threads}
"#,
            folder = shell::path(self.folder),
        )
    }
}

/// The words of a command without what the script adds itself.
fn words(mut arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words = Vec::new();
    while let Some(word) = arguments.next() {
        match word.to_str() {
            Some("--slurm") => drop(arguments.next()),
            Some("--resume" | "--offline") => {}
            Some(word) if word.starts_with("--slurm=") => {}
            _ => words.push(word),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script() -> String {
        let command = "reproduce dutch --slurm 8 --seed 7 --resume --out dir";
        let mut words = words(command.split(' ').map(OsString::from));
        words.extend(["it's here".into(), "--data-dir=a\nrm b".into()]);
        Array {
            words: &words,
            study: "dutch",
            parts: 8,
            threads: None,
            program: Path::new("/home/a user/xtask"),
            folder: Path::new("/home/a user/work"),
            out: Path::new("dir\nrm -rf it"),
        }
        .script()
    }

    #[test]
    fn script_of_a_study() {
        let script = script();
        assert!(script.lines().all(|line| !line.starts_with("rm ")), "a line break in a path begins no command");
        insta::assert_snapshot!("slurm_script", script);
    }

    #[test]
    fn the_shell_reads_the_script() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("array.sh");
        std::fs::write(&path, script()).unwrap();
        let Ok(output) = std::process::Command::new("bash").arg("-n").arg(&path).output() else {
            println!("skipped: no bash");
            return;
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
