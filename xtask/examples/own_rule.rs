//! `cargo xtask` with one more method, that of `docs/examples/own-rule`:
//!
//! ```sh
//! cargo run --release -p xtask --example own_rule -- compare docs/examples/compare-own-rule.toml --seed 1
//! ```

use std::process::ExitCode;

#[path = "../../docs/examples/own-rule/src/lib.rs"]
pub mod own_rule;

fn main() -> ExitCode {
    match own_rule::register() {
        Ok(()) => xtask::main(),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
