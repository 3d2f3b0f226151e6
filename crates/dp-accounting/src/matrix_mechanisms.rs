//! Correlated noise: banded matrix factorisation under cyclic Poisson sampling, and trees of
//! partial sums.

use serde::{Deserialize, Serialize};

use crate::{AccountingError, DpEvent, NoiseMultiplier, SamplingRate};

/// Training with noise from a banded strategy matrix `C`, where a record is used in every
/// `bands`-th step at most.
///
/// The records are divided into `bands` parts without a look at the data. Step `t` draws a Poisson
/// batch from part `t mod bands`, so that a record's steps lie `bands` apart and the columns of `C`
/// they meet do not overlap.
///
/// **Units.** The noise multiplier divides the standard deviation of the noise behind `C` by the
/// largest Euclidean norm of a column of `C` and by the bound on one record's contribution.
///
/// **Guarantee.** That of `⌈steps/bands⌉` Poisson-sampled Gaussians.
///
/// **Source.** Choquette-Choo et al. 2023, "(Amplified) Banded Matrix Factorization", Theorem 4.
///
/// **Example**
/// ```
/// use dp_accounting::{BandedMatrixFactorisation, NoiseMultiplier, SamplingRate};
/// let banded = BandedMatrixFactorisation::new(NoiseMultiplier::new(2.0)?, SamplingRate::new(0.1)?, 8, 1_001)?;
/// assert_eq!(banded.rounds(), 126);
/// # Ok::<(), dp_accounting::AccountingError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "UncheckedBanded", into = "UncheckedBanded")]
pub struct BandedMatrixFactorisation {
    noise_multiplier: NoiseMultiplier,
    sampling_rate: SamplingRate,
    bands: u64,
    steps: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UncheckedBanded {
    noise_multiplier: NoiseMultiplier,
    sampling_rate: SamplingRate,
    bands: u64,
    steps: u64,
}

impl BandedMatrixFactorisation {
    /// `sampling_rate` is within the part of the records whose turn it is.
    ///
    /// # Errors
    /// [`AccountingError::InvalidParameter`] for 0 bands.
    pub fn new(
        noise_multiplier: NoiseMultiplier,
        sampling_rate: SamplingRate,
        bands: u64,
        steps: u64,
    ) -> Result<Self, AccountingError> {
        at_least_one("bands", bands)?;
        Ok(Self { noise_multiplier, sampling_rate, bands, steps })
    }

    /// Steps that one record may be in.
    pub const fn rounds(&self) -> u64 {
        self.steps.div_ceil(self.bands)
    }

    /// Noise multiplier, sampling rate, bands and steps.
    pub(crate) const fn fields(&self) -> (NoiseMultiplier, SamplingRate, u64, u64) {
        (self.noise_multiplier, self.sampling_rate, self.bands, self.steps)
    }

    pub(crate) fn event_of_one_round(&self) -> DpEvent {
        DpEvent::gaussian(self.noise_multiplier).poisson_sampled(self.sampling_rate)
    }
}

impl std::fmt::Display for BandedMatrixFactorisation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "banded matrix factorisation (noise multiplier {}, {} bands, {} steps, cyclic Poisson rate {})",
            self.noise_multiplier, self.bands, self.steps, self.sampling_rate
        )
    }
}

impl TryFrom<UncheckedBanded> for BandedMatrixFactorisation {
    type Error = AccountingError;
    fn try_from(value: UncheckedBanded) -> Result<Self, AccountingError> {
        Self::new(value.noise_multiplier, value.sampling_rate, value.bands, value.steps)
    }
}

impl From<BandedMatrixFactorisation> for UncheckedBanded {
    fn from(value: BandedMatrixFactorisation) -> Self {
        let BandedMatrixFactorisation { noise_multiplier, sampling_rate, bands, steps } = value;
        Self { noise_multiplier, sampling_rate, bands, steps }
    }
}

/// Sums over the nodes of a binary tree whose leaves are steps, every node with its own Gaussian
/// noise.
///
/// Every node is released that the steps complete: all of its `2^l` leaves are steps. If the number
/// of steps is no power of two, the root and other nodes at the tree's edge stay incomplete. An
/// implementation that pads the tree or always reads its root releases them too:
/// [`with_incomplete_nodes`](Self::with_incomplete_nodes) says so. A record is then on one more
/// level.
///
/// **Units.** The noise multiplier divides the standard deviation of one node's noise by the bound
/// on one record's contribution to one leaf.
///
/// **Guarantee.** A node over `2^l` leaves holds a record at most `⌈2^l/separation⌉` times, so the
/// squared norm of a record in all nodes is at most `participations · Σ_l min(participations,
/// ⌈2^l/separation⌉)`; for one participation that is the number of levels, exactly. Several trees
/// that share no record cost as much as the largest of them.
///
/// **Source.** Kairouz et al. 2021, "Practical and Private (Deep) Learning without Sampling or
/// Shuffling", Appendix D.
///
/// **Example**
/// ```
/// use dp_accounting::{NoiseMultiplier, TreeAggregation};
/// // Eight steps make four levels: the noise over one record is 3/√4.
/// let tree = TreeAggregation::new(NoiseMultiplier::new(3.0)?, 8)?;
/// assert_eq!(tree.squared_sensitivity(), 4.0);
/// // Twice, four steps apart: only the root holds both, 3·2 + 2·2.
/// assert_eq!(tree.with_participations(2, 4)?.squared_sensitivity(), 10.0);
/// // Five steps complete nodes of 1, 2 and 4; the root over all five makes a fourth level.
/// let tree = TreeAggregation::new(NoiseMultiplier::new(3.0)?, 5)?;
/// assert_eq!(tree.squared_sensitivity(), 3.0);
/// assert_eq!(tree.with_incomplete_nodes().squared_sensitivity(), 4.0);
/// # Ok::<(), dp_accounting::AccountingError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "UncheckedTree", into = "UncheckedTree")]
pub struct TreeAggregation {
    noise_multiplier: NoiseMultiplier,
    leaves: u64,
    participations: u64,
    separation: u64,
    incomplete_nodes: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UncheckedTree {
    noise_multiplier: NoiseMultiplier,
    leaves: u64,
    #[serde(default = "one")]
    participations: u64,
    #[serde(default = "one")]
    separation: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    incomplete_nodes: bool,
}

const fn one() -> u64 {
    1
}

impl TreeAggregation {
    /// A tree over `leaves` steps of which a record is in one.
    ///
    /// # Errors
    /// [`AccountingError::InvalidParameter`] for a tree without leaves.
    pub fn new(noise_multiplier: NoiseMultiplier, leaves: u64) -> Result<Self, AccountingError> {
        at_least_one("leaves", leaves)?;
        Ok(Self { noise_multiplier, leaves, participations: 1, separation: 1, incomplete_nodes: false })
    }

    /// Every record is in `participations` steps at most, which lie at least `separation` apart.
    ///
    /// # Errors
    /// [`AccountingError::InvalidParameter`] for 0 of either.
    pub fn with_participations(mut self, participations: u64, separation: u64) -> Result<Self, AccountingError> {
        at_least_one("participations", participations)?;
        at_least_one("separation", separation)?;
        (self.participations, self.separation) = (participations, separation);
        Ok(self)
    }

    /// Nodes that the steps do not complete are released as well, up to a root over all steps.
    #[must_use]
    pub const fn with_incomplete_nodes(mut self) -> Self {
        self.incomplete_nodes = true;
        self
    }

    /// Bound on the squared norm of one record's contribution to all nodes that are released.
    pub fn squared_sensitivity(&self) -> f64 {
        // No more participations fit than this.
        let participations = self.participations.min(self.leaves.div_ceil(self.separation));
        let most = |size: u64| size.div_ceil(self.separation).min(participations) as f64;
        let complete = (0..=self.leaves.ilog2()).map(|level| most(1_u64 << level)).sum::<f64>();
        // Among incomplete nodes, only the root is on a level without complete ones.
        let root = if self.incomplete_nodes && !self.leaves.is_power_of_two() { most(self.leaves) } else { 0.0 };
        participations as f64 * (complete + root)
    }

    /// Noise multiplier, leaves, participations and separation.
    pub(crate) const fn fields(&self) -> (NoiseMultiplier, u64, u64, u64) {
        (self.noise_multiplier, self.leaves, self.participations, self.separation)
    }

    /// Whether incomplete nodes are released, too.
    pub(crate) const fn has_incomplete_nodes(&self) -> bool {
        self.incomplete_nodes
    }

    /// With another noise multiplier.
    pub(crate) fn with_noise(
        mut self,
        noise: impl Fn(NoiseMultiplier) -> Result<NoiseMultiplier, AccountingError>,
    ) -> Result<Self, AccountingError> {
        self.noise_multiplier = noise(self.noise_multiplier)?;
        Ok(self)
    }

    pub(crate) fn noise_over_one_record(&self) -> f64 {
        self.noise_multiplier.get() / self.squared_sensitivity().sqrt()
    }
}

impl std::fmt::Display for TreeAggregation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "tree aggregation (noise multiplier {}, {} leaves", self.noise_multiplier, self.leaves)?;
        if self.participations > 1 {
            write!(f, ", {} participations at least {} apart", self.participations, self.separation)?;
        }
        f.write_str(if self.incomplete_nodes {
            ", all nodes released, incomplete ones and the root among them)"
        } else {
            ", complete nodes released)"
        })
    }
}

impl TryFrom<UncheckedTree> for TreeAggregation {
    type Error = AccountingError;
    fn try_from(value: UncheckedTree) -> Result<Self, AccountingError> {
        let tree = Self::new(value.noise_multiplier, value.leaves)?;
        let tree = tree.with_participations(value.participations, value.separation)?;
        Ok(if value.incomplete_nodes { tree.with_incomplete_nodes() } else { tree })
    }
}

impl From<TreeAggregation> for UncheckedTree {
    fn from(value: TreeAggregation) -> Self {
        let TreeAggregation { noise_multiplier, leaves, participations, separation, incomplete_nodes } = value;
        Self { noise_multiplier, leaves, participations, separation, incomplete_nodes }
    }
}

fn at_least_one(parameter: &'static str, value: u64) -> Result<(), AccountingError> {
    if value == 0 {
        return Err(AccountingError::invalid(parameter, 0, "at least 1"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_pattern_of_participations_exceeds_the_bound() {
        let sigma = NoiseMultiplier::new(1.0).unwrap();
        for leaves in [1_u64, 2, 5, 8, 13] {
            for separation in [1, 2, 3, 5] {
                // Complete nodes, and all.
                let mut worst = vec![[0.0_f64; 2]; leaves as usize + 1];
                for pattern in 0_u32..1 << leaves {
                    let used: Vec<u64> = (0..leaves).filter(|leaf| pattern >> leaf & 1 == 1).collect();
                    if used.windows(2).any(|pair| pair[1] - pair[0] < separation) {
                        continue;
                    }
                    let mut squared = [0.0; 2];
                    for level in 0..=leaves.next_power_of_two().ilog2() {
                        for node in 0..leaves.div_ceil(1 << level) {
                            let inside = used.iter().filter(|leaf| **leaf >> level == node).count() as f64;
                            squared[1] += inside * inside;
                            if node < leaves >> level {
                                squared[0] += inside * inside;
                            }
                        }
                    }
                    for (worst, squared) in worst[used.len()].iter_mut().zip(squared) {
                        *worst = worst.max(squared);
                    }
                }
                let mut so_far = [0.0_f64; 2];
                for (participations, worst) in worst.iter().enumerate().skip(1) {
                    let tree = TreeAggregation::new(sigma, leaves).unwrap();
                    let tree = tree.with_participations(participations as u64, separation).unwrap();
                    for (i, tree) in [tree, tree.with_incomplete_nodes()].into_iter().enumerate() {
                        so_far[i] = so_far[i].max(worst[i]);
                        let bound = tree.squared_sensitivity();
                        assert!(so_far[i] <= bound, "{leaves} {separation} {participations}: {so_far:?} {bound}");
                        assert!(participations > 1 || so_far[i] == bound);
                    }
                }
            }
        }
    }

    #[test]
    fn json_is_checked() {
        let tree: TreeAggregation = serde_json::from_str(r#"{"noise_multiplier":2.0,"leaves":4}"#).unwrap();
        assert_eq!(tree.squared_sensitivity(), 3.0);
        let json = |tree: TreeAggregation| serde_json::to_string(&tree).unwrap();
        assert_eq!(json(tree), r#"{"noise_multiplier":2.0,"leaves":4,"participations":1,"separation":1}"#);
        let whole = tree.with_incomplete_nodes();
        assert!(json(whole).contains(r#""incomplete_nodes":true"#));
        assert_eq!(serde_json::from_str::<TreeAggregation>(&json(whole)).unwrap(), whole);
        insta::assert_snapshot!(tree.to_string(), @"tree aggregation (noise multiplier 2, 4 leaves, complete nodes released)");
        insta::assert_snapshot!(whole.to_string(), @"tree aggregation (noise multiplier 2, 4 leaves, all nodes released, incomplete ones and the root among them)");
        assert!(serde_json::from_str::<TreeAggregation>(r#"{"noise_multiplier":2.0,"leaves":0}"#).is_err());
        assert!(serde_json::from_str::<TreeAggregation>(r#"{"noise_multiplier":2.0,"leaves":4,"leafs":4}"#).is_err());
        let banded = r#"{"noise_multiplier":2.0,"sampling_rate":0.5,"bands":0,"steps":9}"#;
        insta::assert_snapshot!(serde_json::from_str::<BandedMatrixFactorisation>(banded).unwrap_err(), @"bands = 0: expected at least 1");
    }
}
