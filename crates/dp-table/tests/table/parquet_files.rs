//! Parquet as other programs write it.

use std::sync::Arc;

use parquet::basic::{BrotliLevel, Compression, GzipLevel, Repetition, Type as Physical, ZstdLevel};
use parquet::basic::{LogicalType, TimeUnit};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType, FloatType,
    Int32Type, Int64Type,
};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};

use dp_table::{BadRows, Schema, TableError};

use super::{Placed, read_bytes, schema};

pub(super) fn column(name: &str, physical: Physical, logical: Option<LogicalType>) -> TypePtr {
    let (precision, scale) = match &logical {
        Some(LogicalType::Decimal(decimal)) => (decimal.precision, decimal.scale),
        _ => (0, 0),
    };
    let length = if physical == Physical::FIXED_LEN_BYTE_ARRAY { 3 } else { 0 };
    let field = Type::primitive_type_builder(name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .with_length(length)
        .with_precision(precision)
        .with_scale(scale)
        .build();
    Arc::new(field.unwrap())
}

pub(super) fn write<T: DataType>(group: &mut SerializedRowGroupWriter<'_, Vec<u8>>, values: &[T::T], levels: &[i16]) {
    let mut writer = group.next_column().unwrap().unwrap();
    writer.typed::<T>().write_batch(values, Some(levels), None).unwrap();
    writer.close().unwrap();
}

/// `age`, `job`, `ill` in two row groups of two rows and one row.
pub(super) fn people(compression: Compression) -> Vec<u8> {
    let groups = [(vec![30, 61], vec!["clerk", "nurse"], vec!["no", "yes"]), (vec![9], vec!["clerk"], vec!["no"])];
    groups_of_people(WriterProperties::builder().set_compression(compression).build(), groups)
}

/// The same columns in long row groups, each of several pages.
pub(super) fn many_people(rows: usize, per_group: usize) -> Vec<u8> {
    let properties = WriterProperties::builder().set_data_page_row_count_limit(300).set_write_batch_size(100).build();
    let groups = (0..rows).step_by(per_group).map(|start| {
        let rows = start..(start + per_group).min(rows);
        let pick =
            |of: [&'static str; 2], every: usize| rows.clone().map(|row| of[usize::from(row % every == 0)]).collect();
        (
            rows.clone().map(|row| i32::try_from(row % 90).unwrap()).collect(),
            pick(["clerk", "nurse"], 3),
            pick(["no", "yes"], 5),
        )
    });
    groups_of_people(properties, groups)
}

type Group = (Vec<i32>, Vec<&'static str>, Vec<&'static str>);

fn groups_of_people(properties: WriterProperties, groups: impl IntoIterator<Item = Group>) -> Vec<u8> {
    let fields = vec![
        column("age", Physical::INT32, None),
        column("job", Physical::BYTE_ARRAY, Some(LogicalType::String)),
        column("ill", Physical::BYTE_ARRAY, Some(LogicalType::String)),
    ];
    let root = Arc::new(Type::group_type_builder("people").with_fields(fields).build().unwrap());
    let mut file = SerializedFileWriter::new(Vec::new(), root, Arc::new(properties)).unwrap();
    for (ages, jobs, ill) in groups {
        let levels = vec![1; ages.len()];
        let bytes = |texts: Vec<&str>| texts.into_iter().map(ByteArray::from).collect::<Vec<_>>();
        let mut group = file.next_row_group().unwrap();
        write::<Int32Type>(&mut group, &ages, &levels);
        write::<ByteArrayType>(&mut group, &bytes(jobs), &levels);
        write::<ByteArrayType>(&mut group, &bytes(ill), &levels);
        group.close().unwrap();
    }
    file.into_inner().unwrap()
}

#[test]
fn every_codec_and_several_row_groups() {
    for compression in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::ZSTD(ZstdLevel::default()),
        Compression::LZ4_RAW,
        Compression::BROTLI(BrotliLevel::default()),
    ] {
        let text = read_bytes("t.parquet", people(compression), None);
        assert_eq!(text, "age|job|ill\n1: 30|clerk|no\n2: 61|nurse|yes\n3: 9|clerk|no", "{compression:?}");
    }
}

#[test]
fn a_table_is_the_same_from_parquet_and_csv() {
    let parquet = Placed::new("t.parquet", people(Compression::SNAPPY));
    let csv = Placed::new("t.csv", "age,job,ill\n30,clerk,no\n61,nurse,yes\n9,clerk,no\n");
    let [a, b] = [parquet, csv].map(|placed| placed.encode(&schema()).unwrap().0);
    assert_eq!(a.digest(), b.digest());
}

#[test]
fn values_of_every_type_as_text() {
    let fields = vec![
        column("flag", Physical::BOOLEAN, None),
        column("tiny", Physical::INT32, Some(LogicalType::integer(32, false))),
        column("day", Physical::INT32, Some(LogicalType::Date)),
        column("big", Physical::INT64, None),
        column("time", Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MILLIS))),
        column("price", Physical::INT64, Some(LogicalType::decimal(2, 10))),
        column("fixed", Physical::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::decimal(1, 6))),
        column("single", Physical::FLOAT, None),
        column("double", Physical::DOUBLE, None),
        column("text", Physical::BYTE_ARRAY, Some(LogicalType::String)),
    ];
    let root = Arc::new(Type::group_type_builder("all").with_fields(fields).build().unwrap());
    let mut file = SerializedFileWriter::new(Vec::new(), root, Arc::default()).unwrap();
    let mut group = file.next_row_group().unwrap();
    // Two values and a null in between.
    let levels = [1, 0, 1];
    write::<BoolType>(&mut group, &[true, false], &levels);
    write::<Int32Type>(&mut group, &[-1, 7], &levels);
    write::<Int32Type>(&mut group, &[0, 19_000], &levels);
    write::<Int64Type>(&mut group, &[i64::MIN, 3], &levels);
    write::<Int64Type>(&mut group, &[1_500, -250], &levels);
    write::<Int64Type>(&mut group, &[-5, 12_345], &levels);
    let fixed = |bytes: [u8; 3]| FixedLenByteArray::from(ByteArray::from(bytes.to_vec()));
    write::<FixedLenByteArrayType>(&mut group, &[fixed([0xff, 0xff, 0xfe]), fixed([0, 1, 0])], &levels);
    write::<FloatType>(&mut group, &[0.1, f32::NAN], &levels);
    write::<DoubleType>(&mut group, &[-1e300, f64::NAN], &levels);
    write::<ByteArrayType>(&mut group, &[ByteArray::from(" a, \"b\"\n"), ByteArray::from("")], &levels);
    group.close().unwrap();
    let text = read_bytes("t.parquet", file.into_inner().unwrap(), None).replace(&"0".repeat(300), "0…");
    insta::assert_snapshot!(text, @r#"
    flag|tiny|day|big|time|price|fixed|single|double|text
    1: true|4294967295|1970-01-01|-9223372036854775808|1970-01-01 00:00:01.5+00:00|-0.05|-0.2|0.1|-10…|a, "b"
    2: |||||||||
    3: false|7|2022-01-08|3|1969-12-31 23:59:59.75+00:00|123.45|25.6|||
    "#);
}

#[test]
fn nested_columns_and_other_files_are_refused() {
    let list = Type::primitive_type_builder("tags", Physical::INT32).with_repetition(Repetition::REPEATED).build();
    let root = Type::group_type_builder("nested").with_fields(vec![Arc::new(list.unwrap())]).build();
    let file = SerializedFileWriter::new(Vec::new(), Arc::new(root.unwrap()), Arc::default()).unwrap();
    insta::assert_snapshot!(
        read_bytes("t.parquet", file.into_inner().unwrap(), None),
        @"`t.parquet` has a column `tags` that is nested; columns must be flat, or lists of FLOAT or DOUBLE"
    );
    for contents in [&b"PAR1"[..], b"age,job\n1,2\n", b""] {
        let text = read_bytes("t.parquet", contents, None);
        assert!(text.starts_with("`t.parquet` cannot be read as Parquet: "), "{text}");
    }
}

/// A null is no unit, and a missing value like any other elsewhere.
#[test]
fn nulls_of_parquet_are_missing_values() {
    let fields = vec![
        column("age", Physical::INT32, None),
        column("patient", Physical::BYTE_ARRAY, Some(LogicalType::String)),
        column("job", Physical::BYTE_ARRAY, Some(LogicalType::String)),
        column("ill", Physical::BYTE_ARRAY, Some(LogicalType::String)),
    ];
    let schema = Schema { bad_rows: BadRows::Drop, unit: Some("patient".into()), ..schema() };
    let root = Arc::new(Type::group_type_builder("people").with_fields(fields).build().unwrap());
    // A null in this column of the second of three rows.
    let encoded = |null: Option<usize>| {
        let mut file = SerializedFileWriter::new(Vec::new(), root.clone(), Arc::new(WriterProperties::new())).unwrap();
        let mut group = file.next_row_group().unwrap();
        let levels = |place: usize| [1, i16::from(null != Some(place)), 1];
        let present = |place: usize, values: [&'static str; 3]| -> Vec<ByteArray> {
            let rows = values.into_iter().zip(levels(place));
            rows.filter(|(_, level)| *level == 1).map(|(text, _)| text.into()).collect()
        };
        let ages = [30, 40, 50].into_iter().zip(levels(0)).filter(|(_, level)| *level == 1).map(|(age, _)| age);
        write::<Int32Type>(&mut group, &ages.collect::<Vec<_>>(), &levels(0));
        for (place, values) in [["a", "b", "b"], ["clerk"; 3], ["no"; 3]].into_iter().enumerate() {
            write::<ByteArrayType>(&mut group, &present(place + 1, values), &levels(place + 1));
        }
        group.close().unwrap();
        let placed = Placed::new("t.parquet", file.into_inner().unwrap());
        placed.encode(&schema).map(|(table, _)| [0, 1, 2].map(|row| (table.unit(row), table.is_blank(row))))
    };
    let whole = encoded(None).unwrap();
    assert!(whole[0].0 != whole[1].0 && whole[1].0 == whole[2].0);
    for place in [0, 2, 3] {
        assert_eq!(encoded(Some(place)).unwrap(), [whole[0], (whole[1].0, true), whole[2]]);
    }
    assert!(matches!(encoded(Some(1)), Err(TableError::NoUnit { .. })));
}
