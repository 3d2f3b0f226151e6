//! Two runs that have one key, and tables that differ in one label.

use std::fs;
use std::io::Write as _;
use std::ops::{ControlFlow, RangeInclusive};
use std::path::Path;

use dp_accounting::DpEvent;
use dp_clipping::noise::GRID;
use dp_table::Example;

use super::run::shares;
use super::{FitOptions, Fitted, Progress, fit};
use crate::config::Config;
use crate::error::FairdpError;
use crate::hook;
use crate::init::{InitOptions, init};
use crate::key::DrawnKey;
use crate::subset::Subset;
use crate::subsets::Division;

const N_ROWS: u64 = 3_000;
const TUNING: &str = "\n[tuning]\nmean_trials = 1.5\nvalidation = 0.2\n\n[[tuning.candidate]]\n\n\
                      [[tuning.candidate]]\nmethod = { name = \"dpsgd\", steps = 5, sampling_rate = 0.5 }\n";

const CHANGES: [fn(&str) -> String; 4] = [str::to_owned, private_bounds, tuning, network];

/// A table, and a configuration for it that is changed. Its budget always finds private bounds.
fn prepared(change: impl Fn(&str) -> String) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    let mut csv = Vec::new();
    Example { rows: N_ROWS, ..Example::default() }.write(&mut csv).unwrap();
    fs::write(&path, csv).unwrap();
    let options = InitOptions { label: "outcome".into(), test_fraction: Some(0.0), ..InitOptions::default() };
    let config = init(&[path.to_string_lossy().into_owned()], &options).unwrap();
    let config = config.replace("from = \"data\"", "public = true").replace("epsilon = 1", "epsilon = 8");
    fs::write(folder.path().join("fairdp.toml"), change(&config)).unwrap();
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

/// Releases of a run under this key.
struct Released {
    files: [Vec<u8>; 2],
    /// Records of the last class: the released share of it, times the number of training records.
    count: f64,
    /// The range in which a difference of 1 between two counts appears.
    one: RangeInclusive<f64>,
}

/// A difference of 1 between two counts under the same noise, as a release shows it.
///
/// A count and its noise are rounded together, to steps of 1/256 of the noise's standard deviation:
/// 1 becomes the whole number of steps below or above it. At ε = 8 the standard deviation is 8.49,
/// a step is 0.0332 and 1 is 30 steps, 0.995, or 31, 1.028. (At ε = 1 and 30,000 records it is
/// 52.8, a step is 0.206, and 1 is 4 steps, 0.824, or 5, 1.030: no number of records shows 1
/// better.) Shares are of the total of the noisy counts, which differs from the number of records
/// by the noise of both, here by 0.4 %.
fn one(fitted: &Fitted) -> RangeInclusive<f64> {
    let counts = fitted.statement.events.iter().find(|event| event.purpose == "class counts").unwrap();
    let DpEvent::Gaussian { noise_multiplier } = counts.event else { panic!("{:?}", counts.event) };
    let std = noise_multiplier.get();
    let step = std / GRID;
    let spread = 5.0 * 2_f64.sqrt() * std / fitted.statement.records["training"] as f64;
    (step.recip().floor() * step * (1.0 - spread))..=(step.recip().ceil() * step * (1.0 + spread))
}

fn release(here: &Path, out: &str) -> Released {
    let go_on = &mut |_: Progress<'_>| ControlFlow::Continue(());
    let fitted = fit(&here.join("fairdp.toml"), &FitOptions::new(here.join(out)), go_on).unwrap();
    let files = ["model.safetensors", "pipeline.json"];
    let files = files.map(|name| fs::read(here.join(out).join("release").join(name)).unwrap());
    let pipeline: serde_json::Value = serde_json::from_slice(&files[1]).unwrap();
    let count = pipeline["priors"][1].as_f64().unwrap() * fitted.statement.records["training"] as f64;
    Released { files, count, one: one(&fitted) }
}

/// A key under which the first record is one to train on.
fn copied_key(here: &Path) -> DrawnKey {
    let shares = shares(&Config::read(&here.join("fairdp.toml")).unwrap());
    let is_training = |key: &DrawnKey| Division { shares, key }.part(0) == Subset::Training;
    let mut keys = std::iter::repeat_with(|| DrawnKey::new(None).unwrap());
    keys.find(is_training).unwrap()
}

/// Whether a turned label shows as a difference of 1 between the counts that two runs under one key
/// release, each of three times; and whether the same table has the same release.
///
/// The difference of two counts with noise of their own has a standard deviation of 9.6: by chance
/// it is in the range, 0.07 wide, of either sign three times in turn once in 4·10⁶ times.
fn attack(change: fn(&str) -> String) -> (bool, bool) {
    let folder = prepared(change);
    let here = folder.path();
    let once = |number: usize| {
        hook::COPIED_KEY.set(Some(copied_key(here)));
        let [one, again] = ["one", "again"].map(|out| release(here, &format!("{out}{number}")));
        turn_a_label(here);
        let other = release(here, &format!("other{number}"));
        hook::COPIED_KEY.set(None);
        (one.one.contains(&(one.count - other.count).abs()), one.files == again.files)
    };
    let times = [1, 2, 3].map(once);
    (times.iter().all(|(is_one, _)| *is_one), times.iter().all(|(_, is_same)| *is_same))
}

fn private_bounds(config: &str) -> String {
    let lines = config.lines().map(|line| if line.starts_with("low = ") { "bounds = \"private\"" } else { line });
    lines.filter(|line| !line.starts_with("high = ") && !line.starts_with("bins = ")).collect::<Vec<_>>().join("\n")
}

fn tuning(config: &str) -> String {
    config.to_owned() + TUNING
}

fn network(config: &str) -> String {
    config.replace("kind = \"auto\"", "kind = \"mlp\"").replace("name = \"auto\"", "name = \"auto\"\nsteps = 5")
}

#[test]
fn two_tables_have_unlike_noise_under_one_key() {
    for change in CHANGES {
        assert_eq!(attack(change), (false, true));
    }
}

#[test]
fn a_key_before_the_digest_is_found() {
    hook::KEY_BEFORE_DIGEST.set(true);
    for change in CHANGES {
        assert_eq!(attack(change), (true, true));
    }
    hook::KEY_BEFORE_DIGEST.set(false);
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
                    assert!(matches!(error, FairdpError::Folder { .. }), "{error}");
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

/// A run does not read the copy of the encoded table that it keeps: turning all labels in it, at
/// every stage and after every step, changes no bit of the release.
#[test]
fn a_kept_table_that_changes_has_no_effect() {
    let folder = prepared(str::to_owned);
    let here = folder.path();
    hook::COPIED_KEY.set(Some(DrawnKey::new(None).unwrap()));
    let expected = release(here, "whole").files;
    let options = FitOptions { keep_encoded: true, ..FitOptions::new(here.join("changed")) };
    let kept = options.out.join("private/encoded");
    let mut n_changed = 0;
    fit(&here.join("fairdp.toml"), &options, &mut |_| {
        if let Ok(mut codes) = fs::read(&kept) {
            for byte in &mut codes {
                *byte ^= 1;
            }
            // In place: the file stays the one that it was.
            fs::OpenOptions::new().write(true).open(&kept).unwrap().write_all(&codes).unwrap();
            n_changed += 1;
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    hook::COPIED_KEY.set(None);
    assert!(n_changed > 100, "{n_changed}");
    let found =
        ["model.safetensors", "pipeline.json"].map(|name| fs::read(options.out.join("release").join(name)).unwrap());
    assert!(found == expected);
}
