//! Tasks of this workspace: reproductions, benchmarks and checks. `cargo xtask --help` lists them.
mod plot;
#[cfg_attr(not(test), expect(dead_code, unused_imports, reason = "the reproductions will call it"))]
mod report;
mod results;

fn main() {}
