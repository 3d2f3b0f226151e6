//! Thresholds by group, from cumulative scores of the training records.

use dp_table::Group;
use fair_decisions::{
    Aim, Choice, CumulativeCounts, Gain, KeptReason, Mixture, Mode, PrefixSums, Quality, ScoreGrid, choose,
};
use fair_metrics::noisy::Share;
use serde::{Deserialize, Serialize};

use crate::coins::CoinThreshold;
use crate::config::Decision;
use crate::scores::{ScoresFile, balance, class_order};

/// A class with fewer records than this many standard deviations of their noise may have none at all.
const NONE: f64 = 3.0;

/// The chosen thresholds by group and their cost, by released counts of training
/// records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Thresholds {
    /// Why.
    pub mode: Mode,
    /// The score above which the positive class is answered, by group: of two classes its log-odds, of more the
    /// log-probability of the class with its offset, less the largest of the others'.
    pub by_group: Vec<f64>,
    /// With coins: the thresholds of every group with their probabilities. `by_group` then has the most probable one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub coins: Vec<Vec<CoinThreshold>>,
    /// The positive class of more than two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Why all groups keep the common threshold, if they do: the release is then that of `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptReason>,
    /// What was asked, with its limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aim: Option<Aim>,
    /// What the thresholds gain on other records than those that they were chosen by, if they moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<Gain>,
    /// Groups with too few records for a threshold of their own: they keep the common one.
    pub too_small: Vec<Group>,
    /// Groups with enough records of one class and too few of the other: they keep the common
    /// threshold, too.
    #[serde(default)]
    pub without_class: Vec<WithoutClass>,
    /// Accuracy with the common threshold.
    pub accuracy_before: f64,
    /// Accuracy with these.
    pub accuracy_after: f64,
    /// Standard deviation of the noise in either accuracy, at most.
    #[serde(default)]
    pub accuracy_noise: f64,
    /// What is aimed at, with the common threshold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Quality>,
    /// The same with these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Quality>,
}

/// A group with too few records of one class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct WithoutClass {
    /// The group.
    pub group: Group,
    /// The class.
    pub class: String,
    /// Its number of training records, with noise.
    pub records: f64,
    /// Whether that number is within noise of none.
    pub maybe_none: bool,
}

impl Thresholds {
    /// Sentences on thresholds that did not move, and on groups that have no separate one for want of records.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks: Vec<String> = self.kept.iter().filter_map(|kept| self.unmoved(kept)).collect();
        // One threshold for all moves that of small groups, too.
        if self.aim.is_some_and(|aim| aim.one_threshold) {
            return remarks;
        }
        if !self.too_small.is_empty() {
            let groups: Vec<String> = self.too_small.iter().map(Group::to_string).collect();
            remarks.push(format!("groups too small for a threshold of their own: {}", groups.join(", ")));
        }
        let mut classes: Vec<&str> = self.without_class.iter().map(|one| &*one.class).collect();
        classes.sort_unstable();
        classes.dedup();
        for class in classes {
            let (none, few): (Vec<_>, Vec<_>) =
                self.without_class.iter().filter(|one| one.class == class).partition(|one| one.maybe_none);
            if !none.is_empty() {
                let groups: Vec<String> = none.iter().map(|one| one.group.to_string()).collect();
                let groups = groups.join(", ");
                remarks
                    .push(format!("no records of class {class}, within noise, for a threshold of its own: {groups}"));
            }
            if !few.is_empty() {
                let groups: Vec<String> =
                    few.iter().map(|one| format!("{} (about {:.0})", one.group, one.records)).collect();
                let groups = groups.join(", ");
                remarks.push(format!("too few records of class {class} for a threshold of its own: {groups}"));
            }
        }
        remarks
    }

    /// That nothing moved, with the reason.
    fn unmoved(&self, kept: &KeptReason) -> Option<String> {
        let mode = self.mode.name();
        let one = if self.aim.is_some_and(|aim| aim.one_threshold) { " with one threshold for all groups" } else { "" };
        let reason = in_words(kept)?;
        Some(format!("{mode}{one} moved no threshold: {reason}; decisions are those of fairness = \"none\""))
    }

    /// Why nothing moved, and what would be needed; `None` where something did, or was not to.
    pub(crate) fn reason(&self) -> Option<String> {
        self.kept.as_ref().and_then(in_words)
    }

    /// Whether any group has a threshold of its own.
    pub(crate) fn has_moved(&self) -> bool {
        self.kept.is_none()
    }
}

/// Why thresholds did not move, and what would be needed.
fn in_words(kept: &KeptReason) -> Option<String> {
    let points = |share: f64| format!("{:.1} points", 100.0 * share);
    Some(match *kept {
        KeptReason::NotAsked => return None,
        KeptReason::TooFewRecords { needed } => {
            format!(
                "two groups with about {needed:.0} training records of each class are needed at this ε, more ε for fewer"
            )
        }
        KeptReason::SmallEnough { gap } => format!("the gap of {} is within max_gap", points(gap)),
        KeptReason::WithinNoise { gain, deviation } => format!(
            "on other records the gain would be {}, and noise and chance alone make {}; more records or a larger ε would \
                 tell",
            points(gain.max(0.0)),
            points(deviation)
        ),
        KeptReason::WithinCap { needed, left } => format!(
            "nothing is gained within max_loss; a loss of {} would leave a gap of {}",
            points(needed.max(0.0)),
            points(left)
        ),
        _ => "no thresholds are better than the common one".to_owned(),
    })
}

/// Chooses thresholds by group from counts of training records.
pub(crate) fn chosen(
    scores: &ScoresFile,
    counts: &CumulativeCounts,
    aim: &Aim,
    decision: Decision,
    groups: &[Group],
    classes: &[String],
) -> (Vec<Mixture>, Thresholds) {
    let sums = PrefixSums::new();
    let Choice { thresholds: mixtures, kept, before, after, gain, large, needed, .. } =
        choose(&sums, counts, aim, balance(decision));
    let (mut too_small, mut without_class) = (Vec::new(), Vec::new());
    let order = class_order(scores.class(), classes);
    for (place, group) in groups.iter().enumerate().filter(|(place, _)| !large.contains(place)) {
        let n: Vec<f64> = (0..order.len()).map(|class| counts.total_of_class(place, class)).collect();
        if n.iter().all(|&n| n < needed) {
            too_small.push(group.clone());
            continue;
        }
        // Rates need records of the positive class and of others, the worst group those of every class.
        let positive = order.len() - 1;
        let short =
            if aim.mode != Mode::WorstGroup && n[positive] < needed { positive..order.len() } else { 0..order.len() };
        let Some(class) = short.min_by(|a, b| n[*a].total_cmp(&n[*b])) else { continue };
        let maybe_none = n[class] < NONE * counts.total_noise(&sums, usize::from(class == positive));
        without_class.push(WithoutClass {
            group: group.clone(),
            class: classes[order[class]].clone(),
            records: n[class],
            maybe_none,
        });
    }
    let (accuracy_before, _) = accuracy(&sums, counts, &vec![Mixture::at(ScoreGrid::common()); groups.len()]);
    let (accuracy_after, accuracy_noise) = accuracy(&sums, counts, &mixtures);
    let thresholds = Thresholds {
        mode: aim.mode,
        by_group: mixtures.iter().map(|mixture| scores.threshold(mixture.likeliest())).collect(),
        coins: coins(scores, &mixtures),
        class: scores.class().map(ToOwned::to_owned),
        kept,
        aim: Some(*aim),
        gain,
        too_small,
        without_class,
        accuracy_before,
        accuracy_after,
        accuracy_noise,
        before: Some(before),
        after: Some(after),
    };
    (mixtures, thresholds)
}

/// The thresholds between which coins decide; none where there is no coin.
fn coins(scores: &ScoresFile, mixtures: &[Mixture]) -> Vec<Vec<CoinThreshold>> {
    if mixtures.iter().all(|mixture| mixture.fixed().is_some()) {
        return Vec::new();
    }
    let of = |&(edge, probability): &(usize, f64)| CoinThreshold { probability, threshold: scores.threshold(edge) };
    mixtures.iter().map(|mixture| mixture.parts().iter().map(of).collect()).collect()
}

/// Share of right answers at these thresholds, and the standard deviation of its noise.
fn accuracy(sums: &PrefixSums, counts: &CumulativeCounts, thresholds: &[Mixture]) -> (f64, f64) {
    let right = thresholds.iter().enumerate().flat_map(|(group, threshold)| {
        (0..counts.n_classes()).map(move |class| counts.recall(sums, group, class, threshold))
    });
    let Some(all) = right.reduce(Share::and) else { return (0.0, 0.0) };
    let n = all.n().max(1.0);
    let rate = (all.hits / n).clamp(0.0, 1.0);
    (rate, all.noise_at(rate).sqrt() / n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dp_table::Level;

    fn thresholds(kept: Option<KeptReason>) -> Thresholds {
        Thresholds {
            mode: Mode::EqualizedOdds,
            by_group: vec![0.0; 2],
            coins: Vec::new(),
            class: None,
            kept,
            aim: None,
            gain: None,
            too_small: vec![Group::new(vec![Level::Other])],
            without_class: Vec::new(),
            accuracy_before: 0.8,
            accuracy_after: 0.8,
            accuracy_noise: 0.01,
            before: None,
            after: None,
        }
    }

    #[test]
    fn what_did_not_move_has_a_reason_and_a_need() {
        let remark = |kept| thresholds(Some(kept)).remarks().remove(0);
        for (kept, named) in [
            (KeptReason::TooFewRecords { needed: 282.0 }, "about 282 training records of each class are needed"),
            (KeptReason::WithinNoise { gain: 0.011, deviation: 0.02 }, "on other records the gain would be 1.1 points"),
            (
                KeptReason::WithinCap { needed: 0.034, left: 0.02 },
                "a loss of 3.4 points would leave a gap of 2.0 points",
            ),
            (KeptReason::SmallEnough { gap: 0.01 }, "the gap of 1.0 points is within max_gap"),
        ] {
            let said = remark(kept);
            assert!(said.starts_with("equalized-odds moved no threshold: ") && said.contains(named), "{said}");
        }
        assert_eq!(thresholds(None).remarks(), ["groups too small for a threshold of their own: (other)"]);
    }

    /// Releases of 0.1.0 have neither reasons nor limits.
    #[test]
    fn thresholds_of_earlier_releases_are_read() {
        let text =
            r#"{"mode":"worst-group","by_group":[0.1,0.0],"too_small":[],"accuracy_before":0.8,"accuracy_after":0.81}"#;
        let found: Thresholds = serde_json::from_str(text).unwrap();
        assert!(found.has_moved() && found.aim.is_none() && found.without_class.is_empty());
    }
}
