//! A released model and a table to predict: errors, or probabilities that are some.
#![no_main]

use dp_table::TableFiles;
use fairdp::{FittedModel, Predictor};
use fairdp_fuzz::files;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let [pipeline, table, weights] = files(input);
    let Ok(model) = FittedModel::from_bytes(pipeline, weights) else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("t.csv");
    std::fs::write(&path, table).expect("writable");
    let Ok(files) = TableFiles::new(&[path.to_str().expect("UTF-8")]) else { return };
    let Ok(mut predictor) = Predictor::new(&model, &files) else { return };
    while let Ok(Some((class, probabilities))) = predictor.answer() {
        assert!(class < probabilities.len());
        assert!((probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{probabilities:?}");
    }
});
