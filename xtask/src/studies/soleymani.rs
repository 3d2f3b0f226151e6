//! What the experiments of Soleymani et al. 2025 have in common (settings: 4, A.1 to A.3).

use dp_accounting::{Delta, Epsilon};
use dp_clipping::PresetParams;
use dp_train::{EarlyStopping, LearningRate, Loss, ModelConfig, Normalisation, OptimiserConfig, StoppingCriterion};
use study_report::Claim;

use super::study::Protocol;
use crate::run::data_setting::{DataSetting, EvaluationPart, Source};
use crate::run::experiment::{BatchCounting, BatchSize, Experiment, MethodSetting, NON_PRIVATE, Noise};

/// The private methods of the tables, by their registry names.
pub(crate) const METHODS: [&str; 4] = ["dpsgd", "adaptive", "soft-adaptive", "fixed-soft"];

/// Epochs without a better F1 after which a run stops.
const PATIENCE: u64 = 5;
/// 70 % training, 10 % validation, 20 % test records, as the paper has them for eICU.
const VALIDATION: EvaluationPart = EvaluationPart::TestAndValidation { share: 0.125 };

/// How long, with which batches and at which rate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schedule {
    pub(crate) batch_size: usize,
    pub(crate) epochs: u64,
    pub(crate) rate: f64,
}

/// What differs between the data sets.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) source: Source,
    pub(crate) model: ModelConfig,
    pub(crate) loss: Loss,
    pub(crate) reference: Schedule,
    pub(crate) private: Schedule,
    /// Clipping norms, or first thresholds. Methods bear them in their names if there are several.
    pub(crate) clip_norms: &'static [f64],
    pub(crate) protocol: Protocol,
}

/// The experiment with the reference and every method of the tables.
pub(crate) fn experiment(setting: Setting, departures: Vec<String>) -> anyhow::Result<Experiment> {
    let mut reference =
        MethodSetting::new(NON_PRIVATE, LearningRate::Constant(setting.reference.rate), PresetParams::default());
    reference.optimiser = ADAM;
    reference.batches = Some((BatchSize::Records(setting.reference.batch_size), setting.reference.epochs));
    let mut methods = vec![reference];
    for name in METHODS {
        for &clip_norm in setting.clip_norms {
            let params =
                PresetParams { clip_norm, lower_bound: lower_bound(setting.protocol, name), ..PresetParams::default() };
            let mut method = MethodSetting::new(name, LearningRate::Constant(setting.private.rate), params);
            method.optimiser = ADAM;
            methods.push(if setting.clip_norms.len() > 1 { method.at("C", clip_norm) } else { method });
        }
    }
    let mut all_departures = vec![
        "Losses are means over records; the paper's are sums over a batch (5.2). Where its divisor is known they are compared as means, else by \
         their order."
            .to_owned(),
        format!(
            "A run stops when the F1 of the validation records has not risen for {PATIENCE} epochs, and goes back to its best epoch. The \
             paper stops by it, too; it does not print after how many epochs, nor in which of its experiments. These records are not \
             covered by ε, which is that of all epochs."
        ),
        "Gradient norms are means over records and epochs of each record's norm; the paper's are norms of sums of unstated length, so that \
         only their order is compared."
            .to_owned(),
        "The reference, too, takes Adam's steps; the paper does not say which optimiser its own has.".to_owned(),
        bounds_note(setting.protocol),
    ];
    all_departures.extend(departures);
    Ok(Experiment {
        id: setting.id.to_owned(),
        title: setting.title.to_owned(),
        departures: all_departures,
        data: DataSetting { evaluation: VALIDATION, ..setting.source.into() },
        seeds: 5,
        is_search: false,
        model: setting.model,
        loss: setting.loss,
        batch_size: BatchSize::Records(setting.private.batch_size),
        epochs: setting.private.epochs,
        begins: None,
        counting: BatchCounting::LoaderLength,
        early_stopping: Some(EarlyStopping {
            patience: PATIENCE,
            min_improvement: 0.0,
            criterion: StoppingCriterion::F1,
        }),
        l2: 0.0,
        noise: Noise::Within(Epsilon::new(8.0)?),
        delta: Delta::new(1e-5)?,
        matches_dpsgd_budget: false,
        methods,
        published: None,
    })
}

/// The lower bound of adaptive thresholds: under [`Protocol::Code`] Opacus's default.
fn lower_bound(protocol: Protocol, method: &str) -> Option<f64> {
    (protocol == Protocol::Code && matches!(method, "adaptive" | "soft-adaptive")).then_some(1.0)
}

fn bounds_note(protocol: Protocol) -> String {
    let start = "Adaptive thresholds start at the paper's C. Target (the paper: \"e.g., median\"), rate and noise of their counts are not printed; \
                 here those of Andrew 2021. The paper trains with Opacus, whose adaptive optimiser takes a smallest and a largest threshold; \
                 none is printed, and here";
    match protocol {
        Protocol::Text => format!("{start} there is none."),
        Protocol::Code => format!("{start} the smallest is 1, Opacus's default (likely)."),
    }
}

/// The paper does not say how many groups its GroupNorm has.
pub(crate) const NORMALISATION: Normalisation = Normalisation::GroupNorm { groups: 8 };

/// That it does not.
pub(crate) fn normalisation_note() -> String {
    "GroupNorm has 8 groups; the paper does not say how many its own has.".to_owned()
}

const ADAM: OptimiserConfig = OptimiserConfig::Adam { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-8 };

/// What the paper says of every data set; `suffix` ends the methods' names.
pub(crate) fn claims(experiment: &str, data: &str, suffix: &str, gaps: &[&str]) -> anyhow::Result<Vec<Claim>> {
    let of = |name: &str| format!("{name}{suffix}");
    let (dpsgd, adaptive, soft) = (of("dpsgd"), of("adaptive"), of("soft-adaptive"));
    let mut claims = Vec::new();
    let whole = ("DPSGD and adaptive clipping", vec![dpsgd.as_str(), &adaptive]);
    for (words, others) in [whole, ("DPSGD", vec![&dpsgd]), ("adaptive clipping", vec![&adaptive])] {
        claims.push(Claim::least(
            &format!("SoftAdaClip has a lower test loss than {words} on {data}"),
            "Soleymani 2025, 5.1, Table 1",
            experiment,
            ("loss", "total"),
            &soft,
            &others,
        )?);
        claims.push(Claim::least(
            &format!("SoftAdaClip has a smaller average disparity than {words} on {data}"),
            "Soleymani 2025, 5.2, Table 2",
            experiment,
            ("loss_gap", &gaps.join("+")),
            &soft,
            &others,
        )?);
    }
    Ok(claims)
}
