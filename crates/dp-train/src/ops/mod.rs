//! The primitives of the engine, as candle custom operations that write into an existing tensor.
//!
//! Every operation has a CPU path on slices, for `f32` and `f64`, and with the feature `cuda` a path on CUDA devices (`cuda/`). The destination is always the first tensor, must be
//! contiguous and must not share storage with a source. Nothing here allocates, so a step that reuses its buffers takes no
//! page fault. Loops are plain Rust compiled for AVX-512, AVX2 and the baseline, and chosen at run time by [`pulp`].

mod activation;
mod bce;
mod cancellation;
mod conv;
#[cfg(feature = "cuda")]
mod cuda;
mod dropout;
mod element;
mod embedding;
mod flatten;
mod gather;
mod integers;
mod label;
mod matmul;
mod noise;
mod norm;
mod on_cuda;
mod optimiser;
mod pool;
mod rows;
mod sequence;
mod softmax;
mod update;
mod workspace;

pub use activation::Activation;
pub(crate) use activation::{ActivationBackward, ActivationSlope, Multiply};
pub(crate) use bce::{BceGradient, BceLosses};
pub(crate) use cancellation::limit as cancellation_limit;
pub(crate) use conv::{
    ConvForward, ConvGradients, ConvGramSqNorms, ConvInputGradient, ConvShape, ConvWeightSum, PerSampleForm,
    UnpackWeight, WeightOrder,
};
pub(crate) use dropout::Dropout;
pub(crate) use element::Element;
pub(crate) use embedding::{EmbeddingForward, EmbeddingSqNorms, EmbeddingSum};
pub(crate) use flatten::SwapAxes;
pub(crate) use gather::GatherRows;
pub(crate) use integers::{AddToIntegers, FromIntegers, Summand};
pub(crate) use label::ScaleByLabel;
pub(crate) use matmul::{MatMul, Matrix, Operand, product};
pub(crate) use noise::Privatise;
pub(crate) use norm::{NormBackward, NormForward, NormGeometry, NormParameterGradients, NormStatistics};
pub(crate) use optimiser::{AdamUpdate, Scale, ScaleAdd, ScaleAddSquare};
pub(crate) use pool::{AveragePool, AveragePoolBackward, MaxPool, MaxPoolBackward, PoolShape};
pub(crate) use rows::{ColumnSum, LinearSqNorms, RepeatRow, RowSqNorms, ScaleRows, SumRows, WeightedColumnSum};
pub(crate) use sequence::{RecordProducts, SequenceSqNorms, SumPositions};
pub(crate) use softmax::{SoftmaxGradient, SoftmaxLosses};
pub(crate) use update::{AddSlice, Axpy, Copy, Fill, SetAlong};
pub(crate) use workspace::Workspace;
