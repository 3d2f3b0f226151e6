//! What was built for this system is installed in empty folders, without Rust, and does what the
//! README says.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, ensure};

use super::artefacts::Artefacts;
use super::summary::Summary;
use super::tools::{Tools, finish, output, programs_of, pythons, with_first};
use super::{image, program};
use crate::paths;

/// What Python does with a wheel alone: how much of a processor's time its import takes, behind
/// NumPy, in ms. A clock on the wall would say how busy the machine is.
const IMPORT: &str = "import numpy, time; start = time.process_time(); import fairdp; \
                      print((time.process_time() - start) * 1e3)";

/// An import may take so many ms.
const LONGEST_IMPORT_MS: f64 = 5.0;

/// What the classifier does on 2,000 records of two numbers.
const CLASSIFIER: &str = "
import numpy as np
from fairdp import FairDPClassifier
x = np.random.default_rng(1).uniform(size=(2000, 2))
model = FairDPClassifier(epsilon=1.0, delta=1e-6).fit(x, x[:, 0] > 0.5)
print(f'epsilon {model.epsilon_:.2f}, accuracy {model.score(x, x[:, 0] > 0.5):.2f}')
";

/// Installs the program and the wheel of this system, and follows the README with each.
///
/// # Errors
/// If something is not there, cannot be installed, or does not do what the README says.
pub(super) fn check(
    tools: &Tools,
    targets: &[String],
    artefacts: &Artefacts,
    summary: &mut Summary,
) -> anyhow::Result<()> {
    let readme = fs::read_to_string(paths::workspace_root().join("README.md")).context("reading README.md")?;
    // The README's doors follow one another: the lines for Python take the table that the program's made.
    let place = tempfile::tempdir()?;
    for target in targets.iter().filter(|target| runs_here(target)) {
        program_works(target, artefacts, &readme, &place.path().join(target), summary)?;
        if target.ends_with("-musl") {
            image::check(target, artefacts, summary)?;
        }
    }
    let table = targets.iter().map(|target| place.path().join(target).join("table.csv")).find(|path| path.is_file());
    let mut wheels = artefacts.wheels()?;
    wheels.retain(|name| !name.contains("musllinux") && name.contains(std::env::consts::ARCH));
    for wheel in &wheels {
        if cfg!(target_os = "linux") {
            let told = output(tools.python_tool("auditwheel")?.arg("show").arg(artefacts.path(wheel)))?;
            summary.done(format_args!("auditwheel: {}", standard(&told)?))?;
        }
        let pythons = pythons();
        ensure!(!pythons.is_empty(), "no Python 3.10 or newer with venv was found on PATH");
        let table = table.as_deref().context("no program was built for this system, whose table Python takes")?;
        let wheel = artefacts.path(wheel);
        pythons.iter().try_for_each(|python| wheel_works(python, &wheel, &readme, table, summary))?;
        if let Some(newest) = pythons.last() {
            classifier_works(newest, &wheel, summary)?;
        }
    }
    Ok(())
}

/// Whether this system runs programs of another one: its own processor, and for Linux any C
/// library.
fn runs_here(target: &str) -> bool {
    let system = match std::env::consts::OS {
        "macos" => "-apple-darwin",
        "windows" => "-windows-",
        system => system,
    };
    target.starts_with(std::env::consts::ARCH) && target.contains(system)
}

/// Follows the README's lines for one's own table, in a shell that finds the program and nothing of
/// Rust.
fn program_works(
    target: &str,
    artefacts: &Artefacts,
    readme: &str,
    place: &Path,
    summary: &mut Summary,
) -> anyhow::Result<()> {
    fs::create_dir(place)?;
    // The archive by its name alone: GNU's tar takes what stands before a colon, as after a drive's letter, for a machine.
    let mut unpack = Command::new("tar");
    unpack.args(["--extract", "--gzip", "--file", &program::archive(target), "--directory"]).arg(place);
    finish(unpack.current_dir(artefacts.folder()))?;
    let folder = place.join(program::folder_in_archive(target));
    let start = Instant::now();
    let block = block(readme, "sh", "fairdp fit")?;
    output(&mut shell(block, &folder, place)?)?;
    ensure!(place.join("run/release/statement.json").is_file(), "{target}: the README's lines left no statement");
    let seconds = start.elapsed().as_secs_f64();
    summary.done(format_args!("{target}: the README's lines for a table took {seconds:.1} s in an empty folder"))
}

/// A shell that runs these lines in a folder and stops at the first that fails.
fn shell(lines: &str, programs: &Path, folder: &Path) -> anyhow::Result<Command> {
    let mut command = Command::new("sh");
    command.args(["-euc", lines]).current_dir(folder);
    if cfg!(unix) {
        command.env_clear().env("HOME", folder).env("PATH", format!("{}:/usr/bin:/bin", programs.display()));
    } else {
        // Windows needs variables of its own, and has no folder of the system's programs alone.
        command.env("PATH", with_first(programs)?);
    }
    Ok(command)
}

/// Installs a wheel in an environment of its own and follows the README's lines for Python with a table.
fn wheel_works(python: &str, wheel: &Path, readme: &str, table: &Path, summary: &mut Summary) -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    fs::copy(table, place.path().join("table.csv"))?;
    let start = Instant::now();
    let python = environment(python, place.path(), &wheel.display().to_string())?;
    let seconds = start.elapsed().as_secs_f64();
    // The first import compiles Python's files.
    let import = || -> anyhow::Result<f64> {
        let told = output(Command::new(&python).args(["-c", IMPORT]).current_dir(place.path()))?;
        told.trim().parse().context("milliseconds of an import")
    };
    import()?;
    let milliseconds =
        (0..5).map(|_| import()).collect::<anyhow::Result<Vec<_>>>()?.into_iter().fold(f64::MAX, f64::min);
    let start = Instant::now();
    let mut lines = Command::new(&python);
    lines.args(["-W", "ignore", "-c", block(readme, "python", "fairdp.fit")?]).current_dir(place.path());
    let told = output(&mut lines)?;
    summary.done(format_args!(
        "{}: installed in {seconds:.1} s, imported in {milliseconds:.1} ms; the README's lines took {:.1} s \
         and printed: {}",
        output(Command::new(&python).arg("--version"))?.trim(),
        start.elapsed().as_secs_f64(),
        told.trim()
    ))?;
    if milliseconds > LONGEST_IMPORT_MS {
        summary
            .missed(format_args!("the import took {milliseconds:.1} ms; at most {LONGEST_IMPORT_MS} are promised"))?;
    }
    Ok(())
}

/// Installs a wheel with scikit-learn in an environment of its own, and fits a classifier.
fn classifier_works(python: &str, wheel: &Path, summary: &mut Summary) -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    let python = environment(python, place.path(), &format!("{}[sklearn]", wheel.display()))?;
    let mut fit = Command::new(&python);
    let told = output(fit.args(["-W", "ignore", "-c", CLASSIFIER]).current_dir(place.path()))?;
    let version = output(Command::new(&python).arg("--version"))?;
    summary.done(format_args!("{} with scikit-learn: {}", version.trim(), told.trim()))
}

/// Makes an environment with a package and what it needs; returns its Python.
fn environment(python: &str, place: &Path, package: &str) -> anyhow::Result<PathBuf> {
    let environment = place.join("environment");
    finish(Command::new(python).args(["-m", "venv"]).arg(&environment))?;
    let python = programs_of(&environment).join("python");
    finish(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]))?;
    Ok(python)
}

/// The standard of manylinux that a wheel keeps to, by what `auditwheel show` printed.
///
/// # Errors
/// If it keeps to none, or to one for newer systems than is promised.
fn standard(told: &str) -> anyhow::Result<String> {
    let tag = told.split_once('"').and_then(|(_, rest)| rest.split_once('"')).map_or("", |(tag, _)| tag);
    let minor = tag.strip_prefix("manylinux_2_").and_then(|rest| rest.split('_').next());
    let promised = program::GLIBC.rsplit('.').next().and_then(|minor| minor.parse::<u32>().ok());
    let is_kept = minor.and_then(|minor| minor.parse().ok()).is_some_and(|minor| Some(minor) <= promised);
    ensure!(is_kept, "auditwheel: expected a wheel for glibc {} or older\n{told}", program::GLIBC);
    Ok(tag.to_owned())
}

/// The block of a page in this language that has these words.
///
/// # Errors
/// If there is none.
fn block<'a>(page: &'a str, language: &str, words: &str) -> anyhow::Result<&'a str> {
    let fence = format!("```{language}\n");
    let blocks = page.split(&fence).skip(1).filter_map(|rest| rest.split("```").next());
    blocks
        .into_iter()
        .find(|block| block.contains(words))
        .with_context(|| format!("README.md: no {language} block with `{words}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_found_by_its_words() {
        let page = "```sh\ncargo test\n```\n\n```sh\nfairdp fit c.toml\n```\n";
        assert_eq!(block(page, "sh", "fairdp fit").unwrap(), "fairdp fit c.toml\n");
        assert!(block(page, "python", "fairdp fit").is_err());
    }

    #[test]
    fn a_wheel_for_newer_systems_is_refused() {
        let told = |tag: &str| format!("a.whl is consistent with the following platform tag: \"{tag}\".\n");
        assert_eq!(standard(&told("manylinux_2_17_x86_64")).unwrap(), "manylinux_2_17_x86_64");
        assert_eq!(standard(&told("manylinux_2_5_x86_64")).unwrap(), "manylinux_2_5_x86_64");
        assert!(standard(&told("manylinux_2_28_x86_64")).is_err());
        assert!(standard(&told("linux_x86_64")).is_err());
        assert!(standard("").is_err());
    }
}
