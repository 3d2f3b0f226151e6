//! Statistics that make a private model easy to train, themselves released with noise.
//!
//! Clipping is one reason why private training is unfair to rare classes. Badly conditioned inputs
//! and class imbalance are larger ones, and both can be repaired within ε:
//!
//! - [`Conditioning`] centres and whitens rows of norm 1 by a noisy mean and a noisy covariance, so
//!   that few full-batch steps suffice;
//! - [`ClassCounts`] releases how many records each class has; their shares go into
//!   [`Loss::PriorAdjustedCrossEntropy`](crate::Loss::PriorAdjustedCrossEntropy);
//! - [`RecallBiases`], optional, moves a trained classifier's biases towards equal recall;
//! - [`GaussianBudget`] splits one (ε, δ) between these releases and the gradients.
//!
//! Each release enters the ledger it is given. Hand its events to
//! [`Plan::paid`](crate::Plan::paid), and the ledger, the checkpoints and the statement of the
//! training hold them as well.
//!
//! **Neighbours.** The bounds are for the change when one record contributes nothing (zero-out
//! neighbours; the number of records is public). What is released are sums divided by that public
//! number.
//!
//! **Do not** pass features that were scaled or selected by looking at the private records:
//! whatever did so is a release that nobody accounted for.
//!
//! ```
//! use std::num::NonZeroUsize;
//! use dp_accounting::{Accountant, Delta, Epsilon, GdpAccountant, Ledger, NeighbouringRelation};
//! use dp_train::conditioning::{ClassCounts, Conditioning, ConditioningConfig, GaussianBudget};
//! use dp_train::{Purpose, Randomness};
//!
//! let rows = [0.6_f32, 0.8, 0.8, 0.6, 0.0, 1.0];
//! let (epsilon, delta) = (Epsilon::new(4.0)?, Delta::new(1e-5)?);
//! let budget = GaussianBudget::new(epsilon, delta)?;
//! let mut rng = Randomness::from_seed(1).stream(Purpose::Conditioning, 0, 0)?;
//! let mut ledger = Ledger::new(NeighbouringRelation::ZeroOut);
//!
//! let config = ConditioningConfig {
//!     mean: Some(budget.noise_multiplier(0.02, 1)?),
//!     covariance: Some(budget.noise_multiplier(0.08, 1)?),
//!     ..ConditioningConfig::default()
//! };
//! let conditioning = Conditioning::fit(&config, &rows, 2, NonZeroUsize::MIN, &mut rng, &mut ledger)?;
//! let inputs = conditioning.apply(&rows, NonZeroUsize::MIN)?; // For training and prediction alike.
//! let sigma = budget.noise_multiplier(0.01, 1)?;
//! let counts = ClassCounts::fit(&[0, 1, 1], 2, sigma, &mut rng, &mut ledger)?;
//! // 60 gradients with this noise multiplier take the rest of ε.
//! let gradient = budget.noise_multiplier(1.0 - 0.02 - 0.08 - 0.01, 60)?;
//! ledger.record(&dp_accounting::DpEvent::gaussian(gradient), 60)?;
//!
//! let mut accountant = GdpAccountant::new(NeighbouringRelation::ZeroOut);
//! ledger.compose_into(&mut accountant)?;
//! let spent = accountant.epsilon(delta)?.epsilon.get();
//! assert!(spent <= 4.0 && spent > 4.0 - 1e-6);
//! assert_eq!((inputs.len(), counts.priors().len()), (6, 2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod budget;
mod class_counts;
mod file;
mod fit;
mod grid;
mod recall;
mod release;
mod triangular;

pub use budget::GaussianBudget;
pub use class_counts::ClassCounts;
pub use fit::{Conditioning, ConditioningConfig, unit_rows};
pub use recall::{RecallBiases, RecallBiasesConfig};
