//! Vectors beside other columns: whitened by blocks, in one linear layer.

use std::fmt::Write as _;
use std::fs;

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::program::{done, json, killed_and_resumed, refused};

const LENGTH: usize = 24;

/// Records of three classes, or two: the vector's signal is in a direction that varies little beside
/// the others, and a number and a category tell something too.
fn table(rows: usize, classes: u32) -> String {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut table = "age,job,sex,embedding,y\n".to_owned();
    for row in 0..rows {
        let (age, job) = (rng.random_range(18..90), ["clerk", "nurse", "smith"][rng.random_range(0..3)]);
        let mut vector: Vec<f64> =
            (0..LENGTH).map(|place| rng.random_range(-1.0..1.0) * 0.5_f64.powf((place / 6) as f64) + 0.3).collect();
        let signal = vector[LENGTH - 1] - 0.3 + if age > 50 { 0.03 } else { -0.03 };
        let class =
            if classes == 2 { u32::from(signal > 0.0) } else { u32::from(signal > -0.02) + u32::from(signal > 0.05) };
        let norm = vector.iter().map(|value| value * value).sum::<f64>().sqrt();
        for value in &mut vector {
            *value /= norm;
        }
        let texts: Vec<String> = vector.iter().map(|value| format!("{value:.6}")).collect();
        let sex = ["f", "m"][row % 2];
        writeln!(table, "{age},{job},{sex},\"[{}]\",{class}", texts.join(" ")).unwrap();
    }
    table
}

fn config(classes: u32, method: &str) -> String {
    let classes: Vec<String> = (0..classes).map(|class| format!("\"{class}\"")).collect();
    format!(
        "version = 1\n[table]\nfiles = [\"table.csv\"]\n[label]\ncolumn = \"y\"\nclasses = [{}]\n[privacy]\nepsilon = 4.0\n\
         delta = 1e-6\n[test]\nfraction = 0.2\n{method}\n[[group]]\ncolumn = \"sex\"\nvalues = [\"f\", \"m\"]\n\
         [[column]]\nname = \"age\"\nkind = \"number\"\nlow = 18\nhigh = 90\nbins = 8\n\
         [[column]]\nname = \"job\"\nkind = \"category\"\nvalues = [\"clerk\", \"nurse\", \"smith\"]\n\
         [[column]]\nname = \"embedding\"\nkind = \"vector\"\nlength = {LENGTH}\nnorm = 1.0\n",
        classes.join(", ")
    )
}

fn folder(rows: usize, classes: u32, method: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("table.csv"), table(rows, classes)).unwrap();
    fs::write(folder.path().join("c.toml"), config(classes, method)).unwrap();
    folder
}

/// Each block's mean and covariance are in the plan, the ledger and the statement; threads change no
/// bit, nor does a kill; the release holds, and ONNX, prediction and reasons know nothing of blocks.
#[test]
fn a_table_with_a_vector_is_one_fit() {
    let folder = folder(12_000, 2, "");
    let here = folder.path();
    let plan = done(here, &["fit", "c.toml", "--plan"]);
    for expected in [
        "method: conditioned, the default for a table with vectors",
        "mean of the table's features",
        "covariance of the table's features",
        "mean of `embedding`",
        "covariance of `embedding`",
        "lengths of the whitened rows",
    ] {
        assert!(plan.contains(expected), "{expected}: {plan}");
    }
    let of_embedding = plan.lines().find(|line| line.contains("covariance of `embedding`")).unwrap();
    assert!(of_embedding.contains("4.5 %"), "{plan}");
    let model = |out: &str| fs::read(here.join(out).join("release/model.safetensors")).unwrap();
    for (out, threads) in [("a", "1"), ("b", "2")] {
        done(here, &["fit", "c.toml", "--out", out, "--threads", threads, "--seed", "1", "-q", "--reference"]);
    }
    assert!(model("a") == model("b"));
    done(here, &["verify", "a"]);
    let statement = json(here.join("a/release/statement.json"));
    let epsilon = statement["epsilon"].as_f64().unwrap();
    assert!(epsilon <= 4.0 && epsilon > 3.999, "{epsilon}");
    let purposes = statement["events"].to_string();
    assert!(purposes.contains("covariance of `embedding`"), "{purposes}");
    let diagnostics = json(here.join("a/private/diagnostics.json"));
    let [auc, reference] = [&diagnostics, &diagnostics["reference"]].map(|figures| figures["auc"].as_f64().unwrap());
    assert!(auc > 0.9 && reference >= auc - 0.01, "{auc} {reference}");
    done(here, &["predict", "a", "table.csv", "--out", "p.csv", "--explain", "2"]);
    assert_eq!(fs::read_to_string(here.join("p.csv")).unwrap().lines().count(), 12_001);

    killed_and_resumed(here, &["fit", "c.toml", "--out", "killed", "--seed", "1", "-q"], "killed");
    assert!(model("a") == model("killed"));
}

/// Adjusted and fair training of three classes, and a search over conditioned training.
#[test]
fn conditioned_methods_by_name() {
    for name in ["conditioned", "conditioned-adjusted", "conditioned-fair"] {
        let folder = folder(6_000, 3, &format!("[method]\nname = \"{name}\""));
        let here = folder.path();
        done(here, &["fit", "c.toml", "--out", "run", "--seed", "1", "-q"]);
        done(here, &["verify", "run"]);
        let statement = json(here.join("run/release/statement.json"));
        assert!(statement["method"].as_str().unwrap().starts_with("conditioned, as asked for"), "{statement}");
        let is_fair = statement["events"].to_string().contains("right answers by class");
        assert_eq!(is_fair, name == "conditioned-fair");
        let decision = &json(here.join("run/release/pipeline.json"))["decision"];
        assert_eq!(decision == "balanced", name != "conditioned", "{decision}");
    }
    let candidates = "[tuning]\nmean_trials = 2\n[[tuning.candidate]]\nmethod = { name = \"conditioned\" }\n\
                      [[tuning.candidate]]\nobjective = \"equal-classes\"";
    let searched = folder(4_000, 2, candidates);
    done(searched.path(), &["fit", "c.toml", "--out", "run", "--seed", "1", "-q"]);
    done(searched.path(), &["verify", "run"]);
    let refusal = |method: &str| {
        let folder = folder(500, 2, method);
        refused(folder.path(), &["fit", "c.toml", "--plan"]).1
    };
    let message = refusal("[method]\nname = \"conditioned\"\nsteps = 3");
    assert!(message.contains("method.steps"), "{message}");
    let message = refusal("[model]\ndecision = \"accuracy\"\n[method]\nname = \"conditioned-adjusted\"");
    assert!(message.contains("model.decision: expected \"balanced\" or none"), "{message}");
    let message = refusal("[model]\nkind = \"mlp\"\n[method]\nname = \"conditioned\"");
    assert!(message.contains("method.name = \"conditioned\": expected with the additive model"), "{message}");
    let message = refusal(&candidates.replace("\"conditioned\"", "\"conditioned-fair\""));
    assert!(message.contains("tuning.candidate number 1: method.name = \"conditioned-fair\""), "{message}");
}
