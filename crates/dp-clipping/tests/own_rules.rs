//! Rules written outside of the crate, among them rules that lie: nothing puts more than the declared
//! bound into a sum.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/own_parts.rs"]
mod own_parts;

use dp_clipping::{
    AdvanceScale, ClipBatch, ClipConfig, ClipError, ClipMethod, Clipped, Controller, MethodEntry, Own, OwnBound,
    OwnRule, PresetParams, PublicContext, ScaleRule, Weights, clip_gradients,
    kernels::{Gradients, KernelExecution, SumOrder, clip_and_sum},
    rand::{CryptoRng, SeedableRng},
    rand_chacha::ChaCha20Rng,
    registry,
};
use own_parts::{ALL_WRONG, all_wrong, all_wrong_entry, wrong};
use serde_json::{Value, json};

/// A rule that gives every record the same scale under a bound of 1, whatever its norm is.
#[derive(Debug, Clone, Default)]
struct Lying {
    scale: f64,
    /// Changes the answer after it was made, as [`Clipped::new`] would not.
    after: Option<fn(&mut Clipped)>,
    in_advance: Option<AdvanceScale>,
}

impl ClipMethod for Lying {
    fn clip(&mut self, batch: &ClipBatch<'_>, _: &mut dyn CryptoRng) -> Result<Clipped, ClipError> {
        let mut clipped = Clipped::new(batch, vec![self.scale; batch.norms.len()], vec![1.0])?;
        if let Some(change) = self.after {
            change(&mut clipped);
        }
        Ok(clipped)
    }

    fn scale_in_advance(&self, _group: usize) -> Option<AdvanceScale> {
        self.in_advance
    }
}

/// A row of norm 3,000, one that is not a number, one that is infinite, one of norm 0 and two of norm
/// ½.
const ROWS: [f64; 12] = [3_000.0, 0.0, f64::NAN, 1.0, f64::INFINITY, 1.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.5];

fn clip(method: &mut Lying, gradients: &Gradients<'_, f64>) -> Result<(Clipped, [f64; 2]), ClipError> {
    let (mut sum, mut rng) = ([f64::NAN; 2], ChaCha20Rng::seed_from_u64(1));
    let groups = vec![0; gradients.n_records()];
    let clipped = clip_gradients(method, gradients, &groups, &mut rng, &mut sum, &KernelExecution::default())?;
    Ok((clipped, sum))
}

/// Every record adds at most the bound: to the sum of all records, and to a sum of its own.
fn check(method: &Lying, n_capped: usize) {
    let all = Gradients::from_slice(&ROWS, 2).unwrap();
    let (clipped, sum) = clip(&mut method.clone(), &all).unwrap();
    assert_eq!((clipped.bound, clipped.n_non_finite), (1.0, 2), "{method:?}");
    assert_eq!(clipped.n_capped, n_capped, "{method:?}");
    assert!(sum.iter().all(|value| value.is_finite()), "{method:?}: {sum:?}");
    for row in ROWS.chunks(2) {
        let (_, sum) = clip(&mut method.clone(), &Gradients::from_slice(row, 2).unwrap()).unwrap();
        let added = (sum[0] * sum[0] + sum[1] * sum[1]).sqrt();
        assert!(added <= 1.0, "{method:?}: {row:?} adds {added}");
    }
}

#[test]
fn a_rule_that_lies_keeps_its_bound() {
    // Of the four rows that are finite, 1 times the norm breaks the bound in one, 3 times in three, and
    // no scale does in the row of norm 0.
    for (scale, n_capped) in [(1.0, 1), (3.0, 3), (0.0, 0), (f64::NAN, 4), (f64::INFINITY, 3), (-1.0, 4)] {
        check(&Lying { scale, ..Lying::default() }, n_capped);
    }
}

#[test]
fn an_answer_that_is_changed_keeps_its_bound() {
    let raised: fn(&mut Clipped) = |clipped| clipped.scales.fill(5.0);
    let nan: fn(&mut Clipped) = |clipped| clipped.scales.fill(f64::NAN);
    check(&Lying { scale: 0.0, after: Some(raised), ..Lying::default() }, 3);
    check(&Lying { scale: 0.0, after: Some(nan), ..Lying::default() }, 4);
    // A bound of the group above the bound of all does not count.
    let group_bound: fn(&mut Clipped) = |clipped| {
        clipped.group_bounds[0] = 1e9;
        clipped.scales.fill(1.0);
    };
    check(&Lying { scale: 0.0, after: Some(group_bound), ..Lying::default() }, 1);
}

#[test]
fn scales_in_advance_that_lie_keep_the_bound() {
    for threshold in [0.25, 1.0, 1e4, f64::NAN] {
        let in_advance = Some(AdvanceScale { rule: ScaleRule::Hard, threshold });
        check(&Lying { scale: 1.0, in_advance, after: None }, 1);
    }
}

#[test]
fn an_answer_without_a_bound_is_refused() {
    let gradients = Gradients::from_slice(&ROWS, 2).unwrap();
    for bound in [f64::NAN, f64::INFINITY, -1.0] {
        let batch = ClipBatch::new(&[0.5], &[0]);
        assert!(matches!(Clipped::new(&batch, vec![1.0], vec![bound]), Err(ClipError::InvalidParameter { .. })));
    }
    let changes: [fn(&mut Clipped); 4] = [
        |clipped| clipped.bound = f64::NAN,
        |clipped| clipped.bound = f64::INFINITY,
        |clipped| clipped.group_bounds.clear(),
        |clipped| clipped.scales.clear(),
    ];
    for change in changes {
        assert!(clip(&mut Lying { scale: 1.0, after: Some(change), in_advance: None }, &gradients).is_err());
    }
    let batch = ClipBatch::new(&[0.5, 0.5], &[0, 1]);
    assert!(matches!(
        Clipped::new(&batch, vec![1.0; 2], vec![1.0]),
        Err(ClipError::GroupOutOfRange { index: 1, value: 1, n_groups: 1 })
    ));
    assert!(Clipped::new(&batch, vec![1.0; 2], vec![]).is_err());
}

#[test]
fn the_kernel_keeps_the_bound_it_is_given() {
    for sum_order in [SumOrder::PerThreadCount, SumOrder::Fixed] {
        let execution = KernelExecution { sum_order, ..KernelExecution::default() };
        for scale in [1.0, 1e9, f64::NAN, f64::INFINITY, -1.0] {
            for row in ROWS.chunks(2) {
                let mut sum = [f64::NAN; 2];
                let gradients = Gradients::from_slice(row, 2).unwrap();
                clip_and_sum(&gradients, |_, _| scale, 1.0, &mut sum, &execution).unwrap();
                assert!((sum[0] * sum[0] + sum[1] * sum[1]).sqrt() <= 1.0, "{scale} {row:?}: {sum:?}");
            }
        }
        let gradients = Gradients::from_slice(&ROWS, 2).unwrap();
        assert!(clip_and_sum(&gradients, |_, _| 1.0, f64::NAN, &mut [0.0; 2], &execution).is_err());
    }
}

/// A rule with a memory: the bound halves after every step.
#[derive(Debug)]
struct Halving {
    threshold: f64,
}

impl ClipMethod for Halving {
    fn clip(&mut self, batch: &ClipBatch<'_>, _: &mut dyn CryptoRng) -> Result<Clipped, ClipError> {
        let mut clipped = Clipped::new(batch, vec![1.0; batch.norms.len()], vec![self.threshold])?;
        clipped.thresholds = vec![self.threshold];
        self.threshold /= 2.0;
        Ok(clipped)
    }

    fn state(&self) -> Value {
        json!({ "threshold": self.threshold })
    }

    fn restore(&mut self, state: &Value) -> Result<(), ClipError> {
        self.threshold = state["threshold"].as_f64().ok_or(ClipError::StateMismatch { what: "form" })?;
        Ok(())
    }
}

#[test]
fn the_state_is_the_rule_s_own() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let batch = ClipBatch::new(&[4.0], &[0]);
    let mut method: Box<dyn ClipMethod> = Box::new(Halving { threshold: 1.0 });
    method.clip(&batch, &mut rng).unwrap();
    let saved = method.state().to_string();
    assert_eq!(saved, r#"{"threshold":0.5}"#);
    let expected = method.clip(&batch, &mut rng).unwrap();

    let mut restored = Halving { threshold: 1.0 };
    restored.restore(&serde_json::from_str(&saved).unwrap()).unwrap();
    assert_eq!(restored.clip(&batch, &mut rng).unwrap(), expected);
    assert!(restored.restore(&json!({})).is_err());
    // A rule that keeps nothing takes nothing.
    let mut lying = Lying::default();
    assert!(lying.state().is_null() && lying.restore(&Value::Null).is_ok() && lying.restore(&json!(1)).is_err());
    assert!(format!("{method:?}").contains("Halving"));
}

/// `check` says what the cap hides.
#[test]
fn a_wrong_rule_is_named() {
    for (how, expected) in [
        (0, "adds 3.000e0 times the bound"),
        (1, "expected a number of at least 0"),
        (2, "expected a number of at least 0"),
        (3, "expected a finite number"),
        (4, "the length falls"),
    ] {
        let findings = dp_clipping::check(&wrong(how));
        assert!(findings.iter().any(|finding| finding.contains(expected)), "{how}: {findings:?}");
    }
    for entry in registry::methods() {
        let rule = entry.default_config().rule;
        let is_drop = matches!(rule, ScaleRule::GlobalDrop { .. });
        let findings = dp_clipping::check(&rule);
        assert!(findings.iter().all(|finding| is_drop && finding.contains("falls")), "{}: {findings:?}", entry.name);
    }
}

/// The cap holds a wrong rule to its bound, and counts the records that it lowered.
#[test]
fn a_wrong_rule_is_held_by_the_cap() {
    let entry = all_wrong_entry();
    let context = PublicContext { n_groups: 2, expected_batch_size: 4.0, noise_multiplier: 1.0 };
    let (norms, groups, losses) = ([0.0, 0.5, 4.0, f64::NAN], [0, 0, 1, 1], [0.0, 0.25, f64::NAN, 9.0]);
    let batch = ClipBatch::new(&norms, &groups).with_losses(&losses[..]);
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    for how in 0..5 {
        let config = ClipConfig { rule: wrong(how), ..entry.default_config() };
        let mut method = config.build(&context).unwrap();
        for step in 0..4 {
            let clipped = method.clip(&batch, &mut rng).unwrap();
            for ((scale, norm), group) in clipped.scales.iter().zip(norms).zip(groups) {
                assert!(!norm.is_finite() || scale * norm <= clipped.group_bounds[group], "{how} {step}: {clipped:?}");
            }
            assert_eq!(clipped.scales[3], 0.0);
            assert!(clipped.bound.is_finite() && clipped.bound > 0.0);
        }
    }

    // By hand: 3·min(1, C/‖g‖) at C = 1 breaks the bound at norms ½ and 4, and is lowered to it.
    let mut method = entry.default_config().build(&context).unwrap();
    let clipped = method.clip(&batch, &mut rng).unwrap();
    assert_eq!((clipped.bound, clipped.n_capped, clipped.n_non_finite), (1.0, 2, 1));
    assert!((clipped.scales[1] * 0.5 - 1.0).abs() < 1e-5 && (clipped.scales[2] * 4.0 - 1.0).abs() < 1e-5);
    // The record above the threshold is of group 1, the others are at no count; twice the loss ¼ is ½.
    let released: Vec<_> = clipped.queries.iter().map(|query| query.released.clone()).collect();
    assert_eq!(released, [vec![0.0, 1.0], vec![0.5]]);
    assert!(clipped.queries.iter().all(|query| query.l2_sensitivity == 1.0));
    // The next threshold is ¼ and the weight of group 0 is 2; group 1 keeps its own.
    let clipped = method.clip(&batch, &mut rng).unwrap();
    assert_eq!((clipped.thresholds[0], clipped.group_bounds), (0.25, vec![0.5, 0.25]));
}

/// Another rule of the same name, and one that is in no method.
#[derive(Debug)]
struct Other(&'static str);
impl OwnRule for Other {
    fn name(&self) -> &'static str {
        self.0
    }
    fn scale(&self, norm: f64, threshold: f64, _: &[f64]) -> f64 {
        threshold / norm
    }
}
fn with(rule: &'static Other, values: &[f64]) -> ClipConfig {
    let rule = ScaleRule::Own { rule: Own::rule(rule, values), bound: OwnBound::Constant(1.0) };
    ClipConfig::new(rule, Controller::Constant { threshold: 1.0 }, Weights::Uniform)
}

/// A part is found by its name, in configurations and in states, and a name means one thing.
#[test]
fn own_parts_have_names() {
    let entry = all_wrong_entry();
    let config = entry.default_config();
    assert_eq!(config.own_parts(), ["wrong", "astray", "heavy"]);
    assert!(config.certified() && config.needs_groups() && config.needs_losses());
    assert_eq!((config.rule.name(), config.controller.name(), config.weights.name()), ("wrong", "astray", "heavy"));
    let text = serde_json::to_string(&config).unwrap();
    assert!(
        text.contains(r#""rule":{"kind":"own","rule":{"name":"wrong","parameters":{"how":0.0}},"bound":"threshold"}"#),
        "{text}"
    );
    assert_eq!(serde_json::from_str::<ClipConfig>(&text).unwrap(), config);
    let unknown = serde_json::from_str::<ClipConfig>(&text.replace("\"wrong\"", "\"right\"")).unwrap_err().to_string();
    assert!(unknown.contains("rule = right: expected a part of a method that this program registers"), "{unknown}");
    assert!(registry::all().iter().any(|entry| entry.name == "all-wrong"));
    assert!(registry::methods().iter().all(|entry| entry.name != "all-wrong"));

    let context = PublicContext { n_groups: 2, expected_batch_size: 4.0, noise_multiplier: 1.0 };
    let (norms, groups, losses) = ([0.5, 4.0], [0, 1], [0.25, 0.5]);
    let batch = ClipBatch::new(&norms, &groups).with_losses(&losses[..]);
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let mut method = config.build(&context).unwrap();
    method.clip(&batch, &mut rng).unwrap();
    let mut resumed = config.build(&context).unwrap();
    resumed.restore(&method.state()).unwrap();
    assert_eq!(method.clip(&batch, &mut rng).unwrap(), resumed.clip(&batch, &mut rng).unwrap());

    for (name, config) in [("dpsgd", all_wrong as fn(&PresetParams) -> ClipConfig), ("Not Kebab", all_wrong)] {
        assert!(registry::register(MethodEntry { name, preset: config, ..ALL_WRONG }).is_err(), "{name}");
    }
    let same = with(&Other("wrong"), &[]).build(&context).unwrap_err().to_string();
    assert_eq!(same, "rule = wrong: expected a name that no other part has");
    let unknown = with(&Other("other"), &[]).build(&context).unwrap_err().to_string();
    assert!(unknown.starts_with("rule = other: expected a part of a method that"), "{unknown}");
    let values = with(&Other("other"), &[1.0]).build(&context).unwrap_err().to_string();
    assert_eq!(values, "number of parameters = 1: expected 0 of `other` (none), at most 4");
    let taken = MethodEntry { name: "taken", preset: |_| with(&Other("hard"), &[]), ..ALL_WRONG };
    assert!(registry::register(taken).is_err());
}
