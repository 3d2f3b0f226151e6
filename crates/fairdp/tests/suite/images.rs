//! Images in folders and IDX files, and beside other kinds of columns.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::program::{done, json, refused};

const SIDE: usize = 12;
const ROWS: usize = 1_200;

/// Bright above or below the middle, by the class, with something of the row's own.
fn pixels(row: usize, class: usize) -> Vec<u8> {
    let value = |place: usize| {
        let is_bright = usize::from(place / SIDE >= SIDE / 2) == class;
        (if is_bright { 150 } else { 40 }) + (place * 7 + row * 13) % 60
    };
    (0..SIDE * SIDE).map(|place| value(place) as u8).collect()
}

fn class_of(row: usize) -> usize {
    row / (ROWS / 2)
}

/// The same images as PNG files in folders and as IDX files.
fn write(here: &Path) {
    let mut content = Vec::new();
    for row in 0..ROWS {
        let class = class_of(row);
        let folder = here.join(format!("images/{class}"));
        fs::create_dir_all(&folder).unwrap();
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, SIDE as u32, SIDE as u32);
        encoder.set_color(png::ColorType::Grayscale);
        encoder.write_header().unwrap().write_image_data(&pixels(row, class)).unwrap();
        fs::write(folder.join(format!("{row:05}.png")), bytes).unwrap();
        content.extend(pixels(row, class));
    }
    let idx = |name: &str, sides: &[usize], content: &[u8]| {
        let mut bytes = vec![0, 0, 8, sides.len() as u8];
        bytes.extend(sides.iter().flat_map(|&side| (side as u32).to_be_bytes()));
        bytes.extend(content);
        fs::write(here.join(name), bytes).unwrap();
    };
    idx("images-idx3-ubyte", &[ROWS, SIDE, SIDE], &content);
    idx("labels-idx1-ubyte", &[ROWS], &(0..ROWS).map(|row| class_of(row) as u8).collect::<Vec<_>>());
}

#[test]
fn folders_and_idx_files_give_one_release() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    write(here);
    let by_folder = done(here, &["init", "images", "--label", "folder", "--epsilon", "4"]);
    let sides = format!("kind = \"image\"\nheight = {SIDE}\nwidth = {SIDE}\nchannels = 1\nresize = false");
    assert!(by_folder.contains(&sides), "{by_folder}");
    let images = "image=images-idx3-ubyte";
    let by_idx = done(here, &["init", "labels-idx1-ubyte", "--label", "label", "--vectors", images, "--epsilon", "4"]);
    for (name, config) in [("folder", by_folder), ("idx", by_idx)] {
        let encoder = "\n[card]\nencoder = \"made up, version 1\"\n";
        let config = config.replace("from = \"data\"", "public = true") + encoder;
        fs::write(here.join(format!("{name}.toml")), config).unwrap();
        done(here, &["fit", &format!("{name}.toml"), "--out", name, "--seed", "1", "-q"]);
        done(here, &["verify", name]);
    }
    for file in ["model.safetensors", "fairness.json"] {
        let [one, other] = ["folder", "idx"].map(|run| fs::read(here.join(run).join("release").join(file)).unwrap());
        assert!(one == other, "{file}");
    }
    let accuracy = json(here.join("idx/release/fairness.json"))["groups"][0]["accuracy"]["value"].as_f64();
    assert!(accuracy.is_none_or(|accuracy| accuracy > 0.9), "{accuracy:?}");
    let fixed = json(here.join("idx/release/statement.json"))["fixed"].to_string();
    assert!(fixed.contains("wavelet scattering, J = 2") && fixed.contains("the encoder made up, version 1"), "{fixed}");
    let card = fs::read_to_string(here.join("idx/release/card.html")).unwrap();
    assert!(card.contains("Fixed beforehand, at no ε: column `image`"), "{card}");
    let answers = done(here, &["predict", "folder", "images", "--out", "-"]);
    let right = answers
        .lines()
        .skip(1)
        .enumerate()
        .filter(|(row, line)| line.split(',').nth(1) == Some(&class_of(*row).to_string()));
    assert!(right.count() > ROWS * 9 / 10, "{answers}");
}

/// Esipova's network on pixels, from folders and from IDX files.
#[test]
fn a_network_sees_pixels() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    write(here);
    let network = ["--epsilon", "8", "--model", "network"];
    let by_folder = done(here, &[&["init", "images", "--label", "folder"][..], &network].concat());
    let images = ["--vectors", "image=images-idx3-ubyte"];
    let by_idx = done(here, &[&["init", "labels-idx1-ubyte", "--label", "label"][..], &images, &network].concat());
    let declared = |config: &str| {
        let config = config.replace("from = \"data\"", "public = true");
        let config = config.replace("kind = \"network\"", "kind = \"network\"\nnetwork = \"esipova-cnn\"");
        config.replace("name = \"auto\"", "name = \"auto\"\nsampling_rate = 0.1\nsteps = 60\nlearning_rate = 0.06")
    };
    for (name, config) in [("folder", by_folder), ("idx", by_idx)] {
        fs::write(here.join(format!("{name}.toml")), declared(&config)).unwrap();
    }
    let plan = done(here, &["fit", "idx.toml", "--plan"]);
    assert!(plan.contains("its pixels") && !plan.contains("mean squares"), "{plan}");
    for name in ["folder", "idx"] {
        done(here, &["fit", &format!("{name}.toml"), "--out", name, "--seed", "1", "-q"]);
        done(here, &["verify", name]);
    }
    for file in ["model.safetensors", "model.onnx", "fairness.json"] {
        let [one, other] = ["folder", "idx"].map(|run| fs::read(here.join(run).join("release").join(file)).unwrap());
        // The label has another name.
        assert!(one == other || file == "fairness.json" && one.len() == other.len(), "{file}");
    }
    let statement = json(here.join("idx/release/statement.json")).to_string();
    for said in ["144 pixels from 0 to 1; the layers of esipova-cnn", "the network esipova-cnn on pixels, 12 × 12 × 1"]
    {
        assert!(statement.contains(said), "{statement}");
    }
    let pipeline = json(here.join("idx/release/pipeline.json"));
    assert_eq!((pipeline["kind"].as_str(), pipeline["network"].as_str()), (Some("network"), Some("esipova-cnn")));
    let answers = done(here, &["predict", "folder", "images", "--out", "-"]);
    let right = answers
        .lines()
        .skip(1)
        .enumerate()
        .filter(|(row, line)| line.split(',').nth(1) == Some(&class_of(*row).to_string()));
    assert!(right.count() > ROWS * 9 / 10, "{answers}");
    for (fault, expected) in [(&[][..], 0), (&["--plant", "noise"], 4)] {
        let out = format!("attacked-{expected}");
        let audit = ["audit", "idx.toml", "--out", &out, "--canaries", "200", "--repeats", "100", "--seed", "1", "-q"];
        let (code, report) = refused(here, &[&audit[..], fault].concat());
        assert_eq!(code, expected, "{fault:?}: {report}");
    }

    // What is not supported is refused by name.
    let text = fs::read_to_string(here.join("idx.toml")).unwrap();
    let refusal = |from: &str, to: &str| {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        fs::write(here.join("changed.toml"), changed).unwrap();
        refused(here, &["fit", "changed.toml", "--plan"]).1
    };
    let another = "[[column]]\nname = \"x\"\nkind = \"number\"\nlow = 0\nhigh = 1\n\n[[column]]";
    for (from, to, said) in [
        ("[[column]]", another, "pixels beside other columns are not supported"),
        ("resize = false", "resize = false\nmissing = true", "without missing = true"),
        ("esipova-cnn", "zhao-cnn", "images of 12 × 12 pixels are too small for its layers: expected 13 × 13 or more"),
        ("kind = \"network\"", "kind = \"mlp\"", "model.network: expected with kind = \"network\" alone"),
        ("network = \"esipova-cnn\"", "hidden = [3]", "model.hidden: expected with kind = \"mlp\" alone"),
        ("name = \"auto\"", "name = \"conditioned\"", "expected with the additive model"),
    ] {
        let message = refusal(from, to);
        assert!(message.contains(said), "{to}: {message}");
    }
}

/// Numbers, categories, a vector, an image and a group: one fit, whose plan lists each block's share.
#[test]
fn all_kinds_are_one_model() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    write(here);
    let mut text = "a,b,c,job,city,embedding,image,sex,y\n".to_owned();
    for row in 0..ROWS {
        let class = class_of(row);
        let numbers: Vec<String> = (0..384).map(|place| ((row * place) % 17).to_string()).collect();
        let (job, city, sex) = (["x", "y", "z"][row % 3], ["n", "m", "o"][row % 7 % 3], ["f", "m"][row % 2]);
        let _ = writeln!(
            text,
            "{}.5,{}.25,{}.125,{job},{city},\"[{}]\",images/{class}/{row:05}.png,{sex},{class}",
            row % 50,
            row % 31,
            row % 11,
            numbers.join(" ")
        );
    }
    fs::write(here.join("t.csv"), text).unwrap();
    let config = done(here, &["init", "t.csv", "--label", "y", "--group", "sex", "--epsilon", "4"]);
    fs::write(here.join("t.toml"), config.replace("from = \"data\"", "public = true")).unwrap();
    let plan = done(here, &["fit", "t.toml", "--plan"]);
    for block in ["mean of the table's features", "covariance of `embedding`", "covariance of `image`"] {
        assert!(plan.contains(block), "{block}: {plan}");
    }
    done(here, &["fit", "t.toml", "--out", "run", "--seed", "1", "-q"]);
    done(here, &["verify", "run"]);
}
