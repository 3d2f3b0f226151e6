//! Tasks of this workspace: reproductions, benchmarks and checks. `cargo xtask --help` lists them.
mod data;
mod plot;
#[cfg_attr(not(test), expect(dead_code, unused_imports, reason = "the reproductions will call it"))]
mod report;
mod results;

use clap::Parser;

/// Tasks of this workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    /// What is known of the data sets, what is at hand, and how to get it
    Data(data::DataArgs),
}

fn main() -> anyhow::Result<()> {
    match Task::parse() {
        Task::Data(args) => data::run(&args),
    }
}
