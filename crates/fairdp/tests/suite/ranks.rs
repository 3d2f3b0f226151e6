//! A run on several ranks leaves what a run on one does, bit for bit.

use std::fs;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use fairdp::ranks::{Collective, in_process};
use fairdp::{FitOptions, fit};

use crate::program::declared;

/// The methods by their different ways to a sum: full descent, counts, a network, and a search over all of them.
const METHODS: [(&str, &str); 3] = [
    ("\"additive\"", "\"auto\""),
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
            })
        })
        .collect();
    folders.push(declared(14_000, |config| config + TUNING));
    folders
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
        let run = |out: &str, ranks: Arc<dyn Collective>| {
            let options = FitOptions {
                seed: Some(5),
                threads: NonZeroUsize::new(1 + ranks.rank()).unwrap(),
                ledger: Some(folder.path().join(format!("{out}.ledger"))),
                reference: true,
                keep_encoded: true,
                ranks,
                ..FitOptions::new(folder.path().join(out))
            };
            fit(&folder.path().join("fairdp.toml"), &options, &mut |_| ControlFlow::Continue(()))
                .unwrap()
                .statement
                .epsilon
        };
        let run = &run;
        for size in [1, 2, 3] {
            let out = &*format!("r{size}");
            let epsilons: Vec<f64> = thread::scope(|scope| {
                let threads: Vec<_> =
                    in_process(size).into_iter().map(|ranks| scope.spawn(move || run(out, ranks))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert!(epsilons.iter().all(|epsilon| *epsilon == epsilons[0]));
            assert!(release(&folder.path().join("r1")) == release(&folder.path().join(out)), "{size} ranks");
        }
    }
}

#[cfg(feature = "mpi")]
mod under_a_launcher {
    use std::process::{Command, Output};
    use std::time::Duration;

    use super::*;
    use crate::program::{done, text};

    /// The program on so many processes.
    fn launch(here: &Path, n: usize, arguments: &[&str]) -> Command {
        let mut command = Command::new("mpirun");
        command
            .current_dir(here)
            .envs([
                ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
                ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
                ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
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
