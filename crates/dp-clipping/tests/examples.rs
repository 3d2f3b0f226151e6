//! The examples run.

#[path = "../examples/clip_matrix.rs"]
mod clip_matrix;
#[path = "../examples/methods_table.rs"]
mod methods_table;
#[path = "../examples/own_rule.rs"]
mod own_rule;

#[test]
fn examples_run() {
    clip_matrix::main().unwrap();
    methods_table::main();
    own_rule::main().unwrap();
}
