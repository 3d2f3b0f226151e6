//! Curves of a release: their noise, columns without an effect, values that are too rare.

use std::fmt::Write as _;
use std::fs;

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::program::{done, json};

/// A number that matters, one that does not, and a category of which one value is in three rows and one in none.
fn table(rows: usize) -> String {
    let mut rng = ChaCha8Rng::seed_from_u64(21);
    let mut table = "age,shoe,job,y\n".to_owned();
    for row in 0..rows {
        let (age, shoe): (f64, f64) = (rng.random_range(20.0..80.0), rng.random_range(30.0..50.0));
        let job = if row < 3 { "smith" } else { ["clerk", "nurse"][rng.random_range(0..2)] };
        let logit = 0.06 * (age - 50.0) + if job == "clerk" { 1.0 } else { -1.0 };
        let y = u8::from(rng.random_bool(1.0 / (1.0 + f64::exp(-logit))));
        writeln!(table, "{age:.1},{shoe:.1},{job},{y}").unwrap();
    }
    table
}

const CONFIG: &str = "version = 1\n[table]\nfiles = [\"table.csv\"]\n[label]\ncolumn = \"y\"\nclasses = [\"0\", \"1\"]\n\
    [privacy]\nepsilon = 1\ndelta = 1e-6\n[test]\nfraction = 0.2\n\
    [[column]]\nname = \"age\"\nkind = \"number\"\nlow = 20\nhigh = 80\nbins = 6\nunit = \"years\"\n\
    [[column]]\nname = \"shoe\"\nkind = \"number\"\nlow = 30\nhigh = 50\nbins = 6\n\
    [[column]]\nname = \"job\"\nkind = \"category\"\nvalues = [\"clerk\", \"nurse\", \"smith\", \"baker\"]\n";

#[test]
fn curves_say_how_much_of_them_is_noise() {
    for method in ["auto", "conditioned", "dpsgd"] {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        fs::write(here.join("table.csv"), table(12_000)).unwrap();
        fs::write(here.join("c.toml"), format!("{CONFIG}[method]\nname = \"{method}\"\n")).unwrap();
        done(here, &["fit", "c.toml", "--out", "run", "--seed", "1", "-q"]);
        done(here, &["verify", "run"]);
        let curves = json(here.join("run/release/curves.json"))["curves"].clone();
        let curve = |name: &str| curves.as_array().unwrap().iter().find(|curve| curve["column"] == name).unwrap();
        let importance = |name: &str| curve(name)["importance"].as_f64().unwrap();
        assert!(importance("age") > 0.5 && importance("job") > 0.5, "{curves}");
        assert!(importance("shoe") < 0.3 && curves[2]["column"] == "shoe", "{curves}");
        assert_eq!(curve("age")["unit"], "years");
        let card = fs::read_to_string(here.join("run/release/card.html")).unwrap();
        if method == "dpsgd" {
            assert!(curve("age")["is_within_noise"].is_null() && !card.contains("polygon points"), "{card}");
            continue;
        }
        assert_eq!(curve("age")["is_within_noise"], false, "{method}");
        assert_eq!(curve("shoe")["is_within_noise"], true, "{method}: {}", curve("shoe"));
        for point in curve("age")["points"].as_array().unwrap() {
            let [effect, noise] = ["effect", "noise"].map(|name| point[name].as_f64().unwrap());
            let truth = 0.06 * (point["at"]["number"].as_f64().unwrap() - 50.0);
            // A curve is shrunk by its prior, and its intercept is another one's.
            assert!(noise > 0.01 && noise < 0.8 && (effect - truth).abs() < 1.5, "{method}: {point} {truth}");
        }
        assert!(card.contains("<polygon points=") && card.contains("80 years</text>"), "{card}");
        assert!(card.contains("cannot be told from the noise: shoe."), "{method}: {card}");
        let jobs = curve("job")["points"].as_array().unwrap();
        let rare: Vec<&str> = jobs
            .iter()
            .filter(|job| job["is_too_rare"] == true)
            .map(|job| job["at"]["value"].as_str().unwrap())
            .collect();
        assert!(!rare.contains(&"clerk") && !rare.contains(&"nurse"), "{method}: {rare:?}");
        assert!(rare.iter().all(|name| card.contains(name)), "{card}");
        let rare_jobs = jobs.iter().filter(|job| job["is_too_rare"] == true);
        assert!(rare_jobs.clone().all(|job| job["effect"] == 0.0), "{curves}");
        if method == "auto" {
            assert!(!rare.is_empty(), "{curves}");
        }
        fs::write(here.join("new.csv"), table(20)).unwrap();
        let said = std::process::Command::new(env!("CARGO_BIN_EXE_fairdp"))
            .args(["predict", "run", "new.csv", "--out", "p.csv", "--explain", "2"])
            .current_dir(here)
            .output()
            .unwrap();
        let said = String::from_utf8(said.stderr).unwrap();
        assert_eq!(said.contains("too rare to learn, adding 0: `job`:"), !rare.is_empty(), "{said}");
    }
}
