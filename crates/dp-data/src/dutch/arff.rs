//! The ARFF dialect of the Dutch census: nominal attributes, comma-separated rows.

use std::path::Path;

use super::schema::COLUMNS;
use crate::error::{DataError, Position};

/// One person: for each column an index into its declared codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DutchRecord(pub(super) [u8; COLUMNS.len()]);

impl DutchRecord {
    /// The code in a column, in file order.
    pub(super) fn code(&self, column: usize) -> &'static str {
        COLUMNS[column].codes[usize::from(self.0[column])]
    }
}

/// Reads the content of an ARFF file with the schema's attributes in the schema's order.
///
/// Empty lines and lines that begin with `%` are skipped; keywords may be in any case.
///
/// **Errors.** [`DataError::EmptyFile`]; [`DataError::MissingColumn`] for an attribute that is
/// absent or out of order, at the line of `@data` or of the attribute in its place;
/// [`DataError::Malformed`] for other codes, or text that is not UTF-8; [`DataError::WrongArity`]
/// and [`DataError::UnknownCategory`] for a row.
pub(super) fn parse(contents: &[u8], path: &Path) -> Result<Vec<DutchRecord>, DataError> {
    let mut n_attributes = 0;
    let mut in_data = false;
    let mut records = Vec::new();
    for (index, line) in contents.split(|&byte| byte == b'\n').enumerate() {
        let at = Position { path, line: index + 1 };
        let line = str::from_utf8(line).map_err(|_| at.malformed("not UTF-8 text"))?.trim();
        if line.is_empty() || line.starts_with('%') {
            continue;
        }
        if in_data {
            records.push(row(line, at)?);
            continue;
        }
        let (keyword, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match keyword.to_ascii_lowercase().as_str() {
            "@relation" => {}
            "@attribute" => {
                attribute(n_attributes, rest.trim(), at)?;
                n_attributes += 1;
            }
            "@data" => {
                if let Some(missing) = COLUMNS.get(n_attributes) {
                    return Err(at.missing_column(missing.name));
                }
                in_data = true;
            }
            _ => return Err(at.malformed("expected `@relation`, `@attribute` or `@data`")),
        }
    }
    if records.is_empty() {
        return Err(DataError::EmptyFile { path: path.into() });
    }
    Ok(records)
}

fn attribute(index: usize, declaration: &str, at: Position<'_>) -> Result<(), DataError> {
    let Some(column) = COLUMNS.get(index) else {
        return Err(at.malformed(format!("more than {} attributes", COLUMNS.len())));
    };
    let (name, codes) = declaration.split_once(char::is_whitespace).unwrap_or((declaration, ""));
    if name != column.name {
        return Err(at.missing_column(column.name));
    }
    let inner = codes.trim().strip_prefix('{').and_then(|codes| codes.strip_suffix('}'));
    if !inner.is_some_and(|codes| codes.split(',').map(str::trim).eq(column.codes.iter().copied())) {
        return Err(at.malformed(format!("column `{name}` does not declare {{{}}}", column.codes.join(","))));
    }
    Ok(())
}

fn row(line: &str, at: Position<'_>) -> Result<DutchRecord, DataError> {
    let mut codes = [0; COLUMNS.len()];
    let n_fields = line.split(',').count();
    if n_fields != COLUMNS.len() {
        return Err(at.wrong_arity(n_fields, COLUMNS.len()));
    }
    for ((slot, column), field) in codes.iter_mut().zip(&COLUMNS).zip(line.split(',').map(str::trim)) {
        let index = column.codes.iter().position(|&code| code == field);
        *slot = index.ok_or_else(|| at.unknown_category(column.name, field, column.codes))? as u8;
    }
    Ok(DutchRecord(codes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::synthetic;
    use super::*;

    fn text(text: &str) -> Result<Vec<DutchRecord>, DataError> {
        parse(text.as_bytes(), Path::new("d.arff"))
    }

    #[test]
    fn reads_its_own_header_and_a_row() {
        let records = text(&format!("{}1,6,1131,112,1,1,1,5,111,135,1,2_1\r\n", synthetic::header())).unwrap();
        assert_eq!(records.len(), 1);
        assert_eq!(
            (0..12).map(|column| records[0].code(column)).collect::<Vec<_>>().join(","),
            "1,6,1131,112,1,1,1,5,111,135,1,2_1"
        );
    }

    #[test]
    fn errors_name_file_and_line() {
        let header = synthetic::header();
        let error = |text_: &str| text(text_).unwrap_err().to_string();
        insta::assert_snapshot!(error(""), @"`d.arff` has no records");
        insta::assert_snapshot!(error(&header), @"`d.arff` has no records");
        insta::assert_snapshot!(error(&format!("{header}1,2,3\n")), @"d.arff:17: 3 fields, expected 12");
        insta::assert_snapshot!(
            error(&format!("{header}1,6,1131,112,1,7,1,5,111,135,1,2_1\n")),
            @"d.arff:17: column `citizenship`: `7` is not one of 3, 2, 1"
        );
        insta::assert_snapshot!(
            error(&header.replace("@attribute age", "@attribute years")),
            @"d.arff:4: column `age` is missing from the header"
        );
        insta::assert_snapshot!(
            error(&header.replace("{2,1}", "{1,2}")),
            @"d.arff:3: column `sex` does not declare {2,1}"
        );
        insta::assert_snapshot!(
            error("@relation x\n@data\n1,2"),
            @"d.arff:2: column `sex` is missing from the header"
        );
        insta::assert_snapshot!(
            error("sex,age\n"),
            @"d.arff:1: expected `@relation`, `@attribute` or `@data`"
        );
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&bytes, Path::new("x"));
            let mut after_header = synthetic::header().into_bytes();
            after_header.extend(bytes);
            let _ = parse(&after_header, Path::new("x"));
        }
    }
}
