//! `cargo xtask reproduce epsilon-sweep`: accuracy of each group over ε, by noise and by epochs. Xu
//! 2021, Figure 3, and the same on both censuses.

use study_report::{Claim, StudyPresentation};

use super::study::{Study, StudyArgs};
use super::xu;
use crate::run::experiment::{BatchSize, Experiment, MethodSetting, NON_PRIVATE};

/// ε that noise is calibrated to.
const EPSILONS: [f64; 6] = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0];
/// Epochs, as shares of the paper's.
const SHARES: [f64; 4] = [0.25, 0.5, 1.0, 2.0];
/// What is compared.
const METHODS: [&str; 3] = ["dpsgd", "naive", "dpsgd-f"];

/// The study.
pub(crate) fn study(args: &StudyArgs) -> anyhow::Result<Study> {
    let mut experiments = Vec::new();
    for (by, vary) in [("noise", by_noise as Vary), ("epochs", by_epochs)] {
        let id = |name: &str| format!("sweep-{by}-{name}");
        let title = |name: &str| format!("{name}, as Xu 2021, ε varied by {by}");
        for sweep in xu::originals(args, id, title)? {
            experiments.push(vary(sweep)?);
        }
    }
    let mut claims = Vec::new();
    for (name, title, groups) in
        [("adult", "Adult", "male|female"), ("dutch", "Dutch", "male|female"), ("mnist", "MNIST", "2|8")]
    {
        for epsilon in EPSILONS {
            let claim = Claim::least(
                &format!("DPSGD-F has a smaller privacy cost gap than DPSGD on {title} at ε = {epsilon}"),
                "Xu 2021, 6.2, Figure 3",
                &format!("sweep-noise-{name}"),
                ("privacy_cost_gap", groups),
                &format!("dpsgd-f ε={epsilon}"),
                &[&format!("dpsgd ε={epsilon}")],
            )?;
            claims.push(if name == "mnist" { claim } else { claim.ours("the paper asks this of MNIST alone") });
        }
    }
    Ok(Study::new(
        "epsilon-sweep",
        StudyPresentation {
            ranked: Vec::new(),
            searches: Vec::new(),
            pooled: None,
            title: "Accuracy of each group over ε".to_owned(),
            tables: Vec::new(),
            claims,
        },
        experiments,
    ))
}

type Vary = fn(Experiment) -> anyhow::Result<Experiment>;

/// Every method at every ε, by its noise.
fn by_noise(experiment: Experiment) -> anyhow::Result<Experiment> {
    vary(experiment, |method, _| EPSILONS.iter().map(|&epsilon| method.clone().within(epsilon)).collect())
}

/// Every method with every number of epochs, at the paper's noise.
fn by_epochs(experiment: Experiment) -> anyhow::Result<Experiment> {
    vary(experiment, |method, (batch_size, epochs)| {
        let mut counts: Vec<u64> = SHARES.iter().map(|share| ((epochs as f64 * share).ceil() as u64).max(1)).collect();
        counts.dedup();
        let points = counts.into_iter().map(|epochs| {
            let varied = MethodSetting { batches: Some((batch_size, epochs)), ..method.clone() };
            Ok(varied.at("epochs", epochs as f64))
        });
        points.collect()
    })
}

fn vary(
    mut experiment: Experiment,
    points: impl Fn(&MethodSetting, (BatchSize, u64)) -> anyhow::Result<Vec<MethodSetting>>,
) -> anyhow::Result<Experiment> {
    let mut methods = Vec::new();
    for method in &experiment.methods {
        if method.name == NON_PRIVATE {
            methods.push(method.clone());
        } else if METHODS.contains(&method.name) {
            methods.extend(points(method, (experiment.batch_size, experiment.epochs))?);
        }
    }
    experiment.methods = methods;
    // The budget that the paper prints belongs to one point only.
    experiment.published = None;
    experiment.matches_dpsgd_budget = false;
    Ok(experiment)
}
