//! The one way in which this crate reads files that are no tables: what never ends, or fits no
//! memory, is refused.

use std::fs;
use std::io;
use std::path::Path;

use crate::error::{FairdpError, Result};

/// Longer than any file of a release, by far.
const MOST_BYTES: u64 = 4 << 30;

/// The content of a regular file. Devices and pipes may never end, and are refused.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>> {
    let found = fs::metadata(path).map_err(FairdpError::io("read", path))?;
    if !found.is_file() {
        return Err(FairdpError::file(path, "is not a regular file"));
    }
    if found.len() > MOST_BYTES {
        return Err(FairdpError::file(path, format!("has {} bytes: expected at most {MOST_BYTES}", found.len())));
    }
    fs::read(path).map_err(FairdpError::io("read", path))
}

/// That a file is not there, in the words of the system.
pub(crate) fn missing(path: &Path) -> FairdpError {
    let reason = fs::metadata(path).err();
    FairdpError::io("read", path)(reason.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
}

/// The content of a file as UTF-8 text.
pub(crate) fn text(path: &Path) -> Result<String> {
    String::from_utf8(bytes(path)?).map_err(|_| FairdpError::file(path, "is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_never_end_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, b"\xff").unwrap();
        assert_eq!(bytes(&path).unwrap(), b"\xff");
        assert!(text(&path).unwrap_err().to_string().ends_with("is not UTF-8 text"));
        assert!(bytes(folder.path()).unwrap_err().to_string().ends_with("is not a regular file"));
        assert!(bytes(&folder.path().join("b")).unwrap_err().to_string().starts_with("cannot read"));
        // Nothing is stored for what was never written.
        fs::File::create(&path).unwrap().set_len(MOST_BYTES + 1).unwrap();
        assert!(bytes(&path).unwrap_err().to_string().contains("expected at most"));
        #[cfg(unix)]
        assert!(bytes(Path::new("/dev/zero")).unwrap_err().to_string().ends_with("is not a regular file"));
    }
}
