//! Every error, in one wording.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use dp_clipping::{ClipBatch, ClipError, Clipped, PresetParams, kernels::Gradients, ndarray::arr2, registry};
use serde_json::Value;

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
    let array = arr2(&[[1.0, 2.0], [3.0, 4.0]]);
    let dpsgd = registry::find("dpsgd").unwrap();
    let context = dp_clipping::PublicContext { n_groups: 1, expected_batch_size: 1.0, noise_multiplier: 1.0 };
    let errors = [
        dpsgd.config(&PresetParams { clip_norm: 0.0, ..PresetParams::default() }).unwrap_err(),
        dpsgd.config(&PresetParams { upper_bound: Some(2.0), ..PresetParams::default() }).unwrap_err(),
        Clipped::new(&ClipBatch::new(&[1.0], &[]), vec![1.0], vec![1.0]).unwrap_err(),
        Clipped::new(&ClipBatch::new(&[1.0], &[2]), vec![1.0], vec![1.0]).unwrap_err(),
        Clipped::new(&ClipBatch::new(&[1.0], &[0]), vec![1.0], vec![f64::NAN]).unwrap_err(),
        ClipError::UnknownMethod { name: "dpsdg".into(), known: "dpsgd".into() },
        Gradients::from_view(array.t()).unwrap_err(),
        Gradients::from_slice(&[1.0_f32; 3], 2).unwrap_err(),
        dpsgd.default_config().build(&context).unwrap().restore(&Value::Null).unwrap_err(),
    ];
    insta::assert_snapshot!(check(include_str!("../src/error.rs"), &errors));
}

/// Every number of a preset is refused by the name that it has there.
#[test]
fn the_name_is_the_one_that_the_caller_used() {
    let bad = |change: &dyn Fn(&mut PresetParams)| {
        let mut params = PresetParams::default();
        change(&mut params);
        registry::find("bounded-adaptive").unwrap().config(&params).unwrap_err().to_string()
    };
    let texts = [
        bad(&|params| params.clip_norm = -1.0),
        bad(&|params| params.upper_bound = Some(f64::INFINITY)),
        bad(&|params| params.tolerance = Some(-1.0)),
        bad(&|params| params.rate = Some(f64::NAN)),
        bad(&|params| params.target = Some(1.5)),
        bad(&|params| params.lower_bound = Some(1e30)),
        bad(&|params| params.loss_bound = Some(0.0)),
        bad(&|params| params.count_noise = dp_clipping::CountNoise::Multiplier(-1.0)),
        bad(&|params| params.fairlens_weights = Some([1.0, -2.0])),
    ];
    insta::assert_snapshot!(texts.join("\n"));
}
