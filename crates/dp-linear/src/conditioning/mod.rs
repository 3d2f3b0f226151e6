//! Centring and whitening of rows, by a mean and a covariance that are released with noise.
//!
//! Clipping is one reason why private training is unfair to rare classes. Badly conditioned inputs
//! are a larger one: [`Conditioning`] centres and whitens rows of norm 1, so that few full-batch
//! steps suffice.
//!
//! Each release enters the ledger it is given. Hand its events to
//! [`Plan::with_prior_releases`](dp_train::Plan::with_prior_releases), and the ledger, the
//! checkpoints and the statement of the training hold them as well.
//!
//! **Neighbours.** The bounds are for the change when one record contributes nothing (zero-out
//! neighbours; the number of records is public). What is released are sums divided by that public
//! number.

mod block;
mod file;
mod fit;
mod gram;
mod triangular;
mod whitening;

pub(crate) use block::{BlockNoise, BlockTransform};
pub use block::{ColumnBlock, MOST_WHITENED};
pub(crate) use fit::add_symmetric_noise;
pub use fit::{Conditioning, ConditioningConfig};
