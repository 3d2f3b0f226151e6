//! The examples run, and end with a check of their own result.

#[path = "../examples/calibrate.rs"]
mod calibrate;
#[path = "../examples/ledger_of_a_loop.rs"]
mod ledger_of_a_loop;

#[test]
fn examples_run() {
    calibrate::main().unwrap();
    ledger_of_a_loop::main().unwrap();
}
