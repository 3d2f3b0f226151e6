//! The primitives of the engine: functions that write into an existing tensor.
//!
//! Every operation has a CPU path on slices, for `f32` and `f64`, and with the feature `cuda` a
//! path on CUDA devices (`cuda/`). The destination is always the first tensor, must be contiguous
//! and must not share storage with a source. Nothing here allocates, so a step that reuses its
//! buffers takes no page fault. Loops are plain Rust compiled for AVX-512, AVX2 and the baseline,
//! and chosen at run time by [`pulp`](https://docs.rs/pulp).

mod activation;
mod bce;
mod cancellation;
mod conv;
#[cfg(feature = "cuda")]
mod cuda;
mod double_dot;
mod dropout;
mod element;
mod embedding;
mod flatten;
mod gather;
mod in_place;
mod integers;
mod label;
mod matmul;
mod noise;
mod norm;
mod optimiser;
mod own;
mod pool;
mod prefetch;
mod rows;
mod sequence;
mod softmax;
mod transpose;
mod update;
mod words;
mod workspace;

pub use activation::Activation;
pub(crate) use activation::{activate, activation_backward, activation_slope, multiply};
pub(crate) use bce::{bce_gradient, bce_losses};
pub(crate) use cancellation::limit as cancellation_limit;
pub(crate) use conv::{
    ConvShape, PerSampleForm, WeightOrder, conv_forward, conv_gradients, conv_gram_sq_norms, conv_input_gradient,
    conv_weight_sum, unpack_weight,
};
#[cfg(feature = "cuda")]
pub use cuda::DeviceIntegers;
#[cfg(feature = "cuda")]
pub(crate) use cuda::{
    cublas_version, free_memory as free_cuda_memory, has_fast_double, passes_in_tf32, prepare as prepare_cuda,
};
pub use double_dot::double_dot;
pub(crate) use dropout::dropout;
pub use element::Element;
pub(crate) use embedding::{embedding_forward, embedding_sq_norms, embedding_sum};
pub(crate) use flatten::swap_axes;
pub(crate) use gather::gather_rows;
pub(crate) use integers::add_to_integers;
#[cfg(feature = "cuda")]
pub use integers::from_device_integers;
pub use integers::{FromIntegers, Summand, from_integers};
pub(crate) use label::{labels, scale_by_label};
pub use matmul::{Matrix, Operand, matmul, product};
pub use noise::{Privatise, privatise};
pub(crate) use norm::{NormGeometry, norm_backward, norm_forward, norm_parameter_gradients, norm_statistics};
pub use optimiser::scale_add;
pub(crate) use optimiser::{adam_update, scale, scale_add_square};
pub(crate) use own::{own_loss_gradient, own_losses};
pub(crate) use pool::{PoolShape, Winners, average_pool, average_pool_backward, max_pool, max_pool_backward};
pub(crate) use rows::{
    column_sum, linear_sq_norms, repeat_row, row_sq_norms, scale_rows, sum_rows, weighted_column_sum,
};
pub(crate) use sequence::{record_products, sequence_sq_norms, sum_positions};
pub(crate) use softmax::{softmax_gradient, softmax_losses};
pub(crate) use update::{add_slice, axpy, copy};
pub use update::{fill, set_along};
pub(crate) use words::{append_words, take_words};
pub use workspace::Workspace;
