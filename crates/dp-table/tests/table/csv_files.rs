//! Delimited text as people and programs write it.

use std::fs;
use std::io::Write;

use dp_table::{Csv, TableFiles};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::{Placed, read, read_bytes, schema};

fn text(contents: impl AsRef<[u8]>) -> String {
    read_bytes("t.csv", contents, None)
}

#[test]
fn quotes_hold_delimiters_lines_and_quotes() {
    insta::assert_snapshot!(text("a,b\n1,\"x, \"\"y\"\"\nz\"\n2,w\n"), @r#"
    a|b
    2: 1|x, "y"
    z
    4: 2|w
    "#);
}

#[test]
fn byte_order_mark_carriage_returns_blanks_and_a_missing_last_line_break() {
    insta::assert_snapshot!(text(b"\xef\xbb\xbf a , b\r\n 1 ,\t2\r\n3,"), @r"
    a|b
    2: 1|2
    3: 3|
    ");
}

/// Otherwise a record whose line becomes empty would move all behind it.
#[test]
fn empty_lines_count_as_rows_that_cannot_be_read() {
    let empty = |line: usize| format!("t.csv:{line}: an empty line; it counts as a row: remove it");
    let expected = |lines: [usize; 4]| {
        let [a, b, c, d] = lines.map(empty);
        format!("a|b\n{a}\n{b}\n4: 1|2\n{c}\n6: 3|4\n{d}")
    };
    assert_eq!(text("a,b\n\n\n1,2\n\n3,4\n\n"), expected([2, 3, 5, 7]));
    assert_eq!(text("a,b\r\n\r\n\r\n1,2\r\n\r\n3,4\r\n\r\n"), expected([2, 3, 5, 7]));
    assert_eq!(text("a,b\n \n\"\"\n1,2\n\t\r\n3,4\n\n"), expected([2, 3, 5, 7]));
    // Those before the header are before all rows, and the end of the last line is none.
    assert_eq!(text("\n\na,b\n1,2"), "a|b\n4: 1|2");
    assert_eq!(text("a,b\n\n1,2\n\n"), format!("a|b\n{}\n3: 1|2\n{}", empty(2), empty(4)));
    insta::assert_snapshot!(
        text("a,b\r1,2\r"),
        @"t.csv:1: lines end in carriage returns alone, or a name holds one"
    );
}

#[test]
fn rows_with_too_few_or_too_many_fields_are_named_and_passed_over() {
    insta::assert_snapshot!(text("a,b\n1\n1,2,3\n4,5\n"), @r"
    a|b
    t.csv:2: 1 fields, expected 2
    t.csv:3: 3 fields, expected 2
    4: 4|5
    ");
}

#[test]
fn text_that_is_not_utf_8_is_named_and_passed_over() {
    insta::assert_snapshot!(text(b"a,b\n1,\xff\n2,x\n"), @r"
    a|b
    t.csv:2: not UTF-8 text
    3: 2|x
    ");
    insta::assert_snapshot!(text(b"\xff\xfea\0,\0b\0\n\0"), @"a|b");
    // Half of a pair is no text.
    insta::assert_snapshot!(text(b"\xff\xfea\0\n\0\x00\xd8\n\0b\0\n\0"), @r"
    a
    t.csv:2: not UTF-8 text
    3: b
    ");
    insta::assert_snapshot!(
        text(b"a\0,\0b\0\n\0"),
        @"t.csv:1: the text is UTF-16 without a mark, or binary: expected text; if it is text, declare its encoding, such as `utf-16le`"
    );
    insta::assert_snapshot!(text(b"a,b\n1,\"y\nz\"\n\n\n\n1,\xff\n2,x\n"), @r"
    a|b
    2: 1|y
    z
    t.csv:4: an empty line; it counts as a row: remove it
    t.csv:5: an empty line; it counts as a row: remove it
    t.csv:6: an empty line; it counts as a row: remove it
    t.csv:7: not UTF-8 text
    8: 2|x
    ");
}

#[test]
fn a_quote_that_is_not_closed_ends_the_file() {
    insta::assert_snapshot!(text("a,b\n1,2\n3,\"x\n4,5\n"), @r"
    a|b
    2: 1|2
    t.csv:3: a quote is not closed before the end of the file
    ");
}

/// Else the rows up to the next quote would be one field, and gone without a word.
#[test]
fn a_stray_quote_hides_no_rows() {
    insta::assert_snapshot!(text("a,b,c\n1,x,y\n2,\"x,y\n3,u,v\n4,\"w\",z\n5,u,v\n"), @r#"
    a|b|c
    2: 1|x|y
    t.csv:3: a quote is neither around a whole field nor doubled in one; is one not closed, or are they characters like any other (quote = "")?
    "#);
    insta::assert_snapshot!(text("a,b\n\n\n1,5\" pipe\n2,x\n"), @r#"
    a|b
    t.csv:4: a quote is neither around a whole field nor doubled in one; is one not closed, or are they characters like any other (quote = "")?
    "#);
}

/// No text of a record stands for the end of the file.
#[test]
fn control_characters_are_characters() {
    let rows = text("a\n\u{1}end of the table\u{1}\n2\n");
    assert_eq!(rows, "a\n2: \u{1}end of the table\u{1}\n3: 2");
}

#[test]
fn files_without_rows_or_with_a_broken_header() {
    insta::assert_snapshot!(text(""), @"`t.csv` has no records");
    insta::assert_snapshot!(text("\n\n"), @"`t.csv` has no records");
    insta::assert_snapshot!(text("a,b,a\n1,2,3\n"), @"`t.csv` has two columns with the name `a`");
    insta::assert_snapshot!(text("a,,c\n1,2,3\n"), @"t.csv:1: column 2 of the header has no name");
    let placed = Placed::new("t.csv", "age,job,ill\n");
    let error = placed.encode(&schema()).unwrap_err();
    insta::assert_snapshot!(placed.text_of(&error), @"`t.csv` has no records");
}

#[test]
fn other_delimiters_and_no_quotes() {
    insta::assert_snapshot!(read_bytes("t.tsv", "a\tb\n1,5\tx y\n", None), @r"
    a|b
    2: 1,5|x y
    ");
    let csv = Csv { delimiter: Some(b';'), quote: None, ..Csv::default() };
    insta::assert_snapshot!(read_bytes("t.csv", "a;b\n5\";\"x\n", Some(csv)), @r#"
    a|b
    2: 5"|"x
    "#);
}

#[test]
fn compressed_files_are_read_as_plain_ones() {
    let plain = "a,b\n1,2\n3,4\n";
    let mut zipped = gzip(&plain.as_bytes()[..6]);
    // Two gzip files behind each other are one.
    zipped.extend(gzip(&plain.as_bytes()[6..]));
    assert_eq!(read_bytes("t.csv.gz", zipped, None), text(plain));
    // Wherever they are cut: in the mark of byte order, or before the first delimiter.
    let marked = "\u{feff}\"age\";wage\n1;2\n";
    let members: Vec<u8> = marked.as_bytes().iter().flat_map(|byte| gzip(&[*byte])).collect();
    assert_eq!(read_bytes("t.csv.gz", members, None), "age|wage\n2: 1|2");
    assert_eq!(read_bytes("t.csv.zst", zstd::encode_all(plain.as_bytes(), 1).unwrap(), None), text(plain));
}

#[test]
fn a_compressed_file_that_is_cut_short_or_is_none_is_refused() {
    let mut plain = String::from("a,b\n");
    for row in 0..20_000 {
        plain.push_str(&format!("{row},{}\n", row * 7919 % 65_537));
    }
    for (name, compressed) in
        [("t.csv.gz", gzip(plain.as_bytes())), ("t.csv.zst", zstd::encode_all(plain.as_bytes(), 1).unwrap())]
    {
        let cut = read_bytes(name, &compressed[..compressed.len() / 2], None);
        let last = cut.lines().last().unwrap();
        assert!(last.starts_with(&format!("`{name}` is not a complete ")), "{last}");
        let other = read_bytes(name, "a,b\n1,2\n", None);
        assert!(other.starts_with(&format!("`{name}` is not a complete ")), "{other}");
    }
}

#[test]
fn several_files_are_one_table_if_their_headers_are_equal() {
    let folder = tempfile::tempdir().unwrap();
    for (name, contents) in [("1.csv", "a,b\n1,2\n"), ("2.csv", "a,b\n3,4"), ("3.csv", "a,c\n5,6\n")] {
        fs::write(folder.path().join(name), contents).unwrap();
    }
    let files = TableFiles::new(&[format!("{}/*.csv", folder.path().display())]).unwrap();
    let lines = read(&files).join("\n").replace(&format!("{}/", folder.path().display()), "");
    insta::assert_snapshot!(lines, @r"
    a|b
    2: 1|2
    2: 3|4
    `3.csv` has another header than `1.csv`: column 2 is `c`, expected `b`
    ");
}

#[test]
fn a_field_may_be_large_and_a_record_not_endless() {
    let large = format!("a,b\n1,{}\n", "x".repeat(1 << 20));
    assert_eq!(text(large).len(), "a|b\n2: 1|".len() + (1 << 20));
    let mut endless = zstd::Encoder::new(Vec::new(), 1).unwrap();
    endless.write_all(b"a,b\n1,\"").unwrap();
    let part = vec![b'x'; 1 << 20];
    for _ in 0..70 {
        endless.write_all(&part).unwrap();
    }
    insta::assert_snapshot!(read_bytes("t.csv.zst", endless.finish().unwrap(), None), @r"
    a|b
    t.csv.zst:2: a record of more than 64 MiB begins here; is a quote not closed?
    ");
}

fn gzip(contents: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(contents).unwrap();
    encoder.finish().unwrap()
}
