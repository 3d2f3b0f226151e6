//! What is exercised: commands that write, files that are read.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use faults::flips::Stored;
use faults::{Operation, Program};

/// Everything to put faults into.
pub(super) struct Prepared {
    pub(super) operations: Vec<Operation>,
    pub(super) stored: Vec<Stored>,
}

/// Two runs of seconds, on generated records, with nothing random in them.
const STUDY: &str = "reproduce adult --quick --seeds 1 --methods dpsgd --table xu2021-table-1 --seed 5 --threads 1 --offline \
                     --cache-dir cache --out o";
const CASE: &str = "{\"id\":1,\"sampling_rate\":0.01,\"noise_multiplier\":1,\"steps\":1000,\"delta\":1e-5}\n";
const EVENT: &str = "{\"self-composed\":{\"count\":10,\"event\":{\"gaussian\":{\"noise_multiplier\":2.0}}}}";

/// Folders with what commands need, below `root`.
///
/// # Errors
/// If a command fails without a fault.
pub(super) fn prepare(program: &Program, root: &Path) -> anyhow::Result<Prepared> {
    let folder = |name: &str| {
        let path = root.join(name);
        fs::create_dir_all(&path).with_context(|| format!("creating {}", path.display()))?;
        Ok::<PathBuf, anyhow::Error>(path)
    };
    let put =
        |path: PathBuf, bytes: &[u8]| fs::write(&path, bytes).with_context(|| format!("writing {}", path.display()));
    let run = |folder: &Path, line: &str| {
        let ending = program.run(folder, &words(line))?;
        ensure!(ending.is_success(), "{line}: {}", ending.error());
        Ok(ending)
    };
    let whole = folder("whole")?;
    run(&whole, STUDY)?;
    let o = whole.join("o");
    let records = read(&o.join("records.db"))?;

    let empty = folder("empty")?;
    put(empty.join("notes.txt"), b"a user's")?;
    let half = folder("half/o")?;
    run(&root.join("half"), &STUDY.replace("dpsgd", "non-private"))?;
    ensure!(half.join("records.db").exists(), "no records in {}", half.display());

    let export = folder("export")?;
    put(export.join("r.db"), &records)?;
    put(export.join("t.csv"), b"an earlier export")?;

    let merge = folder("merge")?;
    for part in ["1", "2"] {
        run(&merge, &format!("{STUDY} --shard {part}/2 --records part-{part}.db"))?;
    }
    remove(&merge, &["o", "cache"])?;

    let toy = folder("toy")?;
    run(&toy, "reproduce toy --steps 20 --out toy")?;
    put(toy.join("toy/notes.txt"), b"a user's")?;

    let again = folder("again")?;
    run(&again, STUDY)?;
    remove(&again, &["cache"])?;
    put(again.join("results.json"), &read(&o.join("results.json"))?)?;

    let checkpoint = folder("checkpoint")?;
    folder("checkpoint/run")?;

    let show = "results export o/records.db";
    let operation = |name, before: &Path, line: &str, views: &[&str], timed: &[&'static str]| Operation {
        name,
        before: before.to_owned(),
        arguments: words(line),
        views: views.iter().map(|view| words(view)).collect(),
        timed: timed.to_vec(),
    };
    let resume = format!("{STUDY} --resume");
    let operations = vec![
        operation("reproduce, from nothing", &empty, &resume, &[show], &["o/", "cache/"]),
        operation("reproduce --resume", &root.join("half"), &resume, &[show], &["o/", "cache/"]),
        operation(
            "reproduce --from",
            &again,
            "reproduce adult --from results.json --out o",
            &[show],
            &["o/records.db"],
        ),
        operation("reproduce toy", &toy, "reproduce toy --steps 10 --out toy", &[], &[]),
        operation("results export", &export, "results export r.db --out t.csv", &[], &[]),
        operation(
            "results merge",
            &merge,
            "results merge m.db part-1.db part-2.db",
            &["results export m.db"],
            &["m.db"],
        ),
        operation("data synth", &empty, "data synth eicu --out d", &[], &[]),
        operation(
            "account --plot",
            &empty,
            "account --sampling-rate 0.01 --noise-multiplier 2 --steps 100 --delta 1e-5 --plot p.svg",
            &[],
            &[],
        ),
        operation("checkpoints", &checkpoint, "crash-test --steps 6 --run-in run", &[], &["run/"]),
    ];
    Ok(Prepared { operations, stored: stored(program, root, &o)? })
}

fn stored(program: &Program, root: &Path, o: &Path) -> anyhow::Result<Vec<Stored>> {
    let folder = |name: &str, files: &[(&str, Vec<u8>)]| {
        let path = root.join("stored").join(name);
        for (file, bytes) in files {
            let file = path.join(file);
            let parent = file.parent().unwrap_or(&path);
            fs::create_dir_all(parent).with_context(|| format!("creating {}", parent.display()))?;
            fs::write(&file, bytes).with_context(|| format!("writing {}", file.display()))?;
        }
        Ok::<PathBuf, anyhow::Error>(path)
    };
    let entry = |name, before: PathBuf, file, line: &str, result, is_sealed| Stored {
        name,
        before,
        file,
        arguments: words(line),
        result,
        is_sealed,
    };
    let records = folder("records", &[("r.db", read(&o.join("records.db"))?)])?;
    let results = folder("results", &[("results.json", read(&o.join("results.json"))?)])?;
    let packed = folder("packed", &[("runs.zst", read(&o.join("runs.zst"))?)])?;
    let table = program.run(o, &words("results export records.db"))?.output().to_vec();
    let metrics = folder("metrics", &[("metrics.csv", table)])?;
    let summary = folder("summary", &[])?;
    let run = |folder: &Path, line: &str| {
        let ending = program.run(folder, &words(line))?;
        ensure!(ending.is_success(), "{line}: {}", ending.error());
        Ok(())
    };
    fs::create_dir_all(&summary).context("a folder for a report")?;
    run(&summary, "reproduce toy --steps 10 --out toy")?;
    let checkpoint = root.join("stored/checkpoint");
    fs::create_dir_all(checkpoint.join("run")).context("a folder for a checkpoint")?;
    run(&checkpoint, "crash-test --steps 3 --run-in run")?;
    let cases = folder("cases", &[("cases.jsonl", CASE.repeat(20).into_bytes())])?;
    let event = folder("event", &[("event.json", EVENT.as_bytes().to_vec())])?;
    let mut all = vec![
        entry("records.db", records, "r.db", "results export r.db", None, true),
        entry("runs.zst", packed, "runs.zst", "reproduce adult --from runs.zst --out o", Some("o/report.md"), true),
        entry(
            "checkpoint",
            checkpoint,
            "run/run.safetensors",
            "crash-test --steps 3 --run-in run",
            Some("run/run.safetensors"),
            true,
        ),
        entry("results.json", results, "results.json", "reproduce adult --from results.json --out o", None, false),
        entry("metrics.csv", metrics, "metrics.csv", "reproduce adult --from metrics.csv --out o", None, false),
        entry("summary.json", summary, "toy/summary.json", "reproduce toy --steps 10 --out toy", None, false),
        entry("JSON lines", cases, "cases.jsonl", "account --jsonl cases.jsonl --accountant rdp", None, false),
        entry("an event", event, "event.json", "account --event event.json --delta 1e-5 --accountant rdp", None, false),
    ];
    for (name, set, file, is_zipped) in [
        ("data of eICU", "eicu", "data/gossis-1-eicu-only-model-ready.csv.gz", true),
        ("data of MIMIC", "mimic", "data/ADMISSIONS.csv.gz", true),
        ("data of CelebA", "celeba", "data/list_attr_celeba.txt", false),
    ] {
        let path = root.join("stored").join(set);
        fs::create_dir_all(&path).context("a folder for data")?;
        run(&path, &format!("data synth {set} --out data"))?;
        let line = format!("data check {set} --data-dir data --cache-dir cache");
        all.push(entry(name, path, file, &line, None, is_zipped));
    }
    Ok(all)
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("reading {}", path.display()))
}

fn remove(folder: &Path, names: &[&str]) -> anyhow::Result<()> {
    for name in names {
        let path = folder.join(name);
        if path.exists() {
            fs::remove_dir_all(&path).with_context(|| format!("removing {}", path.display()))?;
        }
    }
    Ok(())
}
