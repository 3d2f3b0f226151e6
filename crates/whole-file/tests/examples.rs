//! The example runs, and ends with a check of its own result.

#[path = "../examples/report.rs"]
mod report;

#[test]
fn examples_run() {
    report::main().unwrap();
}
