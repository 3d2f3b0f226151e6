//! `cargo xtask compare FILE`: a study that a file describes, of records of one's own or of a paper's.

mod checks;
mod entries;
mod points;
mod records;
#[cfg(test)]
mod tests;

use std::path::Path;

use anyhow::Context;
use dp_table::declaration;

pub(crate) use self::checks::{ALL, has_epsilon};
use self::entries::{ComparisonFile, Methods};
use self::points::Comparison;
use super::study::Study;
use crate::run::options::StudyOptions;

/// The study of a file.
///
/// # Errors
/// Everything that is wrong with the file, with lines; a table that cannot be read, or whose columns are
/// not those declared.
pub(crate) fn study(path: &Path, options: &StudyOptions) -> anyhow::Result<Study> {
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let mut file: ComparisonFile = declaration::read(&text).map_err(|mistakes| refusal(path, &mistakes))?;
    if !options.methods.is_empty() {
        file.methods = Methods::Named(options.methods.clone());
    }
    let methods = checks::named(&file.methods).map_err(|error| anyhow::anyhow!("--{}", error.message))?;
    let data = records::data(&file, path, &text)?;
    Comparison { file: &file, methods, quick: options.quick }.study(data)
}

/// All mistakes, one line each.
fn refusal(path: &Path, mistakes: &[declaration::Mistake]) -> anyhow::Error {
    let line = |mistake: &declaration::Mistake| {
        format!("{}:{}:{}: {}", path.display(), mistake.line, mistake.column, mistake.message)
    };
    anyhow::anyhow!("{}", mistakes.iter().map(line).collect::<Vec<_>>().join("\n"))
}
