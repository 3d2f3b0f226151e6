//! The cost of one step to each group, term by term.

use serde::{Deserialize, Serialize};

use super::error_bound::ErrorBound;
use super::sampled::Sampled;

/// The expected excess of each group's training loss over that of a step without privacy, to second
/// order, at one point of a run.
///
/// **Units.** Nats per step, except where said otherwise.
///
/// Not private: exact gradients of the data are in it.
///
/// **Source.** Tran 2021; Esipova 2023, Propositions 1, 2 and 2*. Gradients of a batch are sums
/// over the *expected* batch size. Regularisation is left out: it moves both steps alike, up to a
/// product of second order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StepDecomposition {
    /// 0-based step that starts here.
    pub step: u64,
    /// η.
    pub learning_rate: f64,
    /// Thresholds of the clipping method in the first sampled batch.
    pub thresholds: Vec<f64>,
    /// `‖g_D‖`, the norm of the mean gradient over all records.
    pub gradient_norm: f64,
    /// `E‖g_B‖²`.
    pub plain_sq_norm: Sampled,
    /// `E‖ḡ_B‖²`.
    pub clipped_sq_norm: Sampled,
    /// Root of the mean squared bound `S` on what one record adds to the sum.
    pub bound: f64,
    /// By group; `None` for a group without a record.
    pub groups: Vec<Option<GroupTerms>>,
}

/// The terms of one group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GroupTerms {
    /// Share of the group among the records.
    pub share: f64,
    /// `‖g_Da‖`, the norm of the group's exact mean gradient.
    pub gradient_norm: f64,
    /// Mean per-sample gradient norm in the sampled batches before clipping; `None` if they hold no
    /// record of the group.
    pub sample_norm: Option<f64>,
    /// The same after clipping.
    pub clipped_sample_norm: Option<f64>,
    /// Bias and noise of the group's mean gradient, and the bound that balances them; `None` if the
    /// sampled batches hold no record of the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBound>,
    /// `R^clip`, all that clipping costs.
    pub clip: Sampled,
    /// `R^noise = η²/2 · Tr(H_a) σ²S²/B²`, what the noise that is applied costs: it is divided by
    /// `B` as the sum is.
    pub noise: Sampled,
    /// `η²/2 · Tr(H_a) σ²S²`, as Esipova prints it, without the division.
    pub noise_as_printed: Sampled,
    /// `R^mag`: the plain direction with the clipped length.
    pub magnitude: Sampled,
    /// `R^dir`: from there to the clipped gradient.
    pub direction: Sampled,
    /// `R^mag*` of the alternate decomposition, by way of the clipped direction with the plain
    /// length.
    pub magnitude_star: Sampled,
    /// `R^dir*`.
    pub direction_star: Sampled,
    /// `‖g_Da‖ E[‖ḡ_B‖ (cos θ − cos θ̄)]`: over η, the first-order part of `R^dir`.
    pub direction_slope: Sampled,
    /// `‖g_Da‖ E[‖g_B‖ (cos θ − cos θ̄)]`: that of `R^dir*`.
    pub direction_star_slope: Sampled,
    /// `cos θ`, with `θ` the angle between `g_Da` and `g_B`.
    pub plain_cosine: Sampled,
    /// `cos θ̄`, with `θ̄` the angle between `g_Da` and `ḡ_B`; that of `g_B` where nothing is left
    /// of `ḡ_B`.
    pub clipped_cosine: Sampled,
    /// `θ` in degrees.
    pub plain_angle: Sampled,
    /// `θ̄` in degrees.
    pub clipped_angle: Sampled,
    /// `Tr(H_a)`.
    pub trace: Sampled,
    /// `λ_max(H_a)`, where asked for.
    pub largest_eigenvalue: Option<LargestEigenvalue>,
}

/// The largest eigenvalue of a group's Hessian by power iteration.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LargestEigenvalue {
    /// The Rayleigh quotient that was reached.
    pub value: f64,
    /// There is an eigenvalue no further away than this.
    pub residual: f64,
    /// Records of the group that the Hessian was averaged over; fewer than the group has make
    /// `value` too large on average.
    pub n_records: usize,
}

impl StepDecomposition {
    /// Whether `η ≤ 1/max_k λ_k`, the condition of Propositions 3 and 3*; `None` unless all
    /// eigenvalues were asked for.
    pub fn rate_condition(&self) -> Option<bool> {
        let values = self.groups.iter().flatten().map(|group| group.largest_eigenvalue.map(|found| found.value));
        let largest = values.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)?;
        Some(self.learning_rate * largest <= 1.0)
    }
}
