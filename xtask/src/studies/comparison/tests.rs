//! Files against the studies, the pages and the errors that they stand for.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Parser;
use dp_table::Example;
use dp_train::{InputShape, LayerConfig, ModelConfig, PublicFacts};

use super::*;
use crate::paths::workspace_root;
use crate::run::plans::procedures;
use crate::studies::income;
use crate::studies::study::StudyArgs;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: StudyArgs,
}

fn args(words: &str) -> StudyArgs {
    Line::try_parse_from(std::iter::once("study").chain(words.split_whitespace())).unwrap().args
}

fn page(name: &str) -> String {
    std::fs::read_to_string(workspace_root().join("docs").join(name)).unwrap()
}

/// The blocks of TOML on a page.
fn blocks(page: &str) -> Vec<String> {
    page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

fn written(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("my.toml");
    std::fs::write(&path, text).unwrap();
    path
}

/// The records of a file, as it divides them by a seed.
fn split(folder: &Path, text: &str) -> dp_data::Split {
    let file: ComparisonFile = declaration::read(text).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
    match records::data(&file, &folder.join("my.toml"), text).unwrap() {
        records::Records::Own(data) => data.load().unwrap().records.split(7),
        records::Records::Published(source) => panic!("{source:?}"),
    }
}

/// A file on these records, with one method.
fn on(records: &str) -> String {
    format!(
        "version = 1\nname = \"mine\"\nmethods = \"dpsgd\"\n{records}\n[privacy]\nepsilon = 1\ndelta = 1e-5\n\
         [training]\nepochs = 1\nbatch_size = 4\nlearning_rate = 1\n"
    )
}

/// The folder of the page's example: its file, and a table.
fn example() -> (tempfile::TempDir, PathBuf, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut table = Vec::new();
    Example { rows: 400, columns: 8, seed: 1 }.write(&mut table).unwrap();
    std::fs::write(folder.path().join("customers.csv"), table).unwrap();
    let text = blocks(&page("compare.md")).remove(0);
    let path = written(folder.path(), &text);
    (folder, path, text)
}

fn refusal(folder: &Path, text: &str, words: &str) -> String {
    let error = study(&written(folder, text), &args(words).options).err().unwrap();
    format!("{error:#}").replace(&format!("{}/", folder.display()), "")
}

/// A paper's study is such a file, setting by setting.
#[test]
fn the_paper_s_plans_follow_from_the_committed_file() {
    let path = workspace_root().join("docs/examples/compare-adult.toml");
    let ours = study(&path, &args("").options).unwrap();
    let theirs = income::study(&args("")).unwrap();
    let (ours, theirs) = (&ours.experiments[0], &theirs.experiments[0]);
    assert_eq!((ours.data, ours.delta, ours.seeds), (theirs.data, theirs.delta, theirs.seeds));
    let facts = PublicFacts { n_records: 19_600, n_inputs: 39, n_classes: 2, n_groups: 4 };
    let of_ours = procedures(ours, facts, &[]).unwrap();
    let of_theirs = procedures(theirs, facts, &[]).unwrap();
    let mut n_same = 0;
    for (method, procedure) in theirs.methods.iter().zip(&of_theirs) {
        if !method.id.ends_with(" C=0.1") && method.id != "non-private" {
            continue;
        }
        let at = ours.methods.iter().position(|other| other.name == method.name).unwrap();
        assert_eq!(of_ours[at].config().unwrap(), procedure.config().unwrap(), "{}", method.id);
        n_same += 1;
    }
    assert_eq!(n_same, 5);
}

/// Every method of the registry has a plan within an ε, the nominal one too; the two analyses have no ε.
#[test]
fn all_means_all() {
    let (_folder, path, _) = example();
    let study = study(&path, &args("--methods all").options).unwrap();
    let grid = &study.experiments[0];
    let names: BTreeSet<&str> = grid.methods.iter().map(|method| method.name).collect();
    assert_eq!(names.len(), 1 + dp_clipping::registry::all().len() - 2);
    let facts = PublicFacts { n_records: 256, n_inputs: 30, n_classes: 2, n_groups: 3 };
    assert_eq!(procedures(grid, facts, &[]).unwrap().len(), grid.methods.len());
    study.ensure_names().unwrap();
}

/// Ten images of 8 × 8 pixels in IDX files, whose classes are the groups: pixels from 0 to 1.
#[test]
fn images_are_pixels() {
    let folder = tempfile::tempdir().unwrap();
    let idx = |name: &str, sides: &[u32], values: Vec<u8>| {
        let mut bytes = vec![0, 0, 8, sides.len() as u8];
        bytes.extend(sides.iter().flat_map(|side| side.to_be_bytes()));
        bytes.extend(values);
        std::fs::write(folder.path().join(name), bytes).unwrap();
    };
    idx("images-idx3-ubyte", &[10, 8, 8], (0..640).map(|at| (at / 64 * 20 + at % 64) as u8).collect());
    idx("labels-idx1-ubyte", &[10], (0..10).map(|row| row % 2).collect());
    let text = on("group_by_class = true\npixels = true\n[table]\nfiles = [\"labels-idx1-ubyte\"]\n\
         vectors.image = [\"images-idx3-ubyte\"]\n[label]\ncolumn = \"label\"\nclasses = [\"0\", \"1\"]\n\
         [[column]]\nname = \"image\"\nkind = \"image\"\nheight = 8\nwidth = 8\n");
    let split = split(folder.path(), &text);
    assert_eq!((split.train.len(), split.test.len(), split.train.n_inputs()), (8, 2, 64));
    assert_eq!((split.train.group_names.len(), &split.train.group_attribute[..]), (2, "class"));
    for (row, label) in split.train.features.rows().into_iter().zip(&split.train.labels) {
        let first = (row[0] * 255.0).round() as u32;
        assert_eq!((first % 20, first / 20 % 2), (0, *label), "{row}");
        assert!((row[15] * 255.0 - (row[0] * 255.0 + 15.0)).abs() < 1e-3);
    }
    assert!(split.given().is_empty(), "all is declared");
}

/// Arrays of NumPy, and what of them is refused.
#[test]
fn arrays_are_records() {
    use candle_core::{Device, Tensor};
    let folder = tempfile::tempdir().unwrap();
    let x = Tensor::arange(0.0_f32, 60.0, &Device::Cpu).unwrap().reshape((10, 2, 3)).unwrap();
    let y = Tensor::new(&[0_i64, 1, 2, 0, 1, 2, 0, 1, 2, 0], &Device::Cpu).unwrap();
    let g = Tensor::new(&[0_u32, 0, 0, 0, 0, 1, 1, 1, 1, 1], &Device::Cpu).unwrap();
    Tensor::write_npz(&[("x", &x), ("y", &y), ("g", &g)], folder.path().join("data.npz")).unwrap();
    let file = |classes: &str, inputs: &str| {
        on(&format!(
            "[arrays]\nfile = \"data.npz\"\ninputs = \"{inputs}\"\nlabels = \"y\"\nclasses = [{classes}]\n\
             groups = \"g\"\ngroup_names = [\"a\", \"b\"]\n[test]\nfraction = 0.3"
        ))
    };
    let split = split(folder.path(), &file("\"n\", \"o\", \"p\"", "x"));
    assert_eq!((split.train.len(), split.test.len(), split.train.n_inputs()), (7, 3, 6));
    for (row, (label, group)) in
        split.train.features.rows().into_iter().zip(split.train.labels.iter().zip(&split.train.groups))
    {
        let record = (row[0] / 6.0) as usize;
        assert_eq!((*label as usize, *group), (record % 3, usize::from(record > 4)));
    }
    assert_eq!(split.given().len(), 1, "nobody knows how they were made");
    let message = |text: String| {
        let parsed: ComparisonFile = declaration::read(&text).unwrap();
        let records::Records::Own(data) = records::data(&parsed, &folder.path().join("my.toml"), &text).unwrap() else {
            panic!("published")
        };
        format!("{:#}", data.load().err().unwrap()).replace(&format!("{}/", folder.path().display()), "")
    };
    assert_eq!(message(file("\"n\", \"o\"", "x")), "data.npz: `y` has 2: expected whole numbers from 0 to 1");
    assert!(message(file("\"n\", \"o\", \"p\"", "z")).starts_with("data.npz: the array `z`"));
}

/// What `reproduce --methods` does with methods that a study does not have.
#[test]
fn methods_are_added_where_that_is_sound() {
    let asked = |study: &str, words: &str| {
        let args = args(words);
        let mut study = (crate::studies::table::find(study).unwrap().make)(&args).unwrap();
        study.keep_methods(&args.options.methods).map(|()| study)
    };
    let adult = asked("adult", "--methods soft-adaptive").unwrap();
    for experiment in &adult.experiments {
        let names: Vec<&str> = experiment.methods.iter().map(|method| method.name).collect();
        assert_eq!(names, ["non-private", "soft-adaptive"], "{}", experiment.id);
        assert!(experiment.departures.last().unwrap().contains("did not train SoftAdaClip"));
    }
    let all = asked("adult", "--methods all").unwrap();
    let names: BTreeSet<&str> =
        all.experiments.iter().flat_map(|experiment| &experiment.methods).map(|method| method.name).collect();
    assert!(dp_clipping::registry::all().iter().all(|entry| !has_epsilon(entry) || names.contains(entry.name)));
    let refusal = |study: &str, words: &str| asked(study, words).err().unwrap().to_string();
    let searched = refusal("grid", "--methods soft-adaptive");
    assert!(searched.starts_with("--methods soft-adaptive: grid searches for its methods' points"), "{searched}");
    assert!(searched.contains("`cargo xtask compare`"), "{searched}");
    assert!(refusal("adult", "--methods SoftAdaClip").ends_with("did you mean soft-adaptive (SoftAdaClip)?"));
}

#[test]
fn mistakes_have_their_lines() {
    let (folder, _, text) = example();
    let wrong = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        refusal(folder.path(), &text.replacen(from, to, 1), "")
    };
    let refusals = [
        wrong("epsilon = [1, 4]", "epsilon = [1, 0]"),
        wrong("\"soft-adaptive\"", "\"SoftAdaClip\""),
        wrong("name = \"customers\"", "name = \"adult\""),
        wrong("[search]\nby = \"macro-accuracy\"", ""),
        wrong("column = \"outcome\"", "column = \"outcom\""),
        wrong("high = 90", "high = 9"),
        wrong("name = \"logistic-regression\"", "name = \"mlp\"\nhidden = [3]\nactivation = \"tan\""),
        wrong("name = \"debt\"\nkind = \"number\"", "name = \"debt\"\nkind = \"number\"\nbounds = \"private\""),
        wrong("batch_size = 256", "batch_sise = 256"),
        wrong("[table]\n", "[arrays]\nfile = \"a.npz\"\ninputs = \"x\"\nlabels = \"y\"\nclasses = [\"a\"]\n[table]\n"),
        refusal(folder.path(), &text, "--methods soft"),
    ];
    let names: Vec<&str> = dp_clipping::registry::all().into_iter().map(|entry| entry.name).collect();
    insta::assert_snapshot!(refusals.join("\n---\n").replace(&names.join(", "), "(all names)"));
}

/// A page's block.
#[derive(serde::Deserialize)]
struct Block {
    model: ModelConfig,
}

/// What serde expects in place of a wrong name or key.
fn expected<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> Vec<String> {
    let message = serde_json::from_value::<T>(value).err().map(|error| error.to_string()).unwrap_or_default();
    let behind = message.split_once("expected ").map_or("", |(_, behind)| behind).to_owned();
    behind.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}
/// Requires a row for each name, with its keys.
fn rows<T: serde::de::DeserializeOwned>(page: &str) {
    let names = expected::<T>(serde_json::json!({ "name": "?" }));
    assert!(names.len() >= 3, "{names:?}");
    for name in names {
        let keys = expected::<T>(serde_json::json!({ "name": name, "?": 1 }));
        let has = |line: &&str| {
            let mut cells = line.split('|').map(str::trim);
            cells.nth(1) == Some(&format!("`{name}`"))
                && cells.next().is_some_and(|cell| keys.iter().all(|key| cell.contains(&format!("`{key}`"))))
        };
        assert!(page.lines().any(|line| has(&line)), "docs/layers.md has no row of `{name}` with {keys:?}");
    }
}

/// The page of layers has every model and layer with all of their keys, and its blocks are models.
#[test]
fn the_page_of_layers_is_complete() {
    let page = page("layers.md");
    let blocks = blocks(&page);
    assert!(blocks.len() >= 3);
    for block in blocks {
        let block: Block = toml::from_str(&block).unwrap();
        assert!(!block.model.label().is_empty());
    }
    rows::<ModelConfig>(&page);
    rows::<LayerConfig>(&page);
    rows::<InputShape>(&page);
}
