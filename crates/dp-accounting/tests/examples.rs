//! The examples run, and end with a check of their own result.

#[path = "../examples/calibrate.rs"]
mod calibrate;
#[path = "../examples/own_loop.rs"]
mod own_loop;

#[test]
fn examples_run() {
    calibrate::main().unwrap();
    own_loop::main().unwrap();
}
