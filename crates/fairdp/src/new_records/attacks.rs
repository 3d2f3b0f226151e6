//! Attacks on figures of new records: each is released many times with a unit and without it.

use std::fs;
use std::path::Path;

use dp_audit::one_run::{ReleaseBound, TwoSamples};
use dp_table::{RowsDigest, TableFiles};
use fair_decisions::{CumulativeCounts, N_CELLS, PrefixSums};

use super::tests::{PER_UNIT, fitted, payment, units};
use super::{NewTableOptions, Paid, PaymentOptions, Subject};
use crate::config::EpsilonChoice;
use crate::drift::{self, NewTable, VALUES};
use crate::evaluate::{NewRecords, released_scores};
use crate::fit::SCORES;
use crate::hook;
use crate::key::{DrawnKey, NoiseBinding};

/// Releases in either world.
const REPEATS: u32 = 400;
/// Probability that a bound is wrong, at most; seeds are fixed.
const FAILURE: f64 = 1e-3;

/// A unit whose rows are equal, and beyond what is declared in every column.
const EXTREME: &str = "1e9,1e9,1e9,nowhere,nowhere,1e9,1e9,nowhere,nowhere,yes";

/// Tables without the first unit and with it, and the run.
fn tables(here: &Path) -> Subject {
    fitted(here);
    let [without, with] = ["without.csv", "with.csv"].map(|name| here.join(name));
    units(&without, 1);
    let table = fs::read_to_string(&without).unwrap();
    fs::write(&with, table + &["0,", "+0,", "0.0,"].map(|unit| format!("{unit}{EXTREME}\n")).concat()).unwrap();
    Subject::open(&here.join("run")).unwrap()
}

/// What is read of each table.
fn worlds<T>(here: &Path, subject: &Subject, read: impl Fn(&TableFiles) -> T) -> [T; 2] {
    ["without.csv", "with.csv"].map(|name| {
        let table = here.join(name).to_string_lossy().into_owned();
        read(&NewTableOptions::default().files(&[table], &subject.model).unwrap())
    })
}

/// Releases again and again, with other noise: what an attacker makes of each is projected on what the unit moves.
fn attacked(paid: &mut Paid<'_>, purpose: &str, mut released: impl FnMut(&Paid<'_>, bool) -> f64) -> ReleaseBound {
    let charged = paid.planned.iter().find(|planned| planned.purpose == purpose).unwrap();
    let claimed_mu = charged.noise_multiplier.get().recip();
    let mut seed = 0;
    let test = TwoSamples { claimed_mu, repeats: REPEATS, failure: FAILURE };
    let bound = test.attack(|present| {
        seed += 1;
        paid.key = DrawnKey::new(Some(seed)).unwrap().bind(&NoiseBinding::new(RowsDigest::default(), None, ""));
        Ok(released(paid, present))
    });
    bound.unwrap()
}

fn project(released: &[f64], direction: &[f64]) -> f64 {
    released.iter().zip(direction).map(|(value, direction)| value * direction).sum()
}

fn difference([without, with]: &[Vec<f64>; 2]) -> Vec<f64> {
    with.iter().zip(without).map(|(with, without)| with - without).collect()
}

/// Along which a unit moves encoded cumulative scores, of exact counts by cell.
fn direction(cells: &[Vec<f64>; 2]) -> Vec<f64> {
    let sums = PrefixSums::new();
    difference(cells).chunks_exact(N_CELLS).flat_map(|block| sums.encode(block)).collect()
}

fn encoded(counts: &CumulativeCounts) -> Vec<f64> {
    let counts = serde_json::to_value(counts).unwrap();
    let prefixes: Vec<f64> = serde_json::from_value(counts["prefixes"].clone()).unwrap();
    PrefixSums::new().encode_released(&prefixes)
}

/// An attack on the scores of an evaluation, and on both releases of a drift.
fn bounds(here: &Path, subject: &Subject) -> [ReleaseBound; 3] {
    let options = PaymentOptions { epsilon: EpsilonChoice::Given(20.0), ..payment(&here.join("none")) };
    let enter = |shares| {
        let binding = NoiseBinding::new(RowsDigest::default(), None, "");
        Paid::enter(&options, subject, 2_000, &binding, shares).unwrap()
    };
    let (model, known) = (&subject.model, subject.scores.as_ref().unwrap());

    let records = worlds(here, subject, |files| NewRecords::read(subject, files, PER_UNIT).unwrap());
    let along = direction(&records.each_ref().map(|one| one.all().scores(model, known).unwrap().into_values()));
    let evaluated = attacked(&mut enter(&[(SCORES, 1.0)]), SCORES, |paid, present| {
        let all = records[usize::from(present)].all();
        project(&encoded(&released_scores(all, (model, known), paid, PER_UNIT).unwrap()), &along)
    });

    let mut rows = worlds(here, subject, |files| NewTable::read(subject, files, Some(PER_UNIT)).unwrap());
    let along = direction(&rows.each_ref().map(|one| one.cells.clone().unwrap().into_values()));
    let values = difference(&rows.each_ref().map(|one| one.columns.values()));
    let mut released = |paid: &Paid<'_>, present: bool| {
        let table = &mut rows[usize::from(present)];
        let columns = drift::released(table, paid, PER_UNIT).unwrap();
        [project(&columns.values(), &values), project(&encoded(table.counts.as_ref().unwrap()), &along)]
    };
    let mut paid = enter(drift::shares(subject));
    let by_column = attacked(&mut paid, VALUES, |paid, present| released(paid, present)[0]);
    let by_score = attacked(&mut paid, SCORES, |paid, present| released(paid, present)[1]);
    [evaluated, by_column, by_score]
}

/// Every release of figures stands, and each fault is found in every one of them: half of the noise, and a unit of
/// three rows where two are paid for. The unit moves every sum by nearly as much as its noise is made for.
#[test]
fn figures_of_new_records_stand_and_faults_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let subject = tables(here);
    for bound in bounds(here, &subject) {
        assert!(!bound.refuted() && bound.mu > 0.8 * bound.claimed_mu, "{bound:?}");
    }
    for fault in [&hook::HALF_THE_NOISE, &hook::ALL_ROWS_OF_A_UNIT] {
        fault.set(true);
        let found = bounds(here, &subject);
        fault.set(false);
        for bound in found {
            assert!(bound.refuted(), "{bound:?}");
        }
    }
}
