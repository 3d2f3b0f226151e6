//! Whatever is in a file: rows or an error, and never a panic.

use dp_table::{BadRows, Guess, TableFiles};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Placed, schema};

const PLAIN: &str = "age,job,ill\n30,clerk,no\n61.5,\"nurse\",yes\n,clerk,no\n-1e9,,yes\n";

/// Reads, guesses and encodes; features of what could be read are finite and bounded.
fn try_all(placed: &Placed) {
    let files: TableFiles = placed.files();
    if let Ok(mut reader) = files.open() {
        let _ = Guess::of(&mut reader).map(|guess| {
            let _ = guess.markers();
            guess.columns.iter().map(dp_table::ColumnGuess::column).count()
        });
    }
    for bad_rows in [BadRows::Refuse, BadRows::Drop] {
        let mut schema = schema();
        schema.bad_rows = bad_rows;
        let Ok((table, _)) = placed.encode(&schema) else { continue };
        let rows: Vec<usize> = (0..table.rows()).collect();
        let mut features = vec![0.0; rows.len() * table.width()];
        table.gather(&rows, &mut features);
        assert!(features.iter().all(|value| value.is_finite()));
    }
}

fn damaged(contents: &[u8], rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut contents = contents.to_vec();
    for _ in 0..rng.random_range(1..8) {
        let at = rng.random_range(0..=contents.len());
        match rng.random_range(0..4) {
            0 => contents.truncate(at.max(1)),
            1 => contents.insert(at, rng.random()),
            2 => contents.insert(at, b"\",\n\r\0;."[rng.random_range(0..7)]),
            _ => {
                if let Some(byte) = contents.get_mut(at) {
                    *byte = rng.random();
                }
            }
        }
    }
    contents
}

fn damage(name: &str, contents: &[u8], n: usize) {
    let mut rng = ChaCha8Rng::seed_from_u64(n as u64);
    for _ in 0..n {
        try_all(&Placed::new(name, damaged(contents, &mut rng)));
    }
}

#[test]
fn damaged_text() {
    damage("t.csv", PLAIN.as_bytes(), 700);
}

#[test]
fn damaged_compressed_text() {
    damage("t.csv.zst", &zstd::encode_all(PLAIN.as_bytes(), 1).unwrap(), 500);
}

#[test]
fn damaged_parquet() {
    use parquet::basic::Compression;
    damage("t.parquet", &super::parquet_files::people(Compression::UNCOMPRESSED), 700);
    damage("t.parquet", &super::parquet_files::people(Compression::SNAPPY), 300);
}

/// The reader of Parquet panics on some of these pages; that is an error, too.
#[test]
fn every_changed_byte_of_parquet() {
    use parquet::basic::Compression;
    let whole = super::parquet_files::people(Compression::UNCOMPRESSED);
    let mut n_damaged = 0;
    for place in 0..whole.len() {
        for value in [0, 0x7f, 0xff, whole[place] ^ 1] {
            let mut changed = whole.clone();
            changed[place] = value;
            let found = Placed::new("t.parquet", changed).files().open().and_then(|mut reader| Guess::of(&mut reader));
            n_damaged += usize::from(found.is_err_and(|error| error.to_string().contains("a page is damaged")));
        }
    }
    assert!(n_damaged > 0);
}

/// Without a look at the file's end, `parquet` counts to 2³¹.
#[test]
fn a_list_longer_than_a_parquet_file() {
    let mut file = super::parquet_files::people(parquet::basic::Compression::UNCOMPRESSED);
    // At the head of the first page, a field that nobody knows: a list of so many doubles.
    file[4..11].copy_from_slice(&[0xf9, 0xf7, 0xff, 0xff, 0xff, 0xff, 0x07]);
    let found = Placed::new("t.parquet", file).files().open().and_then(|mut reader| Guess::of(&mut reader));
    assert!(found.is_err_and(|error| error.to_string().contains("column `age`, row 1")));
}

/// Without a look at the page, `parquet` makes room for 734 million numbers.
#[test]
fn a_dictionary_larger_than_its_parquet_page() {
    // A seed of the fuzz target, whose first byte chooses the format.
    let file = &std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/table/large-dictionary")).unwrap()[1..];
    let found = Placed::new("t.parquet", file).files().open().and_then(|mut reader| Guess::of(&mut reader));
    let error = found.err().unwrap().to_string();
    assert!(error.contains("entries in") && error.contains("column `row`, row 1"), "{error}");
}

#[test]
fn random_bytes() {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    for _ in 0..200 {
        let bytes: Vec<u8> = (0..rng.random_range(0..300)).map(|_| rng.random()).collect();
        for name in ["t.csv", "t.csv.gz", "t.parquet"] {
            try_all(&Placed::new(name, &bytes));
        }
    }
}
