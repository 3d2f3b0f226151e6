//! `cargo xtask reproduce all`: every study in turn.

use std::path::Path;

use anyhow::ensure;
use run_records::shell;

use super::accounting;
use super::study::StudyArgs;
use super::table::TRAINING;
use super::toy;
use crate::paths::{exports_folder, reports_root};
use crate::terminal::{self, say};

/// Runs every study with the same options; one that fails does not keep the others from running.
///
/// # Errors
/// If an option is one of a single study, or any study failed; the message names them.
pub(crate) fn run(args: &StudyArgs) -> anyhow::Result<()> {
    args.ensure_whole_study()?;
    let root = args.options.out_root();
    study_report::refuse_foreign_index(&root.join("index.html"))?;
    let mut studies: Vec<Task<'_>> = Vec::new();
    if !args.options.plan {
        studies.push(("accounting", Box::new(|out| accounting::run(&accounting::AccountingArgs::to(out)))));
        studies.push(("toy", Box::new(|out| toy::run(&toy::ToyArgs::to(out)))));
    }
    for study in TRAINING {
        studies.push((
            study.name,
            Box::new(move |out| {
                let args = args.with_out(out);
                (study.make)(&args)?.run(&args)
            }),
        ));
    }
    let failed = in_turn(&root, &studies)?;
    if !args.options.plan {
        let index = study_report::write_index(&root, (root == reports_root()).then(exports_folder).as_deref())?;
        say!("\nIndex: {}", shell::path(&index))?;
    }
    ensure!(failed.is_empty(), "{} of {} studies failed: {}", failed.len(), studies.len(), failed.join(", "));
    Ok(())
}

/// A study by its name, given the folder of its report.
type Task<'a> = (&'static str, Box<dyn Fn(&Path) -> anyhow::Result<()> + 'a>);

/// Runs all of them and says which failed.
fn in_turn(root: &Path, studies: &[Task<'_>]) -> anyhow::Result<Vec<&'static str>> {
    let mut failed = Vec::new();
    for (name, run) in studies {
        say!("\n=== {name}")?;
        if let Err(error) = run(&root.join(name)) {
            eprintln!("error: {name}: {}", terminal::message(&error));
            failed.push(*name);
        }
    }
    Ok(failed)
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn a_study_that_fails_does_not_stop_the_others() {
        let root = tempfile::tempdir().unwrap();
        let write = |out: &Path| Ok(std::fs::write(out, "done")?);
        let studies: Vec<Task<'_>> =
            vec![("first", Box::new(write)), ("second", Box::new(|_| bail!("no data"))), ("third", Box::new(write))];
        assert_eq!(in_turn(root.path(), &studies).unwrap(), ["second"]);
        assert!(root.path().join("first").exists() && root.path().join("third").exists());
    }
}
