//! The examples run.

#[path = "../examples/groups_of_a_split.rs"]
mod groups_of_a_split;

#[test]
fn groups_of_a_split_are_counted() {
    groups_of_a_split::main().unwrap();
}
