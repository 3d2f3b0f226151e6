//! The records of a study in one small file: what its report can be rendered from without training.
//!
//! The file is a [`StudyResults`] by columns (`columns.rs`), compressed with zstd. Metrics of models,
//! privacy and settings are kept exactly, since tests and verdicts depend on them. Diagnostics of
//! training (curves over epochs, thresholds, steps taken apart) are rounded to six significant
//! digits, which no table or plot shows. Where no report draws them, only the end of training is
//! kept: the last epoch, and at the points of a searched grid nothing of it but its number.

use std::io::{Read, Write};
use std::path::Path;

use anyhow::{Context, bail, ensure};
use serde_json::Value;
use zstd::{Decoder, Encoder};

use crate::columns;
use crate::coordinate::{has_curves, is_grid};
use crate::import;
use crate::ledger::refuse_other_data;
use crate::record::{EpochRecord, RunRecord, StudyResults};

/// Significant digits of diagnostics.
const DIGITS: usize = 6;

/// The first bytes of a file in zstd's format.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// How hard zstd tries: more takes longer and saves nothing.
const LEVEL: i32 = 19;

/// No file of records is larger than this once unpacked, in bytes: a damaged or hostile one must
/// not fill the memory.
const MAX_BYTES: u64 = 4 << 30;

/// The records as the bytes of a compact file; the same for the same records.
///
/// # Errors
/// If the records cannot be serialised.
pub fn pack(results: &StudyResults) -> anyhow::Result<Vec<u8>> {
    let mut results = results.clone();
    for experiment in results.experiments.iter_mut().filter(|experiment| !has_curves(experiment)) {
        let is_grid = is_grid(experiment);
        for run in experiment.methods.iter_mut().flat_map(|method| &mut method.runs) {
            leave_out_curves(run, is_grid);
        }
    }
    let mut tree = serde_json::to_value(&results).context("serialising the records")?;
    for_each_run(&mut tree, |run| {
        for name in ["epochs", "thresholds", "analysis"] {
            if let Some(diagnostics) = run.get_mut(name) {
                round(diagnostics);
            }
        }
    });
    let mut encoder = Encoder::new(Vec::new(), LEVEL).context("packing the records")?;
    // A damaged file is noticed.
    encoder.include_checksum(true).context("packing the records")?;
    encoder.write_all(columns::write(&tree)?.as_bytes()).context("packing the records")?;
    encoder.finish().context("packing the records")
}

/// Leaves out what is drawn over epochs and steps. Means over epochs cannot be taken any more, and
/// are undefined rather than those of the last.
fn leave_out_curves(run: &mut RunRecord, is_grid: bool) {
    run.thresholds.clear();
    if is_grid {
        run.group_epsilons.clear();
    }
    let Some(last) = run.epochs.pop() else { return };
    let ending = EpochRecord { epoch: last.epoch, step: last.step, ..EpochRecord::default() };
    run.epochs = vec![if is_grid {
        ending
    } else {
        EpochRecord { loss: last.loss, mean_gradient_norm: last.mean_gradient_norm, ..ending }
    }];
}

/// Records of a study from a compact file, from the `results.json` of a report, or as far as it
/// goes from its `metrics.csv`.
///
/// # Errors
/// Names the file, and in it the line.
pub fn read(path: &Path, study: &str) -> anyhow::Result<StudyResults> {
    let found = std::fs::metadata(path).with_context(|| format!("reading {}", path.display()))?;
    ensure!(found.is_file(), "{} is not a regular file", path.display());
    let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    let results = unpack(&bytes, study).with_context(|| format!("{}: not the records of a study", path.display()))?;
    refuse_other_data(&results).with_context(|| path.display().to_string())?;
    if results.study != study {
        bail!("{}: records of the study {}, not of {study}", path.display(), results.study);
    }
    Ok(results)
}

fn unpack(bytes: &[u8], study: &str) -> anyhow::Result<StudyResults> {
    if bytes.starts_with(&ZSTD) {
        let decoder = Decoder::new(bytes).context("unpacking")?;
        let tree = columns::read(&unpacked(decoder)?)?;
        return serde_json::from_value(tree).context("the columns");
    }
    if bytes.starts_with(import::HEADER) { import::study(study, bytes) } else { Ok(serde_json::from_slice(bytes)?) }
}

fn unpacked(from: impl Read) -> anyhow::Result<String> {
    let mut text = String::new();
    from.take(MAX_BYTES + 1).read_to_string(&mut text).context("unpacking")?;
    ensure!(text.len() as u64 <= MAX_BYTES, "more than {MAX_BYTES} bytes once unpacked");
    Ok(text)
}

fn for_each_run(tree: &mut Value, mut change: impl FnMut(&mut Value)) {
    let parts = |value: &mut Value, name: &str| match value.get_mut(name) {
        Some(Value::Array(values)) => std::mem::take(values),
        _ => Vec::new(),
    };
    let mut experiments = parts(tree, "experiments");
    for experiment in &mut experiments {
        let mut methods = parts(experiment, "methods");
        for method in &mut methods {
            let mut runs = parts(method, "runs");
            runs.iter_mut().for_each(&mut change);
            method["runs"] = Value::Array(runs);
        }
        experiment["methods"] = Value::Array(methods);
    }
    tree["experiments"] = Value::Array(experiments);
}

/// Rounds every number that is not whole.
fn round(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(round),
        Value::Object(fields) => fields.values_mut().for_each(round),
        Value::Number(number) => {
            if let Some(exact) = number.as_f64().filter(|_| number.is_f64())
                && let Ok(rounded) = format!("{exact:.*e}", DIGITS - 1).parse::<f64>()
            {
                *value = rounded.into();
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinate::RATE;
    use crate::made_up as fixture;
    use crate::record::{Coordinate, MethodResults};

    #[test]
    fn metrics_come_back_exactly_and_diagnostics_to_six_digits() {
        let mut study = fixture::study();
        let run = &mut study.experiments[0].methods[1].runs[0];
        run.epochs[0].loss[0] = Some(0.123_456_789);
        run.epochs[0].loss[1] = Some(f64::INFINITY);
        run.test.overall.accuracy = Some(0.123_456_789);
        let packed = pack(&study).unwrap();
        assert_eq!(packed, pack(&study).unwrap(), "the same bytes");
        let back = unpack(&packed, "adult").unwrap();
        let run = &back.experiments[0].methods[1].runs[0];
        assert_eq!(run.epochs[0].loss, [Some(0.123_457), Some(f64::INFINITY)]);
        assert_eq!(run.test.overall.accuracy, Some(0.123_456_789));
        assert_eq!(pack(&back).unwrap(), packed, "packing again changes nothing");
    }

    /// More methods than are drawn, and points of a grid.
    #[test]
    fn where_nothing_is_drawn_the_end_of_training_is_kept() {
        let mut study = fixture::study();
        let methods = &mut study.experiments[0].methods;
        let template = methods[1].clone();
        while methods.len() <= 30 {
            methods.push(MethodResults { method: format!("dpsgd-{}", methods.len()), ..template.clone() });
        }
        let before = study.experiments[0].methods[1].runs[0].clone();
        let packed = |study: &StudyResults| {
            unpack(&pack(study).unwrap(), "adult").unwrap().experiments[0].methods[1].runs[0].clone()
        };
        let run = packed(&study);
        let last = before.epochs.last().unwrap();
        let rounded = |values: &[Option<f64>]| -> Vec<String> {
            values.iter().map(|value| format!("{:.5e}", value.unwrap())).collect()
        };
        assert_eq!((run.epochs.len(), run.epochs[0].epoch, run.epochs[0].step), (1, last.epoch, last.step));
        assert_eq!(rounded(&run.epochs[0].loss), rounded(&last.loss));
        assert!(run.epochs[0].gradient_norm.is_empty() && run.thresholds.is_empty());
        assert_eq!((run.test, run.group_epsilons), (before.test.clone(), before.group_epsilons));

        for method in &mut study.experiments[0].methods {
            method.coordinates = vec![Coordinate { name: RATE.to_owned(), value: 0.5 }];
        }
        let run = packed(&study);
        assert_eq!(run.epochs, [EpochRecord { epoch: last.epoch, step: last.step, ..EpochRecord::default() }]);
        assert_eq!((run.test, run.group_epsilons.len()), (before.test, 0));
    }

    #[test]
    fn a_damaged_file_is_noticed() {
        let packed = pack(&fixture::study()).unwrap();
        let whole = unpack(&packed, "adult").unwrap();
        for place in (0..packed.len()).step_by(29) {
            let mut damaged = packed.clone();
            damaged[place] ^= 0x10;
            // A bit that the format does not use changes nothing.
            assert!(unpack(&damaged, "adult").map_or(true, |read| read == whole), "byte {place}");
            assert!(unpack(&packed[..place], "adult").is_err(), "{place} bytes");
        }
    }

    #[test]
    fn a_report_file_is_read_too_and_anything_else_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.json");
        std::fs::write(&path, serde_json::to_vec(&fixture::study()).unwrap()).unwrap();
        assert_eq!(read(&path, "adult").unwrap(), fixture::study());
        assert_eq!(
            format!("{:#}", read(&path, "dutch").unwrap_err()),
            format!("{}: records of the study adult, not of dutch", path.display())
        );
        for bytes in [&b"{}"[..], &[0x28, 0xb5, 0x2f, 0xfd, 0, 0], b""] {
            std::fs::write(&path, bytes).unwrap();
            let error = format!("{:#}", read(&path, "adult").unwrap_err());
            assert!(error.contains("results.json: not the records of a study"), "{error}");
        }
    }
}
