//! A run on several ranks leaves what a run on one does, bit for bit.

use std::fs;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use fairdp::ranks::{Collective, in_process};
use fairdp::{FitOptions, fit};

use crate::program::{declared, done, private_bounds};

/// The methods by their different ways to a sum: full descent, whitened blocks, counts, a network, and a search over
/// all of them.
const METHODS: [(&str, &str); 4] = [
    ("\"additive\"", "\"auto\""),
    ("\"additive\"", "\"conditioned-fair\""),
    ("\"additive\"", "\"dpsgd-f\"\nsampling_rate = 0.1\nsteps = 30"),
    ("\"mlp\"\nhidden = [5]", "\"auto\"\nsteps = 30"),
];

const TUNING: &str = "\n[tuning]\nmean_trials = 8\nvalidation = 0.2\n\n[[tuning.candidate]]\n\n\
                      [[tuning.candidate]]\nmethod = { name = \"dpsgd\", steps = 30, sampling_rate = 0.5 }\n";

/// Every configuration, in a folder of its own; enough records for several blocks.
fn folders() -> Vec<tempfile::TempDir> {
    let mut folders: Vec<_> = METHODS
        .iter()
        .map(|(model, method)| {
            declared(14_000, |config| {
                config
                    .replace("kind = \"auto\"", &format!("kind = {model}"))
                    .replace("name = \"auto\"", &format!("name = {method}"))
                    // The method has decisions of its own.
                    .replace(
                        "decision = \"compromise\"",
                        if method.contains("-fair") { "" } else { "decision = \"compromise\"" },
                    )
            })
        })
        .collect();
    folders.push(declared(14_000, |config| config + TUNING));
    folders.push(declared(14_000, |config| private_bounds(&config)));
    folders.extend([with_units("auto"), with_units("adaptive")]);
    folders.extend([with_units_in_both_tables("auto"), with_units_in_both_tables("adaptive")]);
    folders
}

/// Patients whose three records are far apart, so that several ranks have some of them; of each two
/// are used.
fn with_units(method: &str) -> tempfile::TempDir {
    let folder = declared(12_000, |config| config);
    let here = folder.path();
    let table = fs::read_to_string(here.join("table.csv")).unwrap();
    let mut lines = table.lines();
    let mut of_patients = format!("patient_id,{}\n", lines.next().unwrap());
    for (row, line) in lines.enumerate() {
        of_patients.push_str(&format!("p{},{line}\n", row % 4_000));
    }
    fs::write(here.join("table.csv"), of_patients).unwrap();
    let init =
        ["init", "table.csv", "--label", "outcome", "--group", "group", "--unit", "patient_id", "--epsilon", "2"];
    let config = done(here, &[&init[..], &["--max-records-per-unit", "2"]].concat());
    let config = config.replace("from = \"data\"", "public = true");
    fs::write(here.join("fairdp.toml"), config.replace("name = \"auto\"", &format!("name = \"{method}\""))).unwrap();
    folder
}

/// The same with a test table, of which three patients in four are trained on, too.
fn with_units_in_both_tables(method: &str) -> tempfile::TempDir {
    let folder = with_units(method);
    let here = folder.path();
    let (table, test) = (here.join("table.csv"), here.join("test.csv"));
    let rows = fs::read_to_string(&table).unwrap();
    let kept = rows.lines().enumerate().filter(|(line, _)| *line == 0 || (line - 1) % 4_000 < 3_000);
    let kept: Vec<_> = kept.map(|(_, row)| row).collect();
    fs::write(&test, &rows).unwrap();
    fs::write(&table, kept.join("\n")).unwrap();
    let config = fs::read_to_string(here.join("fairdp.toml")).unwrap();
    let files = format!("files = [{:?}]", test.to_str().unwrap());
    fs::write(here.join("fairdp.toml"), config.replace("fraction = 0.2", &files)).unwrap();
    folder
}

/// What a release holds that does not name the program.
fn release(out: &Path) -> Vec<Vec<u8>> {
    ["model.safetensors", "pipeline.json", "fairness.json"]
        .map(|name| fs::read(out.join("release").join(name)).unwrap())
        .into()
}

#[test]
fn a_release_is_the_same_on_any_number_of_ranks() {
    for folder in folders() {
        let run = |out: &str, is_whole: bool, ranks: Arc<dyn Collective>| {
            let options = FitOptions {
                seed: Some(5),
                threads: NonZeroUsize::new(1 + ranks.rank()).unwrap(),
                ledger: Some(folder.path().join(format!("{out}.ledger"))),
                reference: is_whole,
                keep_encoded: is_whole,
                ranks,
                ..FitOptions::new(folder.path().join(out))
            };
            fit(&folder.path().join("fairdp.toml"), &options, &mut |_| ControlFlow::Continue(()))
                .unwrap()
                .statement
                .epsilon
        };
        let run = &run;
        // With a reference every rank reads the whole table, else its own rows.
        for (size, is_whole) in [(1, false), (2, false), (3, false), (2, true)] {
            let out = &*format!("r{size}{is_whole}");
            let epsilons: Vec<f64> = thread::scope(|scope| {
                let threads: Vec<_> =
                    in_process(size).into_iter().map(|ranks| scope.spawn(move || run(out, is_whole, ranks))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert!(epsilons.iter().all(|epsilon| *epsilon == epsilons[0]));
            let alone = folder.path().join("r1false");
            assert!(release(&alone) == release(&folder.path().join(out)), "{size} ranks");
            if !is_whole {
                let [alone, here] = [&*alone, &folder.path().join(out)]
                    .map(|out| fs::read(out.join("private/diagnostics.json")).unwrap());
                assert!(alone == here, "{size} ranks: diagnostics");
            }
        }
    }
}

#[cfg(feature = "mpi")]
mod under_a_launcher {
    use std::process::{Command, Output};
    use std::time::Duration;

    use super::*;
    use crate::program::text;

    /// The program on so many processes.
    fn launch(here: &Path, n: usize, arguments: &[&str]) -> Command {
        let mut command = Command::new("mpirun");
        command
            .current_dir(here)
            .envs([
                ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
                ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
                ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
                ("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"),
            ])
            .args(["-n", &n.to_string(), env!("CARGO_BIN_EXE_fairdp")])
            .args(arguments);
        command
    }

    fn launched(here: &Path, n: usize, arguments: &[&str]) -> Output {
        launch(here, n, arguments).output().unwrap()
    }

    #[test]
    fn a_release_is_the_same_under_mpirun() {
        for folder in folders() {
            let here = folder.path();
            done(here, &["fit", "fairdp.toml", "--seed", "5", "-q", "--out", "alone"]);
            for n in [1, 2, 3, 4] {
                let out = format!("r{n}");
                let output =
                    launched(here, n, &["fit", "fairdp.toml", "--seed", "5", "-q", "--out", &out, "--threads", "1"]);
                assert!(output.status.success(), "{n}: {}{}", text(&output.stdout), text(&output.stderr));
                assert!(release(&here.join("alone")) == release(&here.join(&out)), "{n} processes");
                done(here, &["verify", &out]);
            }
        }
    }

    /// A row that does not fit is named as by one process, whoever has it.
    #[test]
    fn a_bad_row_is_named_as_by_one_process() {
        let folder = declared(9_000, |config| config);
        let here = folder.path();
        let table = fs::read_to_string(here.join("table.csv")).unwrap();
        let bad = |(row, line): (usize, &str)| {
            if [4_000, 8_000].contains(&row) { format!("{line},x\n") } else { format!("{line}\n") }
        };
        fs::write(here.join("table.csv"), table.lines().enumerate().map(bad).collect::<String>()).unwrap();
        let output = launched(here, 3, &["fit", "fairdp.toml", "-q", "--out", "run"]);
        assert!(text(&output.stderr).contains("table.csv:4001: "), "{}", text(&output.stderr));
        assert!(!text(&output.stderr).contains(":8001"), "{}", text(&output.stderr));
    }

    #[test]
    fn a_refusal_ends_all_processes_with_its_exit_code() {
        let folder = declared(3_000, |config| config.replace("epsilon = 1\n", "epsilon = 0.0001\n"));
        let output = launched(folder.path(), 3, &["fit", "fairdp.toml", "-q", "--out", "run"]);
        assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("too few for"), "{}", text(&output.stderr));
        assert!(!folder.path().join("run/release").exists());
    }

    /// Processes that are killed, all or one of them, and the run goes on with another number.
    #[test]
    fn killed_processes_lose_nothing() {
        let folder = declared(14_000, |config| {
            config
                .replace("kind = \"auto\"", "kind = \"mlp\"")
                .replace("name = \"auto\"", "name = \"auto\"\nsteps = 300")
        });
        let here = folder.path();
        let fit = ["fit", "fairdp.toml", "--seed", "5", "-q", "--threads", "1", "--out"];
        done(here, &[&fit[..], &["alone"]].concat());
        let mut resume: &[&str] = &["killed"];
        for (n, milliseconds) in [(2, 900), (3, 1_900), (2, 2_600)] {
            let mut child = launch(here, n, &[&fit[..], resume].concat()).spawn().unwrap();
            thread::sleep(Duration::from_millis(milliseconds));
            // One of the program's processes; the launcher ends the others.
            let _ = Command::new("pkill").args(["-9", "-n", "-P", &child.id().to_string()]).status();
            let _ = child.wait().unwrap();
            if here.join("killed/release").exists() {
                break;
            }
            if here.join("killed/private").exists() {
                resume = &["killed", "--resume"];
            }
        }
        if !here.join("killed/release").exists() {
            done(here, &[&fit[..], resume].concat());
        }
        assert!(release(&here.join("alone")) == release(&here.join("killed")));
    }
}
