//! From text to records, with every value checked.

use std::path::Path;

use super::schema::{Attribute, COLUMNS, Column, INCOME, Number};
use crate::error::{DataError, Position};

/// One row of Adult.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdultRecord {
    pub(super) numbers: [f64; Number::ALL.len()],
    /// Index into the category list; `None` for `?`.
    pub(super) categories: [Option<u8>; Attribute::ALL.len()],
    /// Income above 50,000 dollars.
    pub over_50k: bool,
}

impl AdultRecord {
    /// The value of a numeric column, within [`Number::range`].
    pub(crate) fn number(&self, column: Number) -> f64 {
        self.numbers[column as usize]
    }

    /// The category of a column as an index into [`Attribute::categories`]; `None` where the file
    /// says `?`.
    pub(crate) fn category(&self, column: Attribute) -> Option<usize> {
        self.categories[column as usize].map(usize::from)
    }

    /// True without a `?`.
    pub(crate) fn is_complete(&self) -> bool {
        self.categories.iter().all(Option::is_some)
    }
}

/// Reads records from the content of a file in the format of `adult.data` and `adult.test`.
///
/// Fields are separated by commas, blanks around them are ignored; empty lines and lines that begin
/// with `|` are skipped; the label may end in a full stop. A first line that begins with `age` is a
/// header: it must name all fifteen columns, in any order.
///
/// **Errors.** [`DataError::EmptyFile`], and for a row [`DataError::WrongArity`],
/// [`DataError::UnknownCategory`], [`DataError::InvalidNumber`], [`DataError::Malformed`] (not
/// UTF-8); for a header [`DataError::MissingColumn`]. `path` serves for the messages.
pub(super) fn parse(contents: &[u8], path: &Path) -> Result<Vec<AdultRecord>, DataError> {
    let mut order = COLUMNS;
    let mut records = Vec::new();
    let mut first = true;
    for (index, line) in contents.split(|&byte| byte == b'\n').enumerate() {
        let at = Position { path, line: index + 1 };
        let line = str::from_utf8(line).map_err(|_| at.malformed("not UTF-8 text"))?.trim();
        if line.is_empty() || line.starts_with('|') {
            continue;
        }
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        if std::mem::take(&mut first) && fields[0] == Number::Age.name() {
            order = header(&fields, at)?;
            continue;
        }
        records.push(record(&fields, &order, at)?);
    }
    if records.is_empty() {
        return Err(DataError::EmptyFile { path: path.into() });
    }
    Ok(records)
}

fn header(fields: &[&str], at: Position<'_>) -> Result<[Column; COLUMNS.len()], DataError> {
    if let Some(missing) = COLUMNS.iter().find(|column| !fields.contains(&column.name())) {
        return Err(at.missing_column(missing.name()));
    }
    if fields.len() != COLUMNS.len() {
        return Err(at.wrong_arity(fields.len(), COLUMNS.len()));
    }
    // Fifteen fields that name all fifteen columns: a permutation.
    let mut order = COLUMNS;
    for (slot, field) in order.iter_mut().zip(fields) {
        if let Some(&column) = COLUMNS.iter().find(|column| column.name() == *field) {
            *slot = column;
        }
    }
    Ok(order)
}

fn record(fields: &[&str], order: &[Column; COLUMNS.len()], at: Position<'_>) -> Result<AdultRecord, DataError> {
    if fields.len() != order.len() {
        return Err(at.wrong_arity(fields.len(), order.len()));
    }
    let mut record =
        AdultRecord { numbers: [0.0; Number::ALL.len()], categories: [None; Attribute::ALL.len()], over_50k: false };
    for (column, &field) in order.iter().zip(fields) {
        match *column {
            Column::Number(number) => {
                record.numbers[number as usize] = at.within(number.name(), field, number.range(), number.accepted())?;
            }
            Column::Category(_) if field == "?" => {}
            Column::Category(attribute) => {
                let index = position(attribute.name(), attribute.categories(), field, at)?;
                record.categories[attribute as usize] = Some(index as u8);
            }
            Column::Income => {
                let label = field.strip_suffix('.').unwrap_or(field);
                record.over_50k = position(column.name(), &INCOME, label, at)? == 1;
            }
        }
    }
    Ok(record)
}

fn position(column: &str, list: &[&str], value: &str, at: Position<'_>) -> Result<usize, DataError> {
    list.iter().position(|&category| category == value).ok_or_else(|| at.unknown_category(column, value, list))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ROW: &str = "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, \
                       0, 40, United-States, <=50K";

    fn text(text: &str) -> Result<Vec<AdultRecord>, DataError> {
        parse(text.as_bytes(), Path::new("adult.data"))
    }

    #[test]
    fn reads_a_row() {
        let records =
            text(&format!("|1x3 Cross validator\n{ROW}.\n\n{}", ROW.replace("<=", ">").replace("State-gov", "?")))
                .unwrap();
        assert_eq!(records.len(), 2);
        assert_eq!(records[0].number(Number::CapitalGain), 2174.0);
        assert_eq!(records[0].category(Attribute::Sex), Some(1));
        assert!(!records[0].over_50k && records[0].is_complete());
        assert!(records[1].over_50k && !records[1].is_complete());
    }

    #[test]
    fn a_header_may_permute_the_columns() {
        let names: Vec<_> = COLUMNS.iter().map(|column| column.name()).collect();
        let values: Vec<_> = ROW.split(", ").collect();
        let turned = |list: &[&str]| {
            let mut list = list.to_vec();
            list[1..].rotate_left(3);
            list.join(",")
        };
        let table = format!("{}\n{}\n", turned(&names), turned(&values));
        assert_eq!(text(&table).unwrap(), text(ROW).unwrap());
    }

    #[test]
    fn errors_name_file_and_line() {
        let error = |content: &str| text(content).unwrap_err().to_string();
        insta::assert_snapshot!(error(""), @"`adult.data` has no records");
        insta::assert_snapshot!(error("|only a comment\n"), @"`adult.data` has no records");
        insta::assert_snapshot!(error(&format!("{ROW}\n{ROW}, 1\n")), @"adult.data:2: 16 fields, expected 15");
        insta::assert_snapshot!(error(&format!("\n{}", &ROW[4..])), @"adult.data:2: 14 fields, expected 15");
        insta::assert_snapshot!(
            error(&ROW.replace("State-gov", "Stategov")),
            @"adult.data:1: column `workclass`: `Stategov` is not one of Private, Self-emp-not-inc, Self-emp-inc, Federal-gov, Local-gov, State-gov, Without-pay, Never-worked"
        );
        insta::assert_snapshot!(
            error(&ROW.replace("<=50K", "50K")),
            @"adult.data:1: column `income`: `50K` is not one of <=50K, >50K"
        );
        for (bad, place, range) in [
            ("x", "39", "17 to 90"),
            ("NaN", "77516", "0 to 2,000,000"),
            ("inf", "13", "1 to 16"),
            ("-1", "2174", "0 to 99,999"),
            ("100000", "2174", "0 to 99,999"),
            ("999999", "2174", "0 to 99,999"),
            ("100", "40", "1 to 99"),
            ("", "40", "1 to 99"),
            ("?", "39", "17 to 90"),
            ("91", "39", "17 to 90"),
        ] {
            let message = error(&ROW.replacen(place, bad, 1));
            assert!(message.ends_with(&format!("`{bad}` is not a number from {range}")), "{message}");
        }
        insta::assert_snapshot!(
            error(&ROW.replacen("39", "NaN", 1)),
            @"adult.data:1: column `age`: `NaN` is not a number from 17 to 90"
        );
        insta::assert_snapshot!(
            error("age,workclass,fnlwgt\n"),
            @"adult.data:1: column `education` is missing from the header"
        );
        insta::assert_snapshot!(
            parse(b"39\xff, ", Path::new("adult.data")).unwrap_err(),
            @"adult.data:1: not UTF-8 text"
        );
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = parse(&bytes, Path::new("x"));
        }

        #[test]
        fn damaged_rows_never_panic(at in 0..ROW.len(), byte: u8, cut in 0..ROW.len()) {
            let mut row = ROW.as_bytes().to_vec();
            row[at] = byte;
            row.truncate(cut);
            let _ = parse(&row, Path::new("x"));
        }
    }
}
