//! What the experiments of Xu et al. 2020 and 2021 have in common (settings: 6.1).

use dp_accounting::{Delta, NoiseMultiplier};
use dp_clipping::{PresetParams, ShareOf};
use dp_data::mnist::Collection;
use dp_data::{ScalingFit, adult, dutch};
use dp_train::{LearningRate, Loss, ModelConfig, OptimiserConfig};
use study_report::{Cause, Claim};

use super::study::{Protocol, StudyArgs};
use crate::run::data_setting::{DataSetting, Source};
use crate::run::experiment::{
    BatchCounting, BatchSize, Experiment, MethodSetting, NON_PRIVATE, Noise, PublishedAccountant, PublishedBudget,
};
use crate::run::images::{self, few_eights};

/// The departures of every experiment.
pub(crate) fn departures() -> Vec<String> {
    vec![
        "Xu trains on batches of fixed size and accounts as if they were Poisson; here they are Poisson.".to_owned(),
        "Sums are divided by the expected batch size q·n, never by the realised one, which is private.".to_owned(),
        "Methods that make counts take the largest number of steps whose ε, counts included, does not exceed that of \
         DPSGD. The paper takes a few steps less than DPSGD."
            .to_owned(),
    ]
}

/// The convolutional network on MNIST.
pub(crate) fn cnn(
    id: &str,
    title: &str,
    data: DataSetting,
    epochs: u64,
    published: PublishedBudget,
) -> anyhow::Result<Experiment> {
    let setting = Setting {
        model: ModelConfig::XuCnn { image: images::SHAPE },
        loss: Loss::SoftmaxCrossEntropy,
        rate: LearningRate::Constant(0.01),
        clip_norm: 1.0,
        noise_multiplier: 0.8,
        l2: 0.0,
        seeds: 5,
    };
    experiment(id, title, data, epochs, published, setting)
}

/// Logistic regression on a census.
pub(crate) fn logistic_regression(
    id: &str,
    title: &str,
    data: DataSetting,
    epochs: u64,
    published: PublishedBudget,
) -> anyhow::Result<Experiment> {
    let setting = Setting {
        model: ModelConfig::LogisticRegression,
        loss: Loss::BceWithLogits,
        rate: LearningRate::InverseSqrtSteps,
        clip_norm: 0.5,
        noise_multiplier: 1.0,
        l2: 0.01,
        seeds: 10,
    };
    let mut experiment = experiment(id, title, data, epochs, published, setting)?;
    experiment.departures.push(
        "The L2 term 0.01 is added to the private gradient of the weights, outside clipping: it does not depend on the data. \
         The paper does not say where its own is added."
            .to_owned(),
    );
    Ok(experiment)
}

/// What differs between the models.
struct Setting {
    model: ModelConfig,
    loss: Loss,
    rate: LearningRate,
    clip_norm: f64,
    noise_multiplier: f64,
    l2: f64,
    seeds: u32,
}

fn experiment(
    id: &str,
    title: &str,
    data: DataSetting,
    epochs: u64,
    published: PublishedBudget,
    setting: Setting,
) -> anyhow::Result<Experiment> {
    let params = PresetParams { clip_norm: setting.clip_norm, ..PresetParams::default() };
    Ok(Experiment {
        id: id.to_owned(),
        title: title.to_owned(),
        departures: departures(),
        data,
        seeds: setting.seeds,
        is_search: false,
        model: setting.model,
        loss: setting.loss,
        batch_size: BatchSize::Records(256),
        epochs,
        begins: None,
        counting: BatchCounting::Exact,
        early_stopping: None,
        l2: setting.l2,
        noise: Noise::Multiplier(NoiseMultiplier::new(setting.noise_multiplier)?),
        delta: Delta::new(1e-6)?,
        matches_dpsgd_budget: true,
        methods: [NON_PRIVATE, "dpsgd", "naive", "dpsgd-f"]
            .map(|name| MethodSetting::new(name, setting.rate, params))
            .to_vec(),
        published: Some(published),
    })
}

/// The settings of the 2021 paper that its questions are asked of: Adult, Dutch, and MNIST with 500
/// images of class 8. `id` is given `adult`, `dutch` and `mnist`, and `title` what it is in words.
pub(crate) fn originals(
    args: &StudyArgs,
    id: impl Fn(&str) -> String,
    title: impl Fn(&str) -> String,
) -> anyhow::Result<[Experiment; 3]> {
    let quick = args.options.quick;
    let adult = Source::Adult {
        encoding: adult::Encoding::Xu,
        sampling: adult::Sampling::Original,
        scaling: ScalingFit::TrainOnly,
        group_by: adult::GroupBy::default(),
    };
    let dutch = Source::Dutch {
        encoding: dutch::Encoding::Xu,
        sampling: dutch::Sampling::Original,
        group_by: dutch::GroupBy::Sex,
    };
    let mnist = Source::Images {
        collection: Collection::Mnist,
        rare: Some(few_eights(500)),
        share: images::quick_share(quick),
    };
    let epochs = args.options.epochs(20);
    let regression =
        |name, words, data: Source, budget| logistic_regression(&id(name), &title(words), data.into(), epochs, budget);
    Ok([
        regression("adult", "Adult, logistic regression", adult, budget(3.1, 0.8 * 45_222.0, 20.0))?,
        regression("dutch", "Dutch, logistic regression", dutch, budget(2.66, 48_336.0, 20.0))?,
        cnn(
            &id("mnist"),
            &title("MNIST with 500 images of class 8, CNN"),
            mnist.into(),
            images::epochs(quick, 60),
            budget(6.55, 54_649.0, 60.0),
        )?,
    ])
}

/// A budget as the moments accountant computes it: `q = 256/n`, `T = ⌊epochs · n/256⌋`.
pub(crate) fn budget(epsilon: f64, n_records: f64, epochs: f64) -> PublishedBudget {
    PublishedBudget {
        epsilon,
        accountant: PublishedAccountant::Moments,
        sampling_rate: 256.0 / n_records,
        steps: (epochs * n_records / 256.0).floor() as u64,
    }
}

/// Where the papers say what DPSGD costs, and what DPSGD-F does about it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sources {
    cost: &'static str,
    remedy: &'static str,
    /// Whether DPSGD-F's gap is said to be smaller than Naive's too.
    than_naive: bool,
}

pub(crate) const CENSUSES: Sources =
    Sources { cost: "Xu 2020, Table 5; Xu 2021, 4.1", remedy: "Xu 2020, 6.3; Xu 2021, 6.3", than_naive: true };
pub(crate) const CENSUSES_2020: Sources =
    Sources { cost: "Xu 2020, Table 5", remedy: "Xu 2020, 6.3", than_naive: true };
/// Table 1 itself has a gap of 0.0002 for Naive and one of 0.0151 for DPSGD-F.
pub(crate) const MNIST: Sources = Sources { cost: "Xu 2021, 4.1", remedy: "Xu 2021, 6.2", than_naive: false };

/// How Table 2 of the 2021 paper is read.
pub(crate) const NORMS: &str = "The paper's \"average gradient norm\" is read as the norm of the group's mean gradient. The other reading, the mean of \
                                the records' norms, is several times the printed figures; whether norms agree rests on this choice.";

/// What the settings under [`Protocol::Code`] rest on.
const GROUP_SHARES: &str = "DPSGD-F divides a group's share of clipped gradients by the mean of the groups' shares, a group without a count having \
                            the share 1, as in Esipova's published code, which is said to follow Xu's (likely); the text divides by the share \
                            of the batch.";

/// Why rows of DPSGD-F differ under the text's settings.
pub(crate) fn of_group_shares(protocol: Protocol) -> Vec<Cause> {
    match protocol {
        Protocol::Text => vec![Cause::new(
            "dpsgd-f",
            "Esipova's code, which is said to follow Xu's, divides a group's share of clipped gradients by the mean of the groups' shares, \
             the text by the share of the batch (likely; `--protocol code`).",
        )],
        Protocol::Code => Vec::new(),
    }
}

/// The experiment as the authors' code is thought to have it: `C_k = C0·(1 + r_k / mean r)`, the
/// noise still that of the largest.
pub(crate) fn as_in_code(mut experiment: Experiment) -> Experiment {
    for method in &mut experiment.methods {
        method.params.share_of = ShareOf::Groups;
    }
    experiment.departures.push(GROUP_SHARES.to_owned());
    experiment
}

/// Why rows on MNIST differ.
pub(crate) const BAGDASARYAN: &str = "The paper replicates a setting of Bagdasaryan 2019, whose public code \
                                      standardises pixels and has momentum 0.5; the text names neither (suspected; \
                                      `reproduce mnist --protocol code` has both).";

/// Why Naive differs on MNIST.
pub(crate) const NAIVE: &str = "Standardised pixels and momentum (suspected, see DPSGD): with them one run with class 8 rare, which is not committed, \
                                changes accuracy by −0.144, the paper's by −0.150. Not run in full.";

/// Why DPSGD-F differs on MNIST.
pub(crate) const TOO_LITTLE_NOISE: &str = "Standardised pixels and momentum explain a part (suspected, see DPSGD): one run with class 8 rare \
                                           changes accuracy by −0.063, the paper's by −0.029. A trainer that is visibly Xu's also has \
                                           less noise than its ε asks for at this C0 (suspected): −0.042. Neither run is committed.";

/// The network on MNIST as the code has it that the paper says to replicate (Bagdasaryan 2019): SGD
/// with momentum.
pub(crate) fn with_momentum(mut experiment: Experiment) -> Experiment {
    for method in &mut experiment.methods {
        method.optimiser = OptimiserConfig::Momentum { momentum: 0.5, nesterov: false };
    }
    experiment.departures.push(
        "Pixels are standardised by MNIST's mean 0.1307 and deviation 0.3081, and steps have momentum 0.5, as in the public code of \
         Bagdasaryan 2019 and its configuration for MNIST, whose setting the paper replicates (likely)."
            .to_owned(),
    );
    experiment
}

/// Costs of two groups that differ by at most so much are equal (Xu 2020, 6.1: "for example τ =
/// 0.05").
const EQUAL: f64 = 0.05;

/// What the papers say about a census; DPSGD costs the second group more.
pub(crate) fn claims(
    experiment: &str,
    data: &str,
    sources: Sources,
    (less, more): (&str, &str),
) -> anyhow::Result<Vec<Claim>> {
    let both = format!("{less}|{more}");
    let (than, others): (_, &[&str]) =
        if sources.than_naive { ("DPSGD and Naive", &["dpsgd", "naive"]) } else { ("DPSGD", &["dpsgd"]) };
    Ok(vec![
        Claim::smaller_for(
            &format!("DPSGD costs group {more} more accuracy than group {less} on {data}"),
            sources.cost,
            experiment,
            "dpsgd",
            "privacy_cost",
            (less, more),
        )?,
        Claim::least(
            &format!("DPSGD-F has a smaller privacy cost gap than {than} on {data}"),
            sources.remedy,
            experiment,
            ("privacy_cost_gap", &both),
            "dpsgd-f",
            others,
        )?,
        Claim::greatest(
            &format!("DPSGD-F is more accurate than DPSGD and Naive on {data}"),
            sources.remedy,
            experiment,
            ("accuracy", "total"),
            "dpsgd-f",
            &["dpsgd", "naive"],
        )?,
        Claim::smaller_for(
            &format!("DPSGD's clipping takes more from the gradients of group {more} than of group {less} on {data}"),
            "Xu 2020, 4.2",
            experiment,
            "dpsgd",
            "clipping_bias",
            (less, more),
        )?,
        equal_cost("DPSGD-F", "dpsgd-f", experiment, data, (less, more))?,
        equal_cost("DPSGD", "dpsgd", experiment, data, (less, more))?.ours("whether DPSGD fails to"),
    ])
}

/// That a method achieves the paper's equal cost of privacy.
fn equal_cost(label: &str, method: &str, experiment: &str, data: &str, groups: (&str, &str)) -> anyhow::Result<Claim> {
    let (less, more) = groups;
    let text = format!("{label} costs groups {less} and {more} equally, within five points of accuracy, on {data}");
    Claim::alike(&text, "Xu 2020, 6.1", experiment, method, "privacy_cost", groups, EQUAL)
}
