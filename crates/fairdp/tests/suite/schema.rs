//! The JSON Schema of configurations accepts what the program reads, and refuses what it refuses.

use std::fs;
use std::path::Path;

use fairdp::config::Config;
use serde_json::Value;

use crate::json_schema::refusal;
use crate::program::{declared, done, text};

/// A configuration with nearly every key, one to a line.
const WHOLE: &str = r#"version = 1
accept_uncovered = false
group_as_input = false
[fairness]
mode = "equalized-odds"
max_loss = 0.02
max_gap = 0.0
smallest = 1000
one_threshold = false
[table]
files = ["t.csv"]
delimiter = ";"
quote = "'"
encoding = "utf-8"
missing = ["", "NA"]
bad_rows = "drop"
[label]
column = "y"
kind = "classes"
classes = ["0", "1"]
from = "data"
public = true
[privacy]
epsilon = 1
delta = 1e-5
total_epsilon = 3
[records]
scope = "2026-10"
[test]
fraction = 0.2
[unit]
column = "person"
rows = "first"
max_records = 2
[weight]
column = "weight"
high = 3
public = true
[model]
kind = "additive"
decision = "accuracy"
objective = "population"
[method]
name = "auto"
[card]
name = "a"
date = "b"
owner = "c"
purpose = "d"
limits = "e"
encoder = "f"
[[group]]
column = "g"
values = ["a", "b"]
other = true
missing = true
[[group]]
column = "h"
edges = [10, 20]
decimal = ","
thousands = "."
unit = "€"
[[column]]
name = "number"
kind = "number"
low = 0
high = 1
bins = { log = 4 }
missing = 0.5
[[column]]
name = "date"
kind = "date"
low = "2020-01-01"
high = "2024-01-01"
format = "day-first"
parts = ["month", "weekday"]
bins = 4
[[column]]
name = "vector"
kind = "vector"
length = 3
norm = 1
[[column]]
name = "category"
kind = "category"
values = ["x", "y"]
other = true
[[column]]
name = "boolean"
kind = "boolean"
values = ["no", "yes"]
[[column]]
name = "dropped"
kind = "drop"
"#;

fn schema_refusal(schema: &Value, config: &str) -> Option<String> {
    refusal(schema, schema, &toml::from_str(config).unwrap(), false)
}

fn refused_by_program(config: &str) -> bool {
    Config::from_toml(config, "c.toml".as_ref()).is_err()
}

#[test]
fn every_misspelling_is_refused_by_both() {
    let schema = fairdp::config_schema();
    assert_eq!(schema_refusal(&schema, WHOLE), None);
    Config::from_toml(WHOLE, "c.toml".as_ref()).unwrap();
    let mut n_tried = 0;
    for (place, line) in WHOLE.lines().enumerate() {
        let slips = match line.split_once(" = ") {
            Some((key, value)) => {
                let is_name =
                    matches!(key, "mode" | "bad_rows" | "kind" | "rows" | "decision" | "objective" | "format" | "from");
                let is_name = is_name || (key == "name" && value == "\"auto\"");
                let name = is_name.then(|| format!("{key} = {}x\"", value.trim_end_matches('"')));
                std::iter::once(format!("{key}x = {value}")).chain(name).collect::<Vec<_>>()
            }
            None => vec![line.replace([']', '['], "") + "x"]
                .into_iter()
                .map(|name| if line.starts_with("[[") { format!("[[{name}]]") } else { format!("[{name}]") })
                .collect(),
        };
        for slip in slips {
            let lines: Vec<&str> =
                WHOLE.lines().enumerate().map(|(at, line)| if at == place { &*slip } else { line }).collect();
            let config = lines.join("\n");
            n_tried += 1;
            assert!(schema_refusal(&schema, &config).is_some(), "the schema accepts {slip}");
            assert!(refused_by_program(&config), "the program accepts {slip}");
        }
    }
    assert!(n_tried > 90, "{n_tried}");
}

#[test]
fn every_configuration_on_the_pages_fits_the_schema() {
    let schema = fairdp::config_schema();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    // What these two configure is a comparison of the laboratory.
    let others = ["compare.md", "layers.md"].map(|name| root.join("docs").join(name));
    let pages = pages.filter(|page| page.extension().is_some_and(|ending| ending == "md") && !others.contains(page));
    let mut n_blocks = 0;
    for page in pages.chain([root.join("README.md")]) {
        let text = fs::read_to_string(&page).unwrap();
        for block in text.split("```toml\n").skip(1) {
            let block = block.split("```").next().unwrap();
            let value: Value = toml::from_str(block).unwrap();
            assert_eq!(refusal(&schema, &schema, &value, true), None, "{}: {block}", page.display());
            n_blocks += 1;
        }
    }
    assert!(n_blocks >= 10, "{n_blocks}");
}

#[test]
fn what_init_writes_fits_the_schema() {
    let folder = declared(2_500, |config| config);
    let here = folder.path();
    let schema: Value = serde_json::from_str(&done(here, &["schema"])).unwrap();
    assert_eq!(schema_refusal(&schema, &fs::read_to_string(here.join("fairdp.toml")).unwrap()), None);
    fs::create_dir(here.join("configs")).unwrap();
    let more = ["--accept-uncovered", "--out", "configs/c.toml", "--schema", "fairdp.schema.json", "--json"];
    let answer = done(here, &[&["init", "table.csv", "--label", "outcome"], &more[..]].concat());
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!((&answer["version"], &answer["out"]), (&1.into(), &"configs/c.toml".into()));
    assert_eq!(answer["configuration"]["table"]["files"][0], "../table.csv");
    let config = text(&fs::read(here.join("configs/c.toml")).unwrap());
    assert!(config.starts_with("#:schema ./../fairdp.schema.json\n"), "{config}");
    assert_eq!(config, answer["text"].as_str().unwrap());
    assert_eq!(schema_refusal(&schema, &config), None);
    assert_eq!(serde_json::from_slice::<Value>(&fs::read(here.join("fairdp.schema.json")).unwrap()).unwrap(), schema);
    done(here, &["fit", "configs/c.toml", "--plan", "-q"]);
}
