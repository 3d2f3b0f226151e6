//! Why clipping is unfair: the excessive risk of one step, group by group and term by term.
//!
//! A private step replaces the gradient `g_B` of a batch by a clipped and noisy one. To second
//! order, the loss of group `a` then rises by `R_a^clip + R_a^noise`, and `R_a^clip` splits into an
//! error of magnitude, `R_a^mag`, and one of direction, `R_a^dir` (Tran 2021; Esipova 2023).
//! [`Analyser`] evaluates them at one point, [`DecompositionObserver`] along a run, and
//! [`StepDecomposition::risk_gap_bounds`] sets the published lower bounds beside the gaps.
//! [`ErrorBound`] has Xu's two terms, bias of clipping and noise, and [`best_bound`] where they are
//! balanced.
//! [`Curvature`] has the second derivatives.
//!
//! Nothing here is private: it is for research on data that the reader may see.

mod analyser;
mod bounds;
mod curvature;
mod decomposition;
mod distinct;
mod error_bound;
mod observer;
mod sampled;
mod sampled_batch;
mod settings;
mod terms;
mod vector;
mod work;
mod worker;

pub use analyser::Analyser;
pub use bounds::RiskGapBounds;
pub use curvature::{Curvature, Eigenvalue};
pub use decomposition::{GroupTerms, LargestEigenvalue, StepDecomposition};
pub use error_bound::{ErrorBound, best_bound};
pub use observer::DecompositionObserver;
pub use sampled::Sampled;
pub use settings::{AnalysisSettings, EigenvalueSearch};
