//! From a file to a checked configuration.

use std::path::{Path, PathBuf};

use dp_data::table::{Csv, Label, Schema, TableFiles, TableFormat};

use super::nearest::explain;
use super::{CONFIG_VERSION, ColumnKind, Config, Fairness, From, LEAST_DELTA, ModelKind, TuningEntry};
use crate::choice::Choice;
use crate::error::{FairdpError, Result};
use crate::input;

/// Groups, of all intersections: a row's is stored in two bytes.
const MOST_GROUPS: usize = 65_534;
/// Classes: one output of the model each.
const MOST_CLASSES: usize = 2_048;
/// Counts by group, class and answer.
const MOST_COUNTS: usize = 1 << 22;

impl Config {
    /// Reads a configuration.
    ///
    /// # Errors
    /// [`FairdpError::Io`]; [`FairdpError::Config`] with the line for what is unknown, missing or
    /// out of range.
    pub fn read(path: &Path) -> Result<Self> {
        let text = input::text(path)?;
        let mut config = Self::from_toml(&text, path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let absolute = |file: &mut String| {
            if Path::new(&*file).is_relative() {
                *file = folder.join(&*file).to_string_lossy().into_owned();
            }
        };
        config.table.files.iter_mut().for_each(absolute);
        config.test.files.iter_mut().flatten().for_each(absolute);
        Ok(config)
    }

    /// Reads a configuration from text; `path` is for messages.
    ///
    /// # Errors
    /// [`FairdpError::Config`].
    pub fn from_toml(text: &str, path: &Path) -> Result<Self> {
        let refuse = |start: usize, message: String| FairdpError::Config {
            path: path.into(),
            line: 1 + text.as_bytes().iter().take(start).filter(|&&byte| byte == b'\n').count(),
            message,
        };
        let start = |span: Option<std::ops::Range<usize>>| span.map_or(0, |span| span.start);
        let parsed = toml::Deserializer::parse(text)
            .map_err(|error| refuse(start(error.span()), error.message().replace('\n', ", ")))?;
        let config: Self = serde_path_to_error::deserialize(parsed).map_err(|error| {
            let place = error.path().to_string();
            let place = if place == "." { String::new() } else { format!("{place}: ") };
            let error = error.into_inner();
            refuse(start(error.span()), format!("{place}{}", explain(error.message())))
        })?;
        config.check().map_err(|(key, message)| {
            let at = text.lines().position(|line| line.trim_start().starts_with(&key)).unwrap_or(0);
            FairdpError::Config { path: path.into(), line: at + 1, message }
        })?;
        Ok(config)
    }

    /// A key and what is wrong with it.
    fn check(&self) -> Result<(), (String, String)> {
        let refuse = |key: &str, message: String| Err((key.to_owned(), message));
        if self.version != CONFIG_VERSION {
            return refuse("version", format!("version = {}: expected {CONFIG_VERSION}", self.version));
        }
        let (epsilon, delta) = (self.privacy.epsilon, self.privacy.delta);
        if !(epsilon.is_finite() && epsilon > 0.0) {
            return refuse("epsilon", format!("privacy.epsilon = {epsilon}: expected a finite number above 0"));
        }
        if !(LEAST_DELTA..1.0).contains(&delta) {
            return refuse(
                "delta",
                format!("privacy.delta = {delta}: expected a number from {LEAST_DELTA:e} to below 1"),
            );
        }
        if let Some(total) = self.privacy.total_epsilon
            && !(total.is_finite() && total > 0.0)
        {
            return refuse(
                "total_epsilon",
                format!("privacy.total_epsilon = {total}: expected a finite number above 0"),
            );
        }
        if let Some(total) = self.privacy.total_epsilon
            && total < epsilon
        {
            let message = format!("privacy.total_epsilon = {total}: expected at least epsilon, {epsilon}");
            return refuse("total_epsilon", message);
        }
        if self.unit.is_some() && self.column.iter().any(|column| column.bounds.is_some()) {
            let message = "bounds = \"private\": not with a [unit]; declare the bounds".to_owned();
            return refuse("bounds", message);
        }
        if self.label.classes.len() < 2 {
            let message = format!("label.classes has {} values: expected at least 2", self.label.classes.len());
            return refuse("classes", message);
        }
        if let Some(fraction) = self.test.fraction
            && !(0.0..=0.9).contains(&fraction)
        {
            return refuse("fraction", format!("test.fraction = {fraction}: expected 0 to 0.9"));
        }
        if self.test.fraction.is_some_and(|fraction| fraction > 0.0) && self.test.files.is_some() {
            return refuse("[test]", "test.fraction and test.files: expected one of the two".into());
        }
        if self.unit.as_ref().is_some_and(|unit| unit.max_records == 0) {
            return refuse("max_records", "unit.max_records = 0: expected at least 1".into());
        }
        if self.fairness != Fairness::None && (self.group.is_empty() || self.label.classes.len() != 2) {
            let message = "fairness: thresholds by group need a [[group]] and two classes".to_owned();
            return refuse("fairness", message);
        }
        self.check_groups()?;
        self.choice()?;
        if let Some(tuning) = &self.tuning {
            tuning.check()?;
            if self.model.kind != ModelKind::Auto || self.model.hidden.is_some() || !self.method.is_auto() {
                let message =
                    "tuning: its candidates say what [model] and [method] would; leave these `auto`".to_owned();
                return refuse("[tuning]", message);
            }
            self.candidates(tuning)?;
        }
        let inputs = || self.column.iter().filter(|column| column.kind != ColumnKind::Drop);
        if inputs().any(|column| column.name == self.label.column) {
            let message = format!("column `{}` is the label: it cannot be an input", self.label.column);
            return refuse(&format!("name = \"{}\"", self.label.column), message);
        }
        for group in &self.group {
            if !self.group_as_input && inputs().any(|column| column.name == group.column) {
                let message =
                    format!("column `{}` is a group: it is an input only with `group_as_input = true`", group.column);
                return refuse(&format!("name = \"{}\"", group.column), message);
            }
        }
        if let Some(unit) = &self.unit
            && inputs().any(|column| column.name == unit.column)
        {
            let message = format!("column `{}` names the unit of privacy: it cannot be an input", unit.column);
            return refuse(&format!("name = \"{}\"", unit.column), message);
        }
        if inputs().next().is_none() {
            return refuse("[[column]]", "no column is an input".into());
        }
        Ok(())
    }

    /// What is trained, and how.
    pub(crate) fn choice(&self) -> Result<Choice, (String, String)> {
        let records_per_unit = self.unit.as_ref().map_or(1, |unit| unit.max_records);
        Choice::new(&self.model, &self.method, !self.group.is_empty(), records_per_unit)
    }

    /// What a search may train.
    pub(crate) fn candidates(&self, tuning: &TuningEntry) -> Result<Vec<Choice>, (String, String)> {
        let records_per_unit = self.unit.as_ref().map_or(1, |unit| unit.max_records);
        let candidates = tuning.candidate.iter();
        candidates
            .map(|entry| Choice::new(&entry.model(), &entry.method, !self.group.is_empty(), records_per_unit))
            .collect()
    }

    /// The number of groups: of all intersections, where several columns make them.
    pub(crate) fn n_groups(&self) -> usize {
        self.group.iter().map(super::GroupEntry::n_groups).fold(1, usize::saturating_mul)
    }

    /// Answers are counted by group, class and answer: refuses more counts than a table has use
    /// for.
    fn check_groups(&self) -> Result<(), (String, String)> {
        let n_classes = self.label.classes.len();
        if n_classes > MOST_CLASSES {
            let message = format!("label.classes has {n_classes} values: expected at most {MOST_CLASSES}");
            return Err(("classes".into(), message));
        }
        let (n_groups, most) = (self.n_groups(), (MOST_COUNTS / (n_classes * n_classes)).clamp(1, MOST_GROUPS));
        if n_groups <= most {
            return Ok(());
        }
        let columns: Vec<String> =
            self.group.iter().map(|group| format!("`{}` ({})", group.column, group.n_groups())).collect();
        let product = if n_groups == usize::MAX { "too many to count".into() } else { n_groups.to_string() };
        let message = format!(
            "group: the intersections of {} are {product} groups: expected at most {most} with {n_classes} classes",
            columns.join(", ")
        );
        Err(("[[group]]".into(), message))
    }

    /// The constants that were read from the records and that nobody declared public or paid for:
    /// one line each.
    pub fn uncovered(&self) -> Vec<String> {
        let open = |from: Option<From>, public: bool| from == Some(From::Data) && !public;
        let mut entries = Vec::new();
        if open(self.label.from, self.label.public) {
            entries.push(format!("label `{}`: classes {}", self.label.column, self.label.classes.join(", ")));
        }
        for group in self.group.iter().filter(|group| open(group.from, group.public)) {
            let values = group.values.as_ref().map_or("its edges".into(), |values| shortened(values));
            entries.push(format!("group `{}`: {values}", group.column));
        }
        for column in self.column.iter().filter(|column| open(column.from, column.public)) {
            let what = match column.kind {
                ColumnKind::Number if column.bounds.is_some() => continue,
                ColumnKind::Number => {
                    let number = |bound: Option<f64>| bound.map_or("?".into(), |bound| bound.to_string());
                    format!("bounds {} to {}", number(column.low), number(column.high))
                }
                ColumnKind::Category => format!("values {}", shortened(column.values.as_deref().unwrap_or_default())),
                ColumnKind::Drop => "dropped".to_owned(),
            };
            entries.push(format!("column `{}`: {what}", column.name));
        }
        entries
    }

    /// The schema that the configuration declares; `released` gives the edges of columns whose
    /// bounds were paid for.
    ///
    /// # Errors
    /// [`FairdpError::InvalidParameter`] for keys that do not fit a column's kind.
    pub fn schema(&self, released: &dyn Fn(&str) -> Option<Vec<f64>>) -> Result<Schema> {
        let mut columns = Vec::with_capacity(self.column.len());
        for entry in &self.column {
            columns.push((entry.name.clone(), entry.column(released(&entry.name).as_deref())?));
        }
        Ok(Schema {
            columns,
            label: Label { column: self.label.column.clone(), classes: self.label.classes.clone() },
            groups: self.group.iter().map(super::GroupEntry::group).collect::<Result<_>>()?,
            group_as_input: self.group_as_input,
            unit: self.unit.as_ref().map(|unit| unit.column.clone()),
            bad_rows: self.table.bad_rows,
            missing: self.table.missing.clone(),
        })
    }

    /// The training table: the one in memory, or that of the files.
    pub(crate) fn training_files(&self) -> Result<TableFiles> {
        self.in_memory.clone().map_or_else(|| self.files(&self.table.files), Ok)
    }

    /// A table's files.
    ///
    /// # Errors
    /// [`FairdpError::Data`] for files that are not there or of no known format.
    pub fn files(&self, patterns: &[String]) -> Result<TableFiles> {
        let files = TableFiles::new(patterns)?;
        match *files.format() {
            TableFormat::Csv(csv) => Ok(files.with_csv(self.csv(csv)?)),
            _ => Ok(files),
        }
    }

    fn csv(&self, by_ending: Csv) -> Result<Csv> {
        let byte = |key: &str, letter: char| {
            u8::try_from(letter).map_err(|_| FairdpError::invalid(key, letter, "a character of one byte"))
        };
        let delimiter = match self.table.delimiter {
            Some(letter) => Some(byte("table.delimiter", letter)?),
            None => by_ending.delimiter,
        };
        let quote = match self.table.quote.as_deref() {
            None => by_ending.quote,
            Some("") => None,
            Some(text) => {
                let mut letters = text.chars();
                match (letters.next(), letters.next()) {
                    (Some(letter), None) => Some(byte("table.quote", letter)?),
                    _ => return Err(FairdpError::invalid("table.quote", text, "one character, or none")),
                }
            }
        };
        Ok(Csv { delimiter, quote })
    }
}

/// The paths of a table made absolute.
pub(crate) fn absolute(path: &str) -> Result<String> {
    let path = Path::new(path);
    let absolute: PathBuf = std::path::absolute(path).map_err(FairdpError::io("find", path))?;
    Ok(absolute.to_string_lossy().into_owned())
}

fn shortened(values: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = values.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if values.len() > SHOWN { format!("{shown}, … ({} values)", values.len()) } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_groups(columns: usize, values: usize) -> Result<Config> {
        let mut text = String::from(
            "version = 1\n[table]\nfiles = [\"t.csv\"]\n[label]\ncolumn = \"y\"\nclasses = [\"0\", \"1\"]\n\
             [privacy]\nepsilon = 1\ndelta = 1e-5\n[[column]]\nname = \"x\"\nkind = \"number\"\nlow = 0\nhigh = 1\n",
        );
        let values: Vec<String> = (0..values).map(|value| format!("\"{value}\"")).collect();
        for column in 0..columns {
            text += &format!("[[group]]\ncolumn = \"g{column}\"\nvalues = [{}]\n", values.join(", "));
        }
        Config::from_toml(&text, Path::new("fairdp.toml"))
    }

    #[test]
    fn intersections_of_groups_are_limited_and_named() {
        assert_eq!(with_groups(2, 200).unwrap().n_groups(), 40_000);
        let message = with_groups(2, 300).unwrap_err().to_string();
        assert!(message.contains("`g0` (300), `g1` (300) are 90000 groups: expected at most 65534"), "{message}");
        // Beyond the numbers of the machine.
        let message = with_groups(11, 100).unwrap_err().to_string();
        assert!(message.contains("too many to count") && message.starts_with("fairdp.toml:15: "), "{message}");
    }
}
