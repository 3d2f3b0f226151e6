//! Tables that several processes read together: what one alone reads, whatever is where.

use std::io::{self, Write as _};
use std::ops::Range;
use std::sync::{Barrier, Mutex};

use dp_table::{EncodedFile, EncodedTable, MemoryColumn, MemoryTable, Peers, RowIndex, Schema, TableFiles, TableRow};
use proptest::prelude::*;

use super::parquet_files::many_people;
use super::{Placed, read, schema};

/// What each of so many processes, here threads, makes.
fn together<T: Send>(size: usize, each: impl Fn(&Peers<'_>) -> T + Sync) -> Vec<T> {
    let board = Mutex::new(vec![Vec::new(); size]);
    let barrier = Barrier::new(size);
    std::thread::scope(|scope| {
        let (board, barrier, each) = (&board, &barrier, &each);
        let threads: Vec<_> = (0..size)
            .map(|rank| {
                scope.spawn(move || {
                    let gather = |message: Vec<u8>| -> io::Result<Vec<Vec<u8>>> {
                        board.lock().unwrap()[rank] = message;
                        barrier.wait();
                        let all = board.lock().unwrap().clone();
                        barrier.wait();
                        Ok(all)
                    };
                    each(&Peers::new(rank, size, &gather))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Label and features of these rows.
fn encoded(table: &EncodedTable, rows: Range<usize>) -> Vec<(u32, bool, Vec<f32>)> {
    let one = |row: usize| {
        let mut features = vec![0.0; table.width()];
        table.gather(&[row], &mut features);
        (table.label(row), table.is_blank(row), features)
    };
    rows.map(one).collect()
}

/// Every number of processes has the rows, counts and digest of one.
fn compare(files: &TableFiles, schema: &Schema) {
    let folder = tempfile::tempdir().unwrap();
    let (whole, counts) = EncodedTable::create(files, schema, EncodedFile::Temporary(folder.path())).unwrap();
    let n = whole.rows();
    for size in [2, 3, 5] {
        let parts = together(size, |peers| {
            let index = RowIndex::new(files, peers).unwrap().unwrap();
            let part = EncodedTable::create_part(files, schema, folder.path(), &index, peers).unwrap().unwrap();
            assert_eq!((index.rows(), part.0.held()), (n, index.part(peers)));
            part
        });
        for (part, of_all) in &parts {
            assert_eq!((part.digest(), of_all, part.rows()), (whole.digest(), &counts, n));
            assert_eq!(encoded(part, part.held()), encoded(&whole, part.held()));
            assert_eq!(part.rows_digest(), whole.rows_digest());
        }
        // Other parts, of other lengths.
        let others = together(size, |peers| {
            let index = RowIndex::new(files, peers).unwrap().unwrap();
            let rank = (0..size).find(|rank| index.part(peers).start == n * rank / size).unwrap();
            let rows = n * rank * rank / size / size..n * (rank + 1) * (rank + 1) / size / size;
            let (part, _) = EncodedTable::create_part(files, schema, folder.path(), &index, peers).unwrap().unwrap();
            (part.other_rows(files, folder.path(), &index, rows.clone(), peers).unwrap(), rows)
        });
        for (other, rows) in others {
            assert_eq!((other.held(), other.digest()), (rows.clone(), whole.digest()));
            assert_eq!(encoded(&other, rows.clone()), encoded(&whole, rows));
        }
    }
}

/// Rows that are read again are those that were read first, whoever has them: a changed label in
/// the part of one process ends all.
#[test]
fn a_table_that_changes_between_two_passes_is_refused_by_all() {
    let contents = people(9_000).replace(",x,", ",clerk,");
    let changed = contents.replacen(",yes", ",no", 1);
    let placed = Placed::new("t.csv", &contents);
    let barrier = std::sync::Barrier::new(2);
    let refusals = together(2, |peers| {
        let index = RowIndex::new(&placed.files(), peers).unwrap().unwrap();
        let rows = index.part(peers);
        let part = EncodedTable::create_part(&placed.files(), &dropping(), placed.folder.path(), &index, peers);
        let (part, _) = part.unwrap().unwrap();
        if barrier.wait().is_leader() {
            std::fs::write(&placed.path, &changed).unwrap();
        }
        barrier.wait();
        part.other_rows(&placed.files(), placed.folder.path(), &index, rows, peers).unwrap_err().to_string()
    });
    assert!(refusals.iter().all(|refusal| refusal.contains("was changed while it was read")), "{refusals:?}");
}

/// Texts with line breaks within quotes, which look like rows; empty lines; rows that do not fit.
fn people(rows: usize) -> String {
    let mut contents = String::from("\u{feff}age,job,ill\r\n");
    for row in 0..rows {
        let job = match row % 7 {
            0 => "\"clerk\n1,nurse,no\n2,nurse,yes\"",
            1 => "\"a \"\"b\"\", c\"",
            2 => "\n \nnurse",
            _ => "clerk",
        };
        let age = if row % 1_000 == 5 { "x".to_owned() } else { (row % 100).to_string() };
        let end = if row % 3 == 0 { "\r\n" } else { "\n" };
        contents.push_str(&format!("{age},{job},{}{end}", if row % 5 == 0 { "yes" } else { "no" }));
    }
    contents
}

fn dropping() -> Schema {
    Schema { bad_rows: dp_table::BadRows::Drop, ..schema() }
}

#[test]
fn a_part_of_a_text_is_what_one_process_reads_there() {
    let contents = people(40_000);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(contents.as_bytes()).unwrap();
    for (name, bytes) in [
        ("t.csv", contents.clone().into_bytes()),
        ("t.csv.gz", gzip.finish().unwrap()),
        ("t.csv.zst", zstd::encode_all(contents.as_bytes(), 0).unwrap()),
    ] {
        compare(&Placed::new(name, bytes).files(), &dropping());
    }
}

#[test]
fn parts_go_over_the_ends_of_files() {
    let placed = Placed::new("t1.csv", people(300));
    for (name, rows) in [("t2.csv", 1), ("t3.csv", 2_000), ("t4.csv", 0)] {
        std::fs::write(placed.folder.path().join(name), people(rows).trim_end()).unwrap();
    }
    let pattern = placed.folder.path().join("t?.csv");
    compare(&TableFiles::new(&[pattern.to_str().unwrap()]).unwrap(), &dropping());
}

#[test]
fn parts_of_a_table_in_memory() {
    let ages = MemoryColumn::Numbers((0..1_000).map(|age| f64::from(age % 97)).collect());
    let text = |levels: [&str; 2]| MemoryColumn::Texts {
        levels: levels.map(String::from).into(),
        positions: (0..1_000).map(|row| row % 2).collect(),
    };
    let columns = [("age", ages), ("job", text(["clerk", "nurse"])), ("ill", text(["no", "yes"]))];
    let columns = columns.map(|(name, column)| (name.to_owned(), column)).into();
    compare(&TableFiles::in_memory(MemoryTable::new("records", columns).unwrap()), &schema());
}

/// A row that does not fit, a quote that is not closed, a file with another header: no process goes
/// on with its part.
#[test]
fn where_there_is_an_error_nobody_has_a_part() {
    let bad = people(3_000);
    let open = format!("{}5,\"clerk,no\n", people(3_000));
    for (contents, schema) in [(bad, schema()), (open, dropping())] {
        let placed = Placed::new("t.csv", contents);
        let parts = together(3, |peers| {
            let index = RowIndex::new(&placed.files(), peers).unwrap()?;
            EncodedTable::create_part(&placed.files(), &schema, placed.folder.path(), &index, peers)
                .unwrap()
                .map(|_| ())
        });
        assert_eq!(parts, [None; 3]);
    }
}

/// The rows of all parts as text, with lines and errors of single rows; `None` if there is no
/// index.
fn read_in_parts(files: &TableFiles, size: usize) -> Option<Vec<String>> {
    let parts = together(size, |peers| {
        let index = RowIndex::new(files, peers).unwrap()?;
        let mut reader = files.open_rows(&index, index.part(peers)).unwrap();
        let mut row = TableRow::default();
        let mut lines = Vec::new();
        loop {
            match reader.read(&mut row) {
                Ok(true) => lines.push(format!("{}: {}", row.line(), row.fields().collect::<Vec<_>>().join("|"))),
                Ok(false) => return Some(lines),
                Err(error) => lines.push(error.to_string()),
            }
        }
    });
    parts.into_iter().collect::<Option<Vec<_>>>().map(|parts| parts.concat())
}

fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let token = prop::sample::select(vec![
        "a",
        ",",
        "\"",
        "\n",
        "\n",
        "\r\n",
        " ",
        "\"\"",
        "1,2\n",
        "\"x\ny\",z\n",
        "\u{feff}",
    ]);
    prop::collection::vec(token, 0..60).prop_map(|tokens| [&b"a,b\n"[..], tokens.concat().as_bytes()].concat())
}

proptest! {
    #[test]
    fn whatever_a_text_holds_its_parts_are_the_whole(contents in pieces(), size in 1_usize..6) {
        let placed = Placed::new("t.csv", contents);
        let mut alone = read(&placed.files());
        alone.remove(0);
        match read_in_parts(&placed.files(), size) {
            Some(parts) => prop_assert_eq!(parts, alone),
            None => prop_assert!(alone.last().is_some_and(|line| line.contains("a quote is ")), "{:?}", alone),
        }
    }
}

#[test]
fn parts_of_parquet_files_begin_within_row_groups() {
    let placed = Placed::new("unused.csv", "");
    let paths = [("a.parquet", 5_000, 700), ("b.parquet", 3_000, 10_000)].map(|(name, rows, per_group)| {
        let path = placed.folder.path().join(name);
        std::fs::write(&path, many_people(rows, per_group)).unwrap();
        path.to_str().unwrap().to_owned()
    });
    compare(&TableFiles::new(&paths).unwrap(), &schema());
}
