//! What the experiments of Xu et al. 2020 and 2021 have in common (settings: 6.1).

use dp_accounting::{Delta, NoiseMultiplier};
use dp_clipping::PresetParams;
use dp_train::{LearningRate, Loss, ModelConfig};

use super::data_setting::DataSetting;
use super::experiment::{
    BatchCounting, BatchSize, Experiment, MethodSetting, NON_PRIVATE, Noise, PublishedAccountant, PublishedBudget,
};
use super::images;
use crate::report::Claim;

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
    let method = |name| {
        let params = PresetParams { clip_norm: 1.0, ..PresetParams::default() };
        MethodSetting::new(name, LearningRate::Constant(0.01), params)
    };
    Ok(Experiment {
        id: id.to_owned(),
        title: title.to_owned(),
        departures: departures(),
        data,
        seeds: 5,
        model: ModelConfig::XuCnn { image: images::SHAPE },
        loss: Loss::SoftmaxCrossEntropy,
        batch_size: BatchSize::Records(256),
        epochs,
        counting: BatchCounting::Exact,
        early_stopping: None,
        l2: 0.0,
        noise: Noise::Multiplier(NoiseMultiplier::new(0.8)?),
        delta: Delta::new(1e-6)?,
        matches_dpsgd_budget: true,
        methods: [NON_PRIVATE, "dpsgd", "naive", "dpsgd-f"].map(method).to_vec(),
        published: Some(published),
    })
}

/// Logistic regression on a census.
pub(crate) fn logistic_regression(
    id: &str,
    title: &str,
    data: DataSetting,
    epochs: u64,
    published: PublishedBudget,
) -> anyhow::Result<Experiment> {
    let method = |name| {
        let params = PresetParams { clip_norm: 0.5, ..PresetParams::default() };
        MethodSetting::new(name, LearningRate::InverseSqrtSteps, params)
    };
    let mut departures = departures();
    departures.push(
        "The L2 term 0.01 is added to the private gradient of the weights, outside clipping: it does not depend on the data. \
         The paper does not say where its own is added."
            .to_owned(),
    );
    Ok(Experiment {
        id: id.to_owned(),
        title: title.to_owned(),
        departures,
        data,
        seeds: 10,
        model: ModelConfig::LogisticRegression,
        loss: Loss::BceWithLogits,
        batch_size: BatchSize::Records(256),
        epochs,
        counting: BatchCounting::Exact,
        early_stopping: None,
        l2: 0.01,
        noise: Noise::Multiplier(NoiseMultiplier::new(1.0)?),
        delta: Delta::new(1e-6)?,
        matches_dpsgd_budget: true,
        methods: vec![method(NON_PRIVATE), method("dpsgd"), method("naive"), method("dpsgd-f")],
        published: Some(published),
    })
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

/// What the papers say about a census; DPSGD costs the second group more.
pub(crate) fn claims(experiment: &str, data: &str, (less, more): (&str, &str)) -> anyhow::Result<Vec<Claim>> {
    let both = format!("{less}|{more}");
    Ok(vec![
        Claim::smaller_for(
            &format!("DPSGD costs group {more} more accuracy than group {less} on {data}"),
            "Xu 2020, Table 5; Xu 2021, 4.1",
            experiment,
            "dpsgd",
            "privacy_cost",
            (less, more),
        )?,
        Claim::least(
            &format!("DPSGD-F has a smaller privacy cost gap than DPSGD and Naive on {data}"),
            "Xu 2020, 6.2; Xu 2021, 6.3",
            experiment,
            ("privacy_cost_gap", &both),
            "dpsgd-f",
            &["dpsgd", "naive"],
        )?,
        Claim::greatest(
            &format!("DPSGD-F is more accurate than DPSGD and Naive on {data}"),
            "Xu 2020, 6.2; Xu 2021, 6.3",
            experiment,
            ("accuracy", "total"),
            "dpsgd-f",
            &["dpsgd", "naive"],
        )?,
    ])
}
