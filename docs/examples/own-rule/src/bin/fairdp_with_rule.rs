//! The program `fairdp` with one more method: `method.name = "dp-psac"` in `fairdp.toml`.

use std::process::ExitCode;

fn main() -> ExitCode {
    match own_rule::register() {
        Ok(()) => fairdp::main(),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
