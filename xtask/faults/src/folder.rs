//! Folders before and after.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::error::FaultsError;

/// Every file of a folder with its contents, by its path in the folder.
#[derive(Debug, PartialEq)]
pub(crate) struct Snapshot(BTreeMap<String, Vec<u8>>);

impl Snapshot {
    pub(crate) fn of(folder: &Path) -> Result<Self, FaultsError> {
        let mut files = BTreeMap::new();
        collect(folder, folder, &mut files)?;
        Ok(Self(files))
    }

    /// A file that was there before, or should be there, and holds something else than at either
    /// time. Leftovers are allowed: the next command removes them.
    pub(crate) fn lost(&self, before: &Self, after: &Self, timed: &[&str]) -> Option<String> {
        for (path, was) in &before.0 {
            let is_timed = is_timed(path, timed);
            let wanted = after.0.get(path);
            let is_kept = match self.0.get(path) {
                None => wanted.is_none(),
                Some(found) => is_timed || found == was || Some(found) == wanted,
            };
            if !is_kept {
                return Some(path.clone());
            }
        }
        let new = |path: &&String| !before.0.contains_key(*path) && !is_timed(path, timed);
        let half = |path: &&String| after.0.get(*path).is_some_and(|wanted| self.0.get(*path) != Some(wanted));
        self.0.keys().filter(new).find(half).cloned()
    }

    /// The first file that differs, is missing or too many.
    pub(crate) fn difference(&self, wanted: &Self, timed: &[&str]) -> Option<String> {
        let paths = self.0.keys().chain(wanted.0.keys());
        let differs = |path: &&String| match (self.0.get(*path), wanted.0.get(*path)) {
            (Some(found), Some(wanted)) => !is_timed(path, timed) && found != wanted,
            _ => true,
        };
        paths.into_iter().find(differs).cloned()
    }
}

fn is_timed(path: &str, timed: &[&str]) -> bool {
    timed.iter().any(|prefix| path.starts_with(prefix))
}

fn collect(root: &Path, folder: &Path, files: &mut BTreeMap<String, Vec<u8>>) -> Result<(), FaultsError> {
    for entry in fs::read_dir(folder).map_err(FaultsError::machine("read", folder))? {
        let path = entry.map_err(FaultsError::machine("read", folder))?.path();
        if path.is_dir() {
            collect(root, &path, files)?;
        } else {
            let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            files.insert(name, fs::read(&path).map_err(FaultsError::machine("read", &path))?);
        }
    }
    Ok(())
}

/// The folder once more, in a temporary one.
pub(crate) fn copy_of(folder: &Path) -> Result<tempfile::TempDir, FaultsError> {
    let copy = tempfile::tempdir().map_err(FaultsError::machine("create", Path::new("a temporary folder")))?;
    copy_into(folder, copy.path())?;
    Ok(copy)
}

fn copy_into(from: &Path, to: &Path) -> Result<(), FaultsError> {
    for entry in fs::read_dir(from).map_err(FaultsError::machine("read", from))? {
        let path = entry.map_err(FaultsError::machine("read", from))?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            fs::create_dir(&target).map_err(FaultsError::machine("create", &target))?;
            copy_into(&path, &target)?;
        } else {
            fs::copy(&path, &target).map_err(FaultsError::machine("copy", &path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(files: &[(&str, &str)]) -> Snapshot {
        Snapshot(files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect())
    }

    #[test]
    fn old_and_new_are_whole_and_anything_else_is_a_loss() {
        let before = snapshot(&[("a", "old"), ("b", "mine")]);
        let after = snapshot(&[("a", "new"), ("b", "mine"), ("c", "new")]);
        for whole in [&before, &after, &snapshot(&[("a", "new"), ("b", "mine"), (".c.partial", "ha")])] {
            assert_eq!(whole.lost(&before, &after, &[]), None);
        }
        for (lost, path) in [
            (snapshot(&[("a", "ne"), ("b", "mine")]), "a"),
            (snapshot(&[("a", "old")]), "b"),
            (snapshot(&[("a", "old"), ("b", "mine"), ("c", "ne")]), "c"),
        ] {
            assert_eq!(lost.lost(&before, &after, &[]).as_deref(), Some(path));
        }
        assert_eq!(snapshot(&[("a", "ne"), ("b", "mine")]).lost(&before, &after, &["a"]), None);
        assert_eq!(after.difference(&after, &[]), None);
        assert_eq!(
            snapshot(&[("a", "new"), ("b", "mine"), ("c", "new"), (".c", "")]).difference(&after, &[]),
            Some(".c".into())
        );
    }
}
