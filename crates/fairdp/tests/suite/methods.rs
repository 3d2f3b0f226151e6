//! Any method of the registry, and networks, from a configuration to a release that holds.

use std::fs;

use crate::program::{declared, done, json, refused};

/// `[method]` and `[model]` in the place of the proposed ones.
fn with(model: &'static str, method: &'static str) -> impl Fn(String) -> String {
    move |config: String| {
        config
            .replace("kind = \"auto\"", &format!("kind = {model}"))
            .replace("name = \"auto\"", &format!("name = {method}"))
    }
}

#[test]
fn a_method_by_name_spends_the_budget_and_its_counts_are_in_the_ledger() {
    spends_the_budget("dpsgd-global-adapt", "\"dpsgd-global-adapt\"\nsampling_rate = 0.2\nsteps = 40");
}

#[test]
fn weights_of_groups_that_follow_losses_are_in_the_ledger() {
    let settings = "settings = { clip_norm = 0.5, rate = 0.2, loss_bound = 1.5 }";
    spends_the_budget("group-dro", &format!("\"group-dro\"\nsampling_rate = 0.2\nsteps = 40\n{settings}"));
}

/// Every group has its rate and its threshold, and the same ε to a hundredth.
#[test]
fn groups_drawn_at_their_own_rates_have_one_epsilon() {
    let method = "\"asc\"\nsampling = { by = \"group\", rates = [0.1, 0.3, 0.3, 0.3] }\nsteps = 40";
    let folder = declared(8_000, with("\"additive\"", method));
    let here = folder.path();
    let plan = done(here, &["fit", "fairdp.toml", "--plan"]);
    assert!(plan.contains("method: asc, as asked for") && plan.contains("one of [40 × Poisson-sampled"), "{plan}");
    done(here, &["fit", "fairdp.toml", "--out", "run", "--seed", "1", "-q"]);
    let statement = json(here.join("run/release/statement.json"));
    let epsilon = statement["epsilon"].as_f64().unwrap();
    assert!(epsilon <= 1.0 && epsilon > 0.999, "{epsilon}");
    assert_eq!(statement["mark"], "certified");
    assert_eq!(statement["epsilon_lower"].as_f64().map(|lower| lower > 0.99), Some(true), "{statement}");
    let of_groups = statement["epsilon_of_groups"].as_object().unwrap();
    assert_eq!(of_groups.len(), 4, "{of_groups:?}");
    assert!(of_groups.values().all(|of_group| of_group.as_f64().is_some_and(|one| one <= 1.0 && one > 0.99)));
    let gradients =
        statement["events"].as_array().unwrap().iter().find(|event| event["purpose"] == "gradients").unwrap();
    assert_eq!(gradients["count"], 1);
    assert!(statement["sampling"].as_str().unwrap().starts_with("Poisson by group: "));
    let verified = done(here, &["verify", "run"]);
    assert!(verified.contains("200 bits"), "{verified}");
    let text = fs::read_to_string(here.join("run/release/statement.md")).unwrap();
    assert!(text.contains("ε of a training record by group (certified): "), "{text}");
    assert!(fs::read_to_string(here.join("run/release/card.html")).unwrap().contains("ε of a record by group: "));
    // Weighted sampling of another method: the larger rate costs more, and is what ε is.
    let config = fs::read_to_string(here.join("fairdp.toml")).unwrap();
    fs::write(here.join("weighted.toml"), config.replace("\"asc\"", "\"dpsgd\"")).unwrap();
    done(here, &["fit", "weighted.toml", "--out", "weighted", "--seed", "1", "-q"]);
    let statement = json(here.join("weighted/release/statement.json"));
    let mut of_groups: Vec<f64> =
        statement["epsilon_of_groups"].as_object().unwrap().values().filter_map(serde_json::Value::as_f64).collect();
    of_groups.sort_by(f64::total_cmp);
    assert!(of_groups[0] < 0.7 && of_groups[1..].iter().all(|one| (0.999..=1.0).contains(one)), "{of_groups:?}");
}

/// Rates that follow losses: one event for all groups, a bound without a lower end, and the same plan and
/// release as the accountant finds again.
#[test]
fn groups_drawn_by_their_losses_have_one_epsilon() {
    let method = "\"asc-by-loss\"\nsampling = { by = \"loss\", least = 0.1, largest = 0.4 }\nsteps = 40";
    let folder = declared(8_000, with("\"additive\"", method));
    let here = folder.path();
    let plan = done(here, &["fit", "fairdp.toml", "--plan"]);
    let expected =
        "asc-by-loss, as asked for; each group is drawn at a rate from 0.1 to 0.4 (there with its threshold × 0.";
    assert!(plan.contains(expected) && plan.contains("mechanism of Rényi divergence"), "{plan}");
    done(here, &["fit", "fairdp.toml", "--out", "run", "--seed", "1", "-q"]);
    let statement = json(here.join("run/release/statement.json"));
    let epsilon = statement["epsilon"].as_f64().unwrap();
    assert!(epsilon <= 1.0 && epsilon > 0.999 && statement["mark"] == "certified", "{statement}");
    assert!(statement.get("epsilon_of_groups").is_none_or(|groups| groups.as_object().unwrap().is_empty()));
    let gradients =
        statement["events"].as_array().unwrap().iter().find(|event| event["purpose"] == "gradients").unwrap();
    assert_eq!(gradients["count"], 40);
    let sampling = statement["sampling"].as_str().unwrap();
    assert!(sampling.contains("that of a group followed from the noisy losses of earlier steps"), "{sampling}");
    done(here, &["verify", "run"]);
}

fn spends_the_budget(name: &str, method: &str) {
    let folder = declared(8_000, |config| {
        config.replace("kind = \"auto\"", "kind = \"additive\"").replace("name = \"auto\"", &format!("name = {method}"))
    });
    let here = folder.path();
    let plan = done(here, &["fit", "fairdp.toml", "--plan"]);
    assert!(plan.contains(&format!("method: {name}, as asked for")), "{plan}");
    done(here, &["fit", "fairdp.toml", "--out", "run", "--seed", "1", "-q"]);
    let statement = json(here.join("run/release/statement.json"));
    let epsilon = statement["epsilon"].as_f64().unwrap();
    assert!(epsilon <= 1.0 && epsilon > 0.999, "{epsilon}");
    assert_eq!(statement["mark"], "certified");
    let gradients =
        statement["events"].as_array().unwrap().iter().find(|event| event["purpose"] == "gradients").unwrap();
    assert_eq!(gradients["count"], 40);
    let event = gradients["event"].to_string();
    assert!(event.contains("poisson") && event.contains("joint"), "{event}");
    assert!(statement["sampling"].as_str().unwrap().starts_with("Poisson: "));
    done(here, &["verify", "run"]);
    let diagnostics = json(here.join("run/private/diagnostics.json"));
    assert!(diagnostics["auc"].as_f64().unwrap() > 0.55, "{diagnostics}");
}

#[test]
fn a_seed_gives_the_same_network_on_any_number_of_threads() {
    let folder = declared(2_500, with("\"mlp\"\nhidden = [8, 4]", "\"auto\"\nsteps = 20"));
    let here = folder.path();
    let model = |out: &str, threads: &str| {
        done(here, &["fit", "fairdp.toml", "--out", out, "--threads", threads, "--seed", "1", "-q"]);
        fs::read(here.join(out).join("release/model.safetensors")).unwrap()
    };
    assert!(model("a", "1") == model("b", "2"));
    let statement = json(here.join("a/release/statement.json"));
    assert!(statement["method"].as_str().unwrap().starts_with("dpsgd, the default for a network: "), "{statement}");
    assert_eq!(json(here.join("a/release/pipeline.json"))["hidden"], serde_json::json!([8, 4]));
    done(here, &["verify", "a"]);
    done(here, &["predict", "a", "table.csv", "--out", "p.csv"]);
    assert_eq!(fs::read_to_string(here.join("p.csv")).unwrap().lines().count(), 2_501);
    assert!(fs::read_to_string(here.join("a/release/card.html")).unwrap().contains("no curve"));
}

#[test]
fn three_classes_and_a_network() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let rows: Vec<String> = (0..6_000)
        .map(|i| format!("{},{}\n", (i * 37) % 100, ["low", "middle", "high"][((i * 37) % 100 + (i * 7) % 20) / 40]))
        .collect();
    fs::write(here.join("t.csv"), format!("x,y\n{}", rows.concat())).unwrap();
    let config =
        done(here, &["init", "t.csv", "--label", "y", "--epsilon", "2", "--model", "mlp", "--method", "automatic"]);
    fs::write(here.join("c.toml"), config.replace("from = \"data\"", "public = true")).unwrap();
    done(here, &["fit", "c.toml", "--out", "run", "-q", "--seed", "1"]);
    let diagnostics = json(here.join("run/private/diagnostics.json"));
    assert!(diagnostics["accuracy"].as_f64().unwrap() > 0.7, "{diagnostics}");
}

#[test]
fn what_a_method_cannot_do_is_refused_by_key() {
    let refusal = |model: &'static str, method: &'static str| {
        let folder = declared(2_000, with(model, method));
        let (code, message) = refused(folder.path(), &["fit", "fairdp.toml", "--plan"]);
        assert_eq!(code, 2, "{message}");
        message
    };
    let message = refusal("\"auto\"", "\"dpsdg-f\"");
    assert!(
        message.contains("fairdp.toml:31:1: method.name = \"dpsdg-f\": unknown; `fairdp methods` lists the names; did you mean `dpsgd-f`?"),
        "{message}"
    );
    let message = refusal("\"auto\"", "\"fairlens\"");
    assert!(message.contains("no ε would hold"), "{message}");
    let message = refusal("\"auto\"", "\"dpsgd\"\nsampling_rate = 1.5");
    assert!(message.contains("method.sampling_rate = 1.5: expected above 0, at most 1"), "{message}");
    let message = refusal("\"auto\"", "\"asc\"");
    let expected = "method.sampling: expected with method.name = \"asc\", whose groups have rates of their own: sampling = \
                    { by = \"group\", rates = [0.2, 0.5] }, a public rate for each of 4 groups";
    assert!(message.contains(expected), "{message}");
    let message = refusal("\"auto\"", "\"asc\"\nsampling = { by = \"group\", rates = [0.5] }");
    let expected = "method.sampling.rates has 1 values: expected one for each of 4 groups, in this order: ";
    assert!(message.contains(expected) && message.contains(", (other)"), "{message}");
    let message = refusal("\"auto\"", "\"asc\"\nsampling = { by = \"group\", rates = [0.5, 0, 1, 1] }");
    assert!(message.contains("method.sampling.rates = 0.0: expected 1e-6 to 1"), "{message}");
    let message = refusal("\"auto\"", "\"asc\"\nsampling_rate = 0.5\nsampling = { by = \"group\", rates = [0.5, 1] }");
    assert!(message.contains("method.sampling and method.sampling_rate: expected one of the two"), "{message}");
    let message = refusal("\"auto\"", "\"asc-by-loss\"\nsampling = { by = \"group\", rates = [0.5, 1, 1, 1] }");
    assert!(
        message.contains("whose groups have rates that follow their losses: sampling = { by = \"loss\""),
        "{message}"
    );
    let message = refusal("\"auto\"", "\"asc-by-loss\"\nsampling = { by = \"loss\", least = 0.5, largest = 0.5 }");
    assert!(message.contains("method.sampling.least = 0.5: expected below largest = 0.5"), "{message}");
    let message = refusal("\"auto\"", "\"asc\"\nsampling = { by = \"loss\", least = 0.1, largest = 0.5 }");
    assert!(message.contains("a public rate for each of 4 groups"), "{message}");
    let message = refusal("\"auto\"", "\"dpsgd\"\nsampling = { by = \"loss\", least = 0.1, largest = 0.5 }");
    assert!(message.contains("or name = \"asc-by-loss\""), "{message}");
    let message = refusal("\"auto\"", "\"auto\"\nsteps = 3");
    assert!(message.contains("method.steps: expected with a method by name alone"), "{message}");
    let message = refusal("\"auto\"", "\"dpsgd\"\nsettings = { clip_nrom = 1 }");
    assert!(message.contains("did you mean `clip_norm`?"), "{message}");
    let message = refusal("\"additive\"\nhidden = [3]", "\"auto\"");
    assert!(message.contains("model.hidden: expected with kind = \"mlp\" alone"), "{message}");
    let message = refusal("\"auto\"", "\"dpsgd\"\nsettings = { clip_norm = 0.5, target = 0.3 }");
    assert!(
        message
            .contains("fairdp.toml:32:31: method.settings.target = 0.3: expected none, because dpsgd does not read it"),
        "{message}"
    );
}

#[test]
fn every_method_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let text = done(folder.path(), &["methods"]);
    let listed: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let mut known = vec!["conditioned", "conditioned-adjusted", "conditioned-fair"];
    known.extend(dp_clipping::registry::methods().iter().map(|entry| entry.name));
    assert_eq!((listed[0], &listed[1..]), ("auto", &known[..]));
    let listed: serde_json::Value = serde_json::from_str(&done(folder.path(), &["methods", "--json"])).unwrap();
    let listed = &listed["methods"];
    assert_eq!(listed.as_array().unwrap().len(), known.len() + 1);
}

/// Classes that count equally: another model, with probabilities of the population, and a statement
/// that says so. What has no weights for classes refuses it.
#[test]
fn classes_may_count_equally() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    // One in twenty, more often where `x` is large.
    let row =
        |i: usize| format!("{},{}\n", i % 100, if i.is_multiple_of(20) && i % 100 >= 40 { "rare" } else { "common" });
    fs::write(here.join("t.csv"), format!("x,y\n{}", (0..8_000).map(row).collect::<String>())).unwrap();
    let config = done(here, &["init", "t.csv", "--label", "y", "--positive", "rare", "--epsilon", "4"]);
    let config = config.replace("from = \"data\"", "public = true");
    let with = |objective: &str| config.replacen("[model]\n", &format!("[model]\nobjective = \"{objective}\"\n"), 1);
    let mut weights = Vec::new();
    for objective in ["population", "equal-classes"] {
        fs::write(here.join("c.toml"), with(objective)).unwrap();
        done(here, &["fit", "c.toml", "--out", objective, "--seed", "3", "-q"]);
        weights.push(fs::read(here.join(objective).join("release/model.safetensors")).unwrap());
        done(here, &["predict", objective, "t.csv", "--out", "p.csv"]);
        let text = fs::read_to_string(here.join("p.csv")).unwrap();
        let rare: Vec<f64> =
            text.lines().skip(1).map(|line| line.rsplit(',').next().unwrap().parse().unwrap()).collect();
        // 240 of 8,000.
        let mean = rare.iter().sum::<f64>() / rare.len() as f64;
        assert!((mean - 0.03).abs() < 0.012, "{objective}: {mean}");
        let statement = json(here.join(objective).join("release/statement.json"));
        let says_so = statement["method"].as_str().unwrap().contains("classes count equally");
        assert_eq!(says_so, objective == "equal-classes");
        done(here, &["verify", objective]);
    }
    assert!(weights[0] != weights[1]);

    fs::write(here.join("c.toml"), with("equal-classes").replace("kind = \"auto\"", "kind = \"mlp\"")).unwrap();
    let (code, message) = refused(here, &["fit", "c.toml", "--plan"]);
    assert!(
        code == 2 && message.contains("model.objective = \"equal-classes\": expected with the additive model"),
        "{message}"
    );
    fs::write(here.join("c.toml"), with("equal")).unwrap();
    let (code, message) = refused(here, &["fit", "c.toml", "--plan"]);
    assert!(code == 2 && message.contains("equal-classes"), "{message}");
}
