//! The folder of a report.
//!
//! A report is staged in a folder of its own inside, flushed to the disk, and committed by one
//! rename of that folder to [`READY`]. From then on it is the report: its files are moved to their
//! places, and a process that is killed meanwhile leaves the rest to the next one that opens the
//! folder. Nothing else in the folder is touched; databases of runs stay where they are.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};
use whole_file::{Readers, Unfinished, sync_folder};

/// A committed report whose files are on their way to their places.
const READY: &str = ".report.ready";
/// Says whose report it is.
const SUMMARY: &str = "summary.json";
/// Files of a report from before [`SUMMARY`] named them, and what they are called today; of `plots`,
/// drawings.
const EARLIER: [&str; 7] =
    ["report.md", "report.html", "release.json", "results.json", "runs.json.gz", "runs.zst", "fairness.json"];
const PLOTS: &str = "plots";
/// A report needs about so much room, in bytes.
const ROOM: usize = 4 << 20;

/// The facts that tell whose a folder is, in its `summary.json`.
#[derive(Debug, Serialize, Deserialize)]
struct Owner {
    /// Study by its name on the command line; missing in reports from before it was kept.
    #[serde(default)]
    study: Option<String>,
    title: String,
    /// Files of the report, `/` between folder and name.
    #[serde(default)]
    files: Option<Vec<String>>,
}

/// A folder that is taken for the report of one study.
pub struct ReportFolder {
    path: PathBuf,
    study: String,
    /// Links followed.
    folder: PathBuf,
}

/// What the folder may hold besides an earlier report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// Nothing.
    Report,
    /// Databases of runs, `records.*`.
    ReportAndRecords,
}

impl ReportFolder {
    /// Takes the folder, which is made if there is none, before any work starts. A report that a
    /// killed process committed is moved to its place.
    ///
    /// # Errors
    /// If `path` is no folder, cannot be written, has no room, or holds anything but an earlier
    /// report of this study (and what `contents` says); the message names it.
    pub fn claim(path: &Path, study: &str, title: &str, contents: Contents) -> anyhow::Result<Self> {
        let named = || format!("the report's directory {}", path.display());
        match fs::metadata(path) {
            Ok(found) if !found.is_dir() => bail!("{} is no directory", named()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                ensure!(fs::symlink_metadata(path).is_err(), "{} is a link that leads nowhere", named());
                fs::create_dir_all(path).with_context(named)?;
            }
            Err(error) => return Err(error).with_context(named),
        }
        let folder = fs::canonicalize(path).with_context(named)?;
        let claimed = Self { path: path.to_owned(), study: study.to_owned(), folder };
        {
            let _lock = claimed.lock()?;
            claimed.refuse_foreign(title, contents)?;
            claimed.finish_committed()?;
        }
        claimed.ensure_room().with_context(named)?;
        Ok(claimed)
    }

    /// Where it is, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fills a folder beside the earlier report and puts it in its place. `fill` writes every file
    /// but the summary, which it returns.
    ///
    /// # Errors
    /// If `fill` fails or the disk refuses; the earlier report is then still there. If a file of
    /// the report is in the way of one that is the user's.
    pub fn replace<S: Serialize>(&self, fill: impl FnOnce(&mut Staging) -> anyhow::Result<S>) -> anyhow::Result<()> {
        let context = || format!("writing the report to {}", self.path.display());
        let unfinished = Unfinished::folder(&self.folder, "report").with_context(context)?;
        let mut staging = Staging { folder: unfinished.path().to_owned(), files: Vec::new() };
        let summary = fill(&mut staging)?;
        let mut summary = serde_json::to_value(summary).context("serialising the summary")?;
        summary["study"] = self.study.as_str().into();
        summary["files"] = staging.files.clone().into();
        staging.write(SUMMARY, &serde_json::to_vec_pretty(&summary).context("serialising the summary")?)?;
        let _lock = self.lock()?;
        self.refuse_collisions(&staging.files)?;
        self.finish_committed()?;
        unfinished.finish(&self.folder.join(READY)).and_then(|()| sync_folder(&self.folder)).with_context(context)?;
        self.finish_committed()
    }

    /// One process moves files at a time.
    fn lock(&self) -> anyhow::Result<Option<File>> {
        // Elsewhere than on Unix a folder cannot be opened, and some network file systems have no
        // locks.
        let Ok(folder) = File::open(&self.folder) else { return Ok(None) };
        match folder.lock() {
            Ok(()) => Ok(Some(folder)),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(None),
            Err(error) => Err(error).with_context(|| format!("locking {}", self.path.display())),
        }
    }

    /// Whose report is there; `None` if there is no summary.
    fn owner(&self) -> anyhow::Result<Option<Owner>> {
        read_owner(&self.folder.join(SUMMARY)).with_context(|| {
            format!(
                "{} holds a {SUMMARY} that is not a report's (choose another output directory)",
                self.path.display()
            )
        })
    }

    /// Whose report was committed and has not moved to its place yet, if there is one.
    fn committed(&self) -> Option<Owner> {
        read_owner(&self.folder.join(READY).join(SUMMARY)).ok().flatten()
    }

    fn refuse_foreign(&self, title: &str, contents: Contents) -> anyhow::Result<()> {
        if let Some(owner) = self.owner()? {
            self.refuse_owner(&owner, title)?;
            return self.refuse_collisions(&EARLIER.map(str::to_owned));
        }
        // Some files of a first report may have moved already, its summary being the last.
        let committed = self.committed();
        if let Some(owner) = &committed {
            self.refuse_owner(owner, title)?;
        }
        let files = committed.and_then(|owner| owner.files).unwrap_or_default();
        let is_of_report = |name: &OsStr| files.iter().any(|file| Path::new(file).iter().next() == Some(name));
        for entry in fs::read_dir(&self.folder).with_context(|| format!("reading {}", self.path.display()))? {
            let name = entry.with_context(|| format!("reading {}", self.path.display()))?.file_name();
            let is_record = contents == Contents::ReportAndRecords && begins_with(&name, "records.");
            if !is_record && !is_of_report(&name) && !begins_with(&name, ".report.") {
                bail!(
                    "{} holds `{}` and no {SUMMARY} of a report, so it is not ours to write to (choose another output directory)",
                    self.path.display(),
                    name.to_string_lossy()
                );
            }
        }
        Ok(())
    }

    fn refuse_owner(&self, owner: &Owner, title: &str) -> anyhow::Result<()> {
        let (is_ours, whose) = match &owner.study {
            Some(study) => (*study == self.study, study),
            None => (owner.title == title, &owner.title),
        };
        ensure!(
            is_ours,
            "{} holds the report of `{whose}`, which is not replaced by one of `{}` (choose another output directory)",
            self.path.display(),
            self.study
        );
        Ok(())
    }

    /// Refuses to replace a file that no report of ours has written.
    fn refuse_collisions(&self, files: &[String]) -> anyhow::Result<()> {
        let plots = self.folder.join(PLOTS);
        let is_in_the_way = fs::symlink_metadata(&plots).is_ok_and(|found| !found.is_dir());
        ensure!(!is_in_the_way, "{} is in the way of the report's plots", plots.display());
        let ours = self.files_of_the_report()?;
        let committed = self.committed().and_then(|owner| owner.files).unwrap_or_default();
        for file in files {
            let path = self.folder.join(file);
            if fs::symlink_metadata(&path).is_ok() && !ours.contains(file) && !committed.contains(file) {
                bail!("{} is no file of the report that {SUMMARY} describes; it is not replaced", path.display());
            }
        }
        Ok(())
    }

    /// What the report that is there consists of, its summary aside.
    fn files_of_the_report(&self) -> anyhow::Result<Vec<String>> {
        let Some(owner) = self.owner()? else { return Ok(Vec::new()) };
        if let Some(files) = owner.files {
            return Ok(files.into_iter().filter(|file| is_below(file)).collect());
        }
        let mut files: Vec<String> = EARLIER.iter().map(|name| (*name).to_owned()).collect();
        if let Ok(plots) = fs::read_dir(self.folder.join(PLOTS)) {
            let names = plots.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
            files.extend(names.filter(|name| is_drawing(name)).map(|name| format!("{PLOTS}/{name}")));
        }
        Ok(files)
    }

    /// Moves what was committed to its place, as far as that has not happened.
    fn finish_committed(&self) -> anyhow::Result<()> {
        let ready = self.folder.join(READY);
        if !ready.exists() {
            return Ok(());
        }
        let context = || format!("moving the report in {} to its place", self.path.display());
        // The summary moves last: as long as it is there, files may be missing in their places.
        if let Some(owner) = read_owner(&ready.join(SUMMARY)).with_context(context)? {
            let files: Vec<String> =
                owner.files.unwrap_or_default().into_iter().filter(|file| is_below(file)).collect();
            for obsolete in self.files_of_the_report()?.iter().filter(|file| !files.contains(file)) {
                remove_if_there(&self.folder.join(obsolete)).with_context(context)?;
            }
            for file in &files {
                let (from, to) = (ready.join(file), self.folder.join(file));
                if from.exists() {
                    fs::create_dir_all(to.parent().unwrap_or(&self.folder)).with_context(context)?;
                    fs::rename(from, to).with_context(context)?;
                }
            }
            fs::rename(ready.join(SUMMARY), self.folder.join(SUMMARY)).with_context(context)?;
        }
        sync_folder(&self.folder).with_context(context)?;
        for folder in [ready.join(PLOTS), ready, self.folder.join(PLOTS)] {
            // Not if it holds anything: `plots` mostly does.
            let _ = fs::remove_dir(folder);
        }
        Ok(())
    }

    /// Finds out about rights and room before a long study does.
    fn ensure_room(&self) -> io::Result<()> {
        let probe = Unfinished::file(&self.folder, "report", Readers::Default)?;
        let mut file = probe.handle();
        file.write_all(&vec![0; ROOM])?;
        file.sync_all()
    }
}

/// A report that is being written.
pub struct Staging {
    folder: PathBuf,
    files: Vec<String>,
}

impl Staging {
    /// Writes one of its files; `/` stands between a folder and a name.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn write(&mut self, name: &str, bytes: &[u8]) -> anyhow::Result<()> {
        ensure!(is_below(name), "{name}: not the name of a file of a report");
        let path = self.folder.join(name);
        let write = || {
            fs::create_dir_all(path.parent().unwrap_or(&self.folder))?;
            let mut file = File::options().write(true).create_new(true).open(&path)?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        write().with_context(|| format!("writing {name}"))?;
        if name != SUMMARY {
            self.files.push(name.to_owned());
        }
        Ok(())
    }
}

/// `None` if there is no such file.
fn read_owner(path: &Path) -> anyhow::Result<Option<Owner>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether a name leads to the folder it is joined to, and at most one level down.
fn is_below(name: &str) -> bool {
    let components: Vec<Component<'_>> = Path::new(name).components().collect();
    (1..=2).contains(&components.len()) && components.iter().all(|part| matches!(part, Component::Normal(_)))
}

fn is_drawing(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "svg" || extension == "png")
}

fn begins_with(name: &OsStr, prefix: &str) -> bool {
    name.to_str().is_some_and(|name| name.starts_with(prefix))
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claim(path: &Path, study: &str) -> anyhow::Result<ReportFolder> {
        ReportFolder::claim(path, study, study, Contents::ReportAndRecords)
    }

    fn write(folder: &ReportFolder, files: &[(&str, &str)]) -> anyhow::Result<()> {
        folder.replace(|staging| {
            for (name, text) in files {
                staging.write(name, text.as_bytes())?;
            }
            Ok(json!({"title": folder.study}))
        })
    }

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(directory).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn refusal(path: &Path, study: &str) -> String {
        format!("{:#}", claim(path, study).err().unwrap())
    }

    #[test]
    fn a_failure_in_the_middle_leaves_the_earlier_report() {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("adult");
        let folder = claim(&target, "adult").unwrap();
        write(&folder, &[("report.md", "first")]).unwrap();
        let error = folder.replace(|staging| {
            staging.write("report.md", b"half")?;
            Err::<(), _>(anyhow::anyhow!("killed"))
        });
        assert_eq!(error.unwrap_err().to_string(), "killed");
        assert_eq!(fs::read_to_string(target.join("report.md")).unwrap(), "first");
        assert_eq!(names(&target), ["report.md", "summary.json"], "nothing is left beside it");
    }

    #[test]
    fn the_new_report_replaces_the_files_of_the_old_one_and_no_others() {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("adult");
        let folder = claim(&target, "adult").unwrap();
        write(&folder, &[("results.json", "first"), ("plots/a.svg", "first"), ("plots/b.svg", "first")]).unwrap();
        fs::write(target.join("records.db"), "runs").unwrap();
        fs::write(target.join("plots/mine.csv"), "a user's").unwrap();
        fs::write(target.join("notes.txt"), "a user's").unwrap();
        write(&claim(&target, "adult").unwrap(), &[("report.md", "second"), ("plots/a.svg", "second")]).unwrap();
        assert_eq!(names(&target), ["notes.txt", "plots", "records.db", "report.md", "summary.json"]);
        assert_eq!(names(&target.join("plots")), ["a.svg", "mine.csv"]);
        assert_eq!(fs::read_to_string(target.join("plots/a.svg")).unwrap(), "second");
    }

    /// Whatever a killed process has moved so far, the next one moves the rest.
    #[test]
    fn a_committed_report_is_finished_by_the_next_process() {
        for moved in 0..4 {
            let parent = tempfile::tempdir().unwrap();
            let target = parent.path().join("adult");
            let folder = claim(&target, "adult").unwrap();
            write(&folder, &[("results.json", "first"), ("report.md", "first")]).unwrap();
            let ready = target.join(READY);
            fs::create_dir_all(ready.join(PLOTS)).unwrap();
            let files = ["report.md", "plots/a.svg", "summary.json"];
            for file in files {
                fs::write(ready.join(file), "second").unwrap();
            }
            let summary = json!({"study": "adult", "title": "adult", "files": ["report.md", "plots/a.svg"]});
            fs::write(ready.join(SUMMARY), summary.to_string()).unwrap();
            if moved > 0 {
                // What the new report lacks goes first.
                fs::remove_file(target.join("results.json")).unwrap();
            }
            for file in &files[..moved] {
                fs::create_dir_all(target.join(PLOTS)).unwrap();
                fs::rename(ready.join(file), target.join(file)).unwrap();
            }
            claim(&target, "adult").unwrap();
            assert_eq!(names(&target), ["plots", "report.md", "summary.json"], "{moved} files moved");
            assert_eq!(fs::read_to_string(target.join("plots/a.svg")).unwrap(), "second");
        }
    }

    /// The same where no report was before: of the first one, any file may be in its place already.
    #[test]
    fn a_first_report_is_finished_by_the_next_process() {
        for moved in 0..4 {
            let parent = tempfile::tempdir().unwrap();
            let target = parent.path().join("adult");
            let ready = target.join(READY);
            fs::create_dir_all(ready.join(PLOTS)).unwrap();
            fs::create_dir_all(target.join(PLOTS)).unwrap();
            let files = ["results.json", "plots/a.svg", "summary.json"];
            let summary = json!({"study": "adult", "title": "adult", "files": ["results.json", "plots/a.svg"]});
            for (place, file) in files.iter().enumerate() {
                let folder = if place < moved { &target } else { &ready };
                let text = if *file == SUMMARY { summary.to_string() } else { "first".to_owned() };
                fs::write(folder.join(file), text).unwrap();
            }
            let error = refusal(&target, "toy");
            assert!(error.contains("holds the report of `adult`"), "{error}");
            claim(&target, "adult").unwrap();
            assert_eq!(names(&target), ["plots", "results.json", "summary.json"], "{moved} files moved");
        }
    }

    #[test]
    fn what_dead_processes_left_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("adult");
        fs::create_dir_all(target.join(".report.partial-7/plots")).unwrap();
        fs::write(target.join(".report.partial-7/report.md"), "half").unwrap();
        claim(&target, "adult").unwrap();
        assert_eq!(names(&target), [""; 0]);
    }

    #[test]
    fn other_peoples_files_and_other_studies_reports_are_not_replaced() {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("thesis");
        fs::create_dir_all(target.join("plots")).unwrap();
        for file in ["chapter.tex", "report.md", "plots/mine.csv"] {
            fs::write(target.join(file), "mine").unwrap();
            let error = refusal(&target, "adult");
            assert!(error.ends_with("(choose another output directory)"), "{error}");
        }
        assert_eq!(names(&target), ["chapter.tex", "plots", "report.md"]);
        let adult = parent.path().join("adult");
        write(&claim(&adult, "adult").unwrap(), &[("report.md", "first")]).unwrap();
        let error = refusal(&adult, "toy");
        assert!(error.contains("holds the report of `adult`, which is not replaced by one of `toy`"), "{error}");
        fs::write(adult.join("results.json"), "a user's").unwrap();
        assert!(refusal(&adult, "adult").contains("results.json is no file of the report"), "{error}");
        let plain = ReportFolder::claim(&parent.path().join("p"), "toy", "toy", Contents::Report).unwrap();
        fs::write(plain.path().join("records.db"), "runs").unwrap();
        assert!(ReportFolder::claim(plain.path(), "toy", "toy", Contents::Report).is_err());
        fs::write(parent.path().join("file"), "").unwrap();
        assert!(refusal(&parent.path().join("file"), "adult").ends_with("file is no directory"));
        assert!(!refusal(&parent.path().join("x".repeat(300)), "adult").is_empty());
    }

    #[test]
    fn a_report_from_before_studies_were_named_is_known_by_its_title() {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("adult");
        fs::create_dir_all(target.join("plots")).unwrap();
        fs::write(target.join(SUMMARY), r#"{"title": "Adult", "n_runs": 3}"#).unwrap();
        for file in ["report.md", "plots/old.svg", "plots/mine.csv"] {
            fs::write(target.join(file), "old").unwrap();
        }
        assert!(claim(&target, "dutch").is_err());
        let folder = ReportFolder::claim(&target, "adult", "Adult", Contents::ReportAndRecords).unwrap();
        write(&folder, &[("report.md", "new")]).unwrap();
        assert_eq!(names(&target.join("plots")), ["mine.csv"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_a_folder_is_followed_and_stays() {
        let parent = tempfile::tempdir().unwrap();
        let (real, link) = (parent.path().join("real"), parent.path().join("link"));
        fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        write(&claim(&link, "adult").unwrap(), &[("report.md", "first")]).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(names(&real), ["report.md", "summary.json"]);
        std::os::unix::fs::symlink(parent.path().join("nowhere"), parent.path().join("broken")).unwrap();
        assert!(refusal(&parent.path().join("broken"), "adult").ends_with("is a link that leads nowhere"));
    }
}
