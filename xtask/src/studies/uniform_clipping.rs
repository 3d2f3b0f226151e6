//! `cargo xtask reproduce uniform-clipping`: does a larger bound for everyone do what DPSGD-F does?
//! Xu 2021, Table 3, and the same question on both censuses.

use dp_clipping::PresetParams;
use study_report::{Cause, Claim, StudyPresentation, TablePresentation};

use super::study::{Study, StudyArgs};
use super::xu;
use crate::run::experiment::{Experiment, MethodSetting, NON_PRIVATE};

const MNIST: &str = "uniform-mnist";
const ADULT: &str = "uniform-adult";
const DUTCH: &str = "uniform-dutch";

/// Bounds of Table 3, in units of DPSGD-F's first bound.
const FACTORS: [f64; 5] = [1.0, 2.0, 3.0, 4.0, 5.0];

/// The study.
pub(crate) fn study(args: &StudyArgs) -> anyhow::Result<Study> {
    let originals = xu::originals(args, |name| format!("uniform-{name}"), |name| format!("{name}, as Xu 2021"))?;
    let bounds = |first| FACTORS.iter().map(move |factor| format!("dpsgd C={}", factor * first));
    let mut causes = vec![Cause::new(NON_PRIVATE, xu::BAGDASARYAN), Cause::new("dpsgd-f", xu::TOO_LITTLE_NOISE)];
    causes.extend(bounds(1.0).map(|method| Cause::new(&method, xu::BAGDASARYAN)));
    let table = |id, text| TablePresentation::new(id, MNIST, text, causes.clone());
    let tables = vec![
        table("xu2021-table-3", include_str!("published/xu2021-table3-mnist.tsv"))?,
        table("xu2020-table-4", include_str!("published/xu2020-table4-mnist.tsv"))?,
    ];
    let mut claims = Vec::new();
    for (id, title, first, groups) in
        [(ADULT, "Adult", 0.5, "male|female"), (DUTCH, "Dutch", 0.5, "male|female"), (MNIST, "MNIST", 1.0, "2|8")]
    {
        let uniform: Vec<String> = bounds(first).collect();
        let claim = Claim::least(
            &format!("No uniform bound brings DPSGD's privacy cost gap down to DPSGD-F's on {title}"),
            "Xu 2021, 6.2 and Table 3",
            id,
            ("privacy_cost_gap", groups),
            "dpsgd-f",
            &uniform.iter().map(String::as_str).collect::<Vec<_>>(),
        )?;
        claims.push(if id == MNIST { claim } else { claim.ours("the paper asks this of MNIST alone") });
    }
    Ok(Study::new(
        "uniform-clipping",
        StudyPresentation {
            ranked: Vec::new(),
            searches: Vec::new(),
            pooled: None,
            title: "A larger clipping bound for everyone, or one for each group".to_owned(),
            tables,
            claims,
        },
        originals.map(uniform).into(),
    ))
}

/// The experiment with DPSGD at every bound, its reference and DPSGD-F.
fn uniform(mut experiment: Experiment) -> Experiment {
    let mut methods: Vec<MethodSetting> = Vec::new();
    for method in experiment.methods {
        match method.name {
            NON_PRIVATE | "dpsgd-f" => methods.push(method),
            "dpsgd" => methods.extend(FACTORS.iter().map(|factor| {
                let clip_norm = factor * method.params.clip_norm;
                let params = PresetParams { clip_norm, ..method.params };
                MethodSetting::new("dpsgd", method.learning_rate, params).at("C", clip_norm)
            })),
            _ => {}
        }
    }
    experiment.methods = methods;
    experiment
}
