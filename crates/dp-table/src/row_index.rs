//! An index of the rows in the files of a table, made by several processes together.

use std::ops::Range;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::csv_source::CsvSource;
use crate::error::TableError;
use crate::files::{Csv, TableFiles, TableFormat};
use crate::folder_source::FolderSource;
use crate::idx::IdxSource;
use crate::parquet_source::ParquetSource;
use crate::peers::Peers;
use crate::reader::TableRow;
use crate::text_file::{TextFile, TextPosition};

/// Rows from one mark to the next.
const ROWS_PER_MARK: u64 = 16_384;

/// The number of a table's rows, and places in its files from which rows can be read.
///
/// Parquet files say how many rows they have. Texts are cut at line breaks into a part for each
/// process, which reads its own. A line break may be within quotes; so where the records of one
/// part do not end where the next one was begun, that one is read again from there.
#[derive(Debug, Clone, PartialEq)]
pub struct RowIndex {
    rows: u64,
    marks: Vec<RowMark>,
}

/// The position of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RowMark {
    pub(crate) row: u64,
    pub(crate) file: usize,
    /// In a text; `None` for a file's first row.
    pub(crate) place: Option<TextPosition>,
}

/// The part of one file that a process surveyed. Rows and lines are counted from its beginning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct FilePart {
    file: usize,
    /// Offsets at which the part begins and the next one was expected to begin.
    start: u64,
    end: u64,
    found: Option<Survey>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Survey {
    /// Offset of the next record.
    reached: u64,
    rows: u64,
    lines: u64,
    /// Row, offset and line of some of its records.
    marks: Vec<(u64, u64, u64)>,
}

impl RowIndex {
    /// Finds the rows. `None` if a file cannot be read: reading it from its beginning gives the
    /// error.
    ///
    /// # Errors
    /// [`TableError::Io`] if the processes cannot exchange what they found.
    pub fn new(files: &TableFiles, peers: &Peers<'_>) -> Result<Option<Self>, TableError> {
        let rows = match files.format() {
            TableFormat::Csv(csv) => return text(files, *csv, peers),
            TableFormat::Parquet => files.paths().iter().map(|path| ParquetSource::open(path)?.rows()).collect(),
            TableFormat::Memory(table) => Ok(vec![table.rows() as u64]),
            TableFormat::Folder => files.paths().iter().map(|path| Ok(FolderSource::open(path)?.rows())).collect(),
            TableFormat::Idx => files.paths().iter().map(|path| Ok(IdxSource::open(path)?.rows())).collect(),
        };
        let all = peers.exchange(&rows.ok(), &files.paths()[0])?;
        let rows: Option<Vec<u64>> = all[0].clone().filter(|_| all.iter().all(|rows| *rows == all[0]));
        Ok(rows.map(|of_files| {
            let (mut rows, mut marks) = (0, Vec::new());
            for (file, n) in of_files.into_iter().enumerate() {
                marks.push(RowMark { row: rows, file, place: None });
                rows += n;
            }
            Self { rows, marks }
        }))
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows as usize
    }

    /// The rows of a process: as even as they go.
    pub fn part(&self, peers: &Peers<'_>) -> Range<usize> {
        let part = peers.part(self.rows);
        part.start as usize..part.end as usize
    }

    /// The first row of a file, and how many it has.
    pub(crate) fn of_file(&self, file: usize) -> (u64, u64) {
        let first = |file: usize| {
            let mark = self.marks.iter().find(|mark| mark.file == file && mark.place.is_none());
            mark.map_or(self.rows, |mark| mark.row)
        };
        (first(file), first(file + 1) - first(file))
    }

    /// The last mark that is not behind this row.
    pub(crate) fn mark(&self, row: usize) -> RowMark {
        let after = self.marks.partition_point(|mark| mark.row <= row as u64);
        self.marks.get(after.saturating_sub(1)).copied().unwrap_or(RowMark { row: 0, file: 0, place: None })
    }
}

fn text(files: &TableFiles, csv: Csv, peers: &Peers<'_>) -> Result<Option<RowIndex>, TableError> {
    let table = &files.paths()[0];
    let texts: Vec<TextFile> = files.paths().iter().map(|path| TextFile::new(path, csv.encoding)).collect();
    let lengths = lengths(&texts, peers, table)?;
    // A text without a header is an error.
    let Some(lengths) = lengths.filter(|lengths| !lengths.contains(&0)) else { return Ok(None) };
    let survey = |part: &mut FilePart| {
        let found = survey(&files.paths()[part.file], csv, part.start..part.end);
        part.found = found.ok();
    };
    let mut mine = parts(&texts, &lengths, peers);
    if let Ok(parts) = &mut mine {
        parts.iter_mut().for_each(survey);
    }
    let mut mine = mine.ok();
    loop {
        let all: Option<Vec<Vec<FilePart>>> = peers.exchange(&mine, table)?.into_iter().collect();
        let Some(all) = all else { return Ok(None) };
        let again = match begun_elsewhere(&all) {
            None => return Ok(None),
            Some(again) if again.is_empty() => return Ok(Some(index(&all))),
            Some(again) => again,
        };
        for (rank, place, start) in again {
            if rank == peers.rank()
                && let Some(part) = mine.as_mut().and_then(|parts| parts.get_mut(place))
            {
                part.start = start;
                survey(part);
            }
        }
    }
}

/// Bytes of each text; of a compressed one a process has to unpack it to know.
fn lengths(texts: &[TextFile], peers: &Peers<'_>, table: &Path) -> Result<Option<Vec<u64>>, TableError> {
    let is_mine = |file: usize| file % peers.size() == peers.rank();
    let mine: Result<Vec<u64>, _> =
        texts.iter().enumerate().map(|(file, text)| if is_mine(file) { text.length() } else { Ok(0) }).collect();
    let all: Option<Vec<Vec<u64>>> = peers.exchange(&mine.ok(), table)?.into_iter().collect();
    Ok(all.map(|all| (0..texts.len()).map(|file| all[file % all.len()][file]).collect()))
}

/// This process's part of all texts, one behind the other, as a part of each text.
fn parts(texts: &[TextFile], lengths: &[u64], peers: &Peers<'_>) -> Result<Vec<FilePart>, TableError> {
    let part = peers.part(lengths.iter().sum());
    let mut before = 0;
    let mut parts = Vec::new();
    for (file, (text, &length)) in texts.iter().zip(lengths).enumerate() {
        let within = |at: u64| at.saturating_sub(before).min(length);
        let cut = |at: u64| if at == length { Ok(length) } else { text.line_from(at) };
        let (start, end) = (within(part.start), within(part.end));
        if start < end {
            parts.push(FilePart { file, start: cut(start)?, end: cut(end)?, found: None });
        }
        before += length;
    }
    Ok(parts)
}

/// Reads the records that begin in a range of a text.
fn survey(path: &Path, csv: Csv, range: Range<u64>) -> Result<Survey, TableError> {
    let mut found = Survey { reached: range.start, rows: 0, lines: 0, marks: Vec::new() };
    if range.start >= range.end {
        return Ok(found);
    }
    let mut source = CsvSource::open(path, csv)?;
    // Lines are counted from the part's beginning.
    let first = if range.start == 0 { 1 } else { 2 };
    if range.start > 0 {
        source = source.begun_at(TextPosition { offset: range.start, line: first })?;
    }
    let mut row = TableRow::default();
    loop {
        let place = source.place();
        if place.offset >= range.end {
            (found.reached, found.lines) = (place.offset, place.line - first);
            return Ok(found);
        }
        if found.rows > 0 && found.rows.is_multiple_of(ROWS_PER_MARK) {
            found.marks.push((found.rows, place.offset, place.line - first));
        }
        match source.read(&mut row) {
            Ok(true) => found.rows += 1,
            Err(error) if error.is_of_one_row() => found.rows += 1,
            Ok(false) => {
                (found.reached, found.lines) = (u64::MAX, 0);
                return Ok(found);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Parts that do not begin where the records before them end: whose they are, their places in the
/// list of that process, and where they begin. `None` if a part that does begin there cannot be
/// read.
fn begun_elsewhere(all: &[Vec<FilePart>]) -> Option<Vec<(usize, usize, u64)>> {
    let mut again = Vec::new();
    let mut expected = (0, 0);
    let parts = all
        .iter()
        .enumerate()
        .flat_map(|(rank, parts)| parts.iter().enumerate().map(move |(place, part)| (rank, place, part)));
    for (rank, place, part) in parts {
        let start = if part.file == expected.0 { expected.1 } else { 0 };
        if part.start != start {
            again.push((rank, place, start));
        }
        match &part.found {
            Some(found) => expected = (part.file, found.reached),
            None if again.is_empty() => return None,
            // The parts behind it cannot be judged yet.
            None => return Some(again),
        }
    }
    Some(again)
}

/// Rows and lines counted on from part to part.
fn index(all: &[Vec<FilePart>]) -> RowIndex {
    let (mut rows, mut marks) = (0, Vec::new());
    let (mut file, mut lines) = (0, 1);
    for part in all.iter().flatten() {
        let Some(found) = &part.found else { continue };
        if part.file != file {
            (file, lines) = (part.file, 1);
        }
        let place = (part.start > 0).then_some(TextPosition { offset: part.start, line: lines });
        if found.rows > 0 || place.is_none() {
            marks.push(RowMark { row: rows, file, place });
        }
        marks.extend(found.marks.iter().map(|&(row, offset, line)| RowMark {
            row: rows + row,
            file,
            place: Some(TextPosition { offset, line: lines + line }),
        }));
        rows += found.rows;
        lines += found.lines;
    }
    RowIndex { rows, marks }
}
