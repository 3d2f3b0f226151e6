//! Replays on a CUDA device; without one, or built without CUDA, they pass over it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::num::NonZeroUsize;

use dp_audit::replay::{Replay, Report};
use dp_engine::{Device, EngineError, cuda_device, cuda_device_in_tf32};

fn replay(cases: u64, seed: u64, device: Device) -> Report {
    let one = NonZeroUsize::MIN;
    let replay = Replay { cases, seed, method: None, layer: None, plant: None, threads: one, ranks: one, device };
    let report = replay.run(&|_| {}).unwrap();
    assert_eq!((report.cases, report.violations), (cases, 0), "{:#?}", report.worst);
    report
}

/// `None`, and a line that says why, where there is no device; a failure where `REQUIRE_CUDA` is
/// set.
fn there(device: Result<Device, EngineError>) -> Option<Device> {
    match device {
        Ok(device) => Some(device),
        Err(error) => {
            assert!(std::env::var_os("REQUIRE_CUDA").is_none(), "no CUDA device: {error}");
            println!("skipped: no CUDA device ({error})");
            None
        }
    }
}

/// Steps of neighbours, with every certified method and every kind of layer: a record moves the sum
/// by at most its bound, and nothing of the others.
#[test]
fn on_a_device_one_record_moves_only_itself() {
    let Some(device) = there(cuda_device(0)) else { return };
    let report = replay(400, 1, device);
    assert!(report.largest_sum_ratio > 0.9, "{}", report.largest_sum_ratio);
}

/// Gradients, norms and sums are formed exactly from what passes in TF32 computed.
#[test]
fn on_a_device_in_tf32_one_record_moves_only_itself() {
    if let Some(device) = there(cuda_device_in_tf32(0)) {
        replay(200, 2, device);
    }
}
