//! A study in parts, one for each task of a batch system.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use rand::TryRngCore;
use rand::rngs::OsRng;
use run_records::shell;

use super::options::StudyOptions;

/// Cores of a task where the command names no number of threads.
const DEFAULT_CORES: u16 = 4;

/// A command whose runs are shared by so many tasks.
pub(crate) struct Parts {
    pub(crate) study: String,
    pub(crate) of: u32,
    /// The command without the program, the option that asked for parts, `--resume` and
    /// `--offline`.
    words: Vec<OsString>,
    /// Given on the command line.
    threads: Option<u16>,
    /// This program.
    program: PathBuf,
    /// Where the command was given, for its relative paths.
    pub(crate) folder: PathBuf,
    /// The report's directory.
    out: PathBuf,
}

impl Parts {
    /// This command in so many parts, as `option` asks for.
    ///
    /// # Errors
    /// If the command names a part or a file of records, which each task does itself.
    pub(crate) fn of_command(option: &str, of: u32, study: &str, options: &StudyOptions) -> anyhow::Result<Self> {
        ensure!(options.shard.is_none(), "{option} {of}: the parts are numbered by their tasks, leave --shard out");
        ensure!(!options.has_own_records(), "{option} {of}: each part has a file of its own, leave --records out");
        let mut words = words(option, std::env::args_os().skip(1));
        if options.seed.is_none() && options.split_seed.is_none() {
            // All parts must use the same partitions.
            let seed = OsRng.try_next_u64().context("a seed for the partitions, from the operating system")?;
            words.extend(["--split-seed".into(), seed.to_string().into()]);
        }
        Ok(Self {
            study: study.to_owned(),
            of,
            words,
            threads: options.threads(),
            program: std::env::current_exe().context("the path of this program")?,
            folder: std::env::current_dir().context("the current folder")?,
            out: options.out(study),
        })
    }

    /// Cores of a task.
    pub(crate) fn cores(&self) -> u16 {
        self.threads.unwrap_or(DEFAULT_CORES)
    }

    /// The command of a task whose number, from 1, this is in its shell; with as many `threads`,
    /// unless the command says how many.
    pub(crate) fn task(&self, number: &str, threads: &str) -> String {
        let threads = if self.threads.is_none() { format!(" --threads {threads}") } else { String::new() };
        format!("{} --shard \"{number}/{}\"{threads}", self.report(), self.of)
    }

    /// What joins the parts' records.
    pub(crate) fn merge(&self) -> String {
        let (program, out) = (shell::path(&self.program), shell::path(&self.out));
        format!("{program} results merge {out}/records.db {out}/records.shard-*-of-{}.db", self.of)
    }

    /// What makes the report from the joined records.
    pub(crate) fn report(&self) -> String {
        let command = self.words.iter().map(|word| shell::quote(word)).collect::<Vec<_>>().join(" ");
        format!("{} {command} --resume --offline", shell::path(&self.program))
    }

    #[cfg(test)]
    pub(crate) fn fixture(option: &str) -> Self {
        let command = format!("reproduce dutch {option} 8 --seed 7 --resume --out dir");
        let mut words = words(option, command.split(' ').map(OsString::from));
        words.extend(["it's here".into(), "--data-dir=a\nrm b".into()]);
        Self {
            study: "dutch".into(),
            of: 8,
            words,
            threads: None,
            program: "/home/a user/xtask".into(),
            folder: "/home/a user/work".into(),
            out: "dir\nrm -rf it".into(),
        }
    }
}

/// The words of a command without what the tasks add themselves.
fn words(option: &str, mut arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let with_value = format!("{option}=");
    let mut words = Vec::new();
    while let Some(word) = arguments.next() {
        match word.to_str() {
            Some(word) if word == option => drop(arguments.next()),
            Some("--resume" | "--offline") => {}
            Some(word) if word.starts_with(&with_value) => {}
            _ => words.push(word),
        }
    }
    words
}
