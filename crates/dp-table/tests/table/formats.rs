//! Columns as people write them, and the same columns cleaned.

use std::sync::Arc;

use dp_table::{
    Bins, Column, DateFormat, DatePart, EncodedFile, EncodedTable, Guess, GuessedKind, MemoryColumn, MemoryTable,
    NumberFormat, Schema, TableError, TableFiles, VectorBound,
};
use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, FloatType, Int32Type, Int64Type};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use super::parquet_files::{column, write};
use super::{Placed, schema, texts};

/// A schema of these inputs.
fn of(columns: Vec<(&str, Column)>) -> Schema {
    Schema { columns: columns.into_iter().map(|(name, column)| (name.into(), column)).collect(), ..schema() }
}

fn number(low: f64, high: f64, format: NumberFormat) -> Column {
    Column::Number { low, high, bins: Bins::Equal(4), missing: None, format }
}

fn date(format: DateFormat, parts: &[DatePart], missing: bool) -> Column {
    let [low, high] = ["2024-01-01", "2024-12-31"].map(str::to_owned);
    Column::Date { low, high, bins: Bins::Equal(2), missing, format, parts: parts.to_vec() }
}

/// Features of every row, without their common factor, rounded to thousandths.
fn features(table: &EncodedTable) -> Vec<Vec<f64>> {
    let width = table.width();
    let mut rows = vec![0.0; table.rows() * width];
    table.gather(&(0..table.rows()).collect::<Vec<_>>(), &mut rows);
    let scale = f64::from(table.encoding().scale());
    let rounded = |value: &f32| (f64::from(*value) / scale * 1e3).round() / 1e3;
    rows.chunks(width).map(|row| row.iter().map(rounded).collect()).collect()
}

fn encoded(contents: &str, columns: Vec<(&str, Column)>) -> Result<EncodedTable, TableError> {
    Placed::new("t.csv", contents).encode(&of(columns)).map(|(table, _)| table)
}

#[test]
fn numbers_are_those_of_the_clean_table() {
    let german = NumberFormat { decimal: ',', thousands: Some('.'), unit: Some("€".into()) };
    let messy = encoded("pay;ill\n1.234,5 €;no\n-3;yes\n0,25;no\n", vec![("pay", number(0.0, 2e3, german.clone()))]);
    let clean =
        encoded("pay,ill\n1234.5,no\n-3,yes\n0.25,no\n", vec![("pay", number(0.0, 2e3, NumberFormat::default()))]);
    assert_eq!(features(&messy.unwrap()), features(&clean.unwrap()));
    let error = encoded("pay;ill\n1.5;no\n", vec![("pay", number(0.0, 2e3, german))]).unwrap_err().to_string();
    assert!(error.ends_with("t.csv:2: column `pay`: `1.5` is not a number written like 1.234,5 €"), "{error}");
}

/// A number that is stored as one has no signs between its thousands: 1.234 is not 1234.
#[test]
fn a_format_is_that_of_texts_alone() {
    let german = NumberFormat { decimal: ',', thousands: Some('.'), unit: None };
    let schema = of(vec![("pay", number(0.0, 2e3, german))]);
    let numbers = MemoryColumn::Numbers(vec![1.234, 1234.5]);
    let written = MemoryColumn::Texts { levels: texts(&["1,234", "1.234,5"]), positions: vec![0, 1] };
    let ill = MemoryColumn::Texts { levels: texts(&["no"]), positions: vec![0, 0] };
    let [stored, written] = [numbers, written].map(|pay| {
        let columns = vec![("pay".to_owned(), pay), ("ill".to_owned(), ill.clone())];
        let files = TableFiles::in_memory(MemoryTable::new("t", columns).unwrap());
        let folder = tempfile::tempdir().unwrap();
        EncodedTable::create(&files, &schema, EncodedFile::Temporary(folder.path())).unwrap().0
    });
    assert_eq!(features(&stored), features(&written));
}

/// 2024 has 365 days from its first to its last: day 182.5 is the middle. 31 January is day 30, a
/// Wednesday: 2·(30/365) − 1 = −0.836 and hats of 1 − 30/182.5 = 0.836 and 0.164.
#[test]
fn a_date_is_a_number_of_days_with_its_parts_by_hand() {
    let parts = [DatePart::Year, DatePart::Month, DatePart::Weekday];
    let table =
        encoded("day,ill\n2024-01-31,no\n,yes\n2031-01-01,no\n", vec![("day", date(DateFormat::Iso, &parts, true))]);
    let table = table.unwrap();
    let names = table.feature_names();
    assert_eq!(names[0], "day (days from 2024-01-01)");
    assert_eq!(table.width(), 5 + 2 + 13 + 8 + 1);
    let rows = features(&table);
    let ones = |row: &[f64]| -> Vec<&str> {
        row.iter().zip(&names).filter(|(value, _)| **value == 1.0).map(|(_, name)| name.as_str()).collect()
    };
    assert_eq!(rows[0][..5], [-0.836, 0.836, 0.164, 0.0, 0.0]);
    assert_eq!(ones(&rows[0]), ["day (year) = 2024", "day (month) = 1", "day (weekday) = Wednesday", "constant"]);
    assert_eq!(
        ones(&rows[1]),
        [
            "day (days from 2024-01-01) missing",
            "day (year) missing",
            "day (month) missing",
            "day (weekday) missing",
            "constant"
        ]
    );
    // Beyond the range: its last day and year, and the month and weekday that it has.
    assert_eq!((rows[2][0], rows[2][3]), (1.0, 1.0));
    assert!(ones(&rows[2]).ends_with(&[
        "day (year) = 2024",
        "day (month) = 1",
        "day (weekday) = Wednesday",
        "constant"
    ]));
    let error =
        encoded("day,ill\n31.1.2024,no\n", vec![("day", date(DateFormat::Iso, &[], false))]).unwrap_err().to_string();
    assert!(error.ends_with("`31.1.2024` is not a date written like 2024-01-31"), "{error}");
}

#[test]
fn a_boolean_is_one_feature_and_a_vector_one_for_each_number() {
    let boolean = |missing| Column::Boolean { values: ["0", "1"].map(str::to_owned), missing };
    let table = encoded("b,ill\n0,no\n1.0,yes\nTrue,no\n", vec![("b", boolean(false))]).unwrap();
    assert_eq!(table.feature_names(), ["b = 1", "constant"]);
    assert_eq!(features(&table), [[0.0, 1.0], [1.0, 1.0], [1.0, 1.0]]);
    let table = encoded("b,ill\n0,no\nn/a,yes\n", vec![("b", boolean(true))]).unwrap_err();
    assert!(table.to_string().contains("`n/a` is not one of 0, 1"), "{table}");
    let mut with_markers = of(vec![("b", boolean(true))]);
    with_markers.missing = texts(&["", "N/A"]);
    let (table, _) = Placed::new("t.csv", "b,ill\n0,no\nn/a,yes\n").encode(&with_markers).unwrap();
    assert_eq!(features(&table), [[0.0, 0.0, 1.0], [0.0, 1.0, 1.0]]);

    let vector = |bound| Column::Vector { length: 2, bound, missing: true };
    let list = "v,ill\n\"[3, 4]\",no\n\"[0.3, 0.4]\",yes\n,no\n";
    let table = encoded(list, vec![("v", vector(VectorBound::Norm(1.0)))]).unwrap();
    assert_eq!(table.feature_names(), ["v[0]", "v[1]", "v missing", "constant"]);
    assert_eq!(features(&table), [[0.6, 0.8, 0.0, 1.0], [0.3, 0.4, 0.0, 1.0], [0.0, 0.0, 1.0, 1.0]]);
    // The same numbers in two columns, in the order of their numbers.
    let columns = "v1,v0,ill\n4,3,no\n0.4,0.3,yes\n,,no\n";
    let apart = encoded(columns, vec![("v*", vector(VectorBound::Norm(1.0)))]).unwrap();
    assert_eq!(features(&apart), features(&table));
    let refusal =
        |contents: &str, name| encoded(contents, vec![(name, vector(VectorBound::Norm(1.0)))]).unwrap_err().to_string();
    assert!(refusal("v,ill\n1 2 3,no\n", "v").contains("is not a list of 2 finite numbers (3 could be read)"));
    assert!(refusal("v0,v1,ill\n1,,no\n", "v*").contains("column `v*`: `` is not a finite number"));
    assert!(refusal("v0,ill\n1,no\n", "v*").contains("has 1 columns `v*`, expected 2"));
    let twice = encoded(
        "v0,v1,ill\n",
        vec![("v*", vector(VectorBound::Norm(1.0))), ("v1", number(0.0, 1.0, NumberFormat::default()))],
    );
    assert!(twice.unwrap_err().to_string().contains("column `v1`: is one of the columns of the vector `v*` too"));
}

/// A proposal is one that can be declared, whatever the values are.
#[test]
fn odd_columns_have_a_schema() {
    for values in [
        ["\"[0, 0]\"", "\"[0,0]\"", "[0 0]"],
        ["\"[1e300, 1]\"", "[0 1e-300]", "[1 1]"],
        ["2020-01-01", "9999-12-31", "9999-12-31 23:59:59"],
        ["31.12.9999 10:00", "1.1.1000", "3.4.2000"],
        ["0000-01-01", "2000-01-01 10:00", "2001-01-01"],
        ["1.000 €", "2.000,5 €", "3 €"],
    ] {
        let rows: Vec<String> =
            (0..90).map(|row| format!("{},{}\n", values[row % 3], ["no", "yes"][row % 2])).collect();
        let quoted = rows.concat().replace("2.000,5 €", "\"2.000,5 €\"");
        let placed = Placed::new("t.csv", format!("x,ill\n{quoted}"));
        let guess = Guess::of(&mut placed.files().open().unwrap()).unwrap();
        let column = guess.columns[0].column();
        assert!(!matches!(column, Column::Dropped | Column::Category { .. }), "{column:?}");
        placed.encode(&of(vec![("x", column)])).unwrap();
    }
}

fn write_lists(group: &mut SerializedRowGroupWriter<'_, Vec<u8>>, numbers: &[f32], defined: &[i16], repeated: &[i16]) {
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<FloatType>().write_batch(numbers, Some(defined), Some(repeated)).unwrap();
    column.close().unwrap();
}

/// Dates of three units, local and in UTC, and lists of numbers, one of which is null.
#[test]
fn parquet_and_csv_agree_on_dates_and_lists() {
    let element = Type::primitive_type_builder("element", Physical::FLOAT).with_repetition(Repetition::OPTIONAL);
    let list = Type::group_type_builder("list").with_repetition(Repetition::REPEATED);
    let list = list.with_fields(vec![Arc::new(element.build().unwrap())]).build().unwrap();
    let vector = Type::group_type_builder("v").with_repetition(Repetition::OPTIONAL);
    let vector = vector.with_logical_type(Some(LogicalType::List)).with_fields(vec![Arc::new(list)]).build().unwrap();
    let fields = vec![
        column("day", Physical::INT32, Some(LogicalType::Date)),
        column("local", Physical::INT64, Some(LogicalType::timestamp(false, TimeUnit::NANOS))),
        column("utc", Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
        Arc::new(vector),
        column("ill", Physical::BYTE_ARRAY, Some(LogicalType::String)),
    ];
    let root = Arc::new(Type::group_type_builder("all").with_fields(fields).build().unwrap());
    let mut file = SerializedFileWriter::new(Vec::new(), root, Arc::default()).unwrap();
    let mut group = file.next_row_group().unwrap();
    let levels = [1; 3];
    // 2024-01-31 is day 19,753.
    let day = 19_753_i64;
    write::<Int32Type>(&mut group, &[19_753, 19_754, 19_755], &levels);
    let nanoseconds = [day * 86_400, day * 86_400 + 3_600, day * 86_400 + 1].map(|second| second * 1_000_000_000);
    write::<Int64Type>(&mut group, &nanoseconds, &levels);
    write::<Int64Type>(&mut group, &[day * 86_400_000_000, 1 + day * 86_400_000_000, 0], &levels);
    write_lists(&mut group, &[0.1, -2.0, 3.0, 4.0], &[3, 3, 0, 3, 3], &[0, 1, 0, 0, 1]);
    let ill = ["no", "yes", "no"].map(ByteArray::from);
    write::<ByteArrayType>(&mut group, &ill, &levels);
    group.close().unwrap();
    let parquet = Placed::new("t.parquet", file.into_inner().unwrap());
    let csv = Placed::new(
        "t.csv",
        "day,local,utc,v,ill\n\
         2024-01-31,2024-01-31,2024-01-31 00:00:00+00:00,\"[0.1,-2]\",no\n\
         2024-02-01,2024-01-31 01:00:00,2024-01-31 00:00:00.000001+00:00,,yes\n\
         2024-02-02,2024-01-31 00:00:01,1970-01-01 00:00:00+00:00,\"[3,4]\",no\n",
    );
    let schema = of(vec![
        ("day", date(DateFormat::Iso, &[DatePart::Weekday], false)),
        ("local", date(DateFormat::Iso, &[], false)),
        ("utc", date(DateFormat::Iso, &[], false)),
        ("v", Column::Vector { length: 2, bound: VectorBound::Norm(5.0), missing: true }),
    ]);
    let [a, b] = [&parquet, &csv].map(|placed| placed.encode(&schema).unwrap());
    assert_eq!(a.0.digest(), b.0.digest());
    assert_eq!(a.0.rows_digest(), b.0.rows_digest());
    assert_eq!(a.1, b.1);
    let guessed = [parquet, csv].map(|placed| Guess::of(&mut placed.files().open().unwrap()).unwrap().columns);
    assert_eq!(guessed[0], guessed[1]);
    assert_eq!(guessed[0][3].kind, GuessedKind::Vector);
}
