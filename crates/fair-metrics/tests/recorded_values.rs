//! Values recorded from fairlearn, scikit-learn and scipy by `recorded/generate.py`.

use std::collections::BTreeMap;

use fair_metrics::{
    Aggregate, Alternative, Attribute, BinaryRate, Distance, Labels, MetricFrame, Predictions, Stratum, WilcoxonMethod,
    binary_frame, demographic_parity_difference, demographic_parity_ratio, equal_opportunity_difference,
    equal_opportunity_ratio, equalized_odds_difference, equalized_odds_ratio, log_loss, roc_auc, wilcoxon_signed_rank,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;

#[derive(Deserialize)]
struct Table<T> {
    cases: Vec<T>,
}

fn cases<T: DeserializeOwned>(json: &str) -> Vec<T> {
    serde_json::from_str::<Table<T>>(json).expect("a recorded table").cases
}

fn close(ours: Option<f64>, theirs: Option<f64>) -> bool {
    match (ours, theirs) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-12 * (1.0 + b.abs()),
        (a, b) => a == b,
    }
}

/// Values by metric; `None` where fairlearn gives NaN.
type Values = BTreeMap<String, Option<f64>>;

#[derive(Deserialize)]
struct FrameCase {
    name: String,
    y_true: Vec<u32>,
    y_pred: Vec<u32>,
    sex: Vec<String>,
    age: Vec<String>,
    overall: Values,
    by_group: BTreeMap<String, Values>,
    difference: BTreeMap<String, Values>,
    ratio: BTreeMap<String, Values>,
    crossed: BTreeMap<String, Values>,
    controlled: BTreeMap<String, Values>,
    parity: Values,
}

const DISTANCES: [(&str, Distance); 2] =
    [("between_groups", Distance::BetweenGroups), ("to_overall", Distance::ToOverall)];

fn rate(name: &str) -> BinaryRate {
    serde_json::from_value(serde_json::Value::String(name.to_owned())).expect("the name of a rate")
}

impl FrameCase {
    fn sex(&self) -> Attribute {
        Attribute::from_labels("sex", &self.sex)
    }

    fn age(&self) -> Attribute {
        Attribute::from_labels("age", &self.age)
    }

    fn frame(&self, name: &str, attributes: &[Attribute], controls: &[Attribute]) -> MetricFrame {
        binary_frame(Labels(&self.y_true), Predictions(&self.y_pred), attributes, controls, rate(name))
            .expect("columns of equal length")
    }

    /// Whether our value differs from fairlearn's on purpose: a group without positives has no
    /// true-positive rate, where fairlearn says 0 (and scikit-learn's balanced accuracy leaves the
    /// class out).
    fn undefined_here(&self, metric: &str) -> bool {
        self.name == "a group without positives"
            && ["true_positive_rate", "false_negative_rate", "balanced_accuracy"].contains(&metric)
    }
}

fn by_group(stratum: &Stratum) -> Values {
    stratum.by_group.iter().map(|group| (group.levels.join("+"), group.measured.value)).collect()
}

fn assert_values(ours: &Values, theirs: &Values, context: &str) {
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>(), "{context}");
    for (key, value) in theirs {
        assert!(close(ours[key], *value), "{context}, {key}: ours {:?}, theirs {value:?}", ours[key]);
    }
}

#[test]
fn frames_match_fairlearn() {
    let cases: Vec<FrameCase> = cases(include_str!("recorded/frames.json"));
    assert_eq!(cases.len(), 8);
    for case in &cases {
        for (metric, groups) in &case.by_group {
            let context = format!("{}, {metric}", case.name);
            let frame = case.frame(metric, &[case.sex()], &[]);
            let stratum = &frame.strata()[0];
            assert!(close(stratum.overall.value, case.overall[metric]), "{context}");
            if case.undefined_here(metric) {
                let ours = by_group(stratum);
                assert_eq!(ours["g0"], None, "{context}");
                assert_eq!(stratum.n_undefined(), 1);
                assert!(close(ours["g1"], groups["g1"]) && close(ours["g2"], groups["g2"]), "{context}");
                continue;
            }
            assert_values(&by_group(stratum), groups, &context);
            for (name, distance) in DISTANCES {
                assert!(close(stratum.difference(distance), case.difference[name][metric]), "{context}, {name}");
                assert!(close(stratum.ratio(distance), case.ratio[name][metric]), "{context}, {name}");
            }
        }
    }
}

#[test]
fn intersections_and_controls_match_fairlearn() {
    for case in cases::<FrameCase>(include_str!("recorded/frames.json")) {
        for (metric, groups) in &case.crossed {
            let frame = case.frame(metric, &[case.sex(), case.age()], &[]);
            assert_values(&by_group(&frame.strata()[0]), groups, &format!("{}, {metric}", case.name));
        }
        for (metric, strata) in &case.controlled {
            let frame = case.frame(metric, &[case.sex()], &[case.age()]);
            let differences = frame
                .strata()
                .iter()
                .map(|stratum| (stratum.levels.join("+"), stratum.difference(Distance::BetweenGroups)))
                .collect();
            assert_values(&differences, strata, &format!("{}, {metric}, controlled", case.name));
        }
    }
}

#[test]
fn parity_measures_match_fairlearn() {
    for case in cases::<FrameCase>(include_str!("recorded/frames.json")) {
        if case.undefined_here("true_positive_rate") {
            continue;
        }
        let (y, p, sex) = (Labels(&case.y_true), Predictions(&case.y_pred), &[case.sex()][..]);
        let mut ours = Values::new();
        for (name, distance) in DISTANCES {
            let mut insert = |function: &str, value| ours.insert(format!("{function}/{name}"), value);
            insert("demographic_parity_difference", demographic_parity_difference(p, sex, distance).unwrap());
            insert("demographic_parity_ratio", demographic_parity_ratio(p, sex, distance).unwrap());
            insert("equal_opportunity_difference", equal_opportunity_difference(y, p, sex, distance).unwrap());
            insert("equal_opportunity_ratio", equal_opportunity_ratio(y, p, sex, distance).unwrap());
            for (aggregate_name, aggregate) in [("worst_case", Aggregate::WorstCase), ("mean", Aggregate::Mean)] {
                let difference = equalized_odds_difference(y, p, sex, distance, aggregate).unwrap();
                ours.insert(format!("equalized_odds_difference/{name}/{aggregate_name}"), difference);
                let ratio = equalized_odds_ratio(y, p, sex, distance, aggregate).unwrap();
                ours.insert(format!("equalized_odds_ratio/{name}/{aggregate_name}"), ratio);
            }
        }
        assert_values(&ours, &case.parity, &case.name);
    }
}

#[derive(Deserialize)]
struct ScoreCase {
    y_true: Vec<u32>,
    score: Vec<f64>,
    roc_auc: f64,
    log_loss: f64,
}

#[test]
fn scores_match_scikit_learn() {
    let cases: Vec<ScoreCase> = cases(include_str!("recorded/scores.json"));
    assert_eq!(cases.len(), 12);
    for case in cases {
        let positive: Vec<bool> = case.y_true.iter().map(|label| *label == 1).collect();
        assert!(close(roc_auc(&positive, &case.score).unwrap().value, Some(case.roc_auc)));
        assert!(close(log_loss(&positive, &case.score).unwrap().value, Some(case.log_loss)));
    }
}

#[derive(Deserialize)]
struct WilcoxonCase {
    x: Vec<f64>,
    y: Vec<f64>,
    less: f64,
    greater: f64,
    #[serde(rename = "two-sided")]
    two_sided: f64,
}

#[test]
fn signed_rank_matches_scipy() {
    let cases: Vec<WilcoxonCase> = cases(include_str!("recorded/wilcoxon.json"));
    assert_eq!(cases.len(), 50);
    for case in cases {
        let expected = [
            (Alternative::Less, case.less),
            (Alternative::Greater, case.greater),
            (Alternative::TwoSided, case.two_sided),
        ];
        for (alternative, p_value) in expected {
            let test = wilcoxon_signed_rank(&case.x, &case.y, alternative).unwrap();
            assert_eq!(test.method, WilcoxonMethod::Exact);
            assert!((test.p_value / p_value - 1.0).abs() < 1e-12, "{test:?}, scipy {p_value}");
        }
    }
}
