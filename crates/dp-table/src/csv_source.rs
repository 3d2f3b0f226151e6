//! One file of delimited text, compressed or not.

use std::cell::Cell;
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use csv::{ByteRecord, ErrorKind, ReaderBuilder, StringRecord, Terminator};
use memchr::memchr_iter;

use crate::error::{Position, TableError};
use crate::files::Csv;
use crate::header;
use crate::quotes::Quotes;
use crate::reader::{LONGEST_RECORD, TableRow};
use crate::text_file::{TextFile, TextPosition};

/// Bytes of a first line that are looked at for a delimiter.
const LONGEST_HEADER: u64 = 1 << 20;

pub(crate) struct CsvSource {
    reader: csv::Reader<CheckedText>,
    file: TextFile,
    path: Arc<Path>,
    /// With the delimiter that was found.
    csv: Csv,
    /// Position at which the reader's content begins.
    begin: TextPosition,
    columns: Vec<String>,
    /// First line of the record that was read last.
    line: usize,
    /// Lines that the reader has passed and that were not returned yet.
    ahead: Option<PassedLines>,
    is_done: bool,
}

/// Empty lines, which the reader passes over, and the record behind them.
struct PassedLines {
    /// Position of the next one.
    at: TextPosition,
    empty_lines: u64,
    record: Option<Line>,
}

/// A record, and the line in which it begins.
type Line = (ByteRecord, usize);

impl CsvSource {
    pub(crate) fn open(path: &Path, csv: Csv) -> Result<Self, TableError> {
        let file = TextFile::new(path, csv.encoding);
        let mut content = BufReader::with_capacity(1 << 16, file.open(0)?);
        // Whole, however the pieces of a compressed file are cut.
        let mut header = Vec::new();
        let mut limited = (&mut content).take(LONGEST_HEADER);
        limited.read_until(b'\n', &mut header).map_err(|reason| file.unreadable(1, reason))?;
        // Letters of UTF-16 without its mark have zeros between them; or it is no text at all.
        if header.contains(&0) {
            let reason = "the text is UTF-16 without a mark, or binary: expected text; if it is text, declare its encoding, such as \
                          `utf-16le`";
            return Err(Position { path, line: 1 }.malformed(reason));
        }
        let delimiter = csv.delimiter.unwrap_or_else(|| delimiter_of(&header, csv.quote));
        let csv = Csv { delimiter: Some(delimiter), ..csv };
        let content = io::Cursor::new(header).chain(content);
        let reader = reader(BufReader::with_capacity(1 << 16, Box::new(content)), csv);
        let begin = TextPosition { offset: 0, line: 1 };
        let columns = Vec::new();
        let (path, ahead) = (path.into(), None);
        let mut source = Self { reader, file, path, csv, begin, columns, line: 1, ahead, is_done: false };
        let mut header = StringRecord::new();
        loop {
            match source.advance(&mut header) {
                Ok(true) => break,
                Ok(false) => return Err(TableError::EmptyFile { path: source.path.to_path_buf() }),
                Err(TableError::EmptyLine { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        source.columns = header.iter().map(|name| name.trim().to_owned()).collect();
        if source.columns.iter().any(|name| name.contains('\r')) {
            return Err(source.at().malformed("lines end in carriage returns alone, or a name holds one"));
        }
        if let Some(reason) = header::nameless(&source.columns) {
            return Err(source.at().malformed(reason));
        }
        Ok(source)
    }

    /// The same file from this position on, at which a record other than the header begins.
    pub(crate) fn begun_at(self, place: TextPosition) -> Result<Self, TableError> {
        // After a line break, so that no bytes are taken for the mark of byte order at the
        // beginning of a file.
        let content = io::Cursor::new("\n").chain(self.file.open(place.offset)?);
        let reader = reader(BufReader::with_capacity(1 << 16, Box::new(content)), self.csv);
        let begin = TextPosition { offset: place.offset - 1, line: place.line - 1 };
        let ahead = Some(PassedLines { at: place, empty_lines: 0, record: None });
        Ok(Self { reader, begin, ahead, is_done: false, ..self })
    }

    /// The position behind the record that was read last.
    pub(crate) fn place(&self) -> TextPosition {
        match &self.ahead {
            Some(ahead) => ahead.at,
            None => self.passed(),
        }
    }

    /// The position behind everything that the reader has passed.
    fn passed(&self) -> TextPosition {
        let position = self.reader.position();
        TextPosition { offset: self.begin.offset + position.byte(), line: self.begin.line + position.line() - 1 }
    }

    /// The part of the file that was read: of a compressed one, of its compressed bytes.
    pub(crate) fn share(&self) -> Option<f64> {
        self.file.share()
    }

    pub(crate) fn columns(&self) -> &[String] {
        &self.columns
    }

    pub(crate) fn read(&mut self, row: &mut TableRow) -> Result<bool, TableError> {
        if !Arc::ptr_eq(&row.file, &self.path) {
            row.file = Arc::clone(&self.path);
            row.numbers = Arc::default();
        }
        let found = self.advance(&mut row.fields);
        row.line = self.line;
        if !found? {
            return Ok(false);
        }
        if row.fields.len() != self.columns.len() {
            return Err(row.position().wrong_arity(row.fields.len(), self.columns.len()));
        }
        Ok(true)
    }

    fn at(&self) -> Position<'_> {
        Position { path: &self.path, line: self.line }
    }

    /// The next record; false at the end. After an empty line, and after text that is not UTF-8,
    /// the next call goes on; after other errors the file is done.
    ///
    /// An empty line counts as a record that cannot be read: if it were passed over, a record whose
    /// line became empty would change the number of records, and the numbers of all behind it.
    fn advance(&mut self, record: &mut StringRecord) -> Result<bool, TableError> {
        let bytes = std::mem::take(record).into_byte_record();
        let Some((bytes, line)) = self.next_line(bytes)? else { return Ok(false) };
        self.line = line;
        let found = match StringRecord::from_byte_record(bytes) {
            Ok(found) => found,
            Err(error) => {
                // Its other fields can be read.
                *record = StringRecord::from_byte_record_lossy(error.into_byte_record());
                return Err(TableError::NotUtf8 { path: self.path.to_path_buf(), line });
            }
        };
        if found.len() <= 1 && found.iter().all(|field| field.trim().is_empty()) {
            return Err(self.empty_line(line));
        }
        *record = found;
        Ok(true)
    }

    /// The next record as bytes, with its line; `None` at the end.
    fn next_line(&mut self, mut bytes: ByteRecord) -> Result<Option<Line>, TableError> {
        if let Some(found) = self.next_ahead() {
            return found;
        }
        let begin = self.place();
        self.ahead = None;
        if self.is_done {
            return Ok(None);
        }
        self.line = begin.line as usize;
        self.reader.get_ref().since_record.set(0);
        let is_there = match self.reader.read_byte_record(&mut bytes) {
            Ok(is_there) => is_there,
            Err(error) => {
                self.is_done = true;
                return Err(self.refuse(error));
            }
        };
        let passed = self.passed().line - begin.line;
        let empty_lines = if is_there {
            // Lines within quotes are its own, and one ends it.
            passed.saturating_sub(memchr_iter(b'\n', bytes.as_slice()).count() as u64 + 1)
        } else {
            self.is_done = true;
            // The line break that is added at the end.
            passed.saturating_sub(1)
        };
        let record = is_there.then_some((bytes, (begin.line + empty_lines) as usize));
        if empty_lines == 0 {
            return Ok(record);
        }
        self.ahead = Some(PassedLines { at: begin, empty_lines, record });
        self.next_ahead().unwrap_or(Ok(None))
    }

    /// The next of the lines that were passed: an empty line, or the record behind all of them.
    fn next_ahead(&mut self) -> Option<Result<Option<Line>, TableError>> {
        let ahead = self.ahead.as_mut()?;
        if ahead.empty_lines == 0 {
            let record = ahead.record.take()?;
            self.ahead = None;
            return Some(Ok(Some(record)));
        }
        let line = ahead.at.line as usize;
        ahead.empty_lines -= 1;
        ahead.at = TextPosition { offset: ahead.at.offset + 1, line: ahead.at.line + 1 };
        self.line = line;
        Some(Err(self.empty_line(line)))
    }

    fn empty_line(&self, line: usize) -> TableError {
        TableError::EmptyLine { path: self.path.to_path_buf(), line }
    }

    fn refuse(&self, error: csv::Error) -> TableError {
        let content = self.reader.get_ref();
        if let Some(fault) = content.fault {
            let lines = content.quotes.as_ref().map(Quotes::lines);
            let line = lines.map_or(self.line, |lines| (self.begin.line + lines) as usize);
            return Position { path: &self.path, line }.malformed(fault);
        }
        match error.into_kind() {
            ErrorKind::Io(reason) => self.file.unreadable(self.line, reason),
            kind => self.at().malformed(format!("{kind:?}")),
        }
    }
}

fn reader(content: BufReader<Box<dyn Read + Send>>, csv: Csv) -> csv::Reader<CheckedText> {
    let delimiter = csv.delimiter.unwrap_or(b',');
    let quotes = csv.quote.map(|quote| Quotes::new(delimiter, quote));
    ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        // A carriage return before it is a blank at the end of the line.
        .terminator(Terminator::Any(b'\n'))
        .delimiter(delimiter)
        .quote(csv.quote.unwrap_or(b'"'))
        .quoting(csv.quote.is_some())
        .buffer_capacity(1 << 16)
        .from_reader(CheckedText { content, since_record: Cell::new(0), quotes, fault: None, has_ended: false })
}

/// The delimiter between the names of a header.
fn delimiter_of(begin: &[u8], quote: Option<u8>) -> u8 {
    let mut is_quoted = false;
    let line = begin.iter().copied().take_while(|&byte| byte != b'\n');
    let outside = line.filter(|&byte| {
        is_quoted ^= Some(byte) == quote;
        !is_quoted
    });
    let found: Vec<u8> = outside.filter(|byte| b",;\t|".contains(byte)).collect();
    if found.contains(&b',') { b',' } else { found.first().copied().unwrap_or(b',') }
}

/// A text up to the first fault by which a record would hide others, or fill the memory.
struct CheckedText {
    content: BufReader<Box<dyn Read + Send>>,
    since_record: Cell<u64>,
    /// `None` where a quote is a character like any other.
    quotes: Option<Quotes>,
    fault: Option<&'static str>,
    has_ended: bool,
}

impl CheckedText {
    /// How many of the bytes that were read next are without fault.
    fn pass(&mut self, text: &[u8]) -> usize {
        self.since_record.set(self.since_record.get() + text.len() as u64);
        if self.since_record.get() > LONGEST_RECORD {
            self.fault = Some("a record of more than 64 MiB begins here; is a quote not closed?");
            return 0;
        }
        let Some(quotes) = &mut self.quotes else { return text.len() };
        if text.is_empty() && quotes.is_open() {
            self.fault = Some("a quote is not closed before the end of the file");
        }
        let stray = quotes.pass(text);
        if stray.is_some() {
            self.fault = Some(
                "a quote is neither around a whole field nor doubled in one; is one not closed, or are they characters like any \
                 other (quote = \"\")?",
            );
        }
        stray.unwrap_or(text.len())
    }
}

impl Read for CheckedText {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(fault) = self.fault {
            return Err(io::Error::other(fault));
        }
        let n = self.content.read(buffer)?;
        match (self.pass(&buffer[..n]), self.fault) {
            (0, Some(fault)) => Err(io::Error::other(fault)),
            // The last line ends, too: lines are counted by their ends.
            (0, None) if !self.has_ended && !buffer.is_empty() => {
                self.has_ended = true;
                buffer[0] = b'\n';
                Ok(1)
            }
            (n, _) => Ok(n),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_shows_what_is_between_its_names() {
        let of = |header: &str| char::from(delimiter_of(header.as_bytes(), Some(b'"')));
        assert_eq!((of("a,b\n1;2"), of("a;b\n1,5;2"), of("a\tb"), of("a|b;c")), (',', ';', '\t', '|'));
        assert_eq!((of("\"x, y\";b"), of("\"x; y\",b"), of("a"), of("a;b,c")), (';', ',', ',', ','));
    }
}
