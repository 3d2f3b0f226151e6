//! What a shell and `man` know of the program, from the definition of its command line.

use std::io::{self, Write};
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;
use fairdp::FairdpError;

use super::failure::Failure;

const NAME: &str = "fairdp";

pub(super) fn completions<C: CommandFactory>(shell: Shell, out: &mut impl Write) -> io::Result<()> {
    // What it cannot write ends the program.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut C::command(), NAME, &mut script);
    out.write_all(&script)
}

/// Writes `fairdp.1` and a page for each command.
pub(super) fn pages<C: CommandFactory>(folder: &Path) -> Result<(), Failure> {
    let write = || {
        std::fs::create_dir_all(folder)?;
        clap_mangen::generate_to(C::command().name(NAME), folder)
    };
    let failed = |source| FairdpError::Io { action: "write", path: folder.to_path_buf(), source };
    write().map_err(|error| Failure::Library(failed(error)))
}
