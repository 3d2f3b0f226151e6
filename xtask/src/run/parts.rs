//! A study in parts, one for each task of a batch system.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, ensure};
use rand::TryRngCore;
use rand::rngs::OsRng;
use run_records::shell;

use super::options::StudyOptions;
use crate::paths::workspace_root;

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
    /// The folder that every task must reach: the workspace, or the folder of the command.
    pub(crate) root: PathBuf,
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
        let folder = std::env::current_dir().context("the current folder")?;
        let workspace = workspace_root();
        let root = if folder.starts_with(&workspace) { workspace } else { folder.clone() };
        Ok(Self {
            root,
            study: study.to_owned(),
            of,
            words,
            threads: options.threads(),
            program: std::env::current_exe().context("the path of this program")?,
            folder,
            out: options.out(study),
        })
    }

    /// Refuses what pods would not find, or would lose, since it lies outside of the folder that they mount.
    ///
    /// # Errors
    /// Names the first of program, records and data files that does.
    pub(crate) fn ensure_mounted(&self, data: Option<&Path>) -> anyhow::Result<()> {
        let root = self.root.display();
        self.ensure("--kubernetes", data, &format!("outside of {root}, which is all that the pods mount"), |place| {
            place.starts_with(&self.root)
        })
    }

    /// Refuses what other nodes would not find, or would lose, since it lies in a folder for temporary files,
    /// which each node has of its own.
    ///
    /// # Errors
    /// Names the first of program, records and data files that does.
    pub(crate) fn ensure_shared(&self, data: Option<&Path>) -> anyhow::Result<()> {
        let temporary = [std::env::temp_dir(), "/tmp".into(), "/dev/shm".into()];
        let is_own = |place: &Path| temporary.iter().any(|folder| place.starts_with(folder));
        // Whoever works in such a folder knows where it is.
        let is_here = is_own(&self.folder);
        self.ensure("--slurm", data, "in a folder that each node has of its own", |place| is_here || !is_own(place))
    }

    fn ensure(
        &self,
        option: &str,
        data: Option<&Path>,
        where_it_is: &str,
        is_reached: impl Fn(&Path) -> bool,
    ) -> anyhow::Result<()> {
        let of_env = std::env::var_os("DP_DATA_DIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
        let places = [
            ("the program", Some(self.program.clone()), "run the one in the workspace's target folder"),
            ("the report with its records", Some(self.out.clone()), "name another folder by --out"),
            ("the folder of data files", data.map(Path::to_path_buf).or(of_env), "name another one by --data-dir"),
        ];
        for (what, place, advice) in places {
            let Some(place) = place.map(|place| normal(&self.folder.join(place))) else { continue };
            let (of, shown) = (self.of, place.display());
            ensure!(is_reached(&place), "{option} {of}: {what}, {shown}, is {where_it_is}: {advice}");
        }
        Ok(())
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

    /// The same with these places.
    #[cfg(test)]
    pub(crate) fn placed(self, [root, folder, program, out]: [&str; 4]) -> Self {
        Self { root: root.into(), folder: folder.into(), program: program.into(), out: out.into(), ..self }
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
            root: "/home/a user".into(),
            out: "dir\nrm -rf it".into(),
        }
    }
}

/// A path without `.` and `..`, by its words alone: what is named need not be there yet.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(normal.pop()),
            other => normal.push(other),
        }
    }
    normal
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tasks_would_not_reach_is_refused() {
        let data = Some(Path::new("/w/data"));
        let parts = |folder, program, out| Parts::fixture("--kubernetes").placed(["/w", folder, program, out]);
        // From a folder below the workspace, what lies in the workspace is there.
        parts("/w/notes", "/w/target/xtask", "/w/target/reproduce/dutch").ensure_mounted(data).unwrap();
        parts("/w/notes", "/w/target/xtask", "out").ensure_mounted(data).unwrap();
        let refusal = |folder, program, out, data| {
            parts(folder, program, out).ensure_mounted(Some(Path::new(data))).unwrap_err().to_string()
        };
        let outside = refusal("/w/notes", "/w/xtask", "../../results", "/w/data");
        assert_eq!(
            outside,
            "--kubernetes 8: the report with its records, /results, is outside of /w, which is all that the pods mount: name another \
             folder by --out"
        );
        assert!(refusal("/w", "/usr/bin/xtask", "out", "/w/data").contains("the program, /usr/bin/xtask"));
        assert!(refusal("/w", "/w/xtask", "out", "/data").contains("the folder of data files, /data"));
        parts("/w", "/opt/xtask", "/scratch/out").ensure_shared(data).unwrap();
        assert!(parts("/w", "/opt/xtask", "/tmp/out").ensure_shared(data).is_err());
        parts("/tmp/w", "/opt/xtask", "/tmp/out").ensure_shared(data).unwrap();
    }
}
