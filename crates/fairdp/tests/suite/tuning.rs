//! Settings that are chosen on the records, within the budget.

use std::fs;

use crate::program::{declared, done, json, refused};

const TUNING: &str = "\n[tuning]\nmean_trials = 2\nvalidation = 0.2\n\n[[tuning.candidate]]\n\n\
                      [[tuning.candidate]]\nmethod = { name = \"dpsgd\", steps = 30, sampling_rate = 0.5 }\n\n\
                      [[tuning.candidate]]\nkind = \"mlp\"\nhidden = [4]\nmethod = { steps = 20 }\n";

#[test]
fn a_search_is_within_the_budget_and_says_so() {
    let folder = declared(4_000, |config| config + TUNING);
    let here = folder.path();
    let plan = done(here, &["fit", "fairdp.toml", "--plan"]);
    assert!(plan.contains("validation") && plan.contains("best of negative-binomially many"), "{plan}");
    assert_eq!(plan.matches("model: ").count(), 3, "{plan}");
    let model = |out: &str, threads: &str| {
        done(here, &["fit", "fairdp.toml", "--out", out, "--threads", threads, "--seed", "4", "-q"]);
        fs::read(here.join(out).join("release/model.safetensors")).unwrap()
    };
    assert!(model("a", "1") == model("b", "2"));
    done(here, &["verify", "a"]);
    let statement = json(here.join("a/release/statement.json"));
    let epsilon = statement["epsilon"].as_f64().unwrap();
    assert!(epsilon <= 1.0 && epsilon > 0.99, "{epsilon}");
    assert_eq!(statement["mark"], "certified");
    assert!(statement["tuning"].as_str().unwrap().starts_with("the best of a random number of trials, 2 expected"));
    assert!(statement["accountant"].as_str().unwrap().contains("RDP"), "{statement}");
    let records = &statement["records"];
    let n = |part: &str| records[part].as_u64().unwrap();
    assert_eq!(n("training") + n("test") + n("validation"), 4_000);
    assert!(n("validation") > 500 && n("validation") < 800, "{records}");
    let of_parts = &statement["epsilon_of_parts"];
    assert!(of_parts["validation"].as_f64().unwrap() > 0.99, "{of_parts}");
    // What was tried and lost is in no file of the release.
    assert_eq!(statement["events"].as_array().unwrap().iter().filter(|event| event["part"] == "validation").count(), 1);
}

#[test]
fn a_search_that_says_too_little_is_refused_by_key() {
    let refusal = |from: &'static str, to: &'static str| {
        let folder = declared(2_000, |config| config + &TUNING.replace(from, to));
        let (code, message) = refused(folder.path(), &["fit", "fairdp.toml", "--plan"]);
        assert_eq!(code, 2, "{message}");
        message
    };
    let message = refusal("mean_trials = 2", "mean_trials = 1");
    assert!(message.contains("tuning.mean_trials = 1: expected above 1, at most 1000"), "{message}");
    let message = refusal("validation = 0.2", "validation = 0.7");
    assert!(message.contains("tuning.validation = 0.7: expected above 0, at most 0.5"), "{message}");
    let message = refusal("mean_trials", "mean_trails");
    assert!(message.contains("did you mean `mean_trials`?"), "{message}");
    let message = refusal("name = \"dpsgd\"", "name = \"dpsdg\"");
    assert!(message.contains("did you mean `dpsgd`?"), "{message}");
}

/// The private search for a less discriminatory alternative: charged, and it says what could be drawn.
#[test]
fn a_search_for_the_worst_group_names_its_candidates() {
    let folder = declared(4_000, |config| {
        config + &TUNING.replace("mean_trials = 2\n", "mean_trials = 2\ngoal = \"worst-group\"\nmin_accuracy = 0.6\n")
    });
    let here = folder.path();
    done(here, &["fit", "fairdp.toml", "--out", "a", "--seed", "4", "-q"]);
    done(here, &["verify", "a"]);
    let statement = json(here.join("a/release/statement.json"));
    let tuning = statement["tuning"].as_str().unwrap();
    for said in ["the group that is served worst", "less what accuracy lacks to 0.6", "the candidates: (1) ", "; (3) "]
    {
        assert!(tuning.contains(said), "{said}: {tuning}");
    }
    assert!(statement["epsilon"].as_f64().unwrap() <= 1.0);
    let of_validation: Vec<_> =
        statement["events"].as_array().unwrap().iter().filter(|event| event["part"] == "validation").collect();
    assert!(of_validation.len() == 1 && statement["epsilon_of_parts"]["validation"].as_f64().unwrap() > 0.99);
    let config = fs::read_to_string(here.join("fairdp.toml")).unwrap();
    for (from, to, message) in [
        ("goal = \"worst-group\"\n", "", "expected with goal = \"worst-group\""),
        ("min_accuracy = 0.6", "min_accuracy = 60", "tuning.min_accuracy = 60: expected above 0, below 1"),
    ] {
        fs::write(here.join("fairdp.toml"), config.replace(from, to)).unwrap();
        let (code, told) = refused(here, &["fit", "fairdp.toml", "--plan"]);
        assert!(code == 2 && told.contains(message), "{told}");
    }
}

const MODES: &str = "\n[tuning]\nmean_trials = 2\ngoal = \"worst-group\"\n\n[[tuning.candidate]]\n\
                     fairness = \"equalized-odds\"\n\n[[tuning.candidate]]\nfairness = \"worst-group\"\n\
                     objective = \"equal-classes\"\n";

/// Each trial releases scores for its thresholds, which are charged with its gradients and not again.
#[test]
fn trials_have_thresholds_of_their_own() {
    let folder = declared(6_000, |config| config + MODES);
    let here = folder.path();
    let plan = done(here, &["fit", "fairdp.toml", "--plan"]);
    assert!(
        plan.contains("gradients and scores of the best trial") && plan.contains("fairness equalized-odds"),
        "{plan}"
    );
    let read = |out: &str, threads: &str| {
        done(here, &["fit", "fairdp.toml", "--out", out, "--threads", threads, "--seed", "4", "-q"]);
        ["model.safetensors", "scores.json", "pipeline.json"]
            .map(|name| fs::read(here.join(out).join("release").join(name)).unwrap())
    };
    assert!(read("a", "1") == read("b", "2"));
    done(here, &["verify", "a"]);
    let statement = json(here.join("a/release/statement.json"));
    let epsilon = statement["epsilon"].as_f64().unwrap();
    assert!(epsilon <= 1.0 && epsilon > 0.98, "{epsilon}");
    assert!(statement["tuning"].as_str().unwrap().contains("; fairness worst-group"), "{statement}");
    let of_training = statement["events"].as_array().unwrap().iter().filter(|event| event["part"] == "training");
    let purposes: Vec<_> = of_training.map(|event| event["purpose"].as_str().unwrap()).collect();
    assert!(purposes.contains(&"gradients and scores of the best trial"), "{purposes:?}");
    assert!(!purposes.iter().any(|purpose| purpose.starts_with("cumulative")), "{purposes:?}");
    assert!(!json(here.join("a/release/scores.json"))["training"].is_null());
    assert!(!json(here.join("a/release/fairness.json"))["thresholds"].is_null());
    done(here, &["fairness", "a", "--mode", "demographic-parity", "--out", "c"]);

    let config = fs::read_to_string(here.join("fairdp.toml")).unwrap();
    for (from, to, message) in [
        ("goal = \"worst-group\"\n", "", "fairness is expected with goal = \"worst-group\""),
        (
            "fairness = \"none\"",
            "fairness = \"equal-opportunity\"",
            "expected \"none\" where candidates of [tuning] have modes",
        ),
        ("\"equalized-odds\"\n\n", "\"equalised\"\n\n", "equalized-odds"),
    ] {
        assert!(config.contains(from), "{from}");
        fs::write(here.join("fairdp.toml"), config.replacen(from, to, 1)).unwrap();
        let (code, told) = refused(here, &["fit", "fairdp.toml", "--plan"]);
        assert!(code == 2 && told.contains(message), "{told}");
    }
}
