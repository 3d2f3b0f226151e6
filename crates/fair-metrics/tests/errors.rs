//! Every error, in one wording.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use fair_metrics::{
    Attribute, Groups, Labels, MetricError, MetricFrame, Predictions, SeedValues, accuracy, class_recall, holm,
    mean_loss_by_group, privacy_cost,
};

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
    let groups = Groups::new(&[0, 0], 1).unwrap();
    let on_rows = |rows: &[usize]| {
        MetricFrame::on_rows(rows, &[Attribute::from_labels("sex", &["f", "m"])], &[], |_: &[usize]| {
            Ok(fair_metrics::Measured::mean(1.0, 1))
        })
        .err()
        .unwrap()
    };
    let errors = [
        MetricError::invalid("tolerance", -0.1, "a finite number of at least 0"),
        accuracy(Labels(&[1, 0]), Predictions(&[1])).unwrap_err(),
        SeedValues::gap(&[vec![0.5]]).err().unwrap(),
        Groups::new(&[0, 3], 2).unwrap_err(),
        on_rows(&[0, 9]),
        class_recall(Labels(&[0, 7]), Predictions(&[0, 0]), 2).unwrap_err(),
        mean_loss_by_group(&[1.0, f64::NAN], &groups).unwrap_err(),
        privacy_cost(&[Some(f64::INFINITY)], &[None]).unwrap_err(),
        holm(&[0.5, 1.5]).unwrap_err(),
    ];
    insta::assert_snapshot!(check(include_str!("../src/error.rs"), &errors));
}
