//! Methods side by side, as data: what a table or a chart of them is made from.

use fair_metrics::{macro_accuracy, worst_class_accuracy};
use fair_report::number;
use run_records::coordinate::is_grid;
use run_records::{ExperimentResults, MethodResults, RunRecord, StudyResults};
use serde::Serialize;

use super::judged::Judged;
use super::label::label;

/// Which experiments compare methods, and which method is recommended there.
#[derive(Debug, Clone, Copy)]
pub struct Ranked {
    /// The experiment.
    pub experiment: &'static str,
    /// The data, in a word.
    pub data: &'static str,
    /// The recommended method, without its ε.
    pub recommended: &'static str,
    /// The workspace's own methods; all others are of the papers.
    pub own: &'static [&'static str],
    /// What decides which method is best.
    pub judged: Judged,
}

/// A method on a data set at an ε: means over seeds, on test records.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct RankingRow {
    data: &'static str,
    features: String,
    model: String,
    method: String,
    /// `null` without privacy.
    epsilon: Option<f64>,
    seeds: usize,
    accuracy: Option<f64>,
    /// Mean of the class recalls.
    #[serde(rename = "macro")]
    macro_accuracy: Option<f64>,
    /// The least class recall.
    worst: Option<f64>,
    /// The least macro accuracy of a group; absent where the groups are the classes, or too small.
    #[serde(skip_serializing_if = "Option::is_none")]
    worst_group: Option<f64>,
    /// Accuracy of the most accurate group over that of the least.
    gap: Option<f64>,
    recommended: bool,
}

/// Every method of the ranked experiments, in their order.
pub(super) fn rows(results: &StudyResults, ranked: &[Ranked]) -> Vec<RankingRow> {
    let mut rows = Vec::new();
    for ranked in ranked {
        let found = results.experiments.iter().find(|experiment| experiment.id == ranked.experiment);
        if let Some(experiment) = found.filter(|experiment| !is_grid(experiment)) {
            rows.extend(experiment.methods.iter().map(|method| row(experiment, method, *ranked)));
        }
    }
    rows
}

/// A line for each data set and ε: the recommended method beside the best one of the papers.
/// Nothing where either is missing.
pub(super) fn cells(results: &StudyResults, ranked: &[Ranked]) -> Vec<Vec<String>> {
    let percent = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| number::fixed(100.0 * value, 1));
    let header = [
        "data, model",
        "ε",
        "recommended: accuracy %",
        "macro",
        "worst class or group",
        "the papers' best: accuracy %",
        "macro",
        "worst class or group",
        "",
    ];
    let mut lines = Vec::new();
    for ranked in ranked {
        let rows = rows(results, std::slice::from_ref(ranked));
        let judged = |row: &RankingRow| match ranked.judged {
            Judged::Accuracy => row.accuracy,
            Judged::MacroAccuracy => row.macro_accuracy,
            Judged::WorstClass => row.worst,
            Judged::WorstGroup => row.worst_group,
        };
        let worst = |row: &RankingRow| if ranked.judged == Judged::WorstGroup { row.worst_group } else { row.worst };
        let figures = |row: &RankingRow| [row.accuracy, row.macro_accuracy, worst(row)].map(percent);
        for ours in rows.iter().filter(|row| row.recommended) {
            let rivals =
                rows.iter().filter(|row| row.epsilon == ours.epsilon && !ranked.own.contains(&row.method.as_str()));
            let best = rivals.filter_map(|row| Some((row, judged(row)?))).max_by(|a, b| a.1.total_cmp(&b.1));
            let (Some(epsilon), Some((best, _))) = (ours.epsilon, best) else { continue };
            let mut line = vec![format!("{}, {}", ranked.data, ours.model), epsilon.to_string()];
            line.extend(figures(ours));
            line.extend(figures(best));
            line.push(label(&best.method));
            lines.push(line);
        }
    }
    if !lines.is_empty() {
        lines.insert(0, header.map(str::to_owned).to_vec());
    }
    lines
}

fn row(experiment: &ExperimentResults, method: &MethodResults, ranked: Ranked) -> RankingRow {
    let mean = |value: &dyn Fn(&RunRecord) -> Option<f64>| {
        let values: Option<Vec<f64>> = method.runs.iter().map(value).collect();
        values.filter(|values| !values.is_empty()).map(|values| values.iter().sum::<f64>() / values.len() as f64)
    };
    let gap = |run: &RunRecord| {
        let groups: Vec<f64> = run.test.groups.iter().filter_map(|group| group.accuracy).collect();
        let least = groups.iter().copied().reduce(f64::min)?;
        Some(groups.iter().copied().reduce(f64::max)? - least)
    };
    RankingRow {
        data: ranked.data,
        features: experiment.dataset.encoding.clone(),
        model: experiment.model.name.clone(),
        method: method.base.clone(),
        epsilon: method.coordinates.iter().find(|coordinate| coordinate.name == "ε").map(|coordinate| coordinate.value),
        seeds: method.runs.len(),
        accuracy: mean(&|run| run.test.overall.accuracy),
        macro_accuracy: mean(&|run| macro_accuracy(&run.test.class_recall)),
        worst: mean(&|run| worst_class_accuracy(&run.test.class_recall)),
        worst_group: mean(&|run| run.test.worst_group_macro_accuracy()),
        gap: mean(&gap),
        recommended: method.base == ranked.recommended,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn methods_are_ranked_by_means_over_seeds() {
        let results = fixture::study();
        let ranked = Ranked {
            experiment: "esipova-adult",
            data: "adult",
            recommended: "dpsgd-f",
            own: &["dpsgd-f"],
            judged: Judged::Accuracy,
        };
        let rows = rows(&results, &[ranked, Ranked { experiment: "not-run", ..ranked }]);
        let methods = &results.experiments[0].methods;
        assert_eq!(rows.len(), methods.len());
        for (row, method) in rows.iter().zip(methods) {
            assert_eq!((row.seeds, row.recommended), (method.runs.len(), method.base == "dpsgd-f"));
            assert!(row.gap.unwrap() >= 0.0 && row.accuracy.unwrap() <= 1.0);
        }
        let json = serde_json::to_value(&rows[0]).unwrap();
        assert!(json["macro"].is_number() || json["macro"].is_null(), "{json}");
    }
}
