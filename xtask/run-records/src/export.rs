//! Tables of runs as CSV, JSON or Parquet.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, ensure};

use crate::database::Database;
use crate::record::StudyResults;
use crate::table::{Column, Table, Value};
use crate::{metrics, parquet};

/// A format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// With a header; empty fields are undefined values
    Csv,
    /// An array of objects; infinities and NaN are strings
    Json,
    /// Typed columns, not compressed
    Parquet,
}

impl Format {
    const ALL: [Self; 3] = [Self::Csv, Self::Json, Self::Parquet];

    /// The ending of a file of this format.
    const fn ending(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Parquet => "parquet",
        }
    }

    /// The format of a file: the one that was asked for, or else that of its name.
    ///
    /// # Errors
    /// If the name ends as that of a file of another format than the one asked for, or, where none
    /// was, as that of none.
    pub fn of_file(path: &Path, asked: Option<Self>) -> anyhow::Result<Self> {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let named = Self::ALL.into_iter().find(|format| format.ending().eq_ignore_ascii_case(ending));
        let path = path.display();
        if let (Some(asked), Some(named)) = (asked, named) {
            let asked = asked.ending();
            ensure!(
                asked == named.ending(),
                "--out {path}: expected a name that ends in .{asked}, as --format {asked}"
            );
        }
        asked.or(named).with_context(|| {
            format!("--out {path}: expected a name that ends in .csv, .json or .parquet, or --format with it")
        })
    }
}

/// Writes a table.
///
/// # Errors
/// If the database cannot be read or `out` not be written.
pub fn export(database: &Database, table: Table, format: Format, out: &mut (impl Write + Send)) -> anyhow::Result<()> {
    let (columns, rows) = (table.columns(), table.rows(database)?);
    match format {
        Format::Csv => write_csv(columns, &rows, out).context("writing CSV"),
        Format::Json => write_json(columns, &rows, out).context("writing JSON"),
        Format::Parquet => parquet::write(columns, &rows, out).context("writing Parquet"),
    }
}

/// The rows of a study's records as CSV.
///
/// # Errors
/// If they cannot be written.
pub fn metrics_csv(results: &StudyResults) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    write_csv(metrics::COLUMNS, &metrics::of_study(results), &mut bytes).context("writing CSV")?;
    Ok(bytes)
}

fn write_csv(columns: &[Column], rows: &[Vec<Value>], out: &mut impl Write) -> anyhow::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(columns.iter().map(|(name, _)| name))?;
    for row in rows {
        writer.write_record(row.iter().map(|value| match value {
            Value::Null => String::new(),
            Value::Text(text) => text.clone(),
            Value::Integer(number) => number.to_string(),
            Value::Real(number) => number.to_string(),
        }))?;
    }
    Ok(writer.flush()?)
}

fn write_json(columns: &[Column], rows: &[Vec<Value>], out: &mut impl Write) -> anyhow::Result<()> {
    // One object a line: short to compare and to read piecewise.
    let mut separator = "[\n";
    for row in rows {
        write!(out, "{separator}{{")?;
        let mut comma = "";
        for ((name, _), value) in columns.iter().zip(row) {
            let value: serde_json::Value = match value {
                Value::Null => serde_json::Value::Null,
                Value::Text(text) => text.as_str().into(),
                Value::Integer(number) => (*number).into(),
                Value::Real(number) if number.is_finite() => (*number).into(),
                Value::Real(number) => number.to_string().into(),
            };
            write!(out, "{comma}\"{name}\":{value}")?;
            comma = ",";
        }
        write!(out, "}}")?;
        separator = ",\n";
    }
    let end = if rows.is_empty() { "[]\n" } else { "\n]\n" };
    Ok(out.write_all(end.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use ::parquet::record::RowAccessor;

    use super::*;
    use crate::fixture::{fill, source};

    #[test]
    fn a_name_says_in_which_format() {
        let of = |name: &str, asked| Format::of_file(Path::new(name), asked).map_err(|error| error.to_string());
        assert_eq!(of("a/t.parquet", None), Ok(Format::Parquet));
        assert_eq!((of("t.CSV", None), of("t.x.json", None)), (Ok(Format::Csv), Ok(Format::Json)));
        assert_eq!(of("t.dat", Some(Format::Csv)), Ok(Format::Csv));
        for name in ["t.txt", "t", ".csv", "t.csv.gz"] {
            let message = of(name, None).unwrap_err();
            assert!(message.contains("expected a name that ends in .csv, .json or .parquet"), "{message}");
        }
        let message = of("t.csv", Some(Format::Parquet)).unwrap_err();
        assert_eq!(message, "--out t.csv: expected a name that ends in .parquet, as --format parquet");
    }

    fn exported(table: Table, format: Format) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records.db");
        let mut study = crate::made_up::study();
        study.experiments[0].methods.truncate(2);
        for method in &mut study.experiments[0].methods {
            method.runs.truncate(1);
            method.runs[0].epochs.truncate(1);
            method.runs[0].thresholds.truncate(1);
        }
        study.experiments[0].methods[1].runs[0].test.groups[1].loss = Some(f64::INFINITY);
        study.experiments[0].methods[1].runs[0].test.groups[1].accuracy = None;
        fill(&path, &source(), &study);
        let mut out = Vec::new();
        export(&Database::read(&path).unwrap(), table, format, &mut out).unwrap();
        out
    }

    fn text(table: Table, format: Format) -> String {
        String::from_utf8(exported(table, format)).unwrap()
    }

    #[test]
    fn csv_of_tables() {
        insta::assert_snapshot!("csv_metrics", text(Table::Metrics, Format::Csv));
        insta::assert_snapshot!("csv_epochs", text(Table::Epochs, Format::Csv));
        insta::assert_snapshot!("csv_thresholds", text(Table::Thresholds, Format::Csv));
    }

    #[test]
    fn json_is_the_same_table() {
        let rows: Vec<serde_json::Value> = serde_json::from_str(&text(Table::Metrics, Format::Json)).unwrap();
        let csv = text(Table::Metrics, Format::Csv);
        assert_eq!(rows.len(), csv.lines().count() - 1);
        for (row, line) in rows.iter().zip(csv.lines().skip(1)) {
            let fields: Vec<&str> = line.split(',').collect();
            assert_eq!((&row["group"], row["n"].to_string().as_str()), (&fields[5].into(), fields[6]));
            assert_eq!(row["loss"].to_string().trim_matches('"'), fields[8]);
        }
        let infinite: Vec<_> = rows.iter().filter(|row| row["loss"] == "inf" && row["accuracy"].is_null()).collect();
        assert_eq!(infinite.len(), 1);
        let runs: Vec<serde_json::Value> = serde_json::from_str(&text(Table::Runs, Format::Json)).unwrap();
        assert_eq!(runs[0]["seed"], u64::MAX.to_string());
        assert_eq!((&runs[0]["method"], &runs[1]["epsilon"]), (&"dpsgd".into(), &serde_json::Value::Null));
    }

    #[test]
    fn parquet_reads_back() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&exported(Table::Metrics, Format::Parquet)).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 12);
        let csv = text(Table::Metrics, Format::Csv);
        for (row, line) in rows.iter().zip(csv.lines().skip(1)) {
            let fields: Vec<&str> = line.split(',').collect();
            assert_eq!(row.get_string(5).unwrap(), fields[5]);
            assert_eq!(row.get_long(6).unwrap().to_string(), fields[6]);
            assert_eq!(row.get_double(7).map(|value| value.to_string()).unwrap_or_default(), fields[7]);
            assert_eq!(row.get_double(8).unwrap().to_string(), fields[8]);
        }
    }
}
