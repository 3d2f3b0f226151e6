//! The example runs, and ends with a check of its own result.

#[path = "../examples/private_regression.rs"]
mod private_regression;

#[test]
fn examples_run() {
    private_regression::main().unwrap();
}
