//! Predictions of a released model for a table, written to a file.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::{fs, iter};

use dp_table::declaration::question;
use dp_table::{BadRows, StoredAs, TableCounts, TableFiles};
use serde::Serialize;

use crate::error::{FairdpError, Result};
use crate::model::FittedModel;
use crate::new_records::NewTableOptions;
use crate::output::{self, Readers};
use crate::output_format::{ENDINGS, OutputFormat};
use crate::predictions::{Cell, Predictions};
use crate::predictor::Predictor;
use crate::release::STATEMENT;
use crate::unfinished::release_of;
use crate::verify::model_of_statement;

/// Counts of a prediction, and values of the table that the model did not know. **Not private.**
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Predicted {
    /// Rows of the table, and of the file.
    pub rows: u64,
    /// Rows with an answer.
    pub answered: u64,
    /// Values by column that are not declared, beyond bounds or missing.
    pub table: TableCounts,
    /// The same in words, a line each, without declared missing values;
    /// empty if the model knows all that is in the table.
    pub remarks: Vec<String>,
    /// With reasons: columns with values that were too rare to be learnt, which add 0.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub too_rare: Vec<String>,
}

/// What is asked of a prediction besides its answers.
#[derive(Debug, Clone, Default)]
pub struct PredictOptions {
    /// Refuses a table, and writes nothing, where there would be a [remark](Predicted::remarks).
    pub is_strict: bool,
    /// Columns of the table that are carried through, as they are.
    pub keep: Vec<String>,
    /// For every row the columns that moved its answer most: how many of them.
    pub reasons: usize,
    /// How the table is read.
    pub table: NewTableOptions,
}

/// Writes one line per row of a table, in its order, for this user alone, in the format of the
/// file's ending: `.csv` or `.tsv`, each also with `.gz` or `.zst`, or `.parquet`. Memory does not grow
/// with the table. Labels are not needed.
///
/// The columns are `row` (from 1), those that are kept, `prediction`, `p_<class>` for every class (of a
/// number none: the prediction is a number within its declared range),
/// and `reason_1`, `change_1`, … for reasons: a column, and what it adds to the number, or to the log-odds of
/// the answer ([`FittedModel::reasons`](crate::FittedModel::reasons)). A Parquet file has what is kept in the type
/// of the table: whole numbers, numbers, truth values, else texts.
///
/// A row that does not fit has an empty answer if the model was fitted with `bad_rows = "drop"`.
///
/// # Errors
/// [`FairdpError::File`] for a release that is damaged, or a model other than that of its
/// statement; [`FairdpError::Table`] with file, line and column for a row that does not fit, and for
/// a column to keep that is not there; [`FairdpError::UnknownToModel`] with every remark;
/// [`FairdpError::InvalidParameter`] for an output that is a file of the table, or in a release, for
/// two columns of one name, and for reasons of a network or more reasons than columns.
pub fn predict(folder: &Path, tables: &[String], out: &Path, options: &PredictOptions) -> Result<Predicted> {
    let write = |files: &TableFiles, write_rows: &mut WriteRows<'_>| {
        let format = refuse_overwriting(out, files.paths())?;
        output::write_with(out, Readers::Owner, |file| write_rows(format, file))
    };
    predict_by(folder, tables, options, write)
}

/// The same as CSV to a stream, such as standard output.
///
/// # Errors
/// As [`predict`]; [`FairdpError::InvalidParameter`] for a strict prediction, since what was written
/// cannot be taken back.
pub fn predict_to(
    folder: &Path,
    tables: &[String],
    out: &mut (dyn Write + Send),
    options: &PredictOptions,
) -> Result<Predicted> {
    if options.is_strict {
        let expected = "an output that is a file: what was written to a stream cannot be taken back";
        return Err(FairdpError::invalid("--strict", "true", expected));
    }
    let write = |_: &TableFiles, write_rows: &mut WriteRows<'_>| {
        write_rows(OutputFormat::PLAIN, out).map_err(FairdpError::io("write", Path::new("the output")))
    };
    predict_by(folder, tables, options, write)
}

/// Writes all rows in this format.
type WriteRows<'a> = dyn FnMut(OutputFormat, &mut (dyn Write + Send)) -> io::Result<()> + 'a;

/// Answers all rows; `write` finds the place for them.
fn predict_by(
    folder: &Path,
    tables: &[String],
    options: &PredictOptions,
    write: impl FnOnce(&TableFiles, &mut WriteRows<'_>) -> Result<()>,
) -> Result<Predicted> {
    let model = model_of_statement(&release_of(folder)?)?;
    check_reasons(&model, options.reasons)?;
    let files = options.table.files(tables, &model)?;
    let mut predictor = Predictor::new(&model, &files)?;
    let kept = kept_columns(&predictor, &files, &options.keep)?;
    let columns = columns(&model, &predictor, &kept, options)?;
    let drops_rows = model.encoding().schema().bad_rows == BadRows::Drop;
    let mut row = 0_i64;
    let mut failed = None;
    let written = write(&files, &mut |format, file| {
        let mut predictions = Predictions::new(format, &columns, file)?;
        loop {
            row += 1;
            let found = match model.number() {
                Some(_) => predictor.number().map(|found| found.map(Prediction::Number)),
                None => predictor.answer().map(|found| found.map(|(class, _)| Prediction::Class(class))),
            };
            let answer = match found {
                Ok(Some(answer)) => Some(answer),
                Ok(None) => break,
                Err(FairdpError::Table(error)) if drops_rows && error.is_of_one_row() => None,
                Err(error) => {
                    failed = Some(error);
                    return Err(io::Error::other("a row does not fit"));
                }
            };
            let before =
                iter::once(Cell::Integer(row)).chain(kept.iter().map(|&at| Cell::Text(predictor.row().field(at))));
            match answer {
                Some(answer) => {
                    let (class, answer) = match answer {
                        Prediction::Class(class) => (class, Cell::Text(&model.classes()[class])),
                        Prediction::Number(number) => (0, Cell::Number(number)),
                    };
                    let reasons =
                        if options.reasons > 0 { predictor.reasons(class, options.reasons) } else { Vec::new() };
                    let reasons =
                        reasons.into_iter().flat_map(|(column, change)| [Cell::Text(column), Cell::Number(change)]);
                    let probabilities = predictor.probabilities().iter().map(|&p| Cell::Number(p));
                    predictions.push(before.chain([answer]).chain(probabilities).chain(reasons))?;
                }
                None => predictions.push(before.chain(iter::repeat_with(|| Cell::Empty)).take(columns.len()))?,
            }
        }
        let remarks = predictor.remarks();
        if options.is_strict && !remarks.is_empty() {
            failed = Some(FairdpError::UnknownToModel { remarks });
            return Err(io::Error::other("the table is refused"));
        }
        predictions.end()
    });
    if let Some(error) = failed {
        return Err(error);
    }
    written?;
    let (table, remarks) = (predictor.counts().clone(), predictor.remarks());
    let too_rare = if options.reasons > 0 { model.too_rare() } else { Vec::new() };
    Ok(Predicted { rows: table.rows, answered: table.rows - table.dropped, table, remarks, too_rare })
}

/// What a model says of a row.
enum Prediction {
    /// A position among the classes.
    Class(usize),
    Number(f64),
}

fn check_reasons(model: &FittedModel, reasons: usize) -> Result<()> {
    let n_columns = model.encoding().blocks().len() - 1;
    if reasons > 0 && !model.is_additive() {
        let expected = "an additive model: in a network what a column does depends on the others";
        return Err(FairdpError::invalid("--explain", reasons, expected));
    }
    if reasons > n_columns {
        return Err(FairdpError::invalid(
            "--explain",
            reasons,
            format!("at most {n_columns}, the columns of the model"),
        ));
    }
    Ok(())
}

/// Positions of the columns that are carried through.
fn kept_columns(predictor: &Predictor<'_>, files: &TableFiles, keep: &[String]) -> Result<Vec<usize>> {
    let find = |name: &String| {
        predictor.columns().iter().position(|column| column == name).ok_or_else(|| {
            let meant = question(name, predictor.columns().iter().map(String::as_str));
            FairdpError::invalid("--keep", name, format!("columns of `{}`{meant}", files.paths()[0].display()))
        })
    };
    keep.iter().map(find).collect()
}

/// Names and types of the columns that are written.
fn columns(
    model: &FittedModel,
    predictor: &Predictor<'_>,
    kept: &[usize],
    options: &PredictOptions,
) -> Result<Vec<(String, StoredAs)>> {
    let kept = kept.iter().zip(&options.keep).map(|(&at, name)| (name.clone(), predictor.stored_as(at)));
    let mut columns = vec![("row".to_owned(), StoredAs::Integer)];
    columns.extend(kept);
    columns.push(("prediction".into(), if model.number().is_some() { StoredAs::Number } else { StoredAs::Text }));
    columns.extend(model.classes().iter().map(|class| (format!("p_{class}"), StoredAs::Number)));
    let reason = |k: usize| [(format!("reason_{k}"), StoredAs::Text), (format!("change_{k}"), StoredAs::Number)];
    columns.extend((1..=options.reasons).flat_map(reason));
    let twice = |(at, (name, _)): (usize, &(String, StoredAs))| columns[..at].iter().any(|(other, _)| other == name);
    match columns.iter().enumerate().find(|&column| twice(column)) {
        None => Ok(columns),
        Some((_, (name, _))) => Err(FairdpError::invalid(
            "--keep",
            name,
            "columns that are given once, and that no column of the output has the name of",
        )),
    }
}

/// An output has the name of a format, and is no file that is read, under whatever name, nor in a
/// release, where every file has an entry in the statement.
fn refuse_overwriting(out: &Path, inputs: &[PathBuf]) -> Result<OutputFormat> {
    let refuse = |expected: &str| Err(FairdpError::invalid("--out", out.display(), expected));
    let is_out = |input: &PathBuf| {
        fs::canonicalize(input).is_ok_and(|input| fs::canonicalize(out).is_ok_and(|out| out == input))
    };
    if inputs.iter().any(is_out) {
        return refuse("another file than those that are read");
    }
    if out.with_file_name(STATEMENT).exists() {
        return refuse("a file outside of a release");
    }
    OutputFormat::of(out).map_or_else(|| refuse(&format!("a name that ends in {ENDINGS}")), Ok)
}
