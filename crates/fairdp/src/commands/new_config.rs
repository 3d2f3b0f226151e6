//! A configuration that is written to a file.

use std::path::{Component, Path, PathBuf};

use fairdp::{FairdpError, is_stream};
use whole_file::{Readers, WholeFile};

use super::answer;

/// The tables as a configuration in this file names them: relative ones from its own folder on, unless
/// they are standard input. A configuration that is printed is one in the current folder.
pub(super) fn named(tables: &[String], file: Option<&Path>) -> Result<Vec<String>, FairdpError> {
    let folder = file.map_or(Path::new("."), whole_file::parent);
    tables.iter().map(|table| named_from(folder, table)).collect()
}

fn named_from(folder: &Path, table: &str) -> Result<String, FairdpError> {
    let path = Path::new(table);
    if folder == Path::new(".") || path.is_absolute() || (is_stream(table) && !path.exists()) {
        return Ok(table.to_owned());
    }
    let found = |path: &Path| {
        let failed = |source| FairdpError::Io { action: "find", path: path.to_path_buf(), source };
        path.canonicalize().map_err(failed)
    };
    // Of a pattern, the folder alone is there.
    let name = path.file_name().unwrap_or_default();
    let from_here = relative(&found(folder)?, &found(whole_file::parent(path))?);
    Ok(from_here.join(name).to_string_lossy().into_owned())
}

/// The way from one folder to another, both without links.
fn relative(from: &Path, to: &Path) -> PathBuf {
    let shared = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    let up = from.components().skip(shared).map(|_| Component::ParentDir);
    up.chain(to.components().skip(shared)).collect()
}

/// Writes what `text` makes to a new file. An older configuration may have declarations made by
/// hand, and is not replaced.
pub(super) fn write(file: &Path, text: impl FnOnce() -> Result<String, FairdpError>) -> Result<String, FairdpError> {
    if file.exists() {
        return Err(FairdpError::InvalidParameter {
            parameter: "--out".into(),
            value: file.to_string_lossy().into_owned(),
            expected: "a file that is not there yet".into(),
        });
    }
    let text = text()?;
    write_whole(file, &text)?;
    Ok(text)
}

fn write_whole(file: &Path, text: &str) -> Result<(), FairdpError> {
    let failed = |source| FairdpError::Io { action: "write", path: file.to_path_buf(), source };
    let written = WholeFile::create(file, Readers::Default);
    written.and_then(|file| file.write(|out| std::io::Write::write_all(out, text.as_bytes()))).map_err(failed)
}

/// Writes the schema of configurations, and returns the line by which editors find it from a configuration
/// in this file.
pub(super) fn schema(schema: &Path, config: Option<&Path>) -> Result<String, FairdpError> {
    let mut text = Vec::new();
    answer::schema(&mut text).map_err(|source| FairdpError::Io {
        action: "write",
        path: schema.to_path_buf(),
        source,
    })?;
    write_whole(schema, &String::from_utf8_lossy(&text))?;
    let names = named(&[schema.to_string_lossy().into_owned()], config)?;
    let name = names.concat();
    Ok(if Path::new(&name).is_absolute() { format!("#:schema {name}\n") } else { format!("#:schema ./{name}\n") })
}

/// A configuration for programs: as it is written, and what it says.
pub(super) fn answer(text: &str, file: Option<&Path>) -> serde_json::Value {
    let configuration = toml::from_str::<serde_json::Value>(text).unwrap_or_default();
    serde_json::json!({ "text": text, "configuration": configuration, "out": file.map(Path::to_string_lossy) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_between_folders() {
        let way = |from: &str, to: &str| relative(Path::new(from), Path::new(to)).to_string_lossy().into_owned();
        assert_eq!(
            (way("/a/b", "/a/b/c"), way("/a/b", "/a"), way("/a", "/d/e")),
            ("c".into(), "..".into(), "../d/e".into())
        );
    }
}
