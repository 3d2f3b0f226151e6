//! Configurations in TOML: what is accepted, and the words in which the rest is refused.

use dp_accounting::{Accountant, Delta, DpEvent, PldAccountant};
use dp_train::{Activation, EarlyStopping, LearningRate, Loss, Plan, PublicFacts, StoppingCriterion, TrainConfig};
use insta::assert_snapshot;

use crate::support::mlp;

const FACTS: PublicFacts = PublicFacts { n_records: 1_000, n_inputs: 3, n_classes: 2, n_groups: 2 };

const TEXT: &str = r#"loss = "softmax-cross-entropy"
learning_rate = { step = { first = 0.1, factor = 0.5, every = 10 } }
l2 = 0.01

[model]
name = "mlp"
hidden = [4]
activation = "relu"

[batches]
expected_size = 250
epochs = 5

[optimiser]
name = "momentum"
momentum = 0.9

[early_stopping]
patience = 2

[privacy]
method = "dpsgd-f"
settings = { clip_norm = 0.5 }
noise_multiplier = 1.5
delta = 1e-5
"#;

fn read(text: &str) -> TrainConfig {
    TrainConfig::from_toml(text, FACTS).unwrap()
}

/// The error of the document with one text replaced by another.
fn refused(from: &str, to: &str) -> String {
    assert!(TEXT.contains(from), "{from}");
    TrainConfig::from_toml(&TEXT.replacen(from, to, 1), FACTS).unwrap_err().to_string()
}

#[test]
fn a_document_is_a_configuration() {
    let config = read(TEXT);
    assert_eq!(config.model, mlp(&[4], Activation::Relu));
    assert_eq!(config.loss, Loss::SoftmaxCrossEntropy);
    assert_eq!(config.learning_rate, LearningRate::Step { first: 0.1, factor: 0.5, every: 10 });
    let early_stopping = EarlyStopping { patience: 2, min_improvement: 0.0, criterion: StoppingCriterion::Loss };
    assert_eq!(config.early_stopping, Some(early_stopping));
    let by_f1 = read(&TEXT.replacen("patience = 2", "patience = 2\ncriterion = \"f1\"", 1));
    assert_eq!(by_f1.early_stopping, Some(EarlyStopping { criterion: StoppingCriterion::F1, ..early_stopping }));
    // 250 of 1000; 5 epochs of 4 batches.
    assert_eq!((config.batches.sampling_rate.get(), config.batches.steps, config.batches.epochs), (0.25, 20, 5));
    assert_eq!(Plan::new(config, FACTS).unwrap().count_noise_multipliers(), [15.0]);
    let public = TEXT.split("[privacy]").next().unwrap();
    assert_eq!(read(public).privacy, None);
}

#[test]
fn any_cell_of_the_grid_can_be_named() {
    let clipping = r#"clipping = { rule = { kind = "tanh" }, controller = { kind = "constant", threshold = 2.0 }, weights = { kind = "uniform" } }"#;
    let config = read(&TEXT.replace("method = \"dpsgd-f\"\nsettings = { clip_norm = 0.5 }", clipping));
    assert_eq!(config.privacy.unwrap().clipping.rule.name(), "tanh");
}

/// The expected batch is the configured one even where it does not divide the records: 256 of 1000,
/// not 1000/⌈1000/256⌉ = 250.
#[test]
fn lengths_follow_from_epochs_or_steps() {
    let of = |batches: &str| {
        let config = read(&TEXT.replace("expected_size = 250\nepochs = 5", batches));
        let plan = Plan::new(config.clone(), FACTS).unwrap();
        (config.batches.steps, config.batches.epochs, plan.expected_batch_size())
    };
    assert_eq!(of("expected_size = 256\nepochs = 5"), (19, 5, 256.0));
    assert_eq!(of("expected_size = 250\nsteps = 30"), (30, 8, 250.0));
    assert_eq!(of("expected_size = 250\nsteps = 1"), (1, 1, 250.0));
    assert_eq!(of("sampling_rate = 0.25\nepochs = 3"), (12, 3, 250.0));
    assert_eq!(of("sampling_rate = 0.25\nsteps = 30\nepochs = 2"), (30, 2, 250.0));
}

#[test]
fn a_target_epsilon_is_met_and_used_up() {
    for method in ["dpsgd", "dpsgd-f"] {
        let text = TEXT
            .replace("noise_multiplier = 1.5", "target_epsilon = 2.0")
            .replace("\"dpsgd-f\"", &format!("\"{method}\""));
        let plan = Plan::new(read(&text), FACTS).unwrap();
        let mut accountant = PldAccountant::new(Plan::RELATION);
        accountant.compose(&plan.event(), 1).unwrap();
        let epsilon = accountant.epsilon(Delta::new(1e-5).unwrap()).unwrap().epsilon.get();
        assert!(epsilon <= 2.0 && epsilon > 1.99, "{method}: {epsilon}");
        assert_ne!(plan.step_event(), &DpEvent::NonPrivate);
    }
}

#[test]
fn what_a_document_says_wrong_is_named_with_its_line() {
    assert_snapshot!(refused("l2 = 0.01", "l2 = "), @"line 3: string values must be quoted, expected literal string");
    assert_snapshot!(refused("l2 = 0.01", "l3 = 0.01"), @"line 3: l3: unknown field `l3`, expected one of `model`, `loss`, `batches`, `learning_rate`, `warm_up_steps`, `optimiser`, `l2`, `early_stopping`, `privacy`");
    assert_snapshot!(refused("l2 = 0.01", "l2 = \"high\""), @r#"line 3: l2: invalid type: string "high", expected f64"#);
    assert_snapshot!(refused("l2 = 0.01", "l2 = -0.5"), @"line 3: l2 = -0.5: expected a finite number of at least 0");
    assert!(
        refused("\"softmax-cross-entropy\"", "\"hinge\"")
            .starts_with("line 1: loss: unknown variant `hinge`, expected")
    );
    assert!(
        refused("\"mlp\"", "\"transformer\"")
            .starts_with("line 6: model.name: unknown variant `transformer`, expected")
    );
    assert_snapshot!(refused("every = 10", "every = 0"), @"line 2: learning_rate.every = 0: expected at least 1");
    assert_snapshot!(refused("momentum = 0.9", "momentum = 0.9\nnesterow = true"), @"line 14: optimiser: unknown field `nesterow`, expected `momentum` or `nesterov`");
    assert_snapshot!(refused("momentum = 0.9", "momentum = 1.9"), @"line 16: optimiser.momentum = 1.9: expected at least 0, below 1");
    assert_snapshot!(refused("\"momentum\"\nmomentum = 0.9", "\"sgd\"\nmomentum = 0.9"), @"line 14: optimiser: unknown field `momentum`, there are no fields");
    assert_snapshot!(refused("patience = 2", "patience = 0"), @"line 19: early_stopping.patience = 0: expected at least 1");
    assert_snapshot!(refused("expected_size = 250", "expected_size = 1001"), @"line 11: batches.expected_size = 1001: expected 1 to 1000, the number of records");
    assert_snapshot!(refused("expected_size = 250", "sampling_rate = 1.5"), @"line 11: batches.sampling_rate: sampling_rate = 1.5: expected a number in (0, 1]");
    // 5/2⁶⁴ = 2.7e-19.
    assert_snapshot!(refused("expected_size = 250", "sampling_rate = 1e-300"), @"line 11: batches.sampling_rate = 1e-300: expected above 2.710505431213761e-19, for 64 bits to count the steps of 5 epochs");
    assert_snapshot!(refused("expected_size = 250", "sampling_rate = 2.7e-19"), @"line 11: batches.sampling_rate = 2.7e-19: expected above 2.710505431213761e-19, for 64 bits to count the steps of 5 epochs");
    assert_snapshot!(refused("expected_size = 250", "expected_size = 250\nsampling_rate = 0.5"), @"line 11: batches.expected_size = one of several: expected one of sampling_rate, expected_size and sampling");
    assert_snapshot!(refused("expected_size = 250", ""), @"line 10: batches = none: expected one of sampling_rate, expected_size and sampling");
    assert_snapshot!(refused("epochs = 5", ""), @"line 10: batches = neither: expected one of epochs and steps, or both");
    assert_snapshot!(refused("epochs = 5", "steps = 0"), @"line 12: batches.steps = 0: expected at least 1");
    assert_snapshot!(refused("epochs = 5", "epochs = 5\nsteps = 4"), @"line 12: batches.epochs = 5: expected 1 to 4, the number of steps");
    assert!(
        refused("\"dpsgd-f\"", "\"dpsgd-g\"").starts_with("line 22: privacy.method = dpsgd-g: expected one of dpsgd, ")
    );
    assert_snapshot!(refused("method = \"dpsgd-f\"", ""), @"line 21: privacy = neither: expected one of method and clipping");
    assert_snapshot!(refused("clip_norm = 0.5", "clip_norm = 0.0"), @"line 21: clip_norm = 0: expected a number in [2^-60, 2^60]");
    assert_snapshot!(refused("noise_multiplier = 1.5", ""), @"line 21: privacy = neither: expected one of noise_multiplier and target_epsilon");
    assert_snapshot!(refused("noise_multiplier = 1.5", "noise_multiplier = 0.0"), @"line 24: privacy.noise_multiplier: noise_multiplier = 0: expected a finite number of at least 1e-6");
    assert_snapshot!(refused("noise_multiplier = 1.5", "noise_multiplier = 1.0\ntarget_epsilon = 1.0"), @"line 25: privacy.target_epsilon = both: expected one of noise_multiplier and target_epsilon");
    assert_snapshot!(refused("noise_multiplier = 1.5", "target_epsilon = -1.0"), @"line 24: privacy.target_epsilon = -1: expected a finite number above 0");
    assert_snapshot!(refused("delta = 1e-5\n", ""), @"line 21: privacy: missing field `delta`");
}

/// What would be trained, but not with the privacy that the document says.
#[test]
fn what_is_not_covered_is_refused_with_a_reason() {
    assert_snapshot!(refused("expected_size = 250", "expected_size = 250\nsampler = \"fixed-size\""), @"line 12: batches.sampler = fixed-size: expected poisson, the only sampler that the accounting of a step is valid for");
    assert_snapshot!(refused("delta = 1e-5", "delta = 0.001"), @"line 25: privacy.delta = 0.001: expected less than 1/n = 1.000e-3");
    assert_snapshot!(refused("\"dpsgd-f\"", "\"fairlens\"\nrequire_guarantee = true"), @"line 21: privacy.clipping.coupling = Fairlens { gamma_1: 1.0, gamma_2: 1.0, form: Paper }: expected None: a guarantee is required, and there is none where records influence each other's gradients");
    let target = "\"fairlens\"\nsettings = { clip_norm = 0.5 }\ntarget_epsilon = 1.0";
    assert_snapshot!(refused("\"dpsgd-f\"\nsettings = { clip_norm = 0.5 }\nnoise_multiplier = 1.5", target), @"line 21: privacy.clipping.coupling = Fairlens { gamma_1: 1.0, gamma_2: 1.0, form: Paper }: expected None: a guarantee is required, and there is none where records influence each other's gradients");
    let allowed = read(&TEXT.replace("delta = 1e-5", "delta = 0.001\nallow_large_delta = true"));
    assert!(allowed.privacy.unwrap().allow_large_delta);
}
