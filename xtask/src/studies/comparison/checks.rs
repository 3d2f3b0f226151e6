//! What is wrong with a file of `cargo xtask compare`.

use dp_accounting::{Delta, Epsilon};
use dp_clipping::{Coupling, registry};
use dp_table::declaration::{Declaration, Declared, EntryError};
use dp_table::{BadRows, Csv};

use super::super::table;
use super::entries::{Batch, By, ComparisonFile, Methods, Numbers};

/// The version of the format that this program reads.
const VERSION: u32 = 1;
/// Letters of a name.
const LONGEST_NAME: usize = 60;
/// Points of a method's grid, and values of ε.
const MOST: usize = 1_000;
/// Names of reports that are no study's.
const TAKEN: [&str; 4] = ["all", "accounting", "toy", "index"];

impl Declaration for ComparisonFile {
    fn stand_in(key: &str) -> Option<&'static str> {
        Some(match key {
            "version" | "epochs" | "batch_size" | "learning_rate" | "epsilon" => "1",
            "delta" => "1e-6",
            "methods" => "\"all\"",
            "files" | "classes" => "[]",
            "privacy" => "{ epsilon = 1, delta = 1e-6 }",
            "training" => "{ epochs = 1, batch_size = 1, learning_rate = 1 }",
            "kind" => "\"drop\"",
            "by" => "\"accuracy\"",
            "column" | "name" | "file" | "inputs" | "labels" => "\"\"",
            _ => return None,
        })
    }

    fn mistakes(&self, is_whole: bool) -> Vec<EntryError> {
        let mut found = Vec::new();
        found.extend(self.of_head());
        found.extend(self.of_numbers());
        found.extend(self.of_methods());
        found.extend(self.of_records());
        if let Some(declared) = self.declared() {
            found.extend(declared.table.csv(Csv::default()).err());
            found.extend(declared.label.label().err());
            found.extend(declared.entry_mistakes());
            if is_whole && found.is_empty() {
                found = declared.schema_mistakes();
            }
        }
        found
    }
}

impl ComparisonFile {
    /// What it declares of a table.
    pub(crate) fn declared(&self) -> Option<Declared<'_>> {
        Some(Declared {
            table: self.table.as_ref()?,
            label: self.label.as_ref()?,
            groups: &self.group,
            columns: &self.column,
            group_as_input: self.group_as_input,
            pixels: false,
            unit: None,
            weight: None,
        })
    }

    /// Whether some method has several points.
    pub(crate) fn has_grid(&self) -> bool {
        let several = |numbers: &Option<Numbers>| numbers.as_ref().is_some_and(|numbers| numbers.as_slice().len() > 1);
        let of_reference = self.training.reference.as_ref().is_some_and(|entry| several(&entry.learning_rate));
        [&self.training.learning_rate, &self.training.clip_norm].iter().any(|numbers| numbers.as_slice().len() > 1)
            || of_reference
            || self.method.iter().any(|entry| several(&entry.learning_rate) || several(&entry.clip_norm))
    }

    fn of_head(&self) -> Vec<EntryError> {
        let mut found = Vec::new();
        if self.version != VERSION {
            found.push(EntryError::value("version", self.version, VERSION));
        }
        let name = &self.name;
        let is_name = !name.is_empty()
            && name.len() <= LONGEST_NAME
            && name.starts_with(|letter: char| letter.is_ascii_lowercase())
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
            && !name.contains("-grid");
        if !is_name {
            let expected = format!(
                "1 to {LONGEST_NAME} small letters, digits and hyphens, a letter first, without `-grid`: it names the report and its records"
            );
            found.push(EntryError::value("name", format!("{name:?}"), expected));
        } else if table::find(name).is_some() || TAKEN.contains(&name.as_str()) {
            found.push(EntryError::value(
                "name",
                format!("{name:?}"),
                "another name: `reproduce` has a study of this one",
            ));
        }
        if !(1..=1000).contains(&self.seeds) {
            found.push(EntryError::value("seeds", self.seeds, "1 to 1000"));
        }
        found
    }

    fn of_numbers(&self) -> Vec<EntryError> {
        let mut found = Vec::new();
        let mut all = |key: String, numbers: &Numbers, expected: &str, is_right: &dyn Fn(f64) -> bool| {
            let numbers = numbers.as_slice();
            if !(1..=MOST).contains(&numbers.len()) {
                found.push(EntryError::value(&key, format!("{numbers:?}"), format!("1 to {MOST} numbers")));
            }
            for (at, number) in numbers.iter().enumerate() {
                if !is_right(*number) {
                    found.push(EntryError::value(&key, number, expected));
                } else if numbers[..at].contains(number) {
                    found.push(EntryError::value(&key, number, "each number once"));
                }
            }
        };
        let positive = |number: f64| number.is_finite() && number > 0.0;
        let above = "a finite number above 0";
        let training = &self.training;
        all("privacy.epsilon".into(), &self.privacy.epsilon, above, &|number| {
            number > 0.0 && Epsilon::new(number).is_ok()
        });
        all("training.learning_rate".into(), &training.learning_rate, above, &positive);
        all("training.clip_norm".into(), &training.clip_norm, above, &positive);
        if let Some(rates) = training.reference.as_ref().and_then(|entry| entry.learning_rate.as_ref()) {
            all("training.reference.learning_rate".into(), rates, above, &positive);
        }
        for (index, entry) in self.method.iter().enumerate() {
            for (key, numbers) in [("learning_rate", &entry.learning_rate), ("clip_norm", &entry.clip_norm)] {
                if let Some(numbers) = numbers {
                    all(format!("method.{index}.{key}"), numbers, above, &positive);
                }
            }
        }
        if Delta::new(self.privacy.delta).is_err() || self.privacy.delta == 0.0 {
            found.push(EntryError::value("privacy.delta", self.privacy.delta, "a number above 0 and below 1"));
        }
        let reference = training.reference.as_ref();
        let epochs = [
            ("training.epochs", Some(training.epochs)),
            ("training.reference.epochs", reference.and_then(|entry| entry.epochs)),
        ];
        for (key, epochs) in epochs {
            if let Some(epochs) = epochs.filter(|epochs| !(1..=1_000_000).contains(epochs)) {
                found.push(EntryError::value(key, epochs, "1 to 1000000"));
            }
        }
        for (key, batch) in [
            ("training.batch_size", Some(training.batch_size)),
            ("training.reference.batch_size", reference.and_then(|entry| entry.batch_size)),
        ] {
            if batch == Some(Batch::Records(0)) {
                found.push(EntryError::value(key, 0, "at least 1, or \"full\""));
            }
        }
        if let Some(share) = training.validation {
            if training.early_stopping.is_none() {
                found.push(EntryError::new(
                    "training.validation",
                    "training.validation: expected with early_stopping alone",
                ));
            } else if !(share > 0.0 && share < 1.0) {
                found.push(EntryError::value("training.validation", share, "between 0 and 1, both excluded"));
            }
        }
        if !(training.l2.is_finite() && training.l2 >= 0.0) {
            found.push(EntryError::value("training.l2", training.l2, "a finite number of at least 0"));
        }
        if let Some(search) = &self.search {
            if !(search.held_out > 0.0 && search.held_out < 1.0) {
                found.push(EntryError::value("search.held_out", search.held_out, "between 0 and 1, both excluded"));
            }
            if !(1..=1000).contains(&search.seeds) {
                found.push(EntryError::value("search.seeds", search.seeds, "1 to 1000"));
            }
        } else if self.has_grid() {
            let message = "learning_rate or clip_norm has several values: expected one, or a table [search] that says by what points are \
                           chosen, such as by = \"worst-group\"";
            found.push(EntryError::new("training", message));
        }
        found
    }

    fn of_methods(&self) -> Vec<EntryError> {
        let mut found = Vec::new();
        found.extend(named(&self.methods).err());
        for (index, entry) in self.method.iter().enumerate() {
            let place = format!("method.{index}");
            match registry::find(&entry.name) {
                Err(_) => found.push(EntryError::new(format!("{place}.name"), unknown(&entry.name))),
                Ok(method) => {
                    let unread = entry.settings.as_ref().map(|settings| method.unread(settings)).unwrap_or_default();
                    if let [first, ..] = unread[..] {
                        let message = format!("method.settings.{first}: {} has no part that reads it", method.name);
                        found.push(EntryError::new(format!("{place}.settings.{first}"), message));
                    }
                    if self.method[..index].iter().any(|other| other.name == entry.name) {
                        let message = format!("method `{}`: expected one [[method]] for it", entry.name);
                        found.push(EntryError::new(format!("{place}.name"), message));
                    }
                }
            }
        }
        found
    }

    fn of_records(&self) -> Vec<EntryError> {
        let mut found = Vec::new();
        let mut refuse = |place: &str, message: &str| found.push(EntryError::new(place, format!("{place}: {message}")));
        let given = [
            ("table", self.table.is_some()),
            ("arrays", self.arrays.is_some()),
            ("published", self.published.is_some()),
        ];
        match given.iter().filter(|(_, is_given)| *is_given).collect::<Vec<_>>()[..] {
            [_] => {}
            [] => refuse("table", "expected the records: a table [table], [arrays] or [published]"),
            [_, (second, _), ..] => refuse(second, "expected one of [table], [arrays] and [published]"),
        }
        if self.table.is_none() {
            let of_table = [
                ("label", self.label.is_some()),
                ("group", !self.group.is_empty()),
                ("column", !self.column.is_empty()),
                ("pixels", self.pixels),
                ("test.files", self.test.files.is_some()),
            ];
            for (key, _) in of_table.iter().filter(|(_, is_given)| *is_given) {
                refuse(key, "expected with a [table] alone");
            }
        }
        if let Some(table) = &self.table {
            if self.label.is_none() {
                refuse("label", "is missing: expected the column to predict");
            }
            if table.bad_rows == BadRows::Drop {
                refuse(
                    "table.bad_rows",
                    "expected \"refuse\": the number of records is public, and must not depend on them",
                );
            }
            if self.label.as_ref().is_some_and(|label| label.is_number() || label.classes.len() < 2) {
                refuse("label", "expected two classes or more");
            }
            if let Some(index) = self.column.iter().position(dp_table::declaration::ColumnEntry::has_released_edges) {
                refuse(
                    &format!("column.{index}"),
                    "expected declared bounds and bins: releases before a training are fairdp's",
                );
            }
        }
        if self.group_by_class && !self.group.is_empty() {
            refuse("group_by_class", "expected without [[group]]");
        }
        if let Some(fraction) = self.test.fraction {
            if self.published.is_some() {
                refuse("test.fraction", "expected none with [published], which has its paper's");
            } else if self.test.files.is_some() {
                refuse("test.fraction", "expected without test.files");
            } else if !(fraction > 0.0 && fraction < 1.0) {
                let message = format!("{fraction} is not between 0 and 1, both excluded");
                refuse("test.fraction", &message);
            }
        }
        if let Some(arrays) = &self.arrays {
            if arrays.classes.len() < 2 {
                refuse("arrays.classes", "expected the names of two classes or more, in the order of their numbers");
            }
            if arrays.groups.is_some() && arrays.group_names.is_empty() {
                refuse("arrays.group_names", "expected the names of the groups, in the order of their numbers");
            }
        }
        let by_group = self.search.is_some_and(|search| search.by == By::WorstGroup);
        let has_groups = !self.group.is_empty()
            || self.published.is_some()
            || self.arrays.as_ref().is_some_and(|arrays| arrays.groups.is_some());
        if by_group && !has_groups {
            refuse("search.by", "\"worst-group\" is expected with groups that are not the classes");
        }
        found
    }
}

/// The methods that are named, all of the registry for `all`.
///
/// # Errors
/// Names the one that there is not, and the one that was probably meant.
pub(crate) fn named(methods: &Methods) -> Result<Vec<&'static dp_clipping::MethodEntry>, EntryError> {
    let names = match methods {
        Methods::One(name) => std::slice::from_ref(name),
        Methods::Named(names) => names,
    };
    if names.iter().any(|name| name == ALL) {
        return Ok(registry::all().into_iter().filter(|entry| has_epsilon(entry)).collect());
    }
    if names.is_empty() {
        return Err(EntryError::value("methods", "[]", "registry names, or \"all\""));
    }
    let mut found: Vec<&dp_clipping::MethodEntry> = Vec::new();
    for name in names {
        let entry = registry::find(name).map_err(|_| EntryError::new("methods", unknown(name)))?;
        if !has_epsilon(entry) {
            let message = format!(
                "methods: {name} keeps one error of clipping alone and has no ε, at which methods are compared; `cargo xtask reproduce \
                 direction-vs-magnitude` trains it"
            );
            return Err(EntryError::new("methods", message));
        }
        if found.iter().all(|other| other.name != entry.name) {
            found.push(entry);
        }
    }
    Ok(found)
}

/// Whether there is an ε for it, be it nominal: not for the analyses that add unclipped sums.
pub(crate) fn has_epsilon(entry: &dp_clipping::MethodEntry) -> bool {
    !matches!(entry.default_config().coupling, Coupling::MagnitudeOnly | Coupling::DirectionOnly)
}

/// What stands for every method of the registry that has an ε.
pub(crate) const ALL: &str = "all";

/// What is said of a name that is not in the registry.
pub(crate) fn unknown(name: &str) -> String {
    let meant = registry::meant(name)
        .map_or_else(String::new, |entry| format!("; did you mean {} ({})?", entry.name, entry.label));
    let known: Vec<&str> = registry::all().into_iter().map(|entry| entry.name).collect();
    format!("methods: unknown name `{name}`: expected \"{ALL}\" or some of {}{meant}", known.join(", "))
}
