//! Files of weights and of conditioning, safetensors.
#![no_main]

use dp_linear::conditioning::Conditioning;
use dp_train::{DType, Device, Model, ModelConfig};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("w.safetensors");
    std::fs::write(&path, bytes).expect("writable");
    let mut model = Model::new(&ModelConfig::LogisticRegression, 2, 1, DType::F32, &Device::Cpu).expect("a model");
    let _ = model.load_weights(&path);
    let _ = Model::load(&path, &Device::Cpu);
    let _ = Conditioning::load(&path);
});
