//! The example runs, and ends with a check of its own result.

#[path = "../examples/planted_fault.rs"]
mod planted_fault;

#[test]
fn examples_run() {
    planted_fault::main().unwrap();
}
