//! Reading and checking of configurations.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dp_clipping::PresetParams;
use dp_linear::{Goal, Objective};
use dp_table::declaration::{Declared, ENCODINGS, EntryError, Origin};
use dp_table::{Column, Csv, Encoding, Schema, TableError, TableFiles, TableFormat, TextEncoding, Weight};
use dp_train::ImageShape;
use fair_decisions::{CumulativeCounts, Mode};

use super::fairness::MEAN_ERROR;
use super::tuning::of_candidate;
use super::{
    CONFIG_VERSION, CardEntry, ColumnEntry, ColumnKind, Config, Decision, GroupEntry, MethodChoice, ModelKind,
    SamplingEntry, TuningEntry, TuningGoal, UnitEntry, UnitRows, UnitTarget,
};
use crate::bounds;
use crate::error::{FairdpError, Result};
use crate::input;
use crate::recipe::{Method, Recipe, TableFacts};
use crate::streams::{self, is_stream};

/// Groups, of all intersections: a row's is stored in two bytes.
const MOST_GROUPS: usize = 65_534;
/// Classes: one output of the model each.
const MOST_CLASSES: usize = 2_048;
/// Groups whose scores are released.
const MOST_SCORED: usize = 256;
/// Of more than two classes, each has counts at every threshold of its own: no more than these in all.
const MOST_BLOCKS: usize = 2_048;
/// Counts by group, class and answer.
const MOST_COUNTS: usize = 1 << 22;

/// Groups that a refusal names.
const MOST_NAMED: usize = 12;

/// Letters of the name of a scope.
const LONGEST_SCOPE: usize = 100;

/// A table with columns of vectors beside it.
pub(crate) fn with_vectors(
    files: TableFiles,
    vectors: &BTreeMap<String, Vec<String>>,
) -> Result<TableFiles, TableError> {
    vectors.iter().try_fold(files, |files, (column, paths)| files.with_vectors(column, paths))
}

impl Config {
    /// Reads a configuration.
    ///
    /// # Errors
    /// [`FairdpError::Io`]; [`FairdpError::Config`] with everything that is unknown, missing or out of
    /// range, and where it is.
    pub fn read(path: &Path) -> Result<Self> {
        Self::of_file(&Self::text(path)?, path)
    }

    /// The text of a configuration: of a file, or of a stream.
    pub(crate) fn text(path: &Path) -> Result<String> {
        if is_stream(path) { streams::text(path) } else { input::text(path) }
    }

    /// The configuration that a file has with this text.
    pub(crate) fn of_file(text: &str, path: &Path) -> Result<Self> {
        let mut config = Self::from_toml(text, path)?;
        let is_here = is_stream(path);
        let folder = path.parent().filter(|_| !is_here).unwrap_or(Path::new(""));
        let absolute = |file: &mut String| {
            if Path::new(&*file).is_relative() && file != "-" {
                *file = folder.join(&*file).to_string_lossy().into_owned();
            }
        };
        config.table.files.iter_mut().for_each(absolute);
        config.test.files.iter_mut().flatten().for_each(absolute);
        config.table.vectors.values_mut().flatten().for_each(absolute);
        config.test.vectors.values_mut().flatten().for_each(absolute);
        Ok(config)
    }

    /// The scope of its records in a ledger, if one is declared.
    pub(crate) fn scope(&self) -> Option<&str> {
        self.records.as_ref().map(|records| &*records.scope)
    }

    /// Reads a configuration from text; `path` is for messages.
    ///
    /// # Errors
    /// [`FairdpError::Config`].
    pub fn from_toml(text: &str, path: &Path) -> Result<Self> {
        dp_table::declaration::read(text).map_err(|mistakes| FairdpError::Config { path: path.into(), mistakes })
    }

    /// What it declares of its table.
    pub(super) fn declaration(&self) -> Declared<'_> {
        Declared {
            table: &self.table,
            label: &self.label,
            groups: &self.group,
            columns: &self.column,
            group_as_input: self.group_as_input,
            pixels: self.model.kind == ModelKind::Network,
            unit: self.unit.as_ref().map(|unit| &*unit.column),
            weight: self.weight.as_ref().map(|weight| Weight { column: weight.column.clone(), high: weight.high }),
        }
    }

    pub(super) fn all_mistakes(&self, is_whole: bool) -> Vec<EntryError> {
        let mut found = Vec::new();
        let mut note = |checked: Result<(), EntryError>| found.extend(checked.err());
        note(self.check_version());
        self.privacy.check().into_iter().for_each(|error| note(Err(error)));
        note(self.check_scope());
        note(self.check_test());
        note(self.check_unit());
        note(self.check_vectors());
        note(self.check_card());
        note(self.table.csv(Csv::default()).map(drop));
        note(self.label.label().map(drop));
        note(self.check_counts());
        note(self.fairness.check(&self.label.classes));
        note(if self.label.is_number() { self.check_number() } else { Ok(()) });
        note(self.check_mean_error());
        note(self.check_mode());
        match self.recipe() {
            Ok(recipe) => note(self.check_weight("weight", &recipe)),
            // What is missing may stand in an entry that could not be read.
            Err(error) if !is_whole && error.place == "model.kind" => {}
            Err(error) => note(Err(error)),
        }
        note(self.check_tuning());
        note(self.check_released());
        self.declaration().entry_mistakes().into_iter().for_each(|error| note(Err(error)));
        if is_whole && found.is_empty() {
            found = self.declaration().schema_mistakes();
        }
        found
    }

    fn check_version(&self) -> Result<(), EntryError> {
        if self.version == CONFIG_VERSION {
            return Ok(());
        }
        Err(EntryError::value("version", self.version, CONFIG_VERSION))
    }

    fn check_scope(&self) -> Result<(), EntryError> {
        let Some(scope) = self.scope() else { return Ok(()) };
        let is_name = !scope.is_empty() && scope.trim() == scope && !scope.chars().any(char::is_control);
        if is_name && scope.chars().count() <= LONGEST_SCOPE {
            return Ok(());
        }
        let expected = format!("a name of 1 to {LONGEST_SCOPE} letters, without blanks around it");
        Err(EntryError::value("records.scope", format!("{scope:?}"), expected))
    }

    fn check_test(&self) -> Result<(), EntryError> {
        let Some(fraction) = self.test.fraction else { return Ok(()) };
        if !(0.0..=0.9).contains(&fraction) {
            return Err(EntryError::value("test.fraction", fraction, "0 to 0.9"));
        }
        if fraction > 0.0 && self.test.files.is_some() {
            let message = "test.fraction and test.files: expected one of the two";
            return Err(EntryError::new("test.files", message));
        }
        Ok(())
    }

    fn check_mode(&self) -> Result<(), EntryError> {
        if self.fairness.mode == Mode::None || self.label.is_number() || (!self.group.is_empty() && self.has_scores()) {
            return Ok(());
        }
        // Of more than two classes, the positive one is asked for already.
        if self.fairness.positive(&self.label.classes).is_none() {
            return Ok(());
        }
        let message = format!(
            "fairness: thresholds by group need a [[group]], classes and at most {} groups with {} classes",
            self.most_scored(),
            self.label.classes.len()
        );
        Err(EntryError::new("fairness", message))
    }

    fn check_tuning(&self) -> Result<(), EntryError> {
        let Some(tuning) = &self.tuning else { return Ok(()) };
        tuning.check()?;
        if tuning.goal == TuningGoal::WorstGroup && self.group.is_empty() {
            let message = "tuning.goal = \"worst-group\": expected with a [[group]], whose accuracies it compares";
            return Err(EntryError::new("tuning.goal", message));
        }
        if tuning.has_modes() && !(self.has_scores() && self.n_groups() > 1) {
            let message = "tuning.candidate: fairness is expected with two groups or more, and of more than two classes with \
                           fairness.class";
            return Err(EntryError::new("tuning.candidate", message));
        }
        if tuning.has_modes() && self.fairness.mode != Mode::None {
            let message = "fairness.mode: expected \"none\" where candidates of [tuning] have modes";
            return Err(EntryError::new("fairness", message));
        }
        let model = &self.model;
        let is_plain =
            model.kind == ModelKind::Auto && model.hidden.is_none() && model.objective == Objective::Population;
        if !is_plain || !self.method.is_auto() {
            let message = "tuning: its candidates say what [model] and [method] would; leave these `auto`";
            return Err(EntryError::new("tuning", message));
        }
        for (index, candidate) in self.candidates(tuning)?.iter().enumerate() {
            self.check_weight(&format!("tuning.candidate.{index}"), candidate)?;
        }
        Ok(())
    }

    /// Mean errors are those of a number in a test, by group.
    fn check_mean_error(&self) -> Result<(), EntryError> {
        if !self.fairness.takes_off_mean_error {
            return Ok(());
        }
        let has_test = self.test.files.is_some() || self.test.fraction.unwrap_or(0.0) > 0.0;
        let expected = match self.label.is_number() {
            false => "with a label that is a number",
            true if self.group.is_empty() => "with a [[group]], whose mean errors it takes off",
            true if !has_test => "with test records (`[test]`), whose errors tell the mean error",
            true => return Ok(()),
        };
        Err(EntryError::new("fairness", format!("fairness = \"{MEAN_ERROR}\": expected {expected}")))
    }

    /// What classes alone have is refused by name.
    fn check_number(&self) -> Result<(), EntryError> {
        let refuse = |place: &str, message: &str| Err(EntryError::new(place, message));
        if self.fairness.mode != Mode::None {
            let message = format!(
                "fairness = \"{}\": expected \"none\" or \"{MEAN_ERROR}\" where the label is a number",
                self.fairness.mode.name()
            );
            return refuse("fairness", &message);
        }
        if self.tuning.is_some() {
            return refuse(
                "tuning",
                "tuning: expected none where the label is a number: its trials compare probabilities",
            );
        }
        if self.model.decision.is_some() {
            return refuse("model.decision", "model.decision: expected none where the label is a number");
        }
        let target = self.unit.as_ref().and_then(|unit| unit.target);
        if target == Some(UnitTarget::EachClass) {
            let message = "unit.target: expected \"last\", \"maximum\" or \"mean\" where the label is a number";
            return refuse("unit.target", message);
        }
        Ok(())
    }

    /// Keys of first rows and of means are not mixed.
    fn check_unit(&self) -> Result<(), EntryError> {
        let Some(unit) = &self.unit else { return Ok(()) };
        match (unit.rows, unit.max_records, unit.target) {
            (UnitRows::First, Some(0), _) => Err(EntryError::value("unit.max_records", 0, "at least 1")),
            (UnitRows::First, None, _) => {
                let message = "unit.max_records: expected the most rows of a unit that are used, or rows = \"mean\"";
                Err(EntryError::new("unit", message))
            }
            (UnitRows::First, _, Some(_)) => {
                Err(EntryError::new("unit.target", "unit.target: only with rows = \"mean\""))
            }
            (UnitRows::Mean, _, Some(UnitTarget::Mean)) if !self.label.is_number() => {
                let message = "unit.target = \"mean\": expected with a label that is a number";
                Err(EntryError::new("unit.target", message))
            }
            (UnitRows::Mean, Some(_), _) => {
                let message = "unit.max_records: not with rows = \"mean\", which uses all rows of a unit";
                Err(EntryError::new("unit.max_records", message))
            }
            _ => Ok(()),
        }
    }

    /// A table of its own for the test has the columns of the other one.
    fn check_vectors(&self) -> Result<(), EntryError> {
        let (table, test) = (&self.table.vectors, &self.test.vectors);
        let is_needed = self.test.files.is_some();
        if is_needed && table.keys().ne(test.keys()) || !is_needed && !test.is_empty() {
            let message = "test.vectors: expected with test.files, and then the columns of table.vectors";
            return Err(EntryError::new("test.vectors", message));
        }
        Ok(())
    }

    fn check_card(&self) -> Result<(), EntryError> {
        let Some(CardEntry { encoder, encoder_sha256: Some(digest), .. }) = &self.card else { return Ok(()) };
        let is_digest = digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_digest {
            let expected = "a sha256 of 64 hexadecimal digits, as sha256sum prints it";
            return Err(EntryError::value("card.encoder_sha256", digest, expected));
        }
        if encoder.is_none() {
            let message = "card.encoder_sha256: expected with card.encoder, which says what it is the digest of";
            return Err(EntryError::new("card.encoder_sha256", message));
        }
        Ok(())
    }

    /// Clipped gradients have no weights.
    fn check_weight(&self, place: &str, recipe: &Recipe) -> Result<(), EntryError> {
        if matches!(recipe.method, Method::FullDescent(_) | Method::Conditioned { .. }) {
            return Ok(());
        }
        let of_units = self.unit.as_ref().and_then(|unit| unit.target) == Some(UnitTarget::EachClass);
        let entry = match (&self.weight, of_units) {
            (Some(_), _) => "weight",
            (None, true) => "unit.target = \"each-class\"",
            (None, false) => return Ok(()),
        };
        let message = format!(
            "{entry}: expected with the additive model and `method.name = \"auto\"` alone, whose records have weights"
        );
        Err(EntryError::new(place, message))
    }

    /// Released edges are of rows, and not of units.
    fn check_released(&self) -> Result<(), EntryError> {
        let index = self.column.iter().position(ColumnEntry::has_released_edges).filter(|_| self.unit.is_some());
        let Some(index) = index else { return Ok(()) };
        let key = if self.column[index].bins_are_released() { "bins" } else { "bounds" };
        let message = format!("{key} = \"private\": not with a [unit]; declare the {key}");
        Err(EntryError::new(format!("column.{index}.{key}"), message))
    }

    fn facts(&self) -> TableFacts {
        TableFacts {
            n_groups: if self.group.is_empty() { 0 } else { self.n_groups() },
            is_number: self.label.is_number(),
            has_vectors: self.column.iter().any(|column| matches!(column.kind, ColumnKind::Vector | ColumnKind::Image)),
            image: self.image(),
            records_per_unit: self.records_per_unit(),
        }
    }

    /// The shape of the images of which a network has the pixels, if they are the only input.
    fn image(&self) -> Option<ImageShape> {
        let mut inputs = self.column.iter().filter(|column| column.kind != ColumnKind::Drop);
        match (inputs.next()?.column(None).ok()?, inputs.next()) {
            (Column::Image { height, width, channels, missing: false, .. }, None) => {
                Some(ImageShape { height, width, channels })
            }
            _ => None,
        }
    }

    /// How probabilities become decisions: a method that makes classes count equally says so itself.
    pub(crate) fn decision(&self, recipe: &Recipe) -> Decision {
        recipe.decision().or(self.model.decision).unwrap_or_default()
    }

    /// The model and the method of training.
    pub(crate) fn recipe(&self) -> Result<Recipe, EntryError> {
        let recipe = Recipe::new(&self.model, &self.method, self.facts())?;
        self.check_rates()?;
        Ok(recipe)
    }

    /// A rate for each group.
    fn check_rates(&self) -> Result<(), EntryError> {
        let (n_groups, Some(SamplingEntry::Group { rates })) = (self.n_groups(), &self.method.sampling) else {
            return Ok(());
        };
        if rates.len() == n_groups {
            return Ok(());
        }
        // Of a configuration that is wrong elsewhere, the names are not known.
        let encoding = bounds::widest(self).ok();
        let names = encoding.iter().flat_map(Encoding::groups).map(ToString::to_string);
        let some: Vec<String> = names.take(MOST_NAMED).collect();
        let more = if n_groups > some.len() && !some.is_empty() { ", …" } else { "" };
        let order = if some.is_empty() { String::new() } else { format!(", in this order: {}{more}", some.join(", ")) };
        let given = rates.len();
        let message =
            format!("method.sampling.rates has {given} values: expected one for each of {n_groups} groups{order}");
        Err(EntryError::new("method.sampling", message))
    }

    /// The recipes of a search.
    pub(crate) fn candidates(&self, tuning: &TuningEntry) -> Result<Vec<Recipe>, EntryError> {
        let candidates = tuning.candidate.iter().enumerate();
        candidates
            .map(|(index, entry)| {
                let recipe = Recipe::new(&entry.model(), &entry.method, self.facts());
                let recipe = recipe.map_err(|error| of_candidate(&error, index))?;
                if matches!(recipe.method, Method::Conditioned { goal: Goal::EqualRecall, .. }) {
                    let message = "method.name = \"conditioned-fair\": expected outside of [tuning]: its counts of right answers \
                                   come after a training, and no trial has a share for them";
                    return Err(of_candidate(&EntryError::new("method.name", message), index));
                }
                if entry.method.sampling.is_some() {
                    let message = "method.sampling: expected outside of [tuning], whose trials draw all groups alike";
                    return Err(of_candidate(&EntryError::new("method.sampling", message), index));
                }
                Ok(recipe)
            })
            .collect()
    }

    /// Settings of the model and of its training that a person made, one item each.
    pub(crate) fn user_settings(&self) -> Vec<String> {
        let MethodChoice { name, sampling_rate, sampling, steps, learning_rate, settings } = &self.method;
        let mut given = Vec::new();
        match self.model.kind {
            ModelKind::Mlp => given.push("model mlp".to_owned()),
            ModelKind::Network => given.push(format!("network {}", self.model.network.unwrap_or_default().name())),
            ModelKind::Auto | ModelKind::Additive => {}
        }
        if self.model.objective == Objective::EqualClasses {
            given.push("objective equal-classes".into());
        }
        given.extend(self.model.hidden.as_ref().map(|hidden| format!("hidden {hidden:?}")));
        given.extend(name.as_ref().filter(|name| *name != "auto").map(|name| format!("method {name}")));
        given.extend(sampling_rate.map(|rate| format!("sampling_rate {rate}")));
        given.extend(sampling.as_ref().map(SamplingEntry::in_words));
        given.extend(steps.map(|steps| format!("steps {steps}")));
        given.extend(learning_rate.map(|rate| format!("learning_rate {rate}")));
        let settings = settings.as_ref().map(|settings| serde_json::to_value(settings).unwrap_or_default());
        let default = serde_json::to_value(PresetParams::default()).unwrap_or_default();
        if let Some(serde_json::Value::Object(settings)) = settings {
            given.extend(
                settings
                    .iter()
                    .filter(|(key, value)| default[key.as_str()] != **value)
                    .map(|(key, value)| format!("{key} {value}")),
            );
        }
        given
    }

    /// The most that one unit adds to a sum over training records, in records: a mean is one, and
    /// records that share a unit's weight are one together.
    pub(crate) fn records_per_unit(&self) -> u64 {
        self.unit.as_ref().map_or(1, UnitEntry::most)
    }

    /// The most records of one unit that are counted, whatever their weight.
    pub(crate) fn counted_per_unit(&self) -> u64 {
        match self.unit.as_ref().and_then(|unit| unit.target) {
            Some(UnitTarget::EachClass) => self.label.classes.len() as u64,
            _ => self.records_per_unit(),
        }
    }

    /// The column whose values are the units, where these are not rows.
    pub(crate) fn unit_column(&self) -> Option<&str> {
        self.unit.as_ref().map(|unit| &*unit.column)
    }

    /// The number of groups: of all intersections, where several columns make them.
    pub(crate) fn n_groups(&self) -> usize {
        self.group.iter().map(GroupEntry::n_groups).fold(1, usize::saturating_mul)
    }

    /// Whether scores are released by group: where there is a positive class, and of no more groups than can be
    /// compared.
    pub(crate) fn has_scores(&self) -> bool {
        let is_scored = self.fairness.positive(&self.label.classes).is_some();
        is_scored && self.n_groups() <= self.most_scored()
    }

    /// The most groups whose scores are released.
    fn most_scored(&self) -> usize {
        match self.label.classes.len() {
            0..=2 => MOST_SCORED,
            n => (MOST_BLOCKS / CumulativeCounts::blocks_of_group(n)).min(MOST_SCORED),
        }
    }

    /// Answers are counted by group, class and answer: refuses more counts than a table has use
    /// for.
    fn check_counts(&self) -> Result<(), EntryError> {
        let n_classes = if self.label.is_number() { 2 } else { self.label.classes.len() };
        if !(2..=MOST_CLASSES).contains(&n_classes) {
            let message = format!("label.classes has {n_classes} values: expected 2 to {MOST_CLASSES}");
            return Err(EntryError::new("label.classes", message));
        }
        let (n_groups, most) = (self.n_groups(), (MOST_COUNTS / (n_classes * n_classes)).clamp(1, MOST_GROUPS));
        if n_groups <= most {
            return Ok(());
        }
        let columns: Vec<String> =
            self.group.iter().map(|group| format!("`{}` ({})", group.column, group.n_groups())).collect();
        let product = if n_groups == usize::MAX { "too many to count".into() } else { n_groups.to_string() };
        let with = if self.label.is_number() { String::new() } else { format!(" with {n_classes} classes") };
        let message = format!(
            "group: the intersections of {} are {product} groups: expected at most {most}{with}",
            columns.join(", ")
        );
        Err(EntryError::new("group.0", message))
    }

    /// Constants that were read from the records and are neither declared public nor paid for:
    /// one line each.
    pub(crate) fn uncovered(&self) -> Vec<String> {
        let mut entries = Vec::new();
        entries.extend(self.label.uncovered());
        if let Some(weight) = self.weight.as_ref().filter(|weight| Origin::is_open(weight.from, weight.public)) {
            entries.push(format!("weight `{}`: at most {}", weight.column, weight.high));
        }
        entries.extend(self.group.iter().filter_map(GroupEntry::uncovered));
        entries.extend(self.column.iter().filter_map(ColumnEntry::uncovered));
        entries
    }

    /// Columns with private bounds whose kind was read from the records, one line each: their
    /// bounds are covered, and the fact that they hold numbers is not.
    pub(crate) fn kinds_seen(&self) -> Vec<String> {
        let columns = self.column.iter().filter(|column| column.bounds.is_some() && column.is_read_from_records());
        let kind = |column: &ColumnEntry| if column.kind == ColumnKind::Date { "date" } else { "number" };
        columns.map(|column| format!("column `{}`: kind {}", column.name, kind(column))).collect()
    }

    /// The schema that the configuration declares; `released` gives the edges of columns whose
    /// bounds were paid for.
    ///
    /// # Errors
    /// [`FairdpError::Entry`] for keys that do not fit a column's kind, in a configuration that
    /// was not read.
    pub fn schema(&self, released: &dyn Fn(&str) -> Option<Vec<f64>>) -> Result<Schema> {
        Ok(self.declaration().schema(released)?)
    }

    /// The training table: the one in memory, or that of the files.
    pub(crate) fn training_files(&self) -> Result<TableFiles> {
        match &self.in_memory {
            Some(table) => Ok(self.watched(table.clone())),
            None => self.files(&self.table.files, &self.table.vectors),
        }
    }

    /// The files of a separate test table.
    ///
    /// # Errors
    /// As [`Self::training_files`].
    pub(crate) fn test_files(&self) -> Result<Option<TableFiles>> {
        self.test.files.as_ref().map(|files| self.files(files, &self.test.vectors)).transpose()
    }

    /// A table's files.
    ///
    /// # Errors
    /// [`FairdpError::Table`] for files that are not there or of no known format.
    fn files(&self, patterns: &[String], vectors: &BTreeMap<String, Vec<String>>) -> Result<TableFiles> {
        let files = TableFiles::new(patterns)?;
        let files = match *files.format() {
            TableFormat::Csv(csv) => files.with_csv(self.table.csv(csv)?),
            _ => files,
        };
        Ok(self.watched(with_vectors(files, vectors)?))
    }

    fn watched(&self, files: TableFiles) -> TableFiles {
        match &self.reading.0 {
            Some(progress) => files.watched(Arc::clone(progress)),
            None => files,
        }
    }
}

/// The encoding of a command's option.
///
/// # Errors
/// [`FairdpError::InvalidParameter`] for an unknown label.
pub(crate) fn encoding(label: &str) -> Result<TextEncoding> {
    TextEncoding::of(label).ok_or_else(|| FairdpError::invalid("--encoding", label, ENCODINGS))
}

/// The paths of a table made absolute.
pub(crate) fn absolute(path: &str) -> Result<String> {
    let path = Path::new(path);
    let absolute: PathBuf = std::path::absolute(path).map_err(FairdpError::io("find", path))?;
    Ok(absolute.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "version = 1\n[table]\nfiles = [\"t.csv\"]\n\
        [label]\ncolumn = \"y\"\nclasses = [\"0\", \"1\"]\n[privacy]\nepsilon = 1\ndelta = 1e-5\n\
        [[column]]\nname = \"x\"\nkind = \"number\"\nlow = 0\nhigh = 1\n";

    fn with_groups(columns: usize, values: usize) -> Result<Config> {
        let mut text = CONFIG.to_owned();
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
        assert!(message.contains("too many to count") && message.starts_with("fairdp.toml:15:"), "{message}");
    }

    #[test]
    fn refusals_name_the_line_of_the_key() {
        let refusal = |more: &str| {
            let text = format!("{CONFIG}{more}");
            let message = Config::from_toml(&text, Path::new("c.toml")).unwrap_err().to_string();
            let one = |message: &str| {
                let (place, message) = message.strip_prefix("c.toml:").unwrap().split_once(": ").unwrap();
                let (line, column) = place.split_once(':').unwrap();
                let line = text.lines().nth(line.parse::<usize>().unwrap() - 1).unwrap();
                format!("{} | {message}", &line[column.parse::<usize>().unwrap() - 1..])
            };
            message.lines().map(one).collect::<Vec<_>>().join("\n")
        };
        let another = "[[column]]\nname = \"z\"\nkind = \"number\"\n";
        let tuning = "[tuning]\nmean_trials = 4\n[[tuning.candidate]]\nmethod = { name = \"dpsgd\", steps = 3 }\n";
        let refusals = [
            format!("{another}low = 2\nhigh = 1\n"),
            format!("{another}low = 2\n"),
            format!("{another}high = 2\nbounds = \"private\"\n"),
            "values = [\"1\"]\n".into(),
            "[[column]]\nname = \"x\"\nkind = \"drop\"\n".into(),
            "[[column]]\nname = \"y\"\nkind = \"number\"\nlow = 0\nhigh = 1\n".into(),
            "[[group]]\ncolumn = \"x\"\nvalues = [\"a\"]\n".into(),
            "[[group]]\ncolumn = \"g\"\n".into(),
            tuning.into(),
            format!("{tuning}[[tuning.candidate]]\nhidden = [3]\n"),
            format!("{tuning}[[tuning.candidate]]\nmethod.name = \"dpsgd\"\nmethod.steps = 0\n"),
        ];
        insta::assert_snapshot!(refusals.map(|more| refusal(&more)).join("\n"));
    }
}
