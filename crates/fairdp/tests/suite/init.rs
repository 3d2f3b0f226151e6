//! What `init` remarks on a table.

use std::fs;
use std::path::Path;

use crate::program::{done, refused};

/// A configuration for a table.
fn proposed(here: &Path, contents: impl AsRef<[u8]>, more: &[&str]) -> String {
    fs::write(here.join("t.csv"), contents).unwrap();
    done(here, &[&["init", "t.csv", "--label", "y"], more].concat())
}

/// The section of a column.
fn section<'a>(config: &'a str, name: &str) -> &'a str {
    config.split("\n\n").find(|section| section.contains(&format!("= \"{name}\"\n"))).unwrap()
}

fn rows(header: &str, n: usize, row: impl Fn(usize) -> String) -> String {
    header.to_owned() + "\n" + &(0..n).map(|i| row(i) + "\n").collect::<String>()
}

#[test]
fn labels_that_are_numbers_are_in_the_order_of_numbers() {
    let folder = tempfile::tempdir().unwrap();
    for (labels, classes) in [
        (&["2", "10"][..], r#"["2", "10"]"#),
        (&["1", "-1"], r#"["-1", "1"]"#),
        (&["10", "9", "100"], r#"["9", "10", "100"]"#),
        (&["1.0", "0.0", "1", "1.0"], r#"["0.0", "1.0"]"#),
        (&["True", "False"], r#"["False", "True"]"#),
        (&["yes", "no"], r#"["no", "yes"]"#),
        (&["1e-3", "0.5"], r#"["1e-3", "0.5"]"#),
    ] {
        let table = rows("age,y", 1_000, |i| format!("{},{}", 20 + i % 60, labels[i % labels.len()]));
        let config = proposed(folder.path(), table, &[]);
        assert!(config.contains(&format!("classes = {classes}")), "{config}");
    }
    let table = rows("age,y", 1_000, |i| format!("{},{}", 20 + i % 60, ["2.0", "10.0"][i % 2]));
    assert!(proposed(folder.path(), table, &["--positive", "2"]).contains(r#"classes = ["10.0", "2.0"]"#));
}

#[test]
fn a_stray_text_makes_no_categories_of_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let mut table = rows("age,few,bit,y", 1_000, |i| format!("{},{},{},{}", 18 + i % 63, i % 4, i % 2, i % 2));
    table.push_str("Total,Total,Total,Total\n");
    let config = proposed(folder.path(), &table, &[]);
    let remark = "# 1 of 1,001 values is no number: `Total` in line 1002: correct it, list it in table.missing";
    for (name, entry) in [
        ("age", "kind = \"number\"\nlow = 18.0\nhigh = 80.0\n"),
        ("few", "kind = \"number\"\nlow = 0.0\nhigh = 3.0\n"),
        ("bit", "kind = \"boolean\"\nvalues = [\"0\", \"1\"]\n"),
        ("y", "classes = [\"0\", \"1\"]"),
    ] {
        let section = section(&config, name);
        assert!(section.contains(entry) && section.contains(remark), "{section}");
    }
    let table = table.replacen("\n18,", "\nabout 18,", 2);
    let config = proposed(folder.path(), &table, &[]);
    let expected = "# 3 of 1,001 values are no numbers, the first `about 18` in line 2";
    assert!(section(&config, "age").contains(expected), "{config}");
    // Of few numbers and a text that is not as rare, each may be a code.
    let code = |i: usize| if i.is_multiple_of(30) { "u" } else { ["1", "2", "3"][i % 3] };
    let coded = rows("code,y", 1_000, |i| format!("{},{}", code(i), i % 2));
    let config = proposed(folder.path(), coded, &[]);
    let code = section(&config, "code");
    assert!(code.contains("values = [\"1\", \"2\", \"3\", \"u\"]"), "{code}");
    assert!(code.contains("# 34 of 1,000 values are no numbers"), "{code}");
}

#[test]
fn values_that_look_alike_are_pointed_out() {
    let folder = tempfile::tempdir().unwrap();
    let values = [
        ("clerk", "Clerk", "`Clerk`, `clerk` differ by small and capital letters alone; each is a value of its own"),
        ("New York", "New  York", "`New  York`, `New York` differ by blanks alone"),
        ("a\u{a0}b", "a b", "`a b`, `a\\u{a0}b` differ by blanks alone"),
        ("clerk", "cl\u{200b}erk", "`clerk`, `cl\\u{200b}erk` differ by invisible characters alone"),
        ("caf\u{e9}", "cafe\u{301}", "differ by composed and decomposed letters alone"),
        ("1", "1.0", "`1`, `1.0` differ by the spelling of a number alone; they are one value"),
        ("1", "01", "`01`, `1` differ by the spelling of a number alone; each is a value of its own"),
    ];
    for (one, other, remark) in values {
        let table = rows("age,x,g,y", 600, |i| {
            let value = [one, one, other, "third", "fourth"][i % 5];
            format!("{},{value},{value},{}", 20 + i % 60, i % 2)
        });
        let config = proposed(folder.path(), table, &["--group", "g"]);
        for column in ["x", "g"] {
            assert!(section(&config, column).contains(remark), "{remark}: {config}");
        }
        fs::write(folder.path().join("c.toml"), config.replace("from = \"data\"", "public = true")).unwrap();
        done(folder.path(), &["fit", "c.toml", "--plan", "--no-data"]);
    }
    let table = rows("age,y", 600, |i| format!("{},{}", 20 + i % 60, ["Yes", "no", "yes"][i % 3]));
    let config = proposed(folder.path(), table, &[]);
    assert!(section(&config, "y").contains("# `Yes`, `yes` differ by small and capital letters alone"), "{config}");
    let table = rows("age,x,y", 600, |i| format!("{},{},{}", 20 + i % 60, ["a", "b", "c"][i % 3], i % 2));
    assert!(!proposed(folder.path(), table, &[]).contains("differ by"));
}

#[test]
fn a_header_that_is_none_is_pointed_out() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let row = |i: usize| format!("{},{},{}", 18 + (i * 7) % 63, ["f", "m"][i % 2], ["no", "yes"][i % 3 % 2]);
    fs::write(here.join("t.csv"), rows("39,m,no", 600, row)).unwrap();
    let config = done(here, &["init", "t.csv", "--label", "no"]);
    assert!(config.contains("# the first line looks like a record, not like a header: `39` is a value"), "{config}");
    let (code, message) = refused(here, &["init", "t.csv", "--label", "y"]);
    assert!(code == 2 && message.contains("39, m, no; the first line looks like a record"), "{message}");
    let index = rows(",age,sex,y", 600, |i| format!("{i},{}", row(i)));
    fs::write(here.join("t.csv"), &index).unwrap();
    let message = refused(here, &["init", "t.csv", "--label", "y"]).1;
    assert!(
        message.contains("t.csv:1: column 1 of the header has no name: pandas and R write an index so"),
        "{message}"
    );
    let unnamed = index.replacen(",age", "Unnamed: 0,age", 1);
    let index = proposed(here, unnamed, &[]);
    assert!(section(&index, "Unnamed: 0").contains("kind = \"drop\"  # an index, as pandas names it"), "{index}");
    assert!(!index.contains("looks like a record"));
    fs::write(here.join("t.csv"), rows("0,1,2", 600, |i| format!("{},{},{}", i % 2, i % 3, i % 2))).unwrap();
    assert!(!done(here, &["init", "t.csv", "--label", "2"]).contains("looks like a record"));
    fs::write(here.join("t.csv"), "0,f,0\n1,m,1\n").unwrap();
    let message = refused(here, &["init", "t.csv", "--label", "y"]).1;
    assert!(message.contains("two columns with the name `0`: the first line looks like a record"), "{message}");
}

/// UTF-8 with a mark of byte order or without, UTF-16 with one, and what is declared.
#[test]
fn a_file_is_read_in_the_encoding_in_which_fit_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let table = rows("größe,y", 600, |i| format!("{},{}", ["groß", "klein", "mittel"][i % 3], i % 2));
    let marked = format!("\u{feff}{table}");
    let utf16: Vec<u8> = marked.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let latin1: Vec<u8> = table.chars().map(|letter| letter as u8).collect();
    let config = proposed(here, &table, &["--epsilon", "8"]);
    assert!(config.contains("name = \"größe\"") && !config.contains("encoding"), "{config}");
    for same in [marked.into_bytes(), utf16.clone()] {
        assert_eq!(config, proposed(here, same, &["--epsilon", "8"]));
    }
    let found = proposed(here, &latin1, &["--epsilon", "8"]);
    let line =
        "encoding = \"windows-1252\"  # or Latin-1, which it includes: the text is not UTF-8; check its letters\n";
    assert_eq!(found.replace(line, ""), config);
    let given = proposed(here, &latin1, &["--epsilon", "8", "--encoding", "latin1"]);
    assert_eq!(given.replace("encoding = \"latin1\"\n", ""), config);
    let fit = |config: &str, contents: &[u8], out: &str| {
        fs::write(here.join("t.csv"), contents).unwrap();
        fs::write(here.join("c.toml"), config.replace("from = \"data\"", "public = true")).unwrap();
        done(here, &["fit", "c.toml", "--out", out, "-q", "--seed", "1"]);
        fs::read(here.join(out).join("release/model.safetensors")).unwrap()
    };
    let expected = fit(&config, table.as_bytes(), "utf8");
    assert_eq!(fit(&config, &utf16, "utf16"), expected);
    assert_eq!(fit(&given, &latin1, "latin1"), expected);
    let message = refused(here, &["predict", "latin1", "t.csv", "--out", "p.csv"]).1;
    assert!(message.contains("t.csv:1: not UTF-8 text"), "{message}");
    done(here, &["predict", "latin1", "t.csv", "--out", "p.csv", "--encoding", "latin1", "--strict"]);
    let (code, message) = refused(here, &["predict", "latin1", "t.csv", "--out", "q.csv", "--encoding", "morse"]);
    assert!(code == 2 && message.contains("--encoding = morse: expected a label of the WHATWG"), "{code} {message}");
    // Without its mark UTF-16 is not recognised.
    fs::write(here.join("t.csv"), &utf16[2..]).unwrap();
    for arguments in [&["init", "t.csv", "--label", "y"][..], &["fit", "c.toml", "--out", "run", "-q"]] {
        let config = given.replace("encoding = \"latin1\"\n", "").replace("from = \"data\"", "public = true");
        fs::write(here.join("c.toml"), config).unwrap();
        let message = refused(here, arguments).1;
        assert!(message.contains("t.csv:1: the text is UTF-16 without a mark, or binary"), "{message}");
    }
    assert_eq!(
        config,
        proposed(here, &utf16[2..], &["--epsilon", "8", "--encoding", "utf-16le"])
            .replace("encoding = \"utf-16le\"\n", "")
    );
}

/// As downloads of Adult end.
#[test]
fn an_empty_line_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let table = rows("x,y", 400, |i| format!("{}.5,{}", i % 7, i % 3 % 2)) + "\n";
    let config = proposed(folder.path(), &table, &[]);
    let remark = "\n# 1 empty line, line 402: read as nothing here, but for `fit` a row that does not fit: remove it\n";
    assert!(config.contains(remark), "{config}");
    let config = proposed(folder.path(), table + "\n", &[]);
    assert!(config.contains("\n# 2 empty lines, the first line 402: read as nothing here"), "{config}");
}

/// Bins are as fine as their noise allows: that of people, at this ε.
#[test]
fn bins_go_by_people_and_by_epsilon() {
    let folder = tempfile::tempdir().unwrap();
    let table = |person: fn(usize) -> usize| {
        rows("x,pay,p,y", 24_000, |i| format!("{}.5,{},p{},{}", i % 700, i * 7919 % 90_001, person(i), i % 3 % 2))
    };
    let (few, some, many) = (["4 ", "{ log = 8 }"], ["16\n", "{ log = 16 }"], ["32\n", "{ log = 32 }"]);
    for (person, options, expected) in [
        ((|i| i / 4) as fn(usize) -> usize, &[][..], many),
        (|i| i / 4, &["--epsilon", "0.5"], some),
        (|i| i / 4, &["--epsilon", "0.4"], few),
        (|i| i / 4, &["--unit", "p"], few),
        (|i| i / 4, &["--unit", "p", "--epsilon", "4"], some),
        (|i| i * 9 / 10, &["--unit", "p"], many),
    ] {
        let config = proposed(folder.path(), table(person), options);
        for (column, expected) in ["x", "pay"].into_iter().zip(expected) {
            let section = section(&config, column);
            assert!(section.contains(&format!("bins = {expected}")), "{options:?}: {section}");
        }
    }
}

#[test]
fn another_quote_is_read_and_written() {
    let folder = tempfile::tempdir().unwrap();
    let table = rows("x,y", 400, |i| format!("|a, {}|,{}", i % 7, i % 3 % 2));
    let config = proposed(folder.path(), &table, &["--quote", "|"]);
    assert!(config.contains("\nquote = \"|\"\n") && config.contains("\"a, 3\""), "{config}");
    let (code, message) = refused(folder.path(), &["init", "t.csv", "--label", "y", "--quote", "||"]);
    assert!(code == 2 && message.contains("--quote = ||: expected one character, or none"), "{message}");
}

#[test]
fn any_character_may_stand_between_fields() {
    let folder = tempfile::tempdir().unwrap();
    let row = |i: usize| format!("{}.5^{}", i % 7, i % 3 % 2);
    let config = proposed(folder.path(), rows("x^y", 400, row), &["--delimiter", "^"]);
    assert!(
        config.contains("\ndelimiter = \"^\"\n") && section(&config, "x").contains("kind = \"number\""),
        "{config}"
    );
}

/// Infinite numbers are values to declare, however many there are.
#[test]
fn infinite_numbers_make_no_categories() {
    let folder = tempfile::tempdir().unwrap();
    let row = |i: usize| match i % 4 {
        0 => format!("inf,{}", i % 3 % 2),
        1 => format!("-Infinity,{}", i % 3 % 2),
        _ => format!("{}.5,{}", i % 7, i % 3 % 2),
    };
    let config = proposed(folder.path(), rows("x,y", 400, row), &[]);
    let section = section(&config, "x");
    assert!(section.contains("kind = \"number\"") && section.contains("low = 0.5"), "{section}");
    assert!(
        config.contains("200 of 400 values are no numbers, the first `inf` in line 2; others are `-Infinity`"),
        "{config}"
    );
}
