//! `scores.json`: cumulative scores of groups, from which thresholds are chosen and figures follow.

use std::path::Path;

use dp_accounting::NoiseMultiplier;
use dp_table::Group;
use fair_decisions::{CumulativeCounts, Mixture, PrefixSums, ScoreCells, ScoreGrid};
use rand_chacha::ChaCha20Rng;
use serde::{Deserialize, Serialize};

use crate::config::Decision;
use crate::error::{FairdpError, Result};
use crate::model::{FittedModel, decide};

/// Its name in a release.
pub(crate) const SCORES: &str = "scores.json";
/// The version that this program writes and reads.
const VERSION: u32 = 1;

/// For each group and class, the number of records whose score is below each edge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScoresFile {
    version: u32,
    /// Scores of the positive class: the edges between cells, and the thresholds that there can be. Of two classes
    /// its log-odds; of more the log-probability of the class with its offset, less the largest of the others'.
    edges: Vec<f64>,
    /// The positive class of more than two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    groups: Vec<Group>,
    /// Of training records: thresholds are chosen from them.
    pub(crate) training: Option<CumulativeCounts>,
    /// Of test records: figures are about them.
    pub(crate) test: Option<CumulativeCounts>,
}

impl ScoresFile {
    /// No counts, of a model whose groups have one threshold; `class` is the positive one of more than two.
    pub(crate) fn of(model: &FittedModel, class: Option<String>) -> Self {
        let class = class.filter(|_| model.classes().len() > 2);
        let edges = ScoreGrid::around(common(model)).edges().to_vec();
        let groups = model.encoding().groups().to_vec();
        Self { version: VERSION, edges, class, groups, training: None, test: None }
    }

    /// Reads a release's.
    ///
    /// # Errors
    /// [`FairdpError::File`] for one that is damaged or does not fit the model's groups and classes.
    pub(crate) fn from_json(bytes: &[u8], groups: &[Group], classes: &[String]) -> Result<Self> {
        let refuse = |problem: String| FairdpError::file(Path::new(SCORES), problem);
        let file: Self = serde_json::from_slice(bytes).map_err(|error| refuse(error.to_string()))?;
        if file.version != VERSION {
            return Err(refuse(format!("version {}: this program reads {VERSION}", file.version)));
        }
        let common = file.edges.get(ScoreGrid::common()).copied();
        if common.is_none_or(|common| ScoreGrid::around(common).edges() != file.edges) {
            return Err(refuse("edges: expected the public grid around one of them".into()));
        }
        if file.groups != groups {
            return Err(refuse("groups: expected those of the model".into()));
        }
        let is_known = |class: &String| classes.contains(class);
        if file.class.is_some() != (classes.len() > 2) || !file.class.iter().all(is_known) {
            return Err(refuse("class: expected one of the model's if there are more than two".into()));
        }
        for counts in file.training.iter().chain(&file.test) {
            counts.check().map_err(|error| refuse(error.to_string()))?;
            if counts.n_groups() != groups.len() {
                return Err(refuse(format!("{} groups with counts: expected {}", counts.n_groups(), groups.len())));
            }
            if counts.n_classes() != classes.len() {
                let n = counts.n_classes();
                return Err(refuse(format!("{n} classes with counts: expected {}", classes.len())));
            }
        }
        Ok(file)
    }

    /// Other counts of the same model, of test records alone.
    pub(crate) fn of_test(&self, counts: CumulativeCounts) -> Self {
        Self { training: None, test: Some(counts), ..self.clone() }
    }

    /// Its text in a release.
    pub(crate) fn to_json(&self) -> Result<String> {
        let text = serde_json::to_string(self).map_err(FairdpError::json("a document cannot be written"))?;
        Ok(text + "\n")
    }

    /// The decisions of a model: the edges of each group's thresholds.
    pub(crate) fn decisions_of(&self, model: &FittedModel) -> Vec<Mixture> {
        let pipeline = model.pipeline();
        let positive = class_order(self.class(), model.classes()).last().copied().unwrap_or_default();
        let common = pipeline.common_offsets();
        (0..model.encoding().groups().len())
            .map(|group| {
                if let Some(coins) = &pipeline.coins {
                    let parts = coins.by_group[group].iter();
                    return Mixture::of(parts.map(|part| (self.edge_at(part.threshold), part.probability)).collect());
                }
                let own = pipeline.offsets.get(group).unwrap_or(&pipeline.offsets[0]);
                Mixture::at(self.edge_at(threshold(own, &common, positive)))
            })
            .collect()
    }

    /// The edge of a threshold: they are edges, but for the rounding of a difference.
    fn edge_at(&self, threshold: f64) -> usize {
        let distance = |edge: f64| (edge - threshold).abs();
        let nearest =
            (0..self.edges.len()).min_by(|&a, &b| distance(self.edges[a]).total_cmp(&distance(self.edges[b])));
        nearest.unwrap_or(ScoreGrid::common())
    }

    /// The threshold of an edge.
    pub(crate) fn threshold(&self, edge: usize) -> f64 {
        self.edges[edge]
    }

    /// The positive class of more than two.
    pub(crate) fn class(&self) -> Option<&str> {
        self.class.as_deref()
    }

    /// How the records of a model's training or test part are counted.
    pub(crate) fn scoring(&self, model: &FittedModel) -> Scoring {
        let order = class_order(self.class(), model.classes());
        Scoring {
            grid: ScoreGrid::around(self.edges[ScoreGrid::common()]),
            common: model.pipeline().common_offsets(),
            places: (0..order.len()).map(|class| order.iter().position(|one| *one == class).unwrap_or(0)).collect(),
            positive: order.last().copied().unwrap_or_default(),
        }
    }
}

/// The classes as they are counted: the positive one last.
pub(crate) fn class_order(class: Option<&str>, classes: &[String]) -> Vec<usize> {
    let positive = class.and_then(|class| classes.iter().position(|one| one == class));
    let positive = positive.unwrap_or(classes.len().saturating_sub(1));
    (0..classes.len()).filter(|class| *class != positive).chain([positive]).collect()
}

/// The score above which a model answers the positive class without regard to groups.
fn common(model: &FittedModel) -> f64 {
    match model.pipeline().common_offsets()[..] {
        [negative, positive] => negative - positive,
        _ => 0.0,
    }
}

/// Added to the log-probabilities of the classes for a decision at this threshold of the positive class. `common`
/// are those of decisions that treat every group alike.
pub(crate) fn offsets(threshold: f64, common: &[f64], positive: usize) -> Vec<f64> {
    if common.len() == 2 {
        return vec![threshold, 0.0];
    }
    let mut offsets = common.to_vec();
    offsets[positive] -= threshold;
    offsets
}

/// The threshold of the positive class at these offsets: the inverse of [`offsets`].
fn threshold(offsets: &[f64], common: &[f64], positive: usize) -> f64 {
    match *offsets {
        [negative, of_positive] => negative - of_positive,
        _ => common[positive] - offsets[positive],
    }
}

/// How records are counted by class and score.
pub(crate) struct Scoring {
    grid: ScoreGrid,
    common: Vec<f64>,
    /// The place of each class among those that are counted.
    places: Vec<usize>,
    positive: usize,
}

impl Scoring {
    /// Counts of no records.
    pub(crate) fn no_records(&self, n_groups: usize) -> ScoreCells {
        ScoreCells::of_classes(n_groups, self.places.len())
    }

    /// Counts a record with these probabilities.
    pub(crate) fn add(&self, cells: &mut ScoreCells, group: usize, class: usize, probabilities: &[f64]) {
        let is_right = self.places.len() == 2 || decide(probabilities, &self.without_positive()) == class;
        cells.add_of_many(group, self.places[class], is_right, self.cell(probabilities));
    }

    /// Counts a record without a label, as if it were of the first class that is counted.
    pub(crate) fn add_unlabelled(&self, cells: &mut ScoreCells, group: usize, probabilities: &[f64]) {
        cells.add(group, 0, self.cell(probabilities));
    }

    /// The cell of a record: on the side of each edge on which a decision at this edge puts it.
    fn cell(&self, probabilities: &[f64]) -> usize {
        let offsets = |edge: f64| offsets(edge, &self.common, self.positive);
        self.grid.cell(|edge| decide(probabilities, &offsets(edge)) == self.positive)
    }

    /// Offsets with which the positive class is never answered.
    fn without_positive(&self) -> Vec<f64> {
        offsets(f64::INFINITY, &self.common, self.positive)
    }
}

/// How a decision weighs classes: 0 where every record counts, 1 where every class does.
pub(crate) fn balance(decision: Decision) -> f64 {
    match decision {
        Decision::Accuracy => 0.0,
        Decision::Compromise => 0.5,
        Decision::Balanced => 1.0,
    }
}

/// Releases exact counts by group, class and cell.
///
/// **Guarantee.** That of [`PrefixSums::release`].
pub(crate) fn release(
    cells: &ScoreCells,
    noise_multiplier: NoiseMultiplier,
    records_per_unit: u64,
    rng: &mut ChaCha20Rng,
) -> Result<CumulativeCounts> {
    Ok(CumulativeCounts::release(&PrefixSums::new(), cells, noise_multiplier.get(), records_per_unit, rng)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dp_linear::sigmoid;

    /// Of four classes with offsets, too, and where a class has another place.
    #[test]
    fn a_threshold_is_told_from_its_offsets() {
        for (common, positive) in [(vec![0.4, 0.0], 1), (vec![0.3, -0.2, 0.5, 0.0], 2), (vec![0.3, -0.2, 0.5], 0)] {
            for asked in [-1.5, 0.0, 0.7] {
                let found = threshold(&offsets(asked, &common, positive), &common, positive);
                assert!((found - asked).abs() < 1e-12, "{found} {asked}");
            }
        }
    }

    /// A score equal to a threshold is on the side on which a decision puts it.
    #[test]
    fn a_score_on_an_edge_is_counted_as_it_is_decided() {
        for common in [0.0, 0.1, -1.3, 2.7] {
            let grid = ScoreGrid::around(common);
            let scoring = Scoring { grid: grid.clone(), common: vec![common, 0.0], places: vec![0, 1], positive: 1 };
            assert_eq!(grid.edges()[ScoreGrid::common()], common);
            for (place, &edge) in grid.edges().iter().enumerate() {
                for log_odds in [edge.next_down(), edge, edge.next_up()] {
                    let probabilities = [sigmoid(-log_odds), sigmoid(log_odds)];
                    let is_positive = decide(&probabilities, &offsets(edge, &scoring.common, 1)) == 1;
                    assert_eq!(scoring.cell(&probabilities) > place, is_positive, "{log_odds} at {edge}");
                }
            }
        }
    }

    /// Of four classes with offsets, the third is positive: a decision at every edge is right as often as the counts
    /// say, for every class.
    #[test]
    fn counts_of_many_classes_are_those_of_decisions() {
        let classes: Vec<String> = ["a", "b", "c", "d"].map(String::from).to_vec();
        let order = class_order(Some("c"), &classes);
        assert_eq!(order, [0, 1, 3, 2]);
        let common = vec![0.3, -0.2, 0.5, 0.0];
        let scoring =
            Scoring { grid: ScoreGrid::around(0.0), common: common.clone(), places: vec![0, 1, 3, 2], positive: 2 };
        let records: Vec<(usize, [f64; 4])> = (0..2_000_u32)
            .map(|i| {
                let weight = |k: u32| f64::from((i * (7 + 4 * k) + 13 * k) % 97 + 1);
                let sum: f64 = (0..4).map(weight).sum();
                (i as usize / 3 % 4, [0, 1, 2, 3].map(|k| weight(k) / sum))
            })
            .collect();
        let mut cells = scoring.no_records(1);
        for (class, probabilities) in &records {
            scoring.add(&mut cells, 0, *class, probabilities);
        }
        let (counts, sums) = (CumulativeCounts::exact(&cells), PrefixSums::new());
        for (edge, &threshold) in scoring.grid.edges().iter().enumerate() {
            let answer = |probabilities: &[f64]| decide(probabilities, &offsets(threshold, &common, 2));
            for (place, &class) in order.iter().enumerate() {
                let of_class = records.iter().filter(|(own, _)| *own == class);
                let right = of_class.clone().filter(|(_, probabilities)| answer(probabilities) == class).count();
                let share = counts.recall(&sums, 0, place, edge);
                assert_eq!((share.hits, share.n()), (right as f64, of_class.count() as f64), "{class} at {edge}");
            }
            let others = records.iter().filter(|(class, _)| *class != 2);
            let positive = others.filter(|(_, probabilities)| answer(probabilities) == 2).count();
            assert_eq!(counts.share_above(&sums, 0, 0, edge).hits, positive as f64);
        }
    }
}
