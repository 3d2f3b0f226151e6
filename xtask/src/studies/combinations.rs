//! `cargo xtask reproduce combinations`: what the papers leave to future work. The tanh rule with
//! Global-Adapt's threshold, and a lower bound under every adaptive threshold.

use anyhow::Context;
use run_records::ExperimentResults;
use run_records::coordinate::{BOUND, RATE, coordinate};
use study_report::landscape::{Part, best_points};
use study_report::{Claim, Judged, Searched, StudyPresentation};

use super::beyond;
use super::fixed_features::{Setting, method};
use super::study::{FollowUp, Study, StudyArgs};
use super::zhao::VALIDATION;
use crate::run::data_setting::EvaluationPart;
use crate::run::experiment::{Experiment, MethodSetting, NON_PRIVATE};

const EPSILON: f64 = 1.0;
const SEEDS: u32 = 10;
const JUDGED: Judged = Judged::Accuracy;

/// A method of a paper, and what it becomes with a part of another paper's.
const COMBINED: [(&str, &str, &str); 4] = [
    ("dpsgd-global-adapt", "soft-global-adapt", "The tanh rule makes DPSGD-Global-Adapt more accurate"),
    ("dpsgd-global-adapt", "bounded-global-adapt", "A lower bound makes DPSGD-Global-Adapt more accurate"),
    ("soft-global-adapt", "bounded-soft-global-adapt", "A lower bound makes tanh with Global-Adapt more accurate"),
    (
        "soft-adaptive",
        "bounded-soft-adaptive",
        "A lower bound with Zhao's rule and count makes SoftAdaClip more accurate",
    ),
];

/// The study, on the features of `beyond`.
pub(crate) fn study(args: &StudyArgs) -> anyhow::Result<Study> {
    let quick = args.options.quick;
    let [adult, dutch, ..] = beyond::settings(quick);
    let settings = [adult, dutch];
    let experiments = settings.iter().map(|setting| grid(setting, quick)).collect::<anyhow::Result<_>>()?;
    let claims = settings.iter().map(claims).collect::<anyhow::Result<Vec<_>>>()?.concat();
    let searched = |setting: &Setting| Searched { experiment: id(setting), judged: JUDGED, published: None };
    let presentation = StudyPresentation {
        ranked: Vec::new(),
        searches: settings.iter().map(searched).collect(),
        pooled: None,
        title: "Combinations that the papers leave to future work".to_owned(),
        tables: Vec::new(),
        claims,
    };
    let follow_up: FollowUp = Box::new(move |results| {
        let best = settings.iter().map(|setting| best(setting, results)).collect::<anyhow::Result<Vec<_>>>()?;
        Ok(best.into_iter().flatten().collect())
    });
    Ok(Study::new("combinations", presentation, experiments).followed_by(follow_up))
}

fn id(setting: &Setting) -> String {
    format!("combinations-{}", setting.name)
}

fn grid_id(setting: &Setting) -> String {
    format!("{}-grid-{EPSILON}", id(setting))
}

/// Every method once.
fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = COMBINED.iter().flat_map(|(of_paper, combined, _)| [*of_paper, *combined]).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Every method at every point of the grid of `beyond`.
fn grid(setting: &Setting, quick: bool) -> anyhow::Result<Experiment> {
    let (rates, bounds) = setting.points(quick);
    let mut methods = Vec::new();
    for &rate in &rates {
        methods.push(method(NON_PRIVATE, rate, bounds[0]).at(RATE, rate));
    }
    for name in names() {
        for &rate in &rates {
            for &bound in &bounds {
                methods.push(point(name, rate, bound)?.at(RATE, rate).at(BOUND, bound));
            }
        }
    }
    let departures = vec![
        "A fifth of the training part is held out for validation; heat maps and best points are computed on it. The search is not accounted for \
         in ε."
            .to_owned(),
        "One run a point. A lower bound is a tenth of the first threshold.".to_owned(),
    ];
    let title = format!(
        "{}: rules and thresholds of several papers at ε = {EPSILON}, rate and bound searched for",
        setting.title
    );
    setting.experiment(grid_id(setting), title, VALIDATION, 1, methods, departures)
}

fn point(name: &'static str, rate: f64, bound: f64) -> anyhow::Result<MethodSetting> {
    method(name, rate, bound).within_by_pld(EPSILON)
}

/// The best point of every method, on the whole training part.
fn best(setting: &Setting, results: &[ExperimentResults]) -> anyhow::Result<Option<Experiment>> {
    let Some(grid) = results.iter().find(|experiment| experiment.id == grid_id(setting)) else { return Ok(None) };
    let mut methods = Vec::new();
    let mut chosen = Vec::new();
    for best in best_points(grid, Part::Validation, JUDGED)? {
        let rate = coordinate(best, RATE).context("a point of the grid has a rate")?;
        if best.base == NON_PRIVATE {
            methods.push(method(NON_PRIVATE, rate, 1.0));
            chosen.push(format!("{NON_PRIVATE}: rate {rate}"));
            continue;
        }
        let bound = coordinate(best, BOUND).context("a point of the grid has a bound")?;
        let name = names().into_iter().find(|name| *name == best.base);
        let name = name.with_context(|| format!("{} is no method of the grid", best.base))?;
        methods.push(point(name, rate, bound)?);
        chosen.push(format!("{name}: rate {rate}, bound {bound}"));
    }
    let departures = vec![format!(
        "Every method at the point with the greatest {} on validation records; the test part was held out of the search and is the same for \
         every seed, so that seeds differ in initial parameters, batches and noise. {}.",
        JUDGED.words(),
        chosen.join("; ")
    )];
    let title = format!("{}: rules and thresholds of several papers at ε = {EPSILON}", setting.title);
    setting.experiment(id(setting), title, EvaluationPart::Test, SEEDS, methods, departures).map(Some)
}

/// That each combination is better than what it was made from.
fn claims(setting: &Setting) -> anyhow::Result<Vec<Claim>> {
    let claim = |(of_paper, combined, words): (&str, &str, &str)| {
        let at = |name: &str| format!("{name} ε={EPSILON}");
        let text = format!("{words} on {} at ε = {EPSILON}", setting.title);
        let column = (JUDGED.metric(), "total");
        let claim = Claim::greatest(&text, "this workspace", &id(setting), column, &at(combined), &[&at(of_paper)])?;
        Ok(claim.ours("the papers leave it to future work"))
    };
    COMBINED.into_iter().map(claim).collect()
}

#[cfg(test)]
mod tests {
    use dp_clipping::registry;

    use super::*;

    #[test]
    fn every_combination_differs_from_what_it_is_made_from() {
        let config = |name| (registry::find(name).unwrap().preset)(&point(name, 8.0, 0.5).unwrap().params);
        for (of_paper, combined, _) in COMBINED {
            assert_ne!(config(of_paper), config(combined), "{combined}");
        }
        let [adult, ..] = beyond::settings(false);
        assert_eq!(grid(&adult, false).unwrap().methods.len(), 5 + 6 * 15);
    }
}
