//! The public grid of scores.

/// Cells of the score: one below each edge, and one above the last.
pub const N_CELLS: usize = 64;
/// Scores between which cells change, and which can be thresholds.
pub const N_EDGES: usize = N_CELLS - 1;
/// The common threshold among the edges.
const COMMON: usize = N_EDGES / 2;
/// Edges are `SCALE · sinh(RATE · place)` from the common threshold: 0.05 apart beside it, where
/// thresholds move and the scores of a weak model are, and 6 away at the ends.
const SCALE: f64 = 0.48;
const RATE: f64 = 0.104;

/// Log-odds on both sides of a common threshold, which is one of them.
///
/// ```
/// use fair_decisions::{N_EDGES, ScoreGrid};
///
/// let grid = ScoreGrid::around(-0.7);
/// assert_eq!(grid.edges()[ScoreGrid::common()], -0.7);
/// assert_eq!((grid.edges().len(), grid.cell(|edge| edge < 100.0)), (N_EDGES, N_EDGES));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ScoreGrid(Vec<f64>);

impl ScoreGrid {
    /// The grid around the log-odds above which the positive class is answered without regard to
    /// groups.
    pub fn around(common: f64) -> Self {
        let distance = |place: usize| SCALE * (RATE * (place as f64 - COMMON as f64)).sinh();
        Self((0..N_EDGES).map(|place| common + distance(place)).collect())
    }

    /// The position of the common threshold.
    pub const fn common() -> usize {
        COMMON
    }

    /// The edges, in order.
    pub fn edges(&self) -> &[f64] {
        &self.0
    }

    /// The cell of a record: the number of edges that it is above, as a decision at this edge says.
    /// So a count agrees with predictions also where many records have one score.
    pub fn cell(&self, is_above: impl Fn(f64) -> bool) -> usize {
        self.0.partition_point(|&edge| is_above(edge))
    }
}
