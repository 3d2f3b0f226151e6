//! Generated records as files, which never pass for published ones.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::error::DataError;
use crate::file;
use crate::manifest::Manifest;
use crate::placed_files::SYNTHETIC_MARK;

impl Manifest {
    /// Writes generated files, each with its published name and its content, into a folder.
    ///
    /// If the manifest pins files, the names begin with `synthetic-`. Otherwise they stay,
    /// and a file `SYNTHETIC.txt` beside them says what they are, which the loaders heed: such a
    /// folder can be used as a data folder, and stays marked.
    ///
    /// # Errors
    /// [`DataError::NotReplaced`] for a folder with other files in it, where the published names
    /// are used, and for files that were not generated; [`DataError::Io`].
    pub fn write_stand_in(&self, folder: &Path, files: Vec<(String, Vec<u8>)>) -> Result<Vec<PathBuf>, DataError> {
        let is_pinned = !self.files.is_empty();
        if is_pinned {
            fs::create_dir_all(folder).map_err(DataError::io("create", folder))?;
        } else {
            claim(folder)?;
        }
        let mut paths = Vec::new();
        for (name, contents) in files {
            let path = folder.join(if is_pinned { format!("synthetic-{name}") } else { name });
            if !folder.join(SYNTHETIC_MARK).exists() {
                refuse_other(&path, &contents)?;
            }
            file::write(&path, &contents)?;
            paths.push(path);
        }
        Ok(paths)
    }
}

/// Marks an empty folder as one of generated files, or finds that it is.
pub(crate) fn claim(folder: &Path) -> Result<(), DataError> {
    fs::create_dir_all(folder).map_err(DataError::io("create", folder))?;
    let mark = folder.join(SYNTHETIC_MARK);
    if mark.exists() {
        return Ok(());
    }
    let written = file::create(&mark)?;
    let entries: io::Result<Vec<_>> = fs::read_dir(folder).and_then(Iterator::collect);
    if entries.map_err(DataError::io("read", folder))?.iter().any(|entry| !written.is_unfinished(&entry.path())) {
        // Another process may have marked it since.
        if mark.exists() {
            return Ok(());
        }
        return Err(DataError::NotReplaced {
            path: folder.into(),
            reason: "is not empty, and its files are not marked",
        });
    }
    let text = b"The files in this folder were generated. They describe no person.\n";
    written.write_bytes(text).map_err(DataError::io("write", &mark))
}

/// Refuses to replace a file with other contents.
fn refuse_other(path: &Path, contents: &[u8]) -> Result<(), DataError> {
    match fs::read(path) {
        Ok(found) if found == contents => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Ok(_) => Err(DataError::NotReplaced { path: path.into(), reason: "is there, with other contents" }),
        Err(error) => Err(DataError::io("read", path)(error)),
    }
}

/// The content of a file `NAME.gz`.
pub(crate) fn gzip(contents: &[u8], name: &str) -> Result<Vec<u8>, DataError> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(contents).and_then(|()| encoder.finish()).map_err(DataError::io("compress", name))
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    /// Each sees the others' unfinished marks.
    #[test]
    fn writers_that_begin_at_once_all_get_the_folder() {
        for _ in 0..50 {
            let folder = tempfile::tempdir().unwrap();
            let barrier = Barrier::new(4);
            let claim_at_once = || {
                barrier.wait();
                claim(folder.path())
            };
            thread::scope(|scope| {
                let writers = [(); 4].map(|()| scope.spawn(claim_at_once));
                for writer in writers {
                    writer.join().unwrap().unwrap();
                }
            });
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "only the mark is left");
        }
    }
}
