//! Two runs that have one key, and tables that differ in one label.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use dp_table::example::Example;

use super::{FitOptions, Progress, fit};
use crate::error::FairdpError;
use crate::init::{InitOptions, init};
use crate::key::{DrawnKey, planted};

const N_ROWS: u64 = 3_000;
const TUNING: &str = "\n[tuning]\nmean_trials = 1.5\nvalidation = 0.2\n\n[[tuning.candidate]]\n\n\
                      [[tuning.candidate]]\nmethod = { name = \"dpsgd\", steps = 5, sampling_rate = 0.5 }\n";

/// A table, and a configuration for it that is changed.
fn prepared(change: impl Fn(&str) -> String) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    let mut csv = Vec::new();
    Example { rows: N_ROWS, ..Example::default() }.write(&mut csv).unwrap();
    fs::write(&path, csv).unwrap();
    let options = InitOptions { label: "outcome".into(), test_fraction: Some(0.0), ..InitOptions::default() };
    let config = init(&[path.to_string_lossy().into_owned()], &options).unwrap();
    fs::write(folder.path().join("fairdp.toml"), change(&config.replace("from = \"data\"", "public = true"))).unwrap();
    folder
}

/// Turns the label of the first record.
fn turn_a_label(here: &Path) {
    let table = fs::read_to_string(here.join("table.csv")).unwrap();
    let (header, rows) = table.split_once('\n').unwrap();
    let (first, rest) = rows.split_once('\n').unwrap();
    let (features, label) = first.rsplit_once(',').unwrap();
    let label = if label == "yes" { "no" } else { "yes" };
    fs::write(here.join("table.csv"), format!("{header}\n{features},{label}\n{rest}")).unwrap();
}

/// A release, and the number of its training records of the last class as it says.
fn release(here: &Path, out: &str) -> (Vec<Vec<u8>>, f64) {
    let go_on = &mut |_: Progress<'_>| ControlFlow::Continue(());
    let fitted = fit(&here.join("fairdp.toml"), &FitOptions::new(here.join(out)), go_on).unwrap();
    let files = ["model.safetensors", "pipeline.json"];
    let files = files.map(|name| fs::read(here.join(out).join("release").join(name)).unwrap());
    let pipeline: serde_json::Value = serde_json::from_slice(&files[1]).unwrap();
    let count = pipeline["priors"][1].as_f64().unwrap() * fitted.statement.records["training"] as f64;
    (files.into(), count)
}

/// Whether a turned label shows as a difference of 1 between the counts that two runs under one key
/// release, twice; and whether the same table has the same release.
///
/// The noise of a count has a standard deviation of 50 and more: by chance a difference is within
/// 0.15 of 1 twice in turn once in 10⁵ times. Shares are of the total of the noisy counts, which is
/// the number of records within a few hundredths.
fn attack(change: fn(&str) -> String) -> (bool, bool) {
    let folder = prepared(change);
    let here = folder.path();
    let once = |number: usize| {
        planted::COPIED_KEY.set(Some(DrawnKey::new(None).unwrap()));
        let [one, again] = ["one", "again"].map(|out| release(here, &format!("{out}{number}")));
        turn_a_label(here);
        let other = release(here, &format!("other{number}"));
        planted::COPIED_KEY.set(None);
        (((one.1 - other.1).abs() - 1.0).abs() < 0.15, one == again)
    };
    let [first, second] = [once(1), once(2)];
    (first.0 && second.0, first.1 && second.1)
}

/// With a budget that always finds them.
fn private_bounds(config: &str) -> String {
    let config = config.replace("epsilon = 1", "epsilon = 8");
    let lines = config.lines().map(|line| if line.starts_with("low = ") { "bounds = \"private\"" } else { line });
    lines.filter(|line| !line.starts_with("high = ") && !line.starts_with("bins = ")).collect::<Vec<_>>().join("\n")
}

fn network(config: &str) -> String {
    config.replace("kind = \"auto\"", "kind = \"mlp\"").replace("name = \"auto\"", "name = \"auto\"\nsteps = 5")
}

#[test]
fn two_tables_have_unlike_noise_under_one_key() {
    let changes: [fn(&str) -> String; 4] =
        [str::to_owned, private_bounds, |config| config.to_owned() + TUNING, network];
    for change in changes {
        assert_eq!(attack(change), (false, true));
    }
}

#[test]
fn a_key_before_the_digest_is_found() {
    planted::KEY_BEFORE_DIGEST.set(true);
    let changes: [fn(&str) -> String; 2] = [str::to_owned, network];
    for change in changes {
        assert_eq!(attack(change), (true, true));
    }
    planted::KEY_BEFORE_DIGEST.set(false);
}

/// At every stage of a run: another fit of its folder is refused, with and without `resume`, before
/// and after the table has changed, and the run ends as if nobody had asked.
#[test]
fn a_folder_is_one_runs() {
    let changes: [fn(&str) -> String; 2] = [str::to_owned, private_bounds];
    for change in changes {
        let folder = prepared(change);
        let (here, config) = (folder.path(), folder.path().join("fairdp.toml"));
        let options = FitOptions::new(here.join("run"));
        let mut n_refused = 0;
        fit(&config, &options, &mut |progress| {
            if matches!(progress, Progress::Stage(_)) || matches!(progress, Progress::Step { done: 50, .. }) {
                for resume in [true, false] {
                    let options = FitOptions { resume, ..options.clone() };
                    let error = fit(&config, &options, &mut |_| ControlFlow::Continue(())).unwrap_err();
                    assert!(matches!(error, FairdpError::Refused(_)), "{error}");
                    assert!(!resume || error.to_string().contains("is in use"), "{error}");
                    n_refused += 1;
                }
            }
            ControlFlow::Continue(())
        })
        .unwrap();
        assert!(n_refused >= 6, "{n_refused}");
        assert!(here.join("run/release").exists());
        let error = fit(&config, &FitOptions { resume: true, ..options }, &mut |_| ControlFlow::Continue(()));
        assert!(error.unwrap_err().to_string().contains("holds a release"));
    }
}

/// A table that changes between two passes over it, or between a run and its continuation.
#[test]
fn a_table_that_changes_is_refused() {
    // Bounds are made in a pass before the one that encodes.
    let folder = prepared(private_bounds);
    let (here, config) = (folder.path(), folder.path().join("fairdp.toml"));
    let options = FitOptions { resume: true, ..FitOptions::new(here.join("run")) };
    fs::create_dir_all(options.out.join("private")).unwrap();
    let refusal = fit(&config, &options, &mut |progress| {
        if matches!(progress, Progress::Stage(stage) if stage.starts_with("reading")) {
            turn_a_label(here);
        }
        ControlFlow::Continue(())
    });
    let refusal = refusal.unwrap_err().to_string();
    assert!(refusal.contains("is not the one that the run began with"), "{refusal}");
    // With the first table again it goes on.
    turn_a_label(here);
    fit(&config, &options, &mut |_| ControlFlow::Continue(())).unwrap();

    // Ended before its key was bound: another run, whatever the table. Afterwards: the same table.
    let folder = prepared(str::to_owned);
    let (here, config) = (folder.path(), folder.path().join("fairdp.toml"));
    for (stage, is_bound) in [("reading", false), ("of 100", true)] {
        let options = FitOptions { resume: true, ..FitOptions::new(here.join(&stage[..2])) };
        fs::create_dir_all(options.out.join("private")).unwrap();
        let ended = fit(&config, &options, &mut |progress| {
            let is_there = match progress {
                Progress::Stage(now) => now.starts_with(stage),
                Progress::Step { done, .. } => is_bound && done == 3,
            };
            if is_there { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(matches!(ended, Err(FairdpError::Interrupted)));
        assert_eq!(options.out.join("private/checkpoint.json").exists(), is_bound);
        turn_a_label(here);
        let continued = fit(&config, &options, &mut |_| ControlFlow::Continue(()));
        assert_eq!(continued.is_err(), is_bound, "{continued:?}");
    }
}
