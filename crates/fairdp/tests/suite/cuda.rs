//! `fit --device cuda`: what is refused, and runs on a device. Without a device, or in a build
//! without the feature `cuda`, tests of runs say that they were skipped.

use std::fs;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fairdp::ranks::{Collective, in_process};
use fairdp::{DeviceName, FairdpError, FitOptions, Fitted, FittedModel, fit};

use crate::program::{declared, done, refused};

/// Whether there is a device, or a line that says why there is none; a failure where `REQUIRE_CUDA`
/// is set.
fn has_device() -> bool {
    match DeviceName::Cuda(0).open() {
        Ok(_) => true,
        Err(error) => {
            assert!(std::env::var_os("REQUIRE_CUDA").is_none(), "no CUDA device: {error}");
            println!("skipped: no CUDA device ({error})");
            false
        }
    }
}

/// A small network, whose steps each draw every second record.
fn network(steps: u64) -> tempfile::TempDir {
    declared(2_500, |config| {
        config
            .replace("kind = \"auto\"", "kind = \"mlp\"\nhidden = [4]")
            .replace("name = \"auto\"", &format!("name = \"auto\"\nsteps = {steps}\nsampling_rate = 0.5"))
    })
}

fn options(out: &Path) -> FitOptions {
    FitOptions { seed: Some(1), threads: NonZeroUsize::MIN.saturating_add(1), ..FitOptions::new(out) }
}

fn trained(here: &Path, options: &FitOptions) -> Fitted {
    fit(&here.join("fairdp.toml"), options, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn weights(out: &Path) -> Vec<u8> {
    fs::read(out.join("release/model.safetensors")).unwrap()
}

#[test]
fn a_device_that_would_not_be_used_is_refused_before_any_work() {
    let folder = declared(2_500, |config| config);
    let here = folder.path();
    for device in ["cuda", "cuda:3", "cuda-tf32"] {
        let (code, message) = refused(here, &["fit", "fairdp.toml", "--out", "run", "--device", device]);
        assert_eq!(code, 2, "{message}");
        assert!(message.starts_with("error: device = cuda"), "{message}");
        assert!(message.contains(": expected cpu for the additive model with method \"auto\""), "{message}");
        assert!(!here.join("run").exists());
    }
    let (code, message) = refused(here, &["fit", "fairdp.toml", "--out", "run", "--device", "gpu"]);
    assert_eq!(code, 2, "{message}");
    assert!(message.contains("device = gpu: expected cpu, cuda, cuda:N, cuda-tf32 or cuda-tf32:N"), "{message}");
}

#[cfg(not(feature = "cuda"))]
#[test]
fn a_build_without_cuda_names_the_option_and_the_feature() {
    let folder = network(10);
    let here = folder.path();
    let (code, message) = refused(here, &["fit", "fairdp.toml", "--out", "run", "--device", "cuda:1"]);
    assert_eq!(code, 2, "{message}");
    assert_eq!(
        message,
        "error: device = cuda:1: expected a build with the feature `cuda`; this one has the CPU alone\n"
    );
    assert!(!here.join("run").exists());
}

/// Both devices have gradients in single precision, so that weights, which are below 2 here, agree to
/// 1e-4. Passes in TF32 end 4e-4 away.
#[test]
fn a_run_on_a_device_repeats_and_its_release_holds() {
    if !has_device() {
        return;
    }
    let folder = network(10);
    let here = folder.path();
    for out in ["a", "b"] {
        done(here, &["fit", "fairdp.toml", "--out", out, "--seed", "1", "-q", "--reference", "--device", "cuda"]);
    }
    done(here, &["fit", "fairdp.toml", "--out", "cpu", "--seed", "1", "-q", "--device", "cpu"]);
    assert!(weights(&here.join("a")) == weights(&here.join("b")));
    done(here, &["verify", "a"]);
    let log = fs::read_to_string(here.join("a/private/log.txt")).unwrap();
    assert!(log.contains("training on cuda:0"), "{log}");
    let layers = |out: &str| FittedModel::load(&here.join(out).join("release")).unwrap().layers().to_vec();
    for (on_device, on_cpu) in layers("a").iter().zip(layers("cpu")) {
        for (a, b) in on_device.weights.iter().zip(on_cpu.weights) {
            assert!((a - b).abs() < 1e-4, "{a} on the device, {b} on the CPU");
        }
    }
}

#[test]
fn a_run_that_began_on_a_device_continues_there_alone() {
    if !has_device() {
        return;
    }
    let folder = network(100);
    let here = folder.path();
    let on_device = |out: &str| FitOptions { device: DeviceName::Cuda(0), ..options(&here.join(out)) };
    trained(here, &on_device("whole"));
    let kept = here.join("killed/private/training.safetensors");
    let mut end = |_: fairdp::Progress<'_>| {
        thread::sleep(Duration::from_millis(20));
        if kept.exists() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let ended = fit(&here.join("fairdp.toml"), &on_device("killed"), &mut end);
    assert!(matches!(ended, Err(FairdpError::Interrupted)), "{ended:?}");
    let resume = ["fit", "fairdp.toml", "--out", "killed", "--resume", "-q"];
    let (code, message) = refused(here, &resume);
    assert_eq!(code, 1, "{message}");
    assert!(message.contains("is of another run: execution.device: \"cpu\" here, \"cuda "), "{message}");
    done(here, &[&resume[..], &["--device", "cuda:0"]].concat());
    assert!(weights(&here.join("whole")) == weights(&here.join("killed")));
}

/// Each rank has a device. With the feature `nccl` sums go from device to device.
#[test]
fn a_run_of_ranks_on_a_device_each_is_that_of_one() {
    if !has_device() {
        return;
    }
    if let Err(error) = DeviceName::Cuda(1).open() {
        return println!("skipped: fewer than 2 CUDA devices ({error})");
    }
    let folder = network(10);
    let here = folder.path();
    let run = |out: &Path, ranks: Arc<dyn Collective>| {
        let device = DeviceName::Cuda(ranks.rank());
        trained(here, &FitOptions { device, ranks, ..options(out) });
    };
    for size in [1, 2] {
        let out = here.join(size.to_string());
        let (run, out) = (&run, &out);
        thread::scope(|scope| {
            for ranks in in_process(size) {
                scope.spawn(move || run(out, ranks));
            }
        });
    }
    assert!(weights(&here.join("1")) == weights(&here.join("2")));
}
