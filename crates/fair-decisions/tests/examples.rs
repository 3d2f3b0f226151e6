//! The example runs, and ends with a check of its own result.

#[path = "../examples/thresholds.rs"]
mod thresholds;

#[test]
fn examples_run() {
    thresholds::main().unwrap();
}
