//! The programs of `examples/` run, and hold what they assert.

#[path = "../examples/gradient_norms.rs"]
mod gradient_norms;

#[test]
fn gradient_norms() {
    gradient_norms::main().unwrap();
}
