//! A dry run finds every mistake of a configuration at once, and says where it is.

use std::fs;

use crate::program::{declared, program, refused, text};

#[test]
fn every_mistake_is_named_with_its_place() {
    let folder = declared(2_500, |config| config);
    let here = folder.path();
    let whole = fs::read_to_string(here.join("fairdp.toml")).unwrap();
    let refusals = |config: &str| {
        fs::write(here.join("c.toml"), config).unwrap();
        let plan = refused(here, &["fit", "c.toml", "--plan", "-q"]);
        assert_eq!(plan, refused(here, &["fit", "c.toml", "--out", "run", "-q"]));
        assert!(plan.0 == 2 && !here.join("run").exists(), "{plan:?}");
        plan.1
    };
    let several = whole
        .replace("epsilon = 1", "epsilom = 1")
        .replace("kind = \"number\"", "kind = \"nunber\"")
        .replace("fraction = 0.2", "fraction = 2")
        .replace("name = \"auto\"", "name = \"dpsdg\"");
    let message = refusals(&several);
    for expected in [
        "unknown key `epsilom`: did you mean `epsilon`?",
        "unknown name `nunber`: did you mean `number`?",
        "test.fraction = 2: expected 0 to 0.9",
        "method.name = \"dpsdg\": unknown; `fairdp methods` lists the names; did you mean `dpsgd`?",
    ] {
        assert!(message.contains(expected), "{expected}: {message}");
    }
    // A line for each, with line and column, in the order of the text.
    let places: Vec<(usize, usize)> = message
        .lines()
        .map(|line| {
            let place = line.strip_prefix("error: ").unwrap_or(line).strip_prefix("c.toml:").unwrap();
            let (line, rest) = place.split_once(':').unwrap();
            (line.parse().unwrap(), rest.split_once(':').unwrap().0.parse().unwrap())
        })
        .collect();
    assert!(places.len() >= 4 && places.is_sorted(), "{places:?}");
    for (line, column) in places {
        assert!(column <= several.lines().nth(line - 1).unwrap().len(), "{line}:{column}");
    }
}

/// A column that is named with a slip is there under its name: nobody is told to leave it out.
#[test]
fn a_name_that_no_column_has_is_a_mistake_of_the_configuration() {
    let folder = declared(2_500, |config| config);
    let here = folder.path();
    let whole = fs::read_to_string(here.join("fairdp.toml")).unwrap();
    let columns: Vec<&str> =
        whole.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"')).collect();
    let column = columns.iter().find(|name| **name != "auto").unwrap();
    let slip = format!("{column}e");
    let cases = [
        whole.replace(&format!("name = \"{column}\""), &format!("name = \"{slip}\"")),
        whole.replace("column = \"outcome\"", "column = \"outcom\""),
        whole.replace("column = \"group\"", "column = \"groop\""),
    ];
    for (config, meant) in cases.iter().zip([*column, "outcome", "group"]) {
        fs::write(here.join("c.toml"), config).unwrap();
        let (code, message) = refused(here, &["fit", "c.toml", "--plan", "-q"]);
        assert!(code == 2 && message.contains("c.toml:"), "{code} {message}");
        assert!(message.contains(&format!("has no such column; did you mean `{meant}`?")), "{message}");
        assert!(!message.contains("dropped"), "{message}");
    }
    let output = program(here, &["fit", "c.toml", "--plan", "--json"]);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&answer["code"], answer["mistakes"][0]["line"].is_u64()), (&2.into(), true), "{answer}");
    assert_eq!(text(&output.stdout).lines().count(), 1);
    for arguments in [
        &["init", "table.csv", "--label", "outcom"][..],
        &["init", "table.csv", "--label", "outcome", "--group", "groop"],
        &["init", "table.csv", "--label", "outcome", "--method", "dpsdg"],
    ] {
        let (code, message) = refused(here, arguments);
        assert!(code == 2 && message.contains("did you mean"), "{arguments:?}: {message}");
    }
}

#[test]
fn a_plan_is_machine_readable() {
    let folder = declared(2_500, |config| config);
    let output = program(folder.path(), &["fit", "fairdp.toml", "--plan", "--json"]);
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&plan["version"], &plan["table"]["records"]), (&1.into(), &2_500.into()), "{plan}");
    assert!(
        plan["releases"].as_array().is_some_and(|all| all.iter().any(|one| one["purpose"] == "gradients")),
        "{plan}"
    );
}
