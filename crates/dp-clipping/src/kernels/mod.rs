//! Norms, weighted sums and noise over gradients in memory, at the speed of memory.
//!
//! Gradients are rows `[batch, params]` of f32 or f64 ([`Gradients`]). Squares, products and sums
//! are in f64: an f32 product is then exact and a sum of squares of f32 cannot overflow, so norms
//! are accurate to 1e-13 and sums to the rounding of their last cast. [`clip_and_sum`] alone adds
//! blocks of 32 rows in the gradients' own precision.
//!
//! | kernel | parallel over | the same result for |
//! |---|---|---|
//! | [`norms`] | rows | any instruction set, any number of threads |
//! | [`scale_and_sum`] | columns | any instruction set, any number of threads |
//! | [`clip_and_sum`] | rows | any instruction set; any number of threads under [`SumOrder::Fixed`] |
//! | [`add_noise`] | values | any processor, any number of threads |
//!
//! The instruction set (AVX-512, AVX2 or portable) is chosen at run time.
#![expect(
    clippy::inline_always,
    reason = "code over lanes has to be inlined into the functions that enable the instruction set"
)]

mod dispatch;
mod element;
mod execution;
mod fused;
mod gradients;
mod lanes;
mod noise;
mod norm;
mod stream;
mod weighted_sum;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;

pub use dispatch::InstructionSet;
pub use element::GradientFloat;
pub use execution::{KernelExecution, SumOrder};
pub use fused::clip_and_sum;
pub use gradients::Gradients;
pub use noise::add_noise;
pub use norm::norms;
pub use stream::stream_read;
pub use weighted_sum::scale_and_sum;
