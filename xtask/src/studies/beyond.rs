//! `cargo xtask reproduce beyond`: the papers' clipping methods and conditioned training, on the
//! same features and at the same ε.

use dp_data::mnist::{Collection, RareClass};
use dp_data::{ScalingFit, adult, dutch};
use dp_linear::Goal;
use study_report::{Claim, Judged, Ranked, StudyPresentation, TablePresentation};

use super::fixed_features::{ALL_POINTS, BestPoint, FEW_POINTS, QUICK_SHARE, Setting, conditioned, epsilons};
use super::pixels::{self, Network};
use super::rivals::RIVALS;
use super::study::{FollowUp, Study, StudyArgs};
use crate::run::conditioned::method_of;
use crate::run::data_setting::Source;
use crate::run::experiment::MethodSetting;
use crate::run::features::Features;
use crate::run::images::few_eights;

pub(crate) const OURS: [Goal; 3] = [Goal::Accuracy, Goal::WorstClass, Goal::EqualRecall];
/// Their names.
const OUR_NAMES: [&str; 3] = [method_of(Goal::Accuracy), method_of(Goal::WorstClass), method_of(Goal::EqualRecall)];
const SEEDS: u32 = 10;

/// What is recommended where.
const RANKED: [Ranked; 6] = [
    ranked("beyond-adult", "adult", Goal::Accuracy),
    ranked("beyond-dutch", "dutch", Goal::Accuracy),
    ranked("beyond-mnist-skewed", "mnist-skewed", Goal::WorstClass),
    ranked("beyond-fashion", "fashion", Goal::WorstClass),
    pixels::ranked("beyond-mnist-skewed-pixels", "mnist-skewed"),
    pixels::ranked("beyond-fashion-pixels", "fashion"),
];

const fn ranked(experiment: &'static str, data: &'static str, goal: Goal) -> Ranked {
    Ranked { experiment, data, recommended: method_of(goal), own: &OUR_NAMES, judged: judged(goal) }
}

/// What rivals are searched for, and everyone is judged by.
const fn judged(goal: Goal) -> Judged {
    match goal {
        Goal::Accuracy => Judged::Accuracy,
        Goal::WorstClass | Goal::EqualRecall => Judged::WorstClass,
    }
}

/// The data sets.
pub(crate) fn settings(quick: bool) -> [Setting; 4] {
    let on = |name, title, source, features, delta, goal| Setting {
        study: "beyond",
        name,
        title,
        source,
        features,
        delta,
        judged: judged(goal),
        searched: &RIVALS,
        points: if features == Features::Scattering { FEW_POINTS } else { ALL_POINTS },
        called: "the papers' methods",
        group_rates: None,
        seeds: SEEDS,
    };
    let images = |name, title, collection, rare: Option<RareClass>| {
        let source = Source::Images { collection, rare, share: quick.then_some(QUICK_SHARE) };
        on(name, title, source, Features::Scattering, 1e-5, Goal::WorstClass)
    };
    let table = |name, title, source| on(name, title, source, Features::UnitRows, 1e-6, Goal::Accuracy);
    [
        table(
            "adult",
            "Adult",
            Source::Adult {
                encoding: adult::Encoding::Binned,
                sampling: adult::Sampling::Original,
                scaling: ScalingFit::Public,
                group_by: adult::GroupBy::default(),
            },
        ),
        table(
            "dutch",
            "Dutch",
            Source::Dutch {
                encoding: dutch::Encoding::Esipova,
                sampling: dutch::Sampling::Original,
                group_by: dutch::GroupBy::Sex,
            },
        ),
        images("mnist-skewed", "MNIST with class 8 rare", Collection::Mnist, Some(few_eights(585))),
        images("fashion", "Fashion-MNIST", Collection::FashionMnist, None),
    ]
}

/// The image sets again, as pixels. A quick run leaves them out.
fn networks(quick: bool) -> Vec<Network> {
    if quick {
        return Vec::new();
    }
    let source = |collection, rare| Source::Images { collection, rare, share: None };
    vec![
        Network {
            id: "beyond-mnist-skewed-pixels",
            grid_id: "beyond-mnist-skewed-pixels-grid",
            title: "MNIST with class 8 rare, convolutional network on pixels",
            source: source(Collection::Mnist, Some(few_eights(585))),
        },
        Network {
            id: "beyond-fashion-pixels",
            grid_id: "beyond-fashion-pixels-grid",
            title: "Fashion-MNIST, convolutional network on pixels",
            source: source(Collection::FashionMnist, None),
        },
    ]
}

/// The study.
pub(crate) fn study(args: &StudyArgs) -> anyhow::Result<Study> {
    let quick = args.options.quick;
    let settings = settings(quick);
    let mut experiments = Vec::new();
    let mut claims = Vec::new();
    for setting in settings {
        experiments.extend(setting.grids(quick)?);
        for &epsilon in epsilons(quick) {
            claims.push(claim(&setting, epsilon)?);
        }
    }
    let networks = networks(quick);
    for network in &networks {
        experiments.push(network.grid()?);
    }
    let table = |id, experiment: &str, text| {
        let table = TablePresentation::new(id, experiment, text, Vec::new())?;
        let features = "The paper's figures are of a convolutional network on pixels; ours of a linear model on scattering features.";
        anyhow::Ok(table.noted(features).because(features))
    };
    let tables = vec![
        table("zhao2025-table-5-mnist", "beyond-mnist-skewed", include_str!("published/zhao2025-table5-mnist.tsv"))?,
        table("zhao2025-table-5-fashion", "beyond-fashion", include_str!("published/zhao2025-table5-fashion.tsv"))?,
    ];
    let searches = settings.iter().map(Setting::searched_for).chain(networks.iter().map(Network::searched)).collect();
    let follow_up: FollowUp = Box::new(move |results| {
        let compared = ("conditioned training and the papers' methods", ours as fn(_, &_) -> _);
        let best = settings
            .iter()
            .map(|setting| setting.best(results, quick, compared, &[NOTHING_TO_SELECT]))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let networks = networks.iter().map(|network| network.best(results)).collect::<anyhow::Result<Vec<_>>>()?;
        Ok(best.into_iter().chain(networks).flatten().collect())
    });
    Ok(Study::new(
        "beyond",
        StudyPresentation {
            ranked: RANKED.to_vec(),
            searches,
            pooled: None,
            title: "Beyond clipping: conditioned training against the papers' methods, on the same features".to_owned(),
            tables,
            claims,
        },
        experiments,
    )
    .followed_by(follow_up))
}

/// Why conditioned training is not searched for.
pub(crate) const NOTHING_TO_SELECT: &str = "Conditioned training has nothing to select: rate, shares and steps follow from n and ε (docs/conditioned-adjusted.md). Its rule of the \
     rate was found on held-out training records of Fashion-MNIST and Adult.";

fn ours(epsilon: f64, _: &[BestPoint]) -> anyhow::Result<Vec<MethodSetting>> {
    OURS.into_iter().map(|goal| conditioned(goal, epsilon)).collect()
}

/// That conditioned training is better than the best clipping: for the worst class of images, for
/// accuracy on tables.
fn claim(setting: &Setting, epsilon: f64) -> anyhow::Result<Claim> {
    let judged = setting.judged;
    let goal = if judged == Judged::WorstClass { Goal::WorstClass } else { Goal::Accuracy };
    let rivals: Vec<String> = RIVALS.iter().map(|name| format!("{name} ε={epsilon}")).collect();
    let rivals: Vec<&str> = rivals.iter().map(String::as_str).collect();
    let claim = Claim::greatest(
        &format!("{} has the highest {} on {} at ε = {epsilon}", method_of(goal), judged.words(), setting.title),
        "this workspace",
        &setting.id(),
        (judged.metric(), "total"),
        &format!("{} ε={epsilon}", method_of(goal)),
        &rivals,
    )?;
    Ok(claim.ours("no paper has the method"))
}
