//! What the experiments of Esipova et al. 2023 have in common (settings: appendix B.2).

use dp_accounting::{Delta, NoiseMultiplier};
use dp_clipping::{FairlensForm, PresetParams, ShareOf};
use dp_train::{LearningRate, Loss, ModelConfig};
use study_report::{Cause, Claim, TablePresentation};

use super::study::Protocol;
use crate::run::data_setting::DataSetting;
use crate::run::experiment::{
    BatchCounting, BatchSize, Experiment, MethodSetting, NON_PRIVATE, Noise, PublishedAccountant, PublishedBudget,
};

/// Learning rate and upper bound of a global method.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GlobalSetting {
    pub(crate) rate: f64,
    pub(crate) upper_bound: f64,
}

/// What differs between the data sets.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) data: DataSetting,
    pub(crate) model: ModelConfig,
    pub(crate) epochs: u64,
    pub(crate) noise_multiplier: f64,
    pub(crate) clip_norm: f64,
    /// Of every method but the global ones.
    pub(crate) rate: f64,
    pub(crate) global: GlobalSetting,
    pub(crate) global_adapt: GlobalSetting,
    /// τ of DPSGD-Global-Adapt.
    pub(crate) tolerance: f64,
    /// Whether the paper's table has FairLens.
    pub(crate) with_fairlens: bool,
    /// Whose FairLens and DPSGD-F.
    pub(crate) protocol: Protocol,
    pub(crate) published: PublishedBudget,
}

impl Setting {
    /// Ten for a census, where they cost little and tests need them; for images the paper's five.
    fn seeds(&self) -> u32 {
        match self.model {
            ModelConfig::EsipovaCnn { .. } => 5,
            _ => 10,
        }
    }
}

/// The experiment with every method of the paper's tables.
pub(crate) fn experiment(setting: Setting, departures: Vec<String>) -> anyhow::Result<Experiment> {
    let method = |name, rate, upper_bound| {
        let params = PresetParams {
            clip_norm: setting.clip_norm,
            upper_bound,
            tolerance: Some(setting.tolerance),
            target: Some(0.1),
            ..PresetParams::default()
        };
        MethodSetting::new(name, LearningRate::Constant(rate), params)
    };
    let global = |name, global: GlobalSetting| method(name, global.rate, Some(global.upper_bound));
    let mut all_departures = vec![
        "Sums are divided by the expected batch size q·n, never by the realised one, which is private.".to_owned(),
        "ε covers the noisy counts of DPSGD-F and DPSGD-Global-Adapt; the paper's does not.".to_owned(),
    ];
    let mut methods = vec![method(NON_PRIVATE, setting.rate, None), method("dpsgd", setting.rate, None)];
    let is_code = setting.protocol == Protocol::Code;
    if setting.with_fairlens {
        all_departures.push("FairLens has no proof: its ε is nominal.".to_owned());
        let mut fairlens = method("fairlens", setting.rate, None);
        if is_code {
            fairlens.params.fairlens_form = FairlensForm::Code;
            all_departures.push(
                "FairLens is that of the trainer that printed the table (established: a public fork of the authors' code has it)."
                    .to_owned(),
            );
        }
        methods.push(fairlens);
    }
    let mut dpsgd_f = method("dpsgd-f", setting.rate, None);
    if is_code {
        dpsgd_f.params.share_of = ShareOf::Groups;
        all_departures.push(
            "DPSGD-F divides a group's share of clipped gradients by the mean of the groups' shares, as the authors' code does (established)."
                .to_owned(),
        );
    }
    methods.push(dpsgd_f);
    methods.push(global("dpsgd-global", setting.global));
    methods.push(global("dpsgd-global-adapt", setting.global_adapt));
    all_departures.extend(departures);
    Ok(Experiment {
        id: setting.id.to_owned(),
        title: setting.title.to_owned(),
        departures: all_departures,
        data: setting.data,
        seeds: setting.seeds(),
        is_search: false,
        model: setting.model,
        loss: Loss::SoftmaxCrossEntropy,
        batch_size: BatchSize::Records(256),
        epochs: setting.epochs,
        begins: None,
        counting: BatchCounting::LoaderLength,
        early_stopping: None,
        l2: 0.0,
        noise: Noise::Multiplier(NoiseMultiplier::new(setting.noise_multiplier)?),
        delta: Delta::new(1e-6)?,
        matches_dpsgd_budget: false,
        methods,
        published: Some(setting.published),
    })
}

/// A budget as Opacus computes it from the length of a data loader.
pub(crate) fn budget(epsilon: f64, loader_length: u64, epochs: u64) -> PublishedBudget {
    PublishedBudget {
        epsilon,
        accountant: PublishedAccountant::Opacus,
        sampling_rate: 1.0 / loader_length as f64,
        steps: epochs * loader_length,
    }
}

/// Which description is followed, as a sentence of the report.
pub(crate) fn followed(protocol: Protocol, code_differs_in: &str) -> String {
    match protocol {
        Protocol::Text => {
            "The setting follows the paper's text; `--protocol code` follows the authors' code.".to_owned()
        }
        Protocol::Code => format!("The setting follows the authors' code: {code_differs_in}."),
    }
}

/// Whose losses the paper prints, where that matters.
pub(crate) const LOSSES: &str = "The printed losses are those of the training records over the last epoch, averaged over batches, where a batch \
                                 without the class counts as 0 (established: the published trainer keeps no other losses); compared so below.";

/// What that is called in tables.
const IN_BATCHES: &str = "In batches: mean over the batches of the last epoch of the group's mean training loss, before each step; a batch \
                          without the group counts as 0. Such batches have their expected share.";

/// A published table, answered with the losses that the authors' code keeps in the place of the test
/// records'.
pub(crate) fn in_batches(
    id: &str,
    experiment: &str,
    published: &str,
    causes: Vec<Cause>,
) -> anyhow::Result<TablePresentation> {
    let of_batches =
        |table: String, name: &&str| table.replace(&format!("\t{name}\t"), &format!("\t{name}_in_batches\t"));
    let published = ["loss", "excessive_risk", "excessive_risk_gap"].iter().fold(published.to_owned(), of_batches);
    Ok(TablePresentation::new(id, experiment, &published, causes)?
        .answered_by("with losses as the authors' code counts them")
        .noted(IN_BATCHES))
}

/// Why DPSGD-F's rows differ.
pub(crate) const GROUP_SHARES: &str = "The authors' code divides a group's share of clipped gradients by the mean of the groups' shares \
                                       (established; `--protocol code`).";

/// Where the paper says what it says of MNIST and CelebA.
pub(crate) const IN_THE_TEXT: &str = "Esipova 2023, 6.2";
/// Of Adult and Dutch.
pub(crate) const IN_THE_APPENDIX: &str = "Esipova 2023, 6.2 and B.7";

/// What the paper says of whole runs (4 and 6.2), asked of single steps on the censuses: that the error
/// of direction costs more than that of magnitude, and that global scaling trades the one for the
/// other. Its two decompositions share out the same cost, so the first claim is tested by both.
pub(crate) fn claims_of_steps(experiments: &[&str]) -> anyhow::Result<Vec<Claim>> {
    const OF_STEPS: &str = "the paper claims nothing of single steps";
    const ANALYSED: [(&str, &str); 3] = [
        ("esipova-adult", "Adult"),
        ("esipova-dutch", "Dutch"),
        ("esipova-dutch-squashed", "Dutch with the code's sigmoid"),
    ];
    let mut claims = Vec::new();
    for (experiment, data) in ANALYSED.into_iter().filter(|(id, _)| experiments.contains(id)) {
        for (group, name) in [("male", "men"), ("female", "women")] {
            for (words, larger, smaller) in [
                ("by Proposition 2", "direction_error", "magnitude_error"),
                ("by the alternate decomposition", "direction_error_star", "magnitude_error_star"),
            ] {
                let claim = Claim::smaller_metric(
                    &format!(
                        "A step of DPSGD costs {name} more by its direction than by its magnitude on {data}, {words}"
                    ),
                    "Esipova 2023, 4",
                    experiment,
                    "dpsgd",
                    group,
                    (smaller, larger),
                )?;
                claims.push(claim.ours(OF_STEPS));
            }
            for (method, label) in [("dpsgd-global", "DPSGD-Global"), ("dpsgd-global-adapt", "DPSGD-Global-Adapt")] {
                let claim = Claim::greatest(
                    &format!("A step of {label} costs {name} more by its magnitude than one of DPSGD on {data}"),
                    "Esipova 2023, 6.2",
                    experiment,
                    ("magnitude_error", group),
                    method,
                    &["dpsgd"],
                )?;
                claims.push(claim.ours(OF_STEPS));
            }
        }
    }
    Ok(claims)
}

/// What the paper says about a data set, in `source`. Gaps are those between two classes, where the
/// paper names them, else between all groups. It makes no claim of DPSGD-Global's loss against DPSGD's
/// where these are `comparable`.
pub(crate) fn claims(
    experiment: &str,
    data: &str,
    source: &'static str,
    classes: Option<(&str, &str)>,
    with_fairlens: bool,
    comparable: bool,
) -> anyhow::Result<Vec<Claim>> {
    let (gap, between) = classes.map_or_else(
        || ("gap".to_owned(), String::new()),
        |(one, other)| (format!("{one}|{other}"), format!(" between classes {one} and {other}")),
    );
    let mut others = vec!["dpsgd", "dpsgd-f", "dpsgd-global"];
    if with_fairlens {
        others.insert(1, "fairlens");
    }
    let mut claims = Vec::new();
    for (method, label) in [("dpsgd-global", "DPSGD-Global"), ("dpsgd-global-adapt", "DPSGD-Global-Adapt")] {
        claims.push(Claim::greatest(
            &format!("{label} is more accurate than DPSGD on {data}"),
            source,
            experiment,
            ("accuracy", "total"),
            method,
            &["dpsgd"],
        )?);
        if !(comparable && method == "dpsgd-global") {
            claims.push(Claim::least(
                &format!("{label} has a lower loss than DPSGD on {data}"),
                source,
                experiment,
                ("loss", "total"),
                method,
                &["dpsgd"],
            )?);
        }
    }
    for (metric, words) in [("privacy_cost_gap", "privacy cost gap"), ("excessive_risk_gap", "excessive risk gap")] {
        for (method, label) in [("dpsgd-global", "DPSGD-Global"), ("dpsgd-global-adapt", "DPSGD-Global-Adapt")] {
            claims.push(Claim::least(
                &format!("{label} has a smaller {words}{between} than DPSGD on {data}"),
                source,
                experiment,
                (metric, &gap),
                method,
                &["dpsgd"],
            )?);
        }
        claims.push(Claim::least(
            &format!("DPSGD-Global-Adapt has the smallest {words}{between} of all methods on {data}"),
            source,
            experiment,
            (metric, &gap),
            "dpsgd-global-adapt",
            &others,
        )?);
    }
    claims.push(Claim::greatest(
        &format!("DPSGD-Global-Adapt is more accurate than DPSGD-F and DPSGD-Global on {data}"),
        source,
        experiment,
        ("accuracy", "total"),
        "dpsgd-global-adapt",
        &["dpsgd-f", "dpsgd-global"],
    )?);
    claims.push(Claim::least(
        &format!("DPSGD-Global-Adapt has a lower loss than DPSGD-F and DPSGD-Global on {data}"),
        source,
        experiment,
        ("loss", "total"),
        "dpsgd-global-adapt",
        &["dpsgd-f", "dpsgd-global"],
    )?);
    Ok(claims)
}
