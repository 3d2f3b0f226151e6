//! What one unit changes in figures of new records, and whether a fault shows.

use std::fmt::Write as _;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use dp_accounting::DpEvent;
use dp_table::Example;
use fair_decisions::PrefixSums;

use crate::config::EpsilonChoice;
use crate::drift::{DriftOptions, drift};
use crate::evaluate::evaluate;
use crate::fit::{FitOptions, fit};
use crate::hook;
use crate::init::{InitOptions, init};
use crate::new_records::{NewTableOptions, PaymentOptions};
use crate::statement::ReleaseStatement;

pub(super) const PER_UNIT: u64 = 2;

/// A table whose units have three rows each, from the unit of this number on, spelled in three ways.
pub(super) fn units(path: &Path, first: usize) {
    let mut csv = Vec::new();
    Example { rows: 3_000, ..Example::default() }.write(&mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    let (header, lines) = csv.split_once('\n').unwrap();
    let mut table = format!("person,{header}\n");
    for (row, line) in lines.lines().enumerate().filter(|(row, _)| row / 3 >= first) {
        let [before, behind] = [["", ""], ["+", ""], ["", ".0"]][row % 3];
        writeln!(table, "{before}{}{behind},{line}", row / 3).unwrap();
    }
    fs::write(path, table).unwrap();
}

pub(super) fn payment(out: &Path) -> PaymentOptions {
    PaymentOptions {
        out: out.to_owned(),
        epsilon: EpsilonChoice::Given(1.0),
        delta: None,
        seed: Some(3),
        ledger: None,
        witness: None,
        total_epsilon: None,
        scope: None,
    }
}

/// Records in released counts, and whether their noise is that of the statement for units of two.
fn counted(out: &Path) -> (f64, bool) {
    let read = |name: &str| fs::read_to_string(out.join("release").join(name)).unwrap();
    let scores: serde_json::Value = serde_json::from_str(&read("scores.json")).unwrap();
    let prefixes = scores["test"]["prefixes"].as_array().unwrap();
    let last_of_each = prefixes.chunks(fair_decisions::N_CELLS).map(|block| block.last().unwrap().as_f64().unwrap());
    let place = Path::new("statement.json");
    let statement: ReleaseStatement = crate::seal::unsealed(place, &read("statement.json")).unwrap();
    let event = statement.events.iter().find(|event| event.purpose.starts_with("cumulative")).unwrap();
    let DpEvent::Gaussian { noise_multiplier } = event.event else { panic!("{:?}", event.event) };
    let expected = PrefixSums::new().noise_std(noise_multiplier.get(), PER_UNIT);
    (last_of_each.sum(), (scores["test"]["noise_std"].as_f64().unwrap() / expected - 1.0).abs() < 1e-12)
}

/// Records by which the counts of two tables differ, of which one has not the rows of one unit; noise is
/// the same, by the seed.
fn difference(here: &Path, number: &str) -> [f64; 2] {
    let options = NewTableOptions::default();
    let [all, fewer] = ["all.csv", "fewer.csv"].map(|name| vec![here.join(name).to_string_lossy().into_owned()]);
    let of = |table: &Vec<String>, name: &str| {
        let [evaluated, drifted] = ["e", "d"].map(|kind| here.join(format!("{kind}{name}{number}")));
        evaluate(&here.join("run"), table, &options, &payment(&evaluated)).unwrap();
        let paid = DriftOptions { payment: Some(payment(&drifted)), ..DriftOptions::default() };
        drift(&here.join("run"), table, &paid).unwrap();
        [evaluated, drifted].map(|out| {
            let (records, is_replayed) = counted(&out);
            assert!(is_replayed, "{}", out.display());
            records
        })
    };
    let (all, fewer) = (of(&all, "all"), of(&fewer, "fewer"));
    [all[0] - fewer[0], all[1] - fewer[1]]
}

/// A run of units of two rows, `run`, on the table `all.csv`.
pub(super) fn fitted(here: &Path) {
    units(&here.join("all.csv"), 0);
    let options = InitOptions {
        label: "outcome".into(),
        groups: vec!["group".into()],
        unit: Some("person".into()),
        max_records_per_unit: Some(PER_UNIT),
        ..InitOptions::default()
    };
    let config = init(&[here.join("all.csv").to_string_lossy().into_owned()], &options).unwrap();
    fs::write(here.join("c.toml"), config.replace("from = \"data\"", "public = true")).unwrap();
    let go_on = &mut |_: crate::fit::Progress<'_>| ControlFlow::Continue(());
    fit(&here.join("c.toml"), &FitOptions { seed: Some(1), ..FitOptions::new(here.join("run")) }, go_on).unwrap();
}

#[test]
fn a_unit_changes_the_counts_by_as_many_records_as_are_paid_for() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fitted(here);
    units(&here.join("fewer.csv"), 1);
    // Noise of some ten records is the same in both, but for its rounding.
    for difference in difference(here, "") {
        assert!((difference - 2.0).abs() < 0.9, "{difference}");
    }
    // Nobody knows whose a row with too many fields is.
    let broken = here.join("broken.csv");
    fs::write(&broken, fs::read_to_string(here.join("all.csv")).unwrap() + "1,1,1\n").unwrap();
    let paid = DriftOptions { payment: Some(payment(&here.join("b"))), ..DriftOptions::default() };
    let error = drift(&here.join("run"), &[broken.to_string_lossy().into_owned()], &paid).unwrap_err();
    assert!(error.to_string().contains("no row without a readable unit of privacy is counted"), "{error}");
    assert!(!here.join("b").exists());

    hook::ALL_ROWS_OF_A_UNIT.set(true);
    let found = difference(here, "-fault");
    hook::ALL_ROWS_OF_A_UNIT.set(false);
    for difference in found {
        assert!(difference > 2.1, "a unit of three rows was counted with {difference}, and that was not found");
    }
}
