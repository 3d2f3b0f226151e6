//! `cargo xtask reproduce grid`: Zhao 2025, Table 6 and Figures 3, 7, 8. Every point of the grid, then the best ones.

use anyhow::Context;
use dp_data::ScalingFit;
use dp_data::{adult, dutch};
use dp_train::{Loss, ModelConfig};

use super::data_setting::{DataSetting, EvaluationPart, Source};
use super::experiment::{BatchSize, Experiment, MethodSetting};
use super::study::{FollowUp, Study, StudyArgs};
use super::zhao::{self, Setting};
use crate::report::landscape::{BOUND, RATE, best_points, coordinate, on_validation};
use crate::report::{Claim, StudyPresentation, TablePresentation};
use crate::results::ExperimentResults;

/// ε of Table 6.
const EPSILONS: [f64; 3] = [0.1, 0.2, 0.5];
/// Runs at every point of the grid; the selected points get the paper's ten.
const GRID_SEEDS: u32 = 1;

/// A census of the paper.
#[derive(Debug, Clone, Copy)]
struct Census {
    name: &'static str,
    title: &'static str,
    source: Source,
    batch_size: BatchSize,
}

const CENSUSES: [Census; 2] = [
    Census {
        name: "adult",
        title: "Adult, full batches",
        source: Source::Adult {
            encoding: adult::Encoding::Zhao,
            sampling: adult::Sampling::BalancedTraining { per_group: 14_000 },
            scaling: ScalingFit::TrainOnly,
        },
        batch_size: BatchSize::Full,
    },
    Census {
        name: "dutch",
        title: "Dutch, batches of 10,000",
        source: Source::Dutch { encoding: dutch::Encoding::Zhao, sampling: dutch::Sampling::Original },
        batch_size: BatchSize::Records(10_000),
    },
];

impl Census {
    fn final_id(self) -> String {
        format!("zhao-{}", self.name)
    }

    fn grid_id(self, epsilon: f64) -> String {
        format!("zhao-{}-grid-{epsilon}", self.name)
    }

    fn setting(self, id: String, title: &str, evaluation: EvaluationPart, seeds: u32, epochs: u64) -> Setting {
        Setting {
            id,
            title: format!("Zhao 2025: {}, logistic regression{title}", self.title),
            data: DataSetting { source: self.source, evaluation },
            model: ModelConfig::LogisticRegression,
            loss: Loss::BceWithLogits,
            batch_size: self.batch_size,
            epochs,
            seeds,
        }
    }
}

/// The study.
pub(crate) fn study(args: &StudyArgs) -> anyhow::Result<Study> {
    let epochs = args.options.epochs(40);
    let strides = if args.options.quick { (3, 5) } else { (1, 1) };
    let mut experiments = Vec::new();
    for census in CENSUSES {
        for epsilon in EPSILONS {
            let setting = census.setting(
                census.grid_id(epsilon),
                &format!(", the grid at ε = {epsilon}"),
                EvaluationPart::TestAndValidation,
                GRID_SEEDS,
                epochs,
            );
            let departures = vec![
                "A fifth of the training part is held out for validation; heat maps and best points are computed on it. The paper \
                 searches on the test part; `--select-on-test` does."
                    .to_owned(),
                "One run a point; the best points are then trained ten times.".to_owned(),
            ];
            experiments.push(zhao::experiment(setting, zhao::grid(epsilon, strides)?, departures)?);
        }
    }
    Ok(Study {
        name: "grid",
        presentation: StudyPresentation {
            title: "Learning rate and bound: constant, adaptive and bounded adaptive clipping".to_owned(),
            tables: CENSUSES.iter().map(table).collect::<anyhow::Result<_>>()?,
            claims: claims()?,
        },
        experiments,
        follow_up: Some(selected(epochs, args.select_on_test)),
    })
}

/// The best point of every strategy at every ε, trained on the whole training part.
fn selected(epochs: u64, select_on_test: bool) -> FollowUp {
    Box::new(move |grids| {
        let mut experiments = Vec::new();
        for census in CENSUSES {
            let mut methods: Vec<MethodSetting> = vec![zhao::reference(1.0)];
            let mut chosen = Vec::new();
            for epsilon in EPSILONS {
                let Some(grid) = grids.iter().find(|experiment| experiment.id == census.grid_id(epsilon)) else {
                    continue;
                };
                let searched: ExperimentResults = if select_on_test { grid.clone() } else { on_validation(grid) };
                for best in best_points(&searched)? {
                    let name = zhao::STRATEGIES
                        .into_iter()
                        .find(|name| *name == best.base)
                        .with_context(|| format!("{} is no strategy of the grid", best.base))?;
                    let rate = coordinate(best, RATE).context("a point of the grid has a rate")?;
                    let bound = coordinate(best, BOUND);
                    methods.push(zhao::strategy(name, rate, bound).within(epsilon)?);
                    let with_bound = bound.map_or_else(String::new, |bound| format!(", bound {bound}"));
                    chosen.push(format!("{name} at ε = {epsilon}: rate {rate}{with_bound}"));
                }
            }
            if chosen.is_empty() {
                continue;
            }
            let how = if select_on_test {
                "SELECTED ON THE TEST PART, as published: the accuracies below are too high. "
            } else {
                "Selected on validation records. "
            };
            let departures = vec![
                format!("{how}{}.", chosen.join("; ")),
                "The reference without privacy, which the paper does not have, takes plain steps with rate 1."
                    .to_owned(),
            ];
            let setting =
                census.setting(census.final_id(), ", best points of the grid", EvaluationPart::Test, 10, epochs);
            experiments.push(zhao::experiment(setting, methods, departures)?);
        }
        Ok::<Vec<Experiment>, anyhow::Error>(experiments)
    })
}

fn table(census: &Census) -> anyhow::Result<TablePresentation> {
    let text = match census.name {
        "adult" => include_str!("published/zhao2025-table6-adult.tsv"),
        _ => include_str!("published/zhao2025-table6-dutch.tsv"),
    };
    TablePresentation::new(&format!("zhao2025-table-6-{}", census.name), &census.final_id(), text, Vec::new())
}

fn claims() -> anyhow::Result<Vec<Claim>> {
    let mut claims = Vec::new();
    for (census, title) in [("adult", "Adult"), ("dutch", "Dutch")] {
        for epsilon in EPSILONS {
            let of = |name: &str| format!("{name} ε={epsilon}");
            for group in ["female", "male"] {
                claims.push(Claim::greatest(
                    &format!("Bounded adaptive clipping is more accurate than unbounded for {group} on {title} at ε = {epsilon}"),
                    "Zhao 2025, 4.2, Figure 3, Table 6",
                    &format!("zhao-{census}"),
                    ("accuracy", group),
                    &of("bounded-adaptive"),
                    &[&of("unbounded-adaptive")],
                )?);
            }
        }
    }
    Ok(claims)
}
