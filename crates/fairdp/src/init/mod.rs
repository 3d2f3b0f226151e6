//! A first configuration, read from a table to spare typing. Everything that comes from the records
//! says so.

mod columns;
mod label;
mod remarks;
mod toml_text;

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::sync::Arc;

use dp_table::declaration::{TextMarks, question};
use dp_table::{
    ColumnGuess, Guess, GuessedKind, MISSING_MARKERS, ReadProgress, TableError, TableFiles, TableRow, TextEncoding,
    delimiter_question,
};
use dp_train::ImageShape;
use serde::Deserialize;
use serde::de::value::StrDeserializer;

use crate::config::read::{absolute, encoding, with_vectors};
use crate::config::{GroupEntry, LEAST_DELTA, MethodChoice, ModelEntry, ModelKind, SamplingEntry};
use crate::error::{FairdpError, Result};
use crate::recipe::{Recipe, TableFacts, decision_of_method, takes_group_rates, takes_limits_of_rates};
use crate::text_marks::with_options;

use self::columns::{BinsOf, column, group, vector};
use self::label::{label_entry, number_range};
use self::remarks::remarks_on_rows;
use self::toml_text::{list, number, quoted};

/// Declarations of a person about the table.
#[derive(Debug, Clone, Default)]
pub struct InitOptions {
    /// The column to predict.
    pub label: String,
    /// Its positive value, of two.
    pub positive: Option<String>,
    /// Columns whose values are groups.
    pub groups: Vec<String>,
    /// Whether they are inputs too.
    pub group_as_input: bool,
    /// The column that says whose record it is.
    pub unit: Option<String>,
    /// Records of a unit that are used.
    pub max_records_per_unit: Option<u64>,
    /// The column that says how much a record counts in training.
    pub weight: Option<String>,
    /// ε; 1 unless given.
    pub epsilon: Option<f64>,
    /// δ; at most 1e-5 and half of one over the number of records unless given.
    pub delta: Option<f64>,
    /// Share of the records for the test; a fifth unless given.
    pub test_fraction: Option<f64>,
    /// `model.kind`; `auto` unless given.
    pub model: Option<String>,
    /// `method.name`; `auto` unless given.
    pub method: Option<String>,
    /// The encoding of text files; found unless given.
    pub encoding: Option<String>,
    /// The character between two fields of a text file, of ASCII; found unless given.
    pub delimiter: Option<char>,
    /// The character around a field that holds delimiters, or an empty text for none; `"` unless given.
    pub quote: Option<String>,
    /// Columns of vectors in files of NumPy, by name: a file for each of the table's.
    pub vectors: BTreeMap<String, Vec<String>>,
    /// Whether training goes ahead on what was read here.
    pub accept_uncovered: bool,
    /// The table's files, and those of vectors by column, as the configuration names them; their
    /// absolute paths unless given.
    pub named: Option<NamedFiles>,
    /// Where the reading says how far it is, and is told to end.
    pub reading: Option<Arc<ReadProgress>>,
}

/// Files of a table by other names than those by which they are read.
#[derive(Debug, Clone, Default)]
pub struct NamedFiles {
    /// The table's.
    pub tables: Vec<String>,
    /// Those of vectors, by column.
    pub vectors: BTreeMap<String, Vec<String>>,
}

impl NamedFiles {
    fn absolute(tables: &[String], vectors: &BTreeMap<String, Vec<String>>) -> Result<Self> {
        let all = |files: &[String]| files.iter().map(|file| absolute(file)).collect::<Result<Vec<String>>>();
        let vectors = vectors.iter().map(|(column, files)| Ok((column.clone(), all(files)?)));
        Ok(Self { tables: all(tables)?, vectors: vectors.collect::<Result<_>>()? })
    }
}

impl InitOptions {
    /// All that can be said before the table is read.
    fn check(&self) -> Result<()> {
        let refuse = |option: &str, value: String, expected: &str| Err(FairdpError::invalid(option, value, expected));
        match (self.epsilon, self.delta, self.test_fraction) {
            (Some(epsilon), ..) if !(epsilon.is_finite() && epsilon > 0.0) => {
                return refuse("--epsilon", epsilon.to_string(), "a finite number above 0");
            }
            (_, Some(delta), _) if !(LEAST_DELTA..1.0).contains(&delta) => {
                return refuse("--delta", delta.to_string(), &format!("a number from {LEAST_DELTA:e} to below 1"));
            }
            (.., Some(fraction)) if !(0.0..=0.9).contains(&fraction) => {
                return refuse("--test-fraction", fraction.to_string(), "0 to 0.9");
            }
            _ => {}
        }
        if self.max_records_per_unit == Some(0) {
            return refuse("--max-records-per-unit", "0".into(), "at least 1");
        }
        if self.unit.as_ref() == Some(&self.label) {
            return refuse("--unit", self.label.clone(), "another column than the label");
        }
        if let Some(weight) =
            self.weight.as_ref().filter(|weight| **weight == self.label || Some(*weight) == self.unit.as_ref())
        {
            return refuse("--weight", weight.clone(), "another column than the label and the unit");
        }
        for (place, group) in self.groups.iter().enumerate() {
            if *group == self.label || self.groups[..place].contains(group) {
                return refuse("--group", group.clone(), "a column that is neither the label nor another group");
            }
        }
        let kind = self.model.as_deref().map_or(Ok(ModelKind::Auto), |kind| {
            ModelKind::deserialize(StrDeserializer::<serde::de::value::Error>::new(kind))
                .map_err(|_| FairdpError::invalid("--model", kind, "auto, additive, mlp or network"))
        })?;
        let model = ModelEntry { kind, ..ModelEntry::default() };
        let records = self.max_records_per_unit.unwrap_or(1);
        let name = self.method.as_deref().unwrap_or("auto");
        let rates = vec![GROUP_RATE; self.groups.len()];
        let sampling = if takes_limits_of_rates(name) {
            let [least, largest] = LIMITS_OF_RATES;
            Some(SamplingEntry::Loss { least, largest })
        } else {
            takes_group_rates(name).then_some(SamplingEntry::Group { rates })
        };
        let method = MethodChoice { name: self.method.clone(), sampling, ..MethodChoice::default() };
        // Columns are not read yet, and no name is refused for a vector or for an image.
        let facts = TableFacts {
            n_groups: self.groups.len(),
            is_number: false,
            has_vectors: false,
            image: Some(ImageShape { height: 28, width: 28, channels: 1 }),
            records_per_unit: records,
        };
        Recipe::new(&model, &method, facts).map(drop).map_err(|error| {
            let reason = error.message;
            let reason = reason.strip_prefix(&format!("method.name = \"{name}\": ")).unwrap_or(&reason);
            FairdpError::invalid("--method", name, format!("a method that fits: {reason}"))
        })
    }
}

/// With which a step draws the records of any group, where groups have rates of their own.
const GROUP_RATE: f64 = 0.5;

/// Limits of rates that follow losses, around the same.
const LIMITS_OF_RATES: [f64; 2] = [0.25, 1.0];

const MARK: &str = "from = \"data\"  # read from the records: check it, and add public = true";

/// The line of the decision; some methods have one of their own.
fn decision(method: Option<&str>) -> &'static str {
    match method.and_then(decision_of_method) {
        Some(_) => "decision = \"balanced\"  # as the method has it\n",
        None => "decision = \"compromise\"  # or \"accuracy\", \"balanced\"\n",
    }
}

/// A configuration for a table, as text.
///
/// # Errors
/// [`FairdpError::Table`] if the table cannot be read; [`FairdpError::InvalidParameter`] for
/// options out of range or that contradict each other, before the table is read, for columns that
/// it does not have, and for a label that is no category.
pub fn init(tables: &[String], options: &InitOptions) -> Result<String> {
    options.check()?;
    let (files, guess, encoding_line) = guess(tables, options)?;
    if guess.rows == 0 {
        let expected =
            guess.first_broken.map_or("a table with rows".into(), |first| format!("rows that can be read: {first}"));
        return Err(FairdpError::invalid("the table", tables.join(" "), expected));
    }
    let find = |name: &str, option: &str| {
        guess.columns.iter().find(|column| column.name == name).ok_or_else(|| {
            let known: Vec<&str> = guess.columns.iter().map(|column| column.name.as_str()).collect();
            let header: Vec<String> = known.iter().map(|&column| column.to_owned()).collect();
            let cause = if guess.names_like_values().is_empty() {
                delimiter_question(&header)
            } else {
                "; the first line looks like a record, is the header missing?".to_owned()
            };
            let meant = question(name, known.iter().copied());
            FairdpError::invalid(option, name, format!("a column of the table: {}{cause}{meant}", known.join(", ")))
        })
    };
    let mut text = String::from(
        "# Declares a table for `fairdp fit`. Entries with `from = \"data\"` were read from the records and are covered by no ε\n\
         # until you declare them: check that each is known without the records, then add `public = true`. For numbers\n\
         # `bounds = \"private\"` in place of low, high and bins pays for the bounds instead.\nversion = 1\n",
    );
    let _ = writeln!(
        text,
        "accept_uncovered = {}  # true: train all the same; the statement then names them first",
        options.accept_uncovered
    );
    let _ = writeln!(text, "group_as_input = {}  # whether columns of groups may be inputs", options.group_as_input);
    let label = find(&options.label, "--label")?;
    let range = number_range(label, options.positive.as_deref());
    text.push_str(modes(range.is_some()));

    let named = match &options.named {
        Some(named) => named.clone(),
        None => NamedFiles::absolute(tables, &options.vectors)?,
    };
    table_entry(&mut text, &named, options);
    text.push_str(&encoding_line);
    text.push_str("bad_rows = \"refuse\"  # or \"drop\": rows that do not fit are blanked and counted, in private\n");
    remarks_on_rows(&mut text, &guess);

    label_entry(&mut text, label, range, options.positive.as_deref()).map_err(|error| with_left_out(error, &guess))?;

    if let Some(delta) = options.delta.filter(|delta| *delta >= 1.0 / guess.rows as f64) {
        let expected = format!("below one over the number of records, {:.1e}", 1.0 / guess.rows as f64);
        return Err(FairdpError::invalid("--delta", format!("{delta:e}"), expected));
    }
    let epsilon = options.epsilon.unwrap_or(1.0);
    let delta = options.delta.unwrap_or_else(|| default_delta(guess.rows));
    let _ =
        writeln!(text, "\n[privacy]\nepsilon = {epsilon}\ndelta = {delta:e}  # below one over the number of records");
    let fraction = options.test_fraction.unwrap_or(0.2);
    let _ = writeln!(text, "\n[test]\nfraction = {fraction}  # of the records; or files = [\"…\"]");
    if let Some(unit) = &options.unit {
        find(unit, "--unit")?;
        let most = options.max_records_per_unit.unwrap_or(1);
        let _ = writeln!(
            text,
            "\n[unit]\ncolumn = {}\nmax_records = {most}  # records of one unit that are used",
            quoted(unit)
        );
    }
    if let Some(weight) = &options.weight {
        weight_entry(&mut text, find(weight, "--weight")?)?;
    }
    let is_image = |column: &ColumnGuess| column.kind == GuessedKind::Image;
    if options.model.as_deref() == Some("network") && !guess.columns.iter().any(is_image) {
        return Err(FairdpError::invalid("--model", "network", "another model: the table has no column of images"));
    }
    let model = quoted(options.model.as_deref().unwrap_or("auto"));
    let _ = writeln!(
        text,
        "\n[model]\nkind = {model}  # \"additive\": one curve per number, one value per category; \"mlp\"; \"network\": on pixels"
    );
    if range.is_none() {
        text.push_str(decision(options.method.as_deref()));
    }
    let method = quoted(options.method.as_deref().unwrap_or("auto"));
    let _ = writeln!(text, "\n[method]\nname = {method}  # or a name from `fairdp methods`");
    let mut groups = String::new();
    for name in &options.groups {
        group(&mut groups, find(name, "--group")?)?;
    }
    match options.method.as_deref() {
        Some(name) if takes_limits_of_rates(name) => limits_of_rates(&mut text),
        Some(name) if takes_group_rates(name) => rates(&mut text, &groups)?,
        _ => {}
    }
    text.push_str(&groups);
    let most = BinsOf::enough(epsilon);
    let n_records = match &options.unit {
        Some(unit) => n_units(&files, find(unit, "--unit")?, most)?,
        None => guess.rows,
    };
    inputs(&mut text, &guess, options, BinsOf::of(n_records, epsilon, range.is_some()));
    Ok(text)
}

/// The limits of rates that follow losses.
fn limits_of_rates(text: &mut String) {
    let [least, largest] = LIMITS_OF_RATES;
    let _ = writeln!(
        text,
        "# Limits of the rate of a group, which follows its noisy loss: the larger the rate, the smaller its threshold.\n\
         sampling = {{ by = \"loss\", least = {least:?}, largest = {largest:?} }}"
    );
}

/// The rates of these groups: alike, until somebody who knows what is public of them says otherwise.
fn rates(text: &mut String, groups: &str) -> Result<()> {
    #[derive(Deserialize)]
    struct Groups {
        group: Vec<GroupEntry>,
    }
    let internal = |error: toml::de::Error| FairdpError::Internal(format!("groups that cannot be read: {error}"));
    let entries: Groups = toml::from_str(groups).map_err(internal)?;
    let n_groups = entries.group.iter().map(GroupEntry::n_groups).fold(1, usize::saturating_mul);
    let _ = writeln!(
        text,
        "# A public rate for each group: of its values, then (other), then missing; of several columns the last one's change\n\
         # first. `fairdp fit --plan` names them. Raise that of a group which is to be seen more often at the same ε.\n\
         sampling = {{ by = \"group\", rates = {:?} }}",
        vec![GROUP_RATE; n_groups]
    );
    Ok(())
}

/// `[table]`: its files, and how they are written.
fn table_entry(text: &mut String, named: &NamedFiles, options: &InitOptions) {
    let _ = writeln!(text, "\n[table]\nfiles = {}", list(&named.tables));
    for (column, files) in &named.vectors {
        let _ = writeln!(text, "vectors.{} = {}", quoted(column), list(files));
    }
    let _ = writeln!(
        text,
        "missing = {}  # texts that stand for a missing value",
        list(&MISSING_MARKERS.map(str::to_owned))
    );
    if let Some(delimiter) = options.delimiter {
        let _ = writeln!(text, "delimiter = {}", quoted(&delimiter.to_string()));
    }
    if let Some(quote) = &options.quote {
        let _ = writeln!(text, "quote = {}", quoted(quote));
    }
}

/// A refusal of the label, with the rows that were left out: they may be its cause.
fn with_left_out(error: FairdpError, guess: &Guess) -> FairdpError {
    match error {
        FairdpError::InvalidParameter { parameter, value, expected } if guess.broken > 0 => {
            let first = guess.first_broken.as_deref().unwrap_or_default();
            let expected =
                format!("{expected}; rows that cannot be read and are left out: {}, the first: {first}", guess.broken);
            FairdpError::InvalidParameter { parameter, value, expected }
        }
        other => other,
    }
}

/// How many units a table has; `most` if there are more.
fn n_units(files: &TableFiles, unit: &ColumnGuess, most: u64) -> Result<u64> {
    if let Some(distinct) = unit.distinct {
        return Ok(distinct as u64);
    }
    let mut reader = files.open()?;
    let column = reader.columns().iter().position(|name| *name == unit.name).unwrap_or_default();
    let (mut row, mut units) = (TableRow::default(), HashSet::new());
    while (units.len() as u64) < most {
        match reader.read(&mut row) {
            Ok(true) => {
                if !units.contains(row.field(column)) {
                    units.insert(row.field(column).to_owned());
                }
            }
            Ok(false) => break,
            Err(error) if error.is_of_one_row() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(units.len() as u64)
}

/// The line of modes of fairness, which are for classes.
fn modes(is_number: bool) -> &'static str {
    if is_number {
        "fairness = \"none\"  # or \"mean-error\": the released mean error of each group is taken off its predictions\n"
    } else {
        "fairness = \"none\"  # or \"worst-group\", \"equalized-odds\", \"equal-opportunity\", \"demographic-parity\"\n"
    }
}

fn weight_entry(text: &mut String, found: &ColumnGuess) -> Result<()> {
    let expected = "a column of numbers of at least 0";
    let range = found.range.filter(|(low, high)| *low >= 0.0 && *high > 0.0);
    let (_, high) = range.ok_or_else(|| FairdpError::invalid("--weight", &found.name, expected))?;
    let (weight, high) = (quoted(&found.name), number(high));
    let _ = writeln!(text, "\n[weight]\ncolumn = {weight}\nhigh = {high}  # larger weights are set to it\n{MARK}");
    Ok(())
}

/// Reads the table, and returns the line of its encoding: the one that is given; or, where a text is
/// neither UTF-8 nor UTF-16, that of Windows, which reads every Latin-1 text.
fn guess(tables: &[String], options: &InitOptions) -> Result<(TableFiles, Guess, String)> {
    let marks = TextMarks { delimiter: options.delimiter, quote: options.quote.clone() };
    let mut files = with_vectors(with_options(&marks, TableFiles::new(tables)?)?, &options.vectors)?;
    if let Some(progress) = &options.reading {
        files = files.watched(Arc::clone(progress));
    }
    let read = |files: &TableFiles| files.open().and_then(|mut reader| Guess::of(&mut reader));
    if let Some(label) = &options.encoding {
        let line = format!("encoding = {}\n", quoted(label));
        let files = files.with_encoding(encoding(label)?);
        let found = read(&files)?;
        return Ok((files, found, line));
    }
    let found = read(&files);
    let is_other = match &found {
        Ok(guess) => guess.not_utf8 > 0,
        Err(error) => matches!(error, TableError::NotUtf8 { .. }),
    };
    let windows = TextEncoding::of("windows-1252").filter(|_| is_other);
    let again = windows.and_then(|encoding| {
        let files = files.clone().with_encoding(encoding);
        read(&files).ok().map(|guess| (files, guess))
    });
    match again.filter(|(_, guess)| guess.not_utf8 == 0) {
        Some((files, guess)) => {
            let line = "encoding = \"windows-1252\"  # or Latin-1, which it includes: the text is not UTF-8; check its letters\n";
            Ok((files, guess, line.to_owned()))
        }
        None => Ok((files, found?, String::new())),
    }
}

/// The entries of all columns that are inputs, or dropped.
fn inputs(text: &mut String, guess: &Guess, options: &InitOptions, bins: BinsOf) {
    let is_input = |name: &String| {
        let is_group = options.groups.contains(name) && !options.group_as_input;
        let is_other = [&options.unit, &options.weight].into_iter().flatten().any(|other| other == name);
        *name != options.label && !is_other && !is_group
    };
    // One of which a column is something else is none.
    let vectors = guess.vectors.iter().filter(|vector| {
        let mut names = vector.columns.iter().map(|column| &guess.columns[*column].name);
        names.all(|name| is_input(name) && !options.groups.contains(name))
    });
    let vectors: Vec<_> = vectors.collect();
    for (place, found) in guess.columns.iter().enumerate().filter(|(_, found)| is_input(&found.name)) {
        match vectors.iter().find(|vector| vector.columns.contains(&place)) {
            Some(found) if found.columns[0] == place => vector(text, found),
            Some(_) => {}
            None => column(text, found, bins),
        }
    }
}

/// The δ that stands where none is given: a power of ten, at most 1e-5, below half of one over the
/// number of records.
pub fn default_delta(rows: u64) -> f64 {
    // A quotient is the number that is printed; tenths of tenths are not.
    let mut inverse = 1e5;
    while 1.0 / inverse > 0.5 / rows.max(1) as f64 {
        inverse *= 10.0;
    }
    1.0 / inverse
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_huge_numbers_are_read_back() {
        for (low, high) in [("4", "7e37"), ("0", "99999999999999999999")] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("t.csv");
            let mut rows = vec!["g,a,y".to_owned()];
            rows.extend((0..40).map(|i| format!("{},x{},{}", [low, high, "5", "6"][i % 4], i % 3, i % 2)));
            rows.extend((0..30).map(|i| format!("{}.5,x1,1", i + 7)));
            std::fs::write(&path, rows.join("\n") + "\n").unwrap();
            let options = InitOptions { label: "y".into(), groups: vec!["g".into()], ..InitOptions::default() };
            let text = init(&[path.to_str().unwrap().to_owned()], &options).unwrap();
            assert!(text.contains("edges = ["), "{text}");
            crate::config::Config::from_toml(&text, std::path::Path::new("fairdp.toml")).unwrap();
        }
    }

    #[test]
    fn what_cannot_be_fitted_is_said_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        let mut rows = vec!["y,kind,person".to_owned()];
        rows.extend((0..300).map(|i| format!("{},{},p{i}", ["a", "b", ""][i % 3], i % 3)));
        std::fs::write(&path, rows.join("\n") + "\n").unwrap();
        let propose = |options: InitOptions| init(&[path.to_str().unwrap().to_owned()], &options);
        let of = |label: &str| InitOptions { label: label.into(), ..InitOptions::default() };
        assert!(propose(of("y")).unwrap().contains("\n# 100 rows have no label"));
        for (options, expected) in [
            (InitOptions { delta: Some(0.01), ..of("y") }, "--delta = 1e-2: expected below one over"),
            (InitOptions { positive: Some("1".into()), ..of("kind") }, "--positive = 1 (of 3 classes)"),
            (InitOptions { groups: vec!["person".into()], ..of("y") }, "--group = person (300 values)"),
        ] {
            let message = propose(options).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn deltas_are_below_one_over_n() {
        assert_eq!((default_delta(100), default_delta(45_222)), (1e-5, 1e-5));
        assert_eq!((default_delta(60_000).to_string(), default_delta(10_000_000)), ("0.000001".into(), 1e-8));
    }
}
