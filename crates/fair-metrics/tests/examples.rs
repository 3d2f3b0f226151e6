//! The example runs, and ends with a check of its own result.

#[path = "../examples/groups_to_gaps.rs"]
mod groups_to_gaps;

#[test]
fn examples_run() {
    groups_to_gaps::main().unwrap();
}
