//! A run that is killed, at any moment and more than once, ends as the run left alone: bit for bit,
//! every file of the release.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::program::{declared, done};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Every file of a release.
fn release(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(folder.join("release")).unwrap().map(Result::unwrap);
    files.map(|file| (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap())).collect()
}

/// Kills runs at random moments and continues them. Returns the kills that met a run.
fn kill(times: usize, rows: u64, change: impl Fn(&str) -> String) -> usize {
    let folder = declared(rows, |config| change(&config));
    let here = folder.path();
    let fit = ["fit", "fairdp.toml", "--seed", "3", "-q", "--out"];
    let begun = Instant::now();
    done(here, &[&fit[..], &["alone"]].concat());
    let (whole, alone) = (begun.elapsed().as_secs_f64(), release(&here.join("alone")));
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut met = 0;
    while met < times {
        let _ = fs::remove_dir_all(here.join("killed"));
        for resume in [&["killed"][..], &["killed", "--resume"]] {
            if !here.join("killed/private").exists() && resume.len() > 1 {
                continue;
            }
            let arguments = [&fit[..], resume].concat();
            let mut command = Command::new(env!("CARGO_BIN_EXE_fairdp"));
            let mut child = command.current_dir(here).args(arguments).stdout(Stdio::null()).spawn().unwrap();
            std::thread::sleep(Duration::from_secs_f64(whole * rng.random::<f64>()));
            met += usize::from(child.try_wait().unwrap().is_none());
            child.kill().unwrap();
            child.wait().unwrap();
            if here.join("killed/release").exists() {
                break;
            }
        }
        let is_there = here.join("killed/private").exists();
        let resume = [&fit[..], if is_there { &["killed", "--resume"] } else { &["killed"] }].concat();
        if here.join("killed/release").exists() {
            // Killed in its last acts, it may have left its key, which is removed now.
            done(here, &[&fit[..], &["killed", "--resume"]].concat());
        } else {
            done(here, &resume);
        }
        assert!(alone == release(&here.join("killed")), "after {met} kills");
        let mut private: Vec<_> =
            fs::read_dir(here.join("killed/private")).unwrap().map(|e| e.unwrap().file_name()).collect();
        private.sort();
        assert_eq!(private.len(), 4, "{private:?}");
        done(here, &["verify", "killed"]);
    }
    met
}

fn network(config: &str) -> String {
    config.replace("kind = \"auto\"", "kind = \"mlp\"").replace("name = \"auto\"", "name = \"auto\"\nsteps = 200")
}

#[test]
fn a_few_kills_lose_nothing() {
    assert!(kill(3, 20_000, str::to_owned) >= 3);
    assert!(kill(3, 6_000, network) >= 3);
}

/// `cargo test --release -p fairdp --test suite two_hundred -- --ignored`
#[test]
#[ignore = "takes a quarter of an hour; its result is in docs/benchmarks/tables.md"]
fn two_hundred_kills_lose_nothing() {
    assert!(kill(100, 20_000, str::to_owned) >= 100);
    assert!(kill(100, 6_000, network) >= 100);
}
