//! The program `fairdp`.

use std::process::ExitCode;

fn main() -> ExitCode {
    fairdp::main()
}
