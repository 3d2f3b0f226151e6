//! A release in the forms that others ask for.

use std::fs;

use crate::program::{declared, done, refused};

const CARD: &str = "\n[card]\nname = \"Risk: a \\\"test\\\"\"\ndate = \"2026-11-28\"\nowner = \"an office\"\npurpose = \"to try\"\nlimits = \"no decision\"\n";

#[test]
fn a_release_is_exported_and_what_is_missing_is_named() {
    let folder = declared(3_000, |config| config + CARD);
    let here = folder.path();
    done(here, &["fit", "fairdp.toml", "--out", "run", "-q"]);
    let entry = done(here, &["export", "registry", "run"]);
    for line in [
        "# missing: data_product_region: the region that the data describe, or whose law applies",
        "# missing: registry_authors: who fills out this entry",
        "# missing: data_product_sector: Technology, Healthcare, Education, Government, Energy or Finance",
        "    data_product_type: \"Machine learning model\"",
        "url_slug: \"risk-a-test\"",
        "tier: 3",
        "    name: \"Risk: a \\\"test\\\"\"",
        "      - \"an office\"",
        "    publication_date: \"2026-11-28\"",
        "    variant_name: \"Approximate DP\"",
        "      delta: 0.00001",
    ] {
        assert!(entry.lines().any(|found| found == line), "{line}\n{entry}");
    }
    assert_eq!(entry.matches("MISSING: ").count(), 2, "{entry}");
    // From the release alone, and whole.
    assert_eq!(done(here, &["export", "registry", "run/release"]), entry);
    let card = done(here, &["export", "model-card", "run"]);
    assert!(card.starts_with("---\nlibrary_name: fairdp\npipeline_tag: tabular-classification\n"), "{card}");
    assert!(
        card.contains("# Risk: a \"test\"\n") && card.contains("| (all) | ") && card.contains("no decision"),
        "{card}"
    );
    assert!(!card.contains("MISSING") && !card.contains("NOT PRIVATE"), "{card}");

    let file = here.join("run/release/fairness.json");
    fs::write(&file, fs::read_to_string(&file).unwrap() + " ").unwrap();
    let (code, message) = refused(here, &["export", "model-card", "run"]);
    assert!(code == 4 && message.contains("fairness.json"), "{message}");
}

#[test]
fn a_run_with_a_seed_is_called_not_private() {
    let folder = declared(3_000, |config| config);
    let here = folder.path();
    done(here, &["fit", "fairdp.toml", "--out", "run", "-q", "--seed", "7"]);
    let entry = done(here, &["export", "registry", "run"]);
    assert!(entry.starts_with("# NOT PRIVATE: ") && entry.contains("details: \"NOT PRIVATE: "), "{entry}");
    assert!(entry.contains("MISSING: the name of the model (card.name)"), "{entry}");
    assert!(done(here, &["export", "model-card", "run"]).contains("**NOT PRIVATE: "));
}

/// Figures about new records are no model.
#[test]
fn a_release_of_figures_is_exported_as_what_it_is() {
    let folder = declared(3_000, |config| config);
    let here = folder.path();
    done(here, &["fit", "fairdp.toml", "--out", "run", "-q"]);
    done(here, &["evaluate", "run", "table.csv", "--epsilon", "1", "--out", "figures"]);
    let entry = done(here, &["export", "registry", "figures"]);
    assert!(entry.contains("data_product_type: \"Summary statistics\"") && !entry.contains("Model: "), "{entry}");
    let (code, message) = refused(here, &["export", "model-card", "figures"]);
    assert!(code == 1 && message.contains("has figures about new records, and no model"), "{message}");
}
