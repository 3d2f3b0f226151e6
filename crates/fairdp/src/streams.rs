//! Standard input, pipes and devices in the place of files: what they hold is there once, and is kept
//! in a file while it is needed.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::error::{FairdpError, Result};
use crate::output::{self, Readers};

/// The name of standard input, and of standard output.
const STREAM: &str = "-";

/// First bytes of compressed text and of Parquet, with the ending of such a file.
const KINDS: [(&[u8], &str); 3] = [(b"\x1f\x8b", ".csv.gz"), (b"\x28\xb5\x2f\xfd", ".csv.zst"), (b"PAR1", ".parquet")];
/// The ending of anything else.
const PLAIN: &str = ".csv";

/// More than any configuration has, in bytes: a device may have no end.
const MOST_TEXT: u64 = 64 << 20;

/// Whether a name stands for standard input, or is a pipe or a device.
pub fn is_stream(path: impl AsRef<Path>) -> bool {
    let path = path.as_ref();
    path == Path::new(STREAM) || fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// How a stream is called in messages.
pub fn stream_name(path: &str) -> &str {
    if path == STREAM { "standard input" } else { path }
}

fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    Ok(if path == Path::new(STREAM) { Box::new(io::stdin().lock()) } else { Box::new(File::open(path)?) })
}

/// Keeps what a stream holds in a new file of this user alone, in a folder. What compresses it, and
/// Parquet, is told by the first bytes; anything else is CSV. Returns the file, whose name is `stem`
/// with the ending of its format.
///
/// # Errors
/// [`FairdpError::Io`].
pub fn spool(stream: &str, folder: &Path, stem: &str) -> Result<PathBuf> {
    let path = Path::new(stream);
    let read = || FairdpError::io("read", Path::new(stream_name(stream)));
    let mut from = open(path).map_err(read())?;
    let mut head = Vec::new();
    from.by_ref().take(4).read_to_end(&mut head).map_err(read())?;
    let ending = KINDS.iter().find(|(first, _)| head.starts_with(first)).map_or(PLAIN, |(_, ending)| ending);
    let file = folder.join(format!("{stem}{ending}"));
    output::write_with(&file, Readers::Owner, |out| {
        io::copy(&mut head.chain(from), out)?;
        Ok(())
    })?;
    Ok(file)
}

/// The text of a stream, such as a configuration.
pub(crate) fn text(path: &Path) -> Result<String> {
    let named = Path::new(stream_name(path.to_str().unwrap_or_default()));
    let mut bytes = Vec::new();
    let read = open(path).and_then(|from| from.take(MOST_TEXT + 1).read_to_end(&mut bytes));
    read.map_err(FairdpError::io("read", named))?;
    if bytes.len() as u64 > MOST_TEXT {
        return Err(FairdpError::file(named, format!("has more than {MOST_TEXT} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| FairdpError::file(named, "is not UTF-8 text"))
}

/// The tables of a configuration that are streams.
pub(crate) struct TableStreams<'a> {
    config: &'a Config,
    names: Vec<&'a str>,
}

impl<'a> TableStreams<'a> {
    /// Refuses two claims on standard input, and streams that several processes would read.
    pub(crate) fn of(config: &'a Config, path: &Path, n_ranks: usize) -> Result<Self> {
        let refuse = |expected: &str| Err(FairdpError::invalid("table.files", STREAM, expected));
        let tables = config.table.files.iter().chain(config.test.files.iter().flatten());
        // A table in memory has a name that is no file.
        let names: Vec<&str> = if config.in_memory.is_some() {
            Vec::new()
        } else {
            tables.filter(|name| is_stream(name)).map(String::as_str).collect()
        };
        let claims = names.iter().filter(|name| **name == STREAM).count();
        if claims > 0 && path == Path::new(STREAM) {
            return refuse("a file: standard input has the configuration, and is there once");
        }
        if claims > 1 {
            return refuse("standard input once: what was read from it is not there again");
        }
        if !names.is_empty() && n_ranks > 1 {
            return refuse("files: several processes cannot read one stream");
        }
        Ok(Self { config, names })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The configuration with files of this folder in the place of streams. What is there was read by
    /// a run that is continued. `say` tells what is read, and where it is kept.
    pub(crate) fn spooled(&self, folder: &Path, say: &mut dyn FnMut(String) -> Result<()>) -> Result<Config> {
        let mut config = self.config.clone();
        let tables = config.table.files.iter_mut().chain(config.test.files.iter_mut().flatten());
        for (place, name) in tables.filter(|name| self.names.contains(&name.as_str())).enumerate() {
            let stem = format!("{STEM}{}", place + 1);
            let known = endings().map(|ending| folder.join(format!("{stem}{ending}"))).find(|file| file.exists());
            let file = if let Some(file) = known {
                file
            } else {
                say(format!("reading {} into {}", stream_name(name), folder.display()))?;
                spool(name, folder, &stem)?
            };
            *name = file.to_string_lossy().into_owned();
        }
        Ok(config)
    }
}

const STEM: &str = "input-";

/// Whether a file of a private folder has this name because it was kept of a stream.
pub(crate) fn is_kept(name: &str) -> bool {
    name.starts_with(STEM)
}

fn endings() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|(_, ending)| *ending).chain([PLAIN])
}

/// Removes what was kept of the streams of a run that has ended.
pub(crate) fn forget(folder: &Path) -> Result<()> {
    for place in 1.. {
        let files: Vec<_> = endings().map(|ending| folder.join(format!("{STEM}{place}{ending}"))).collect();
        match files.iter().find(|file| file.exists()) {
            Some(file) => output::remove(file)?,
            None => break,
        }
    }
    Ok(())
}
