//! The CUDA path of every operation: own kernels (`kernels/`) and cuBLAS, in the order of one
//! stream.
//!
//! A function here has the name of its operation in lower case and the same contract, with these
//! differences:
//!
//! - Sums over records, columns, positions and groups of channels are accumulated in `f64` whatever
//!   the number type. Sums over a window of an image or the classes of a record are accumulated in
//!   the number type, as on the CPU. cuBLAS accumulates matrix products, at sizes that do not
//!   depend on the batch (`fixed.rs`). No order depends on scheduling and there are no
//!   floating-point atomics, so that a run repeats bit for bit on the same type of device and
//!   toolkit.
//! - Nothing is copied back to the host, so a label or id out of range, which on the CPU is an
//!   error, gives NaN: the record is then left out like any other whose gradient is not finite.
//!   Whether a sum is finite, and how many values of noise are in doubt, are the exceptions: eight
//!   bytes once a step.
//! - Weights, row numbers and the like come from host memory and are sent along (`upload.rs`):
//!   `[batch]` values each.

mod arithmetic;
mod conv;
mod divisor;
mod dropout;
mod embedding;
mod fixed;
mod gram;
mod integers;
mod launch;
mod loss;
mod noise;
mod norm;
mod open;
mod pointwise;
mod pool;
mod product;
mod rows;
mod run;
mod sequence;
#[cfg(test)]
mod testing;
mod upload;
mod view;

pub(crate) use arithmetic::passes_in_tf32;
pub(super) use conv::{conv_forward, conv_gradients, conv_input_gradient, conv_weight_sum, unpack_weight};
pub(super) use dropout::dropout;
pub(super) use embedding::{embedding_forward, embedding_sq_norms, embedding_sum};
pub(crate) use gram::has_fast_double;
pub(super) use gram::{conv_gram_sq_norms, conv_weight_sum_in_double};
pub use integers::DeviceIntegers;
pub(super) use loss::{bce_gradient, bce_losses, labels, scale_by_label, softmax_gradient, softmax_losses};
pub(super) use noise::{privatise, privatise_integers};
pub(super) use norm::{norm_backward, norm_forward, norm_parameter_gradients, norm_statistics};
pub(crate) use open::{cublas_version, free_memory, prepare};
pub(super) use pointwise::{
    activate, activation_backward, activation_slope, adam_update, add_slice, axpy, copy, fill, multiply, scale,
    scale_add, scale_add_square, set_along,
};
pub(crate) use pool::DeviceWinners;
pub(super) use pool::{average_pool, average_pool_backward, max_pool, max_pool_backward};
pub(super) use product::matmul;
pub(super) use rows::{
    column_sum, gather_rows, linear_sq_norms, repeat_row, row_sq_norms, scale_rows, sum_rows, weighted_column_sum,
};
pub(super) use sequence::{record_products, sum_positions, swap_axes};
pub(super) use view::{Destination, Source};
