//! The order of places, and files that cannot serve.

use std::fs;
use std::io::Write;
use std::path::Path;

use dp_data::adult::{Adult, AdultTable};
use dp_data::{DataError, DataLocator, Located, Manifest, PublishedSet};
use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

/// Two files of three bytes each; `printf one | sha256sum`, `printf two | sha256sum`.
fn manifest() -> Manifest {
    let text = "name = 'pair'\ntitle = 't'\nsource = 'a source'\nlicence = 'l'\nredistributable = true\nrecords = 2\nobtain \
                = 'o'\n[[files]]\nname = 'a.txt'\nbytes = 3\nsha256 = \
                '7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed'\nrecords = 1\n[[files]]\nname = \
                'b.txt'\nbytes = 3\nsha256 = '3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3'\nrecords \
                = 1\n";
    Manifest::parse("pair", text).expect("well formed")
}

fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for (name, content) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().expect("below the folder")).expect("writable");
        fs::write(path, content).expect("writable");
    }
    dir
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).expect("memory");
    encoder.finish().expect("memory")
}

fn locator(data_dir: &Path) -> DataLocator {
    DataLocator { data_dir: Some(data_dir.into()), offline: true, ..DataLocator::new(data_dir.join("no-cache")) }
}

fn origin(locator: &DataLocator) -> String {
    match locator.locate(&manifest()).expect("no place is broken") {
        Located::Real(real) => {
            assert_eq!(real.files.iter().map(|file| &file.contents[..]).collect::<Vec<_>>(), [b"one", b"two"]);
            let provenance = real.provenance(&manifest(), 2);
            assert!(provenance.sha256_ok && !provenance.synthetic);
            format!("{} | {}", provenance.source, provenance.notes.join(" "))
        }
        Located::Nowhere(attempts) => format!("nowhere: {}", attempts.len()),
    }
}

/// The message with the temporary folder's name taken out.
fn error(dir: &TempDir) -> String {
    let error = locator(dir.path()).locate(&manifest()).expect_err("broken");
    error.to_string().replace(&dir.path().display().to_string(), "DIR")
}

#[test]
fn files_may_lie_in_their_own_folder_or_not_and_be_zipped() {
    let one = gzip(b"one");
    for files in [
        [("pair/a.txt", &b"one"[..]), ("pair/b.txt", b"two")],
        [("a.txt", b"one"), ("b.txt", b"two")],
        [("pair/a.txt.gz", &one), ("b.txt", b"two")],
    ] {
        let dir = folder(&files);
        assert_eq!(origin(&locator(dir.path())), "a source (--data-dir; checksums verified) | ");
    }
}

#[test]
fn places_come_in_order_and_those_passed_over_are_named() {
    let both: [(&str, &[u8]); 2] = [("pair/a.txt", b"one"), ("pair/b.txt", b"two")];
    let (empty, env, cache) = (folder(&[]), folder(&both), folder(&both));
    let mut locator = DataLocator {
        data_dir: Some(empty.path().into()),
        env_dir: Some(env.path().into()),
        offline: true,
        ..DataLocator::new(cache.path())
    };
    assert_eq!(
        origin(&locator),
        "a source (DP_DATA_DIR; checksums verified) | Tried --data-dir: no file of this data set."
    );
    locator.env_dir = None;
    assert_eq!(origin(&locator), "a source (cache; checksums verified) | Tried --data-dir: no file of this data set.");
    locator.cache_dir = empty.path().into();
    assert_eq!(origin(&locator), "nowhere: 3");
}

#[test]
fn errors_name_the_file() {
    insta::assert_snapshot!(
        error(&folder(&[("pair/a.txt", b"one")])),
        @"`DIR/pair/b.txt` is missing, although other files of `pair` are there"
    );
    insta::assert_snapshot!(
        error(&folder(&[("a.txt", b"ONE!"), ("b.txt", b"two")])),
        @"`DIR/a.txt` is not the published file: sha256 24f1afcf33a8cc204a7f478c49d75c1fadb6f16321dedad65de39f57b83b2726 (4 bytes), expected 7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed (3 bytes); replace or remove it"
    );
    insta::assert_snapshot!(error(&folder(&[("a.txt", b""), ("b.txt", b"two")])), @"`DIR/a.txt` has no records");
    let whole = gzip(b"one");
    insta::assert_snapshot!(
        error(&folder(&[("a.txt.gz", &whole[..whole.len() - 9]), ("b.txt", b"two")])),
        @"`DIR/a.txt.gz` is not a complete gzip file: it is cut short (after line 0)"
    );
    insta::assert_snapshot!(
        error(&folder(&[("a.txt.gz", b"not gzip at all"), ("b.txt", b"two")])),
        @"`DIR/a.txt.gz` is not a complete gzip file: invalid gzip header (after line 0)"
    );
    let dir = folder(&[]);
    let gone = locator(&dir.path().join("gone")).locate(&manifest()).unwrap_err();
    assert!(matches!(gone, DataError::MissingFolder { given_by: "--data-dir", .. }));
    insta::assert_snapshot!(
        gone.to_string().replace(&dir.path().display().to_string(), "DIR"),
        @"`DIR/gone`, given by --data-dir, is not a folder"
    );
}

#[test]
fn without_files_adult_is_generated_and_says_why() {
    let dir = folder(&[]);
    let table = Adult.load(&locator(dir.path())).unwrap();
    assert!(table.provenance.synthetic);
    insta::assert_snapshot!(table.provenance.notes.join("\n"), @r"
    Tried --data-dir: no file of this data set.
    Tried cache: no file of this data set.
    Tried download: switched off.
    ");
}

/// Each file that is not in the cache is named with its address and its checksum.
#[cfg(not(feature = "download"))]
#[test]
fn without_the_downloader_absent_files_are_named() {
    let dir = folder(&[]);
    let locator = DataLocator { require_real: true, ..DataLocator::new(dir.path()) };
    insta::assert_snapshot!(Adult.load(&locator).unwrap_err(), @r"
    no real data for `adult`:
      - cache: no file of this data set
      - https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.data: not fetched; place it as `adult/adult.data`, sha256 5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d
      - https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.test: not fetched; place it as `adult/adult.test`, sha256 a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05
    ");
}

#[test]
fn own_files_are_read_without_a_checksum() {
    let row =
        b"39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, \
                United-States, <=50K\n";
    let dir = folder(&[("mine.csv", row), ("more.csv.gz", &gzip(row)), ("cut.csv.gz", &gzip(&row.repeat(500))[..300])]);
    let table = AdultTable::from_files(&[dir.path().join("mine.csv"), dir.path().join("more.csv.gz")]).unwrap();
    assert_eq!(table.records.len(), 2);
    assert_eq!(table.provenance.files[1].name, "more.csv");
    assert!(!table.provenance.sha256_ok);
    insta::assert_snapshot!(
        table.provenance.source,
        @"files given by name (not the published ones, or not compared with them)"
    );
    let cut = AdultTable::from_files(&[dir.path().join("cut.csv.gz")]).unwrap_err().to_string();
    assert!(cut.contains("cut.csv.gz` is not a complete gzip file: it is cut short (after line "), "{cut}");
    let missing = AdultTable::from_files(&[dir.path().join("missing")]).unwrap_err().to_string();
    insta::assert_snapshot!(
        missing.replace(&dir.path().display().to_string(), "DIR"),
        @"cannot read `DIR/missing`: No such file or directory (os error 2)"
    );
}
