//! The programs of `examples/` run, and hold what they assert.

#[path = "../../examples/csv.rs"]
#[expect(dead_code, reason = "the table of the test is the generated one")]
mod csv;
#[path = "../../examples/own_loop.rs"]
mod own_loop;
#[path = "../../examples/resume.rs"]
mod resume;
#[path = "../../examples/serve.rs"]
mod serve;

#[test]
fn csv() {
    csv::on(csv::generated().as_slice()).unwrap();
}

#[test]
fn own_loop() {
    own_loop::main().unwrap();
}

#[test]
fn resume() {
    resume::main().unwrap();
}

#[test]
fn serve() {
    serve::main().unwrap();
}
