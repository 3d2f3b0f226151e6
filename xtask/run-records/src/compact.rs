//! The records of a study in one small file: what its report can be rendered from without training.
//!
//! The file is a [`StudyResults`] as JSON, compressed with gzip. Metrics of models, privacy and
//! settings are kept exactly, since tests and verdicts depend on them. Diagnostics of training
//! (curves over epochs, thresholds, steps taken apart) are rounded to six significant digits, which
//! no table or plot shows. At the points of a searched grid they are left out: no report draws
//! them.

use std::io::{Read, Write};
use std::path::Path;

use anyhow::{Context, bail, ensure};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::coordinate::is_grid;
use crate::import;
use crate::ledger::refuse_other_data;
use crate::record::{EpochRecord, StudyResults};

/// Significant digits of diagnostics.
const DIGITS: usize = 6;

/// The first bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// No file of records is larger than this once unpacked, in bytes: a damaged or hostile one must
/// not fill the memory.
const MAX_BYTES: u64 = 4 << 30;

/// The records as the bytes of a compact file; the same for the same records.
///
/// # Errors
/// If the records cannot be serialised.
pub fn pack(results: &StudyResults) -> anyhow::Result<Vec<u8>> {
    let mut results = results.clone();
    for experiment in results.experiments.iter_mut().filter(|experiment| is_grid(experiment)) {
        for run in experiment.methods.iter_mut().flat_map(|method| &mut method.runs) {
            run.thresholds.clear();
            run.group_epsilons.clear();
            for epoch in &mut run.epochs {
                *epoch = EpochRecord { epoch: epoch.epoch, step: epoch.step, ..EpochRecord::default() };
            }
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
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    serde_json::to_writer(&mut encoder, &tree).context("packing the records")?;
    encoder.write_all(b"\n").context("packing the records")?;
    encoder.finish().context("packing the records")
}

/// Records of a study from a compact file, from the `results.json` of a report, or as far as it
/// goes from its `metrics.csv`. Each of them may be compressed with gzip.
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
    let mut text = Vec::new();
    let text = if bytes.starts_with(&GZIP) {
        GzDecoder::new(bytes).take(MAX_BYTES + 1).read_to_end(&mut text).context("unpacking")?;
        if text.len() as u64 > MAX_BYTES {
            bail!("more than {MAX_BYTES} bytes once unpacked");
        }
        &text
    } else {
        bytes
    };
    if text.starts_with(import::HEADER) { import::study(study, text) } else { Ok(serde_json::from_slice(text)?) }
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
    use crate::made_up as fixture;

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
        for bytes in [&b"{}"[..], &[0x1f, 0x8b, 0, 0], b""] {
            std::fs::write(&path, bytes).unwrap();
            let error = format!("{:#}", read(&path, "adult").unwrap_err());
            assert!(error.contains("results.json: not the records of a study"), "{error}");
        }
    }
}
