//! Every error, in one wording.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use dp_linear::conditioning::Conditioning;
use dp_linear::dp_accounting::{Delta, Epsilon};
use dp_linear::{ClassCounts, GaussianBudget, LinearError};

/// Every variant is here, in one wording: one line without a final stop, and no text of a cause in
/// the text of what it caused.
fn check<E: std::error::Error + std::fmt::Debug>(source: &str, errors: &[E]) -> String {
    let known = source.split_once("pub enum").and_then(|(_, rest)| rest.split_once("\n}")).unwrap().0;
    let variants = known.lines().filter_map(|line| {
        let name = line.strip_prefix("    ")?;
        name.starts_with(char::is_uppercase).then(|| name.split(|c: char| !c.is_alphanumeric()).next())?
    });
    for variant in variants {
        assert!(errors.iter().any(|error| format!("{error:?}").starts_with(variant)), "no {variant} among the errors");
    }
    let mut all = Vec::new();
    for error in errors {
        let text = error.to_string();
        assert!(!text.ends_with('.') && !text.contains('\n'), "{text}");
        let (mut above, mut cause) = (text.clone(), error.source());
        while let Some(error) = cause {
            assert!(!above.contains(&error.to_string()), "{above} repeats {error}");
            (above, cause) = (error.to_string(), error.source());
        }
        all.push(text);
    }
    all.join("\n")
}

#[test]
fn every_variant_in_one_wording() {
    let budget = GaussianBudget::new(Epsilon::new(1.0).unwrap(), Delta::new(1e-5).unwrap()).unwrap();
    let sigma = budget.noise_multiplier(1.0, 1).unwrap();
    let mut rng =
        dp_linear::dp_train::Randomness::from_seed(1).stream(dp_linear::dp_train::Purpose::Conditioning, 0, 0).unwrap();
    let mut ledger = dp_linear::dp_accounting::Ledger::new(dp_linear::dp_accounting::NeighbouringRelation::ZeroOut);
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken");
    std::fs::write(&broken, b"nothing of the kind").unwrap();
    let errors = [
        budget.noise_multiplier(0.0, 1).unwrap_err(),
        ClassCounts::fit(&[0, 5], 2, sigma, &mut rng, &mut ledger).unwrap_err(),
        Conditioning::load(Path::new("missing")).unwrap_err(),
        Conditioning::load(&broken).unwrap_err(),
        LinearError::State("is of another model".into()),
        LinearError::from(Delta::new(2.0).unwrap_err()),
        LinearError::from(dp_linear::dp_train::TrainError::mismatch("rows", 2, 3)),
    ];
    let texts = check(include_str!("../src/error.rs"), &errors);
    assert!(
        texts.contains("cannot read missing") && texts.contains("delta = 2: expected a number in [0, 1]"),
        "{texts}"
    );
}
