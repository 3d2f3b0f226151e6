//! One value has one meaning in every format and spelling.

use std::fmt::Write as _;
use std::sync::Arc;

use dp_table::{
    BadRows, Bins, Column, EncodedFile, EncodedTable, GroupColumn, GroupValues, Label, MemoryColumn, MemoryTable,
    NumberFormat, Schema, TableFiles, TableRow,
};
use parquet::basic::{LogicalType, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, FloatType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use super::parquet_files::{column, write};
use super::{Placed, schema, texts};

fn category(values: &[&str]) -> Column {
    Column::Category { values: texts(values), other: true, missing: true }
}

/// Rows of `flag`, `bit`, `code`, `share`, `price`, `job`, `is_new`; `kind` makes the groups, `who`
/// the units, `y` the label.
fn of_all_kinds() -> Schema {
    Schema {
        columns: vec![
            ("flag".into(), category(&["False", "True"])),
            ("bit".into(), category(&["0", "1"])),
            ("code".into(), category(&["1", "2", "3"])),
            ("share".into(), category(&["0.1", "1e1"])),
            ("price".into(), category(&["1.5", "20"])),
            ("job".into(), category(&["01", "clerk"])),
            (
                "is_new".into(),
                Column::Number {
                    low: 0.0,
                    high: 1.0,
                    bins: Bins::Equal(1),
                    missing: None,
                    format: NumberFormat::default(),
                },
            ),
        ],
        label: Label::of_classes("y", texts(&["0", "1"])),
        groups: vec![GroupColumn {
            column: "kind".into(),
            groups: GroupValues::Values { values: texts(&["7", "8"]), other: false, missing: false },
        }],
        group_as_input: false,
        unit: Some("who".into()),
        weight: None,
        bad_rows: BadRows::Refuse,
        missing: texts(&["", "99"]),
    }
}

const NAMES: [&str; 10] = ["flag", "bit", "code", "share", "price", "job", "is_new", "kind", "who", "y"];

/// As typed values: three rows of each column.
fn parquet(properties: WriterProperties) -> Vec<u8> {
    let fields = [
        (Physical::BOOLEAN, None),
        (Physical::BOOLEAN, None),
        (Physical::DOUBLE, None),
        (Physical::FLOAT, None),
        (Physical::INT64, Some(LogicalType::decimal(2, 10))),
        (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        (Physical::BOOLEAN, None),
        (Physical::INT32, None),
        (Physical::INT64, None),
        (Physical::BOOLEAN, None),
    ];
    let fields = NAMES.iter().zip(fields).map(|(name, (physical, logical))| column(name, physical, logical)).collect();
    let root = Arc::new(Type::group_type_builder("all").with_fields(fields).build().unwrap());
    let mut file = SerializedFileWriter::new(Vec::new(), root, Arc::new(properties)).unwrap();
    let mut group = file.next_row_group().unwrap();
    let levels = [1, 1, 1];
    write::<BoolType>(&mut group, &[true, false, true], &levels);
    write::<BoolType>(&mut group, &[true, false, false], &levels);
    write::<DoubleType>(&mut group, &[1.0, 3.0, 99.0], &levels);
    write::<FloatType>(&mut group, &[0.1, 10.0, 0.5], &levels);
    write::<Int64Type>(&mut group, &[150, 2_000, 7], &levels);
    write::<ByteArrayType>(&mut group, &["clerk", "01", "1"].map(ByteArray::from), &levels);
    write::<BoolType>(&mut group, &[true, false, true], &levels);
    write::<Int32Type>(&mut group, &[7, 8, 7], &levels);
    write::<Int64Type>(&mut group, &[17, 9_007_199_254_740_993, 17], &levels);
    write::<BoolType>(&mut group, &[false, true, true], &levels);
    group.close().unwrap();
    file.into_inner().unwrap()
}

#[test]
fn a_table_is_the_same_from_every_format_and_in_every_spelling() {
    let tables = [
        "true,1,1,0.1,1.5,clerk,1,7,17,0\nfalse,0,3,10,20,01,0,8,9007199254740993,1\ntrue,0,99,0.5,0.07,1,1,7,17,1\n",
        "True,True,1.0,.1,1.50,clerk,1.0,7.0,17.0,False\nFalse,False,3.0,10.0,20.00,01,0.0,8.0,9007199254740993,True\n\
         True,False,99.0,0.50,0.07,1,1.0,7.0,17.0,True\n",
        "TRUE,1.0,1e0,1e-1,+1.5,clerk,TRUE,7.,017,0.0\nFALSE,0.0,3E+00,1e+01,2e1,01,false,+8,9.007199254740993e15,1.0\n\
         1,-0,9.9e1,5e-1,7e-2,1.0,true,7e0,1.7e1,1\n",
    ];
    let mut placed: Vec<Placed> =
        tables.iter().map(|rows| Placed::new("t.csv", format!("{}\n{rows}", NAMES.join(",")))).collect();
    for has_dictionary in [true, false] {
        let properties = WriterProperties::builder().set_dictionary_enabled(has_dictionary).build();
        placed.push(Placed::new("t.parquet", parquet(properties)));
    }
    let encoded: Vec<_> = placed.iter().map(|placed| placed.encode(&of_all_kinds()).unwrap()).collect();
    for (table, counts) in &encoded {
        assert_eq!((table.digest(), counts), (encoded[0].0.digest(), &encoded[0].1));
    }
    let (table, counts) = &encoded[0];
    assert_eq!((0..3).map(|row| (table.label(row), table.group(row))).collect::<Vec<_>>(), [(0, 0), (1, 1), (1, 0)]);
    assert_eq!((table.unit(0), table.unit(0) == table.unit(1)), (table.unit(2), false));
    let others: Vec<(&str, u64, u64)> =
        counts.columns.iter().map(|tally| (&*tally.column, tally.other, tally.missing)).collect();
    let one = |name| (name, 1, 0);
    assert_eq!(others[2..6], [("code", 0, 1), one("share"), one("price"), one("job")]);

    let numbers = |values: [f64; 3]| MemoryColumn::Numbers(values.to_vec());
    let levels = |levels: &[&str], positions: [u32; 3]| MemoryColumn::Texts {
        levels: texts(levels),
        positions: positions.to_vec(),
    };
    let columns = [
        levels(&["False", "True"], [1, 0, 1]),
        numbers([1.0, 0.0, 0.0]),
        numbers([1.0, 3.0, f64::NAN]),
        numbers([0.1, 10.0, 0.5]),
        numbers([1.5, 20.0, 0.07]),
        levels(&["01", "1", "clerk"], [2, 0, 1]),
        levels(&["False", "True"], [1, 0, 1]),
        numbers([7.0, 8.0, 7.0]),
        levels(&["17.0", "9007199254740993"], [0, 1, 0]),
        levels(&["False", "True"], [0, 1, 1]),
    ];
    let columns = NAMES.iter().map(|&name| name.to_owned()).zip(columns).collect();
    let files = TableFiles::in_memory(MemoryTable::new("records", columns).unwrap());
    let place = EncodedFile::Temporary(placed[0].folder.path());
    let (in_memory, _) = EncodedTable::create(&files, &of_all_kinds(), place).unwrap();
    assert_eq!(in_memory.digest(), table.digest());
}

/// 2⁵³ and the next whole number are one double.
#[test]
fn large_whole_numbers_stay_apart() {
    let mut schema = schema();
    schema.columns = vec![("account".into(), category(&["9007199254740992", "9007199254740993"]))];
    let placed = Placed::new(
        "t.csv",
        "account,ill\n9007199254740992,no\n9007199254740993.0,no\n9007199254740994,no\n1e400,no\n",
    );
    let (table, counts) = placed.encode(&schema).unwrap();
    assert_eq!(counts.columns[0].other, 2);
    let features = |row| {
        let mut found = Vec::new();
        table.for_each_feature(row, |feature, _| found.push(feature));
        found
    };
    assert_eq!([0, 1, 2].map(|row| features(row)[0]), [0, 1, 2]);
}

#[test]
fn two_spellings_of_one_value_are_refused_by_name() {
    let refusal = |values: &[&str]| {
        let mut schema = schema();
        schema.columns[1].1 = Column::Category { values: texts(values), other: true, missing: false };
        schema.missing = texts(&["", "99"]);
        Placed::new("t.csv", "age,job,ill\n1,x,no\n").encode(&schema).err().map(|error| error.to_string())
    };
    insta::assert_snapshot!(refusal(&["1", "2", "1.0"]).unwrap(), @"column `job`: `1` and `1.0` are two spellings of one value; list it once");
    insta::assert_snapshot!(refusal(&["true", "1"]).unwrap(), @"column `job`: `true` and `1` are two spellings of one value; list it once");
    insta::assert_snapshot!(refusal(&["a", "99.0"]).unwrap(), @"column `job`: `99.0` stands for a missing value and cannot be a category");
    assert_eq!(refusal(&["a", "A", "01", "1", "true"]), None);
    let mut schema = schema();
    (schema.label.classes, schema.missing) = (texts(&["", "yes"]), Vec::new());
    insta::assert_snapshot!(
        Placed::new("t.csv", "age,job,ill\n1,clerk,yes\n").encode(&schema).unwrap_err(),
        @"column `ill`: a class has an empty name, which stands for no answer"
    );
}

/// The counts of a table that is predicted, and what they say in words.
#[test]
fn what_a_schema_does_not_foresee_is_said() {
    let mut schema = schema();
    schema.bad_rows = BadRows::Drop;
    schema.columns[0].1 =
        Column::Number { low: 17.0, high: 90.0, bins: Bins::Equal(4), missing: None, format: NumberFormat::default() };
    schema.columns[1].1 = Column::Category { values: texts(&["clerk"]), other: true, missing: false };
    schema.groups = vec![GroupColumn {
        column: "sex".into(),
        groups: GroupValues::Values { values: texts(&["f"]), other: true, missing: true },
    }];
    let mut rows = String::from("age,job,sex,ill\n");
    for row in 0..2_000 {
        let age = if row % 2 == 0 { 12 * row } else { 17 };
        let _ = writeln!(rows, "{age},{},{},no", ["cook", "clerk", ""][row % 3], ["f", "m", ""][row % 3]);
    }
    rows.push_str("old,clerk,f,no\n,clerk,f,no\n30,clerk\n30,clerk,f,no\n");
    let placed = Placed::new("t.csv", rows);
    let (_, counts) = placed.encode(&schema).unwrap();
    let expected = [
        "column age: 997 of 2,001 beyond [17, 90], taken as the nearer end",
        "column age: 2 of 2,004 values cannot be read, or are missing, and nothing is declared for that",
        "column job: 667 of 1,335 values are none of those declared",
        "column job: 666 of 2,001 values are missing, and nothing is declared for that: taken as none of those declared",
        "group sex: 667 of 1,335 values are none of those declared",
        "3 of 2,004 rows do not fit; the first: t.csv:2002: column `age`: `old` is not a finite number",
    ];
    let remarks = |counts: &dp_table::TableCounts| -> Vec<String> {
        let folder = format!("{}/", placed.folder.path().display());
        counts.remarks(&schema).iter().map(|remark| remark.replace(&folder, "")).collect()
    };
    let mut found = remarks(&counts);
    found.sort();
    let mut sorted = expected.map(str::to_owned);
    sorted.sort();
    assert_eq!(found, sorted);
    // Row by row, as for a prediction.
    let mut reader = placed.files().open().unwrap();
    let encoding = dp_table::Encoding::new(&schema).unwrap();
    let encoder = encoding.encoder(reader.columns(), &placed.path).unwrap();
    let mut encoder = encoder.with_groups(reader.columns(), &placed.path).unwrap();
    let (mut row, mut features) = (TableRow::default(), vec![0.0; encoding.width()]);
    loop {
        match reader.read(&mut row) {
            Ok(true) => drop(encoder.encode(&row, &mut features)),
            Ok(false) => break,
            Err(error) => encoder.pass_over(&error),
        }
    }
    assert_eq!(encoder.counts(), &counts);
    let (_, none) = Placed::new("t.csv", "age,job,sex,ill\n17,clerk,f,no\n90,clerk,,no\n").encode(&schema).unwrap();
    assert_eq!(none.remarks(&schema), Vec::<String>::new());
}
