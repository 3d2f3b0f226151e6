//! `scores.json`: cumulative scores of groups, from which thresholds are chosen and figures follow.

use std::path::Path;

use dp_accounting::NoiseMultiplier;
use dp_table::Group;
use fair_decisions::{CumulativeCounts, PrefixSums, ScoreCells, ScoreGrid};
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
    /// Log-odds of the positive class: the edges between cells, and the thresholds that there can be.
    edges: Vec<f64>,
    groups: Vec<Group>,
    /// Of training records: thresholds are chosen from them.
    pub(crate) training: Option<CumulativeCounts>,
    /// Of test records: figures are about them.
    pub(crate) test: Option<CumulativeCounts>,
}

impl ScoresFile {
    /// No counts, of a model whose groups have one threshold.
    pub(crate) fn of(model: &FittedModel) -> Self {
        let edges = ScoreGrid::around(common(model)).edges().to_vec();
        Self { version: VERSION, edges, groups: model.encoding().groups().to_vec(), training: None, test: None }
    }

    /// Reads a release's.
    ///
    /// # Errors
    /// [`FairdpError::File`] for one that is damaged or does not fit the model's groups.
    pub(crate) fn from_json(bytes: &[u8], groups: &[Group]) -> Result<Self> {
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
        for counts in file.training.iter().chain(&file.test) {
            counts.check().map_err(|error| refuse(error.to_string()))?;
            if counts.n_groups() != groups.len() {
                return Err(refuse(format!("{} groups with counts: expected {}", counts.n_groups(), groups.len())));
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

    /// The edge of each group's decisions, by the offsets of a model's classes.
    pub(crate) fn edges_of(&self, offsets: &[Vec<f64>], n_groups: usize) -> Vec<usize> {
        let edge = |group: usize| {
            let offsets = offsets.get(group).unwrap_or(&offsets[0]);
            let distance = |edge: f64| (edge - (offsets[0] - offsets[1])).abs();
            // Thresholds are edges, but for the rounding of a difference.
            (0..self.edges.len()).min_by(|&a, &b| distance(self.edges[a]).total_cmp(&distance(self.edges[b])))
        };
        (0..n_groups).map(|group| edge(group).unwrap_or(ScoreGrid::common())).collect()
    }

    /// The threshold of an edge.
    pub(crate) fn threshold(&self, edge: usize) -> f64 {
        self.edges[edge]
    }

    /// The cell of a record with these probabilities of the two classes.
    pub(crate) fn grid(&self) -> ScoreGrid {
        ScoreGrid::around(self.edges[ScoreGrid::common()])
    }
}

/// The log-odds above which a model answers the positive class without regard to groups.
fn common(model: &FittedModel) -> f64 {
    let offsets = &model.pipeline().common_offsets();
    offsets[0] - offsets[1]
}

/// Added to the log-probabilities of the classes for a decision at this threshold.
pub(crate) fn offsets(threshold: f64) -> [f64; 2] {
    [threshold, 0.0]
}

/// The cell of a record with these probabilities of the two classes: on the side of each edge on which a
/// decision at this edge puts it.
pub(crate) fn cell(grid: &ScoreGrid, probabilities: &[f64]) -> usize {
    grid.cell(|edge| decide(probabilities, &offsets(edge)) == 1)
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
    cells: Vec<f64>,
    noise_multiplier: NoiseMultiplier,
    records_per_unit: u64,
    rng: &mut ChaCha20Rng,
) -> Result<CumulativeCounts> {
    let (sums, cells) = (PrefixSums::new(), ScoreCells::of(cells));
    Ok(CumulativeCounts::release(&sums, &cells, noise_multiplier.get(), records_per_unit, rng)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dp_linear::sigmoid;

    /// A score equal to a threshold is on the side on which a decision puts it.
    #[test]
    fn a_score_on_an_edge_is_counted_as_it_is_decided() {
        for common in [0.0, 0.1, -1.3, 2.7] {
            let grid = ScoreGrid::around(common);
            assert_eq!(grid.edges()[ScoreGrid::common()], common);
            for (place, &edge) in grid.edges().iter().enumerate() {
                for log_odds in [edge.next_down(), edge, edge.next_up()] {
                    let probabilities = [sigmoid(-log_odds), sigmoid(log_odds)];
                    let is_positive = decide(&probabilities, &offsets(edge)) == 1;
                    assert_eq!(cell(&grid, &probabilities) > place, is_positive, "{log_odds} at {edge}");
                }
            }
        }
    }
}
