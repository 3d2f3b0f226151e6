//! The format of an output by the ending of its name.

use std::io::{self, Write};
use std::path::Path;

use flate2::write::GzEncoder;

/// Endings of outputs, for messages.
pub(crate) const ENDINGS: &str = ".csv or .tsv (also .gz, .zst), or .parquet";

/// How a table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputFormat {
    Text { delimiter: u8, compression: Option<Compression> },
    Parquet,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    Gzip,
    Zstandard,
}

impl OutputFormat {
    /// The format of standard output, and of what has no name.
    pub(crate) const PLAIN: Self = Self::Text { delimiter: b',', compression: None };

    /// `None` for an ending that no format has. Upper and lower case are alike.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_string_lossy().to_lowercase();
        let (name, compression) = match name.rsplit_once('.')? {
            (name, "gz") => (name, Some(Compression::Gzip)),
            (name, "zst") => (name, Some(Compression::Zstandard)),
            _ => (&*name, None),
        };
        match (name.rsplit_once('.')?.1, compression) {
            ("csv", compression) => Some(Self::Text { delimiter: b',', compression }),
            ("tsv", compression) => Some(Self::Text { delimiter: b'\t', compression }),
            ("parquet", None) => Some(Self::Parquet),
            _ => None,
        }
    }
}

/// Text on its way to a file, compressed or not.
pub(crate) enum TextOutput<W: Write> {
    Plain(W),
    Gzip(GzEncoder<W>),
    Zstandard(zstd::Encoder<'static, W>),
}

impl<W: Write> TextOutput<W> {
    pub(crate) fn new(out: W, compression: Option<Compression>) -> io::Result<Self> {
        Ok(match compression {
            None => Self::Plain(out),
            Some(Compression::Gzip) => Self::Gzip(GzEncoder::new(out, flate2::Compression::default())),
            Some(Compression::Zstandard) => Self::Zstandard(zstd::Encoder::new(out, zstd::DEFAULT_COMPRESSION_LEVEL)?),
        })
    }

    /// Writes what a reader needs to see that nothing is missing.
    pub(crate) fn end(self) -> io::Result<()> {
        match self {
            Self::Plain(mut out) => out.flush(),
            Self::Gzip(out) => out.finish()?.flush(),
            Self::Zstandard(out) => out.finish()?.flush(),
        }
    }
}

impl<W: Write> Write for TextOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(out) => out.write(bytes),
            Self::Gzip(out) => out.write(bytes),
            Self::Zstandard(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(out) => out.flush(),
            Self::Gzip(out) => out.flush(),
            Self::Zstandard(out) => out.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_by_hand() {
        let text = |delimiter, compression| Some(OutputFormat::Text { delimiter, compression });
        for (name, format) in [
            ("p.csv", text(b',', None)),
            ("p.CSV.GZ", text(b',', Some(Compression::Gzip))),
            ("a.b/p.tsv.zst", text(b'\t', Some(Compression::Zstandard))),
            ("p.Parquet", Some(OutputFormat::Parquet)),
            ("p.parquet.gz", None),
            ("p.xlsx", None),
            ("p.json", None),
            ("p", None),
            ("gz", None),
            ("p.gz", None),
        ] {
            assert_eq!(OutputFormat::of(Path::new(name)), format, "{name}");
        }
    }
}
