//! The example runs, and ends with a check of its own result.

#[path = "../examples/page.rs"]
mod page;

#[test]
fn examples_run() {
    page::main().unwrap();
}
