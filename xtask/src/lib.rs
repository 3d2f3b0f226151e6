//! Tasks of this workspace: reproductions, benchmarks and checks. `cargo xtask --help` lists them.
//!
//! Its rooms, from top to bottom; none names one above it, which a test below sees to.

mod command;

mod studies;

mod run;

mod device;
mod host;
mod paths;
mod ranks;
mod terminal;

use std::process::ExitCode;

pub use self::studies::committed::{CommittedReport, ReportFile, presentation};

/// The program `cargo xtask`: does what its command line says.
pub fn main() -> ExitCode {
    command::main()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    /// From top to bottom.
    const ROOMS: [&str; 3] = ["command", "studies", "run"];

    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }

    #[test]
    fn no_room_names_one_above_it() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut files = Vec::new();
        sources(&root, &mut files);
        let mut n_named = 0;
        for file in files {
            let name = file.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
            if name == "lib.rs" {
                continue;
            }
            // What lies beside the rooms is below all of them.
            let level = ROOMS.iter().position(|room| name.starts_with(&format!("{room}/"))).unwrap_or(ROOMS.len());
            let text = fs::read_to_string(&file).unwrap();
            for (upper, room) in ROOMS.iter().enumerate() {
                let is_named = text.contains(&format!("crate::{room}"));
                assert!(!is_named || upper >= level, "{name} names `{room}`, which is above it");
                n_named += usize::from(is_named);
            }
        }
        assert!(n_named > 20, "{n_named}: sources name rooms in another way than this test looks for");
    }
}
