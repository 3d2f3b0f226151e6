//! What a table becomes.

use std::fs;
use std::io::Write as _;

use dp_table::Example;
use dp_table::{
    BadRows, Bins, Column, EncodedFile, EncodedTable, Group, GroupColumn, GroupValues, Guess, Schema, TableFiles,
    TableRow,
};
use dp_table::{DateFormat, DatePart, NumberFormat, TableError, VectorBound};
use proptest::prelude::*;

use super::{Placed, schema, texts};

const PEOPLE: &str = "age,job,ill\n25,clerk,no\n100,nurse,yes\n";

fn features(table: &EncodedTable, rows: &[usize]) -> Vec<Vec<f32>> {
    let mut all = vec![f32::NAN; rows.len() * table.width()];
    table.gather(rows, &mut all);
    all.chunks(table.width()).map(<[f32]>::to_vec).collect()
}

/// Two squares of the number, one of the category and the constant: every feature is divided by 2.
#[test]
fn features_by_hand() {
    let (table, counts) = Placed::new("t.csv", PEOPLE).encode(&schema()).unwrap();
    let names = table.feature_names();
    assert_eq!(names[..4], ["age", "age @ 0", "age @ 10", "age @ 20"]);
    assert_eq!(names[12..], ["job = clerk", "job = nurse", "constant"]);
    let by_name = |row: usize| -> Vec<(String, f32)> {
        let mut found = Vec::new();
        table.for_each_feature(row, |feature, value| {
            found.push((names[feature].clone(), (2.0 * value * 1e4).round() / 1e4));
        });
        found
    };
    let expected = |features: &[(&str, f32)]| -> Vec<(String, f32)> {
        features.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    };
    let first = [("age", -0.5), ("age @ 20", 0.5), ("age @ 30", 0.5), ("job = clerk", 1.0), ("constant", 1.0)];
    assert_eq!(by_name(0), expected(&first));
    let second = [("age", 1.0), ("age @ 90", 0.0), ("age @ 100", 1.0), ("job = nurse", 1.0), ("constant", 1.0)];
    assert_eq!(by_name(1), expected(&second));
    assert_eq!((table.label(0), table.label(1), table.unit(1)), (0, 1, 1));
    assert_eq!(table.encoding().groups(), [Group::all()]);
    assert_eq!((counts.rows, counts.dropped), (2, 0));
    assert_eq!(table.encoding().most_entries(), 5);
}

/// Of numbers, missing ones too, booleans, categories and a row that was dropped: as one by one.
#[test]
fn rows_are_expanded_together() {
    let mut schema = schema();
    let number = |bins, missing| Column::Number { low: 0.0, high: 8.0, bins, missing, format: NumberFormat::default() };
    schema.columns = vec![
        ("age".into(), number(Bins::Equal(4), Some(4.0))),
        ("size".into(), number(Bins::Equal(1), Some(4.0))),
        ("rate".into(), number(Bins::Equal(1), None)),
        ("old".into(), Column::Boolean { values: ["no".into(), "yes".into()], missing: true }),
        ("job".into(), Column::Category { values: texts(&["a", "b"]), other: true, missing: true }),
    ];
    schema.missing = texts(&[""]);
    schema.bad_rows = BadRows::Drop;
    let lines = "age,size,rate,old,job,ill\n3,1,2,no,a,no\n8,,4,yes,,yes\nx,1,2,no,a,no\n,8,0,,z,no\n";
    let (table, counts) = Placed::new("t.csv", lines).encode(&schema).unwrap();
    assert_eq!((counts.rows, counts.dropped), (4, 1));
    let room = table.encoding().most_entries();
    assert_eq!(room, 3 + 2 + 1 + 1 + 1 + 1);
    let rows = [3, 2, 0, 1];
    let (mut columns, mut values) = (vec![u32::MAX; 4 * room], vec![f32::NAN; 4 * room]);
    table.expand(&rows, &mut columns, &mut values);
    let dense = columns.chunks(room).zip(values.chunks(room)).map(|(columns, values)| {
        assert!(columns.is_sorted_by(|a, b| a < b), "{columns:?}");
        let mut row = vec![0.0; table.width()];
        columns.iter().zip(values).for_each(|(&column, &value)| row[column as usize] = value);
        row
    });
    let dense: Vec<_> = dense.collect();
    assert_eq!(dense, features(&table, &rows));
    let scaled = |row: &[f32]| {
        row.iter().map(|value| (value / table.encoding().scale() * 1e4).round() / 1e4).collect::<Vec<f32>>()
    };
    // age, its hats at 0, 2, 4, 6 and 8, missing; size, missing; rate; old, missing;
    // job: a, b, other, missing; constant.
    let missing = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, -1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0];
    assert_eq!(scaled(&dense[0]), missing);
    assert_eq!(dense[1], [0.0; 17]);
    let there = [-0.25, 0.0, 0.5, 0.5, 0.0, 0.0, 0.0, -0.75, 0.0, -0.5, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
    assert_eq!(scaled(&dense[2]), there);
    let at_the_end = [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0];
    assert_eq!(scaled(&dense[3]), at_the_end);
}

#[test]
fn values_outside_the_bounds_and_the_lists_are_counted() {
    let mut schema = schema();
    schema.columns = vec![
        (
            "age".into(),
            Column::Number {
                low: 0.0,
                high: 100.0,
                bins: Bins::Equal(10),
                missing: Some(50.0),
                format: NumberFormat::default(),
            },
        ),
        ("job".into(), Column::Category { values: texts(&["clerk"]), other: true, missing: true }),
    ];
    let placed = Placed::new("t.csv", "age,job,ill\n-5,clerk,no\n0,nurse,yes\n,,no\n1e300,cook,no\n");
    let (table, counts) = placed.encode(&schema).unwrap();
    let tallies: Vec<_> = counts.columns.iter().map(|tally| (tally.clamped, tally.missing, tally.other)).collect();
    assert_eq!(tallies, [(2, 1, 0), (0, 1, 2)]);
    let rows = features(&table, &[0, 1, 2, 3]);
    assert_eq!(rows[0][..12], rows[1][..12], "clamped to the lower bound");
    assert_eq!(rows[1][12..], rows[3][12..], "both other");
    // Missing: the declared constant, no hat, an indicator.
    assert_eq!(rows[2][0], 0.0);
    assert!(rows[2][1..12].iter().all(|hat| *hat == 0.0) && rows[2][12] > 0.0);
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let refusal = |contents: &str| {
        let placed = Placed::new("t.csv", contents);
        let error = placed.encode(&schema()).unwrap_err();
        placed.text_of(&error)
    };
    insta::assert_snapshot!(refusal("age,job,ill\n1,clerk,no\nold,clerk,no\n"), @"t.csv:3: column `age`: `old` is not a finite number");
    insta::assert_snapshot!(refusal("age,job,ill\nNaN,clerk,no\n"), @"t.csv:2: column `age`: `NaN` is not a finite number");
    insta::assert_snapshot!(
        refusal("age,job,ill\n,clerk,no\n"),
        @"t.csv:2: column `age`: the value is missing, and nothing is declared for that"
    );
    insta::assert_snapshot!(refusal("age,job,ill\n1,cook,no\n"), @"t.csv:2: column `job`: `cook` is not one of clerk, nurse");
    insta::assert_snapshot!(refusal("age,job,ill\n1,clerk,maybe\n"), @"t.csv:2: column `ill`: `maybe` is not one of no, yes");
    insta::assert_snapshot!(refusal("age,job,ill\n1,clerk\n"), @"t.csv:2: 2 fields, expected 3");
    insta::assert_snapshot!(refusal("age,ill\n1,no\n"), @"t.csv:1: column `job` is missing from the header");
    insta::assert_snapshot!(
        refusal("age,job,ill,name\n1,clerk,no,x\n"),
        @"`t.csv` has a column `name` that is not declared; declare it, or declare it as dropped"
    );
}

#[test]
fn a_schema_that_contradicts_itself_is_refused() {
    let refusal = |change: &dyn Fn(&mut Schema)| {
        let mut schema = schema();
        change(&mut schema);
        Placed::new("t.csv", PEOPLE).encode(&schema).unwrap_err().to_string()
    };
    let by_job = |schema: &mut Schema| {
        let groups = GroupValues::Values { values: texts(&["clerk", "nurse"]), other: false, missing: false };
        schema.groups = vec![GroupColumn { column: "job".into(), groups }];
    };
    insta::assert_snapshot!(refusal(&|schema| schema.label.column = "age".into()), @"column `age`: is the label and cannot be an input");
    insta::assert_snapshot!(refusal(&by_job), @"column `job`: is a group and an input; drop it, or set group_as_input");
    insta::assert_snapshot!(
        refusal(&|schema| schema.unit = Some("age".into())),
        @"column `age`: is the unit of privacy and cannot be an input"
    );
    insta::assert_snapshot!(refusal(&|schema| schema.columns[1].0 = "age".into()), @"column `age`: is declared twice");
    insta::assert_snapshot!(
        refusal(&|schema| schema.columns.clear()),
        @"column `ill`: is to be predicted from no column at all"
    );
    insta::assert_snapshot!(refusal(&|schema| schema.label.classes.truncate(1)), @"column `ill`: classes = 1: expected at least 2");
    insta::assert_snapshot!(
        refusal(&|schema| {
            schema.columns[1].1 = Column::Category { values: texts(&["a", "a"]), other: true, missing: false };
        }),
        @"column `job`: `a` is listed twice"
    );
}

/// A row that does not fit keeps its number, so that what becomes of the others does not depend on
/// it.
#[test]
fn a_dropped_row_is_blank_and_moves_no_other() {
    let rows = |third: &str| format!("age,job,ill\n25,clerk,no\n100,nurse,yes\n{third}\n50,clerk,yes\n");
    let mut schema = schema();
    schema.bad_rows = BadRows::Drop;
    let encode = |third: &str| Placed::new("t.csv", rows(third)).encode(&schema).unwrap();
    let (whole, _) = encode("7,clerk,yes");
    for third in ["x,clerk,yes", "7,clerk", "7,clerk,yes,1", "7,cook,yes", "7,clerk,"] {
        let (table, counts) = encode(third);
        assert_eq!((table.rows(), counts.dropped, counts.examples.len()), (4, 1, 1), "{third}");
        assert!(table.is_blank(2) && !table.is_blank(3));
        assert!(features(&table, &[2])[0].iter().all(|value| *value == 0.0));
        assert_eq!(features(&table, &[0, 1, 3]), features(&whole, &[0, 1, 3]));
        assert_eq!((table.label(2), table.label(3)), (0, 1));
    }
    let placed = Placed::new("t.csv", "age,job,ill\nx,clerk,no\n");
    let error = placed.encode(&schema).unwrap_err();
    assert!(placed.text_of(&error).starts_with("`t.csv` has no row that fits its schema; the first one: "));
}

#[test]
fn groups_are_intersections_of_columns_of_any_kind() {
    let mut schema = schema();
    schema.columns = vec![("age".into(), schema.columns[0].1.clone())];
    schema.group_as_input = true;
    schema.groups = vec![
        GroupColumn {
            column: "job".into(),
            groups: GroupValues::Values { values: texts(&["clerk"]), other: true, missing: true },
        },
        GroupColumn {
            column: "age".into(),
            groups: GroupValues::Bands { edges: vec![18.0, 65.0], missing: false, format: NumberFormat::default() },
        },
    ];
    let placed = Placed::new("t.csv", "age,job,ill\n17.9,clerk,no\n18,nurse,no\n65,,yes\n");
    let (table, _) = placed.encode(&schema).unwrap();
    let names: Vec<String> = table.encoding().groups().iter().map(Group::to_string).collect();
    assert_eq!(names.len(), 9);
    let groups = [0, 1, 2].map(|row| names[table.group(row) as usize].as_str());
    assert_eq!(groups, ["clerk × below 18", "(other) × 18 to below 65", "(missing) × from 65"]);
}

#[test]
fn records_of_one_unit_share_its_number() {
    let mut schema = schema();
    schema.unit = Some("person".into());
    let contents = "person,age,job,ill\nann,25,clerk,no\nbob,3,clerk,no\nann,26,nurse,yes\n";
    let (table, _) = Placed::new("t.csv", contents).encode(&schema).unwrap();
    assert_eq!(table.unit(0), table.unit(2));
    assert_ne!(table.unit(0), table.unit(1));
}

#[test]
fn a_kept_file_opens_again_and_only_whole_with_its_schema() {
    let placed = Placed::new("t.csv", PEOPLE);
    let path = placed.folder.path().join("codes");
    let (table, _) = EncodedTable::create(&placed.files(), &schema(), EncodedFile::Kept(&path)).unwrap();
    let again = EncodedTable::open(&path, &schema()).unwrap();
    assert_eq!((again.digest(), again.rows()), (table.digest(), 2));
    assert_eq!(features(&again, &[1, 0]), features(&table, &[1, 0]));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let refusal = |schema: &Schema| {
        let error = EncodedTable::open(&path, schema).unwrap_err();
        placed.text_of(&error)
    };
    let mut other = schema();
    other.missing.clear();
    insta::assert_snapshot!(refusal(&other), @"`codes` was encoded with another schema");
    let mut contents = fs::read(&path).unwrap();
    *contents.last_mut().unwrap() ^= 1;
    fs::write(&path, &contents).unwrap();
    insta::assert_snapshot!(refusal(&schema()), @"`codes` is damaged: its rows do not have their digest");
    fs::write(&path, "short").unwrap();
    insta::assert_snapshot!(refusal(&schema()), @"`codes` is not an encoded table of this version");
}

/// A table has the rows as they were read, whatever is done to the copy of it that is kept.
#[test]
fn a_kept_file_that_is_changed_in_place_changes_no_table() {
    let placed = Placed::new("t.csv", PEOPLE);
    let path = placed.folder.path().join("codes");
    let (table, _) = EncodedTable::create(&placed.files(), &schema(), EncodedFile::Kept(&path)).unwrap();
    let (whole, _) = placed.encode(&schema()).unwrap();
    let found = |table: &EncodedTable| (features(table, &[0, 1]), [0, 1].map(|row| table.label(row)));
    // Other codes in the same file, then none.
    let kept = fs::OpenOptions::new().write(true).open(&path).unwrap();
    (&kept).write_all(&vec![1; fs::metadata(&path).unwrap().len() as usize]).unwrap();
    assert_eq!(found(&table), found(&whole));
    kept.set_len(0).unwrap();
    assert_eq!(found(&table), found(&whole));
}

#[test]
fn a_temporary_file_has_no_name() {
    let placed = Placed::new("t.csv", PEOPLE);
    let (_table, _) = placed.encode(&schema()).unwrap();
    assert_eq!(fs::read_dir(placed.folder.path()).unwrap().count(), 1);
}

#[test]
fn a_failed_encoding_leaves_nothing() {
    let placed = Placed::new("t.csv", "age,job,ill\nx,clerk,no\n");
    let path = placed.folder.path().join("codes");
    let error = EncodedTable::create(&placed.files(), &schema(), EncodedFile::Kept(&path)).unwrap_err();
    assert!(matches!(error, TableError::InvalidNumber { .. }), "{error}");
    assert_eq!(fs::read_dir(placed.folder.path()).unwrap().count(), 1);
}

/// More rows than are read at a time; the first bad one is the one that is named, whichever thread
/// met it.
#[test]
fn the_first_bad_row_is_named() {
    let mut contents = String::from("age,job,ill\n");
    for row in 0..40_000 {
        contents.push_str(if row == 17_000 || row == 33_000 { "x,clerk,no\n" } else { "5,clerk,no\n" });
    }
    let placed = Placed::new("t.csv", contents);
    let error = placed.encode(&schema()).unwrap_err();
    insta::assert_snapshot!(placed.text_of(&error), @"t.csv:17002: column `age`: `x` is not a finite number");
}

#[test]
fn the_generated_table_fits_its_schema() {
    let example = Example { rows: 3_000, columns: 14, seed: 3 };
    let mut contents = Vec::new();
    example.write(&mut contents).unwrap();
    let mut again = Vec::new();
    example.write(&mut again).unwrap();
    assert_eq!(contents, again);
    let header = contents.split(|byte| *byte == b'\n').next().unwrap();
    assert_eq!(header.split(|byte| *byte == b',').count(), 14);
    assert!(header.ends_with(b",group,outcome"));
    let (table, counts) = Placed::new("t.csv", &contents).encode(&example.schema()).unwrap();
    assert_eq!((counts.rows, counts.dropped), (3_000, 0));
    let share = f64::from((0..3_000).map(|row| table.label(row)).sum::<u32>()) / 3_000.0;
    assert!((0.15..0.5).contains(&share), "{share}");
    let smallest = (0..3_000).filter(|row| table.group(*row) == 2).count();
    assert!((200..400).contains(&smallest), "{smallest}");
}

#[test]
fn a_guess_of_every_kind_of_column() {
    let mut contents = String::from("id,sex,age,income,code,note,same,account,branch\n");
    for row in 0..1_500 {
        let sex = ["f", "m", "?"][row % 3];
        let (account, branch) = (20_000_000_000_u64 + row as u64 * 2, 9_007_199_254_740_993_u64 + row as u64 % 3);
        let values = format!("{},{}.5,c{},text {row},x,{account},{branch}", 20 + row % 40, row * 100, row % 7);
        contents.push_str(&format!("{row},{sex},{values}\n"));
    }
    let placed = Placed::new("t.csv", contents);
    let guess = Guess::of(&mut placed.files().open().unwrap()).unwrap();
    let lines: Vec<String> =
        guess.columns.iter().map(|column| format!("{}: {:?}", column.name, column.column())).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    id: Dropped
    sex: Category { values: ["f", "m"], other: true, missing: true }
    age: Number { low: 20.0, high: 59.0, bins: Equal(39), missing: None, format: NumberFormat { decimal: '.', thousands: None, unit: None } }
    income: Number { low: 0.5, high: 149900.5, bins: Log(16), missing: None, format: NumberFormat { decimal: '.', thousands: None, unit: None } }
    code: Category { values: ["c0", "c1", "c2", "c3", "c4", "c5", "c6"], other: true, missing: false }
    note: Dropped
    same: Dropped
    account: Dropped
    branch: Category { values: ["9007199254740993", "9007199254740994", "9007199254740995"], other: true, missing: false }
    "#);
    assert_eq!((guess.rows, guess.broken, guess.markers()), (1_500, 0, texts(&["", "?"])));
    assert_eq!(guess.columns[1].missing, 500);
}

/// A column with a text for each of five rows.
fn any_column() -> impl Strategy<Value = (Column, Vec<String>)> {
    let number = (-1e3..1e3f64, 0.1..1e4f64, 1..40usize, any::<bool>(), any::<bool>()).prop_map(
        |(low, width, bins, log, missing)| {
            let bins = if log { Bins::Log(bins) } else { Bins::Equal(bins) };
            Column::Number {
                low,
                high: low + width,
                bins,
                missing: missing.then_some(low + width / 3.0),
                format: NumberFormat::default(),
            }
        },
    );
    let number_text = prop_oneof![
        (-2e4..2e4f64).prop_map(|value| value.to_string()),
        any::<f32>().prop_filter("finite", |value| value.is_finite()).prop_map(|value| value.to_string()),
        Just(String::new()),
    ];
    let category = (1..300usize, any::<bool>()).prop_map(|(n, missing)| Column::Category {
        values: (0..n).map(|value| format!("v{value}")).collect(),
        other: true,
        missing,
    });
    let category_text = (0..400usize).prop_map(|value| if value == 399 { String::new() } else { format!("v{value}") });
    let date = (0..3usize, any::<bool>()).prop_map(|(n_parts, missing)| Column::Date {
        low: "2000-02-28".into(),
        high: "2004-03-01".into(),
        bins: Bins::Equal(7),
        missing,
        format: DateFormat::Iso,
        parts: [DatePart::Year, DatePart::Month, DatePart::Weekday][..n_parts].to_vec(),
    });
    let date_text = prop_oneof![
        (1995..2010u32, 1..13u32, 1..30u32).prop_map(|(year, month, day)| format!("{year}-{month:02}-{day:02}")),
        Just("2001-01-31 18:30:00".to_owned()),
        Just(String::new()),
    ];
    let boolean =
        any::<bool>().prop_map(|missing| Column::Boolean { values: ["no", "yes"].map(str::to_owned), missing });
    let boolean_text = prop_oneof!["no|yes", Just(String::new())];
    let vector = (0.1..5.0f64, any::<bool>(), any::<bool>()).prop_map(|(size, by_norm, missing)| {
        let bound = if by_norm { VectorBound::Norm(size) } else { VectorBound::Range { low: -size, high: size / 2.0 } };
        Column::Vector { length: 3, bound, missing }
    });
    let vector_text = prop_oneof![
        prop::collection::vec(-6.0..6.0f64, 3).prop_map(|list| format!("[{} {} {}]", list[0], list[1], list[2])),
        Just("[1e300 1e300 0]".to_owned()),
        Just(String::new()),
    ];
    prop_oneof![
        (date, prop::collection::vec(date_text, 5)),
        (boolean, prop::collection::vec(boolean_text, 5)),
        (vector, prop::collection::vec(vector_text, 5)),
        (number, prop::collection::vec(number_text, 5)),
        (category, prop::collection::vec(category_text, 5)),
        (Just(Column::Dropped), prop::collection::vec(Just("whatever".to_owned()), 5)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever is declared and whatever the rows are: bounded, finite, and the same one by one as
    /// in a batch.
    #[test]
    fn rows_have_at_most_norm_one_and_are_encoded_alike_everywhere(
        columns in prop::collection::vec(any_column(), 1..12)
    ) {
        let mut schema = schema();
        schema.bad_rows = BadRows::Drop;
        let mut lines = vec![String::from("ill"); 1];
        lines.extend((0..5).map(|row| ["no", "yes"][row % 2].to_owned()));
        schema.columns.clear();
        for (index, (column, texts)) in columns.into_iter().enumerate() {
            schema.columns.push((format!("c{index}"), column));
            lines[0].push_str(&format!(",c{index}"));
            lines[1..].iter_mut().zip(texts).for_each(|(line, text)| line.push_str(&format!(",{text}")));
        }
        let placed = Placed::new("t.csv", lines.join("\n"));
        // No input, or no row that fits.
        let Ok((table, _)) = placed.encode(&schema) else { return Ok(()) };
        let rows = features(&table, &[0, 1, 2, 3, 4]);
        let encoding = table.encoding();
        let mut reader = placed.files().open().unwrap();
        let mut encoder = encoding.encoder(reader.columns(), &placed.path).unwrap();
        let mut row = TableRow::default();
        let mut alone = vec![f32::NAN; table.width()];
        for (index, gathered) in rows.iter().enumerate() {
            prop_assert!(reader.read(&mut row).unwrap());
            prop_assert!(gathered.iter().all(|value| value.is_finite()));
            let norm: f64 = gathered.iter().map(|value| f64::from(*value).powi(2)).sum();
            prop_assert!(norm <= 1.0, "{}", norm);
            let encoded = encoder.encode(&row, &mut alone);
            prop_assert_eq!(encoded.is_err(), table.is_blank(index));
            if encoded.is_ok() {
                prop_assert_eq!(&alone, gathered);
                prop_assert!(norm > 0.0);
            }
        }
    }
}

#[test]
fn several_files_and_the_order_of_columns_do_not_matter() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("1.csv"), "ill,job,age\nno,clerk,25\n").unwrap();
    fs::write(folder.path().join("2.csv"), "ill,job,age\nyes,nurse,100\n").unwrap();
    let files = TableFiles::new(&[format!("{}/?.csv", folder.path().display())]).unwrap();
    let (parts, _) = EncodedTable::create(&files, &schema(), EncodedFile::Temporary(folder.path())).unwrap();
    let (whole, _) = Placed::new("t.csv", PEOPLE).encode(&schema()).unwrap();
    assert_eq!(parts.digest(), whole.digest());
}
