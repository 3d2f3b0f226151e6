//! The float types the engine computes in, and typed access to the storage candle hands to a custom
//! operation.

use candle_core::backend::BackendStorage;
use candle_core::{CpuStorage, DType, Error, Layout, Result, Storage, WithDType};

#[cfg(target_arch = "x86_64")]
use super::matmul::few_columns;
use super::matmul::{Matrix, Stack};
use super::workspace::Workspace;
use crate::noise::StepNoise;
use crate::{tanh_f64, vector_math};

/// A float type the engine computes in: `f32` to train, `f64` to check and to analyse.
pub trait Element: WithDType {
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// Unit roundoff: half the distance from 1 to the next number.
    const UNIT: f64;
    /// The storage's values, if it holds this type.
    fn values_mut(storage: &mut CpuStorage) -> Option<&mut [Self]>;
    /// The values of this type in a workspace.
    fn workspace(workspace: &mut Workspace) -> &mut Vec<Self>;
    /// The number in double precision. Candle's own conversions are calls, since candle is compiled
    /// with little optimisation, and a loop with a call in it is not vectorised.
    #[must_use]
    fn to_double(self) -> f64;
    /// The nearest number.
    #[must_use]
    fn from_double(value: f64) -> Self;
    /// `eˣ`.
    #[must_use]
    fn exp(self) -> Self;
    /// `ln(1 + x)` for `x ≥ 0`.
    #[must_use]
    fn ln_1p(self) -> Self;
    /// Hyperbolic tangent.
    #[must_use]
    fn tanh(self) -> Self;
    /// Logistic function.
    #[must_use]
    fn sigmoid(self) -> Self;
    /// `e⁻ˣ` for `x ≥ 0`.
    #[must_use]
    fn exp_of_negated(self) -> Self;
    /// Complementary error function for `x ≥ 0`.
    #[must_use]
    fn erfc_of_non_negative(self) -> Self;
    /// The nearest number of magnitude at most `bound`; NaN stays.
    #[must_use]
    fn bounded(self, bound: Self) -> Self;
    /// Matrix products with few columns, and true, where there is a kernel of its own for them; row `i`
    /// of `dst` starts at `i · dst_stride`. Each result is a chain of fused additions, as in
    /// [`product`](super::matmul::product).
    #[doc(hidden)]
    fn few_columns(_: &mut [Self], _: usize, _: Stack<'_, Self>, _: Matrix<'_, Self>, _accumulate: bool) -> bool {
        false
    }
    /// Adds a step's noise to the values of its vector from a block on.
    fn add_noise(noise: &StepNoise, first_block: u64, values: &mut [Self]);
    /// The same for values that are known in double precision, into others.
    fn noisy(noise: &StepNoise, first_block: u64, exact: &[f64], noisy: &mut [Self]);
}

#[expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]
impl Element for f32 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    const UNIT: f64 = f32::EPSILON as f64 / 2.0;
    fn values_mut(storage: &mut CpuStorage) -> Option<&mut [Self]> {
        if let CpuStorage::F32(values) = storage { Some(values) } else { None }
    }
    fn workspace(workspace: &mut Workspace) -> &mut Vec<Self> {
        &mut workspace.single
    }
    #[inline(always)]
    fn to_double(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn from_double(value: f64) -> Self {
        value as Self
    }
    fn exp(self) -> Self {
        self.exp()
    }
    #[inline(always)]
    fn ln_1p(self) -> Self {
        vector_math::ln_1p(self)
    }
    #[inline(always)]
    fn tanh(self) -> Self {
        vector_math::tanh(self)
    }
    #[inline(always)]
    fn sigmoid(self) -> Self {
        vector_math::sigmoid(self)
    }
    #[inline(always)]
    fn exp_of_negated(self) -> Self {
        vector_math::exp_of_negated(self)
    }
    #[inline(always)]
    fn erfc_of_non_negative(self) -> Self {
        vector_math::erfc(self)
    }
    #[inline(always)]
    fn bounded(self, bound: Self) -> Self {
        self.clamp(-bound, bound)
    }
    #[cfg(target_arch = "x86_64")]
    fn few_columns(
        dst: &mut [Self],
        dst_stride: usize,
        lhs: Stack<'_, Self>,
        rhs: Matrix<'_, Self>,
        accumulate: bool,
    ) -> bool {
        few_columns::product(dst, dst_stride, lhs, rhs, accumulate)
    }
    fn add_noise(noise: &StepNoise, first_block: u64, values: &mut [Self]) {
        noise.add_f32(first_block, values);
    }
    fn noisy(noise: &StepNoise, first_block: u64, exact: &[f64], noisy: &mut [Self]) {
        noise.add_exact(first_block, exact, noisy);
    }
}

#[expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]
impl Element for f64 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    const UNIT: f64 = f64::EPSILON / 2.0;
    fn values_mut(storage: &mut CpuStorage) -> Option<&mut [Self]> {
        if let CpuStorage::F64(values) = storage { Some(values) } else { None }
    }
    fn workspace(workspace: &mut Workspace) -> &mut Vec<Self> {
        &mut workspace.double
    }
    #[inline(always)]
    fn to_double(self) -> f64 {
        self
    }
    #[inline(always)]
    fn from_double(value: f64) -> Self {
        value
    }
    fn exp(self) -> Self {
        self.exp()
    }
    fn ln_1p(self) -> Self {
        self.ln_1p()
    }
    #[inline(always)]
    fn tanh(self) -> Self {
        tanh_f64::tanh(self)
    }
    fn sigmoid(self) -> Self {
        1.0 / (1.0 + (-self).exp())
    }
    fn exp_of_negated(self) -> Self {
        (-self).exp()
    }
    fn erfc_of_non_negative(self) -> Self {
        libm::erfc(self)
    }
    fn bounded(self, bound: Self) -> Self {
        self.clamp(-bound, bound)
    }
    fn add_noise(noise: &StepNoise, first_block: u64, values: &mut [Self]) {
        noise.add_f64(first_block, values);
    }
    fn noisy(noise: &StepNoise, first_block: u64, exact: &[f64], noisy: &mut [Self]) {
        noisy.copy_from_slice(exact);
        noise.add_f64(first_block, noisy);
    }
}

/// The CPU storage of a tensor that an operation holds besides its operands.
pub(super) fn cpu(storage: &Storage) -> Result<&CpuStorage> {
    match storage {
        Storage::Cpu(storage) => Ok(storage),
        _ => Err(Error::Msg("expected a tensor on the CPU, where the operation's others are".into())),
    }
}

/// The type a storage holds.
pub(super) fn dtype(storage: &CpuStorage) -> DType {
    storage.dtype()
}

/// A tensor that an operation reads.
pub(super) type Source<'a> = (&'a CpuStorage, &'a Layout);
/// The tensor that an operation writes.
pub(super) type Destination<'a> = (&'a mut CpuStorage, &'a Layout);

/// The values of a contiguous source.
pub(super) fn source<'a, T: WithDType>((storage, layout): (&'a CpuStorage, &Layout)) -> Result<&'a [T]> {
    let (start, end) = layout.contiguous_offsets().ok_or(Error::RequiresContiguous { op: "source" })?;
    Ok(&storage.as_slice::<T>()?[start..end])
}

/// The values of a contiguous destination.
pub(super) fn destination<T: Element>((storage, layout): Destination<'_>) -> Result<&mut [T]> {
    let (start, end) = layout.contiguous_offsets().ok_or(Error::RequiresContiguous { op: "destination" })?;
    let got = storage.dtype();
    match T::values_mut(storage) {
        Some(values) => Ok(&mut values[start..end]),
        None => Err(Error::UnexpectedDType { msg: "destination", expected: T::DTYPE, got }),
    }
}

/// Rows and columns of a two-dimensional layout; a vector is one column.
pub(super) fn rows_and_columns(layout: &Layout) -> Result<(usize, usize)> {
    match layout.dims() {
        &[rows] => Ok((rows, 1)),
        &[rows, columns] => Ok((rows, columns)),
        dims => Err(Error::Msg(format!("expected a tensor of shape [rows] or [rows, columns], got {dims:?}"))),
    }
}

/// An error unless `got` is `expected`.
pub(super) fn same(what: &'static str, expected: usize, got: usize) -> Result<()> {
    if expected == got {
        return Ok(());
    }
    Err(Error::Msg(format!("{what}: expected {expected}, got {got}")))
}

/// Runs `$body` with `$T` bound to the float type `$dtype` names.
macro_rules! for_float {
    ($dtype:expr, $op:expr, $T:ident => $body:expr) => {
        match $dtype {
            candle_core::DType::F32 => {
                type $T = f32;
                $body
            }
            candle_core::DType::F64 => {
                type $T = f64;
                $body
            }
            dtype => Err(candle_core::Error::UnsupportedDTypeForOp(dtype, $op)),
        }
    };
}
pub(super) use for_float;
