//! Tasks of this workspace: reproductions, benchmarks and checks. `cargo xtask --help` lists them.
mod results;

fn main() {}
