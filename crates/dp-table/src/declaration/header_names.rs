//! The names of a declaration beside those of its table's header.

use std::path::Path;

use super::columns::ColumnKind;
use super::declared::Declared;
use super::entry_error::EntryError;
use super::nearest::{did_you_mean, question};
use crate::column_names::delimiter_question;

/// A name that must be a column, and the key that has it.
struct Named<'a> {
    key: String,
    what: &'static str,
    name: &'a str,
    is_vector: bool,
}

impl Named<'_> {
    fn is(&self, column: &str) -> bool {
        let prefix = self.name.strip_suffix('*').filter(|_| self.is_vector);
        match prefix.and_then(|prefix| column.strip_prefix(prefix)) {
            Some(number) => !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()),
            None => column == self.name,
        }
    }
}

impl Declared<'_> {
    fn names(&self) -> Vec<Named<'_>> {
        let plain = |key: &str, what, name| Named { key: key.to_owned(), what, name, is_vector: false };
        let mut names = vec![plain("label.column", "label", &self.label.column)];
        names.extend(self.unit.map(|unit| plain("unit.column", "unit", unit)));
        names.extend(self.weight.as_ref().map(|weight| plain("weight.column", "weight", &weight.column)));
        let group = self.groups.iter().enumerate();
        names.extend(group.map(|(index, group)| plain(&format!("group.{index}.column"), "group", &group.column)));
        names.extend(self.columns.iter().enumerate().map(|(index, entry)| Named {
            key: format!("column.{index}.name"),
            what: "column",
            name: &entry.name,
            is_vector: entry.kind == ColumnKind::Vector,
        }));
        names
    }

    /// Names that no column of a table has, each with the one that was meant, and columns that nothing
    /// names. A column that is named with a slip is not to be left out.
    pub fn name_mistakes(&self, columns: &[String], table: &Path) -> Vec<EntryError> {
        let names = self.names();
        let unnamed: Vec<&str> =
            columns.iter().map(String::as_str).filter(|column| !names.iter().any(|name| name.is(column))).collect();
        let table = table.display();
        let cause = delimiter_question(columns);
        if unnamed.len() == columns.len() && !cause.is_empty() {
            let message = format!("`{table}` has no column that is named here in its header{cause}");
            return vec![EntryError::new("table", message)];
        }
        let (mut found, mut meant) = (Vec::new(), Vec::new());
        for Named { key, what, name, .. } in names.iter().filter(|name| !columns.iter().any(|column| name.is(column))) {
            let near = did_you_mean(name, unnamed.iter().copied());
            meant.extend(near);
            let all = || question(name, columns.iter().map(String::as_str));
            let question = near.map_or_else(all, |near| format!("; did you mean `{near}`?"));
            found
                .push(EntryError::new(key.clone(), format!("{what} `{name}`: `{table}` has no such column{question}")));
        }
        for column in unnamed.into_iter().filter(|column| !meant.contains(column)) {
            let message =
                format!("`{table}` has a column `{column}` that is not declared; declare it, or declare it as dropped");
            found.push(EntryError::new("column", message));
        }
        found
    }
}
