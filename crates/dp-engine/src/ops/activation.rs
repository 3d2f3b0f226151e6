//! Pointwise activations and their derivatives, in place.

use candle_core::{Error, Result, Tensor};
use serde::{Deserialize, Serialize};

#[cfg(feature = "cuda")]
use super::cuda;
use super::element::{Element, destination, dtype, for_float, same, source};
use super::in_place::{Operands, binary, unary};
use crate::vector_math::{map_in_place, vectorise};

/// A pointwise activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Activation {
    /// `tanh(x)`; derivative `1 − y²`.
    Tanh,
    /// `max(x, 0)`; derivative 1 where `y > 0`, else 0 (at 0 too, as PyTorch has it).
    Relu,
    /// `1 / (1 + e⁻ˣ)`; derivative `y (1 − y)`.
    Sigmoid,
    /// `x Φ(x)` with the exact normal distribution function: PyTorch's default GELU (Hendrycks
    /// 2016).
    Gelu,
    /// `x / (1 + exp(−2u))`, `u = √(2/π) (x + 0.044715 x³)`: the approximation of GELU that PyTorch
    /// calls `tanh`. Up to 4.8e-4 from the exact one.
    GeluTanh,
}

impl Activation {
    /// Whether the derivative is a function of the output, so that the input need not be kept.
    pub fn is_function_of_output(self) -> bool {
        match self {
            Self::Tanh | Self::Relu | Self::Sigmoid => true,
            Self::Gelu | Self::GeluTanh => false,
        }
    }

    /// Every value of a slice, in place.
    pub fn forward<T: Element>(self, values: &mut [T]) {
        match self {
            Self::Tanh => map_in_place(values, T::tanh),
            // `if` and not `max`, which would turn NaN into 0 and hide it.
            Self::Relu => map_in_place(values, |x| if x < T::ZERO { T::ZERO } else { x }),
            Self::Sigmoid => map_in_place(values, T::sigmoid),
            Self::Gelu => map_in_place(values, |x| gelu(x).0),
            Self::GeluTanh => map_in_place(values, |x| gelu_tanh(x).0),
        }
    }

    fn backward<T: Element>(self, gradient: &mut [T], output: &[T]) -> Result<()> {
        match self {
            Self::Tanh => zip_in_place(gradient, output, |d, y| d * (T::ONE - y * y)),
            Self::Relu => zip_in_place(gradient, output, |d, y| if y > T::ZERO { d } else { T::ZERO }),
            Self::Sigmoid => zip_in_place(gradient, output, |d, y| d * y * (T::ONE - y)),
            Self::Gelu | Self::GeluTanh => {
                return Err(Error::Msg(format!("the derivative of {self:?} is not a function of its output")));
            }
        }
        Ok(())
    }

    fn slope<T: Element>(self, slope: &mut [T], input: &[T]) -> Result<()> {
        match self {
            Self::Gelu => zip_in_place(slope, input, |_, x| gelu(x).1),
            Self::GeluTanh => zip_in_place(slope, input, |_, x| gelu_tanh(x).1),
            Self::Tanh | Self::Relu | Self::Sigmoid => {
                return Err(Error::Msg(format!("the derivative of {self:?} is taken from its output")));
            }
        }
        Ok(())
    }
}

/// `x Φ(x)` and its derivative `Φ(x) + x φ(x)`.
#[expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]
#[inline(always)]
fn gelu<T: Element>(x: T) -> (T, T) {
    let size = if x < T::ZERO { T::ZERO - x } else { x };
    // Φ(−|x|), to full relative precision: 1 − it is Φ(|x|).
    let tail = T::from_double(0.5) * (size * T::from_double(std::f64::consts::FRAC_1_SQRT_2)).erfc_of_non_negative();
    let phi = if x < T::ZERO { tail } else { T::ONE - tail };
    // x φ(x) is 0 beyond 38 in either type; the square of more could overflow.
    let near = x.bounded(T::from_double(38.0));
    let density = T::from_double(0.398_942_280_401_432_7) * (T::from_double(0.5) * near * near).exp_of_negated();
    (x * phi, phi + near * density)
}

/// The tanh form and its derivative, by the logistic function: `1 + tanh(u) = 2 sigmoid(2u)`.
#[expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]
#[inline(always)]
fn gelu_tanh<T: Element>(x: T) -> (T, T) {
    // Beyond 38 the form is x or 0; the cube of more could overflow.
    let near = x.bounded(T::from_double(38.0));
    let (twice_root, cubic) = (T::from_double(1.595_769_121_605_730_7), T::from_double(0.044_715));
    let square = near * near;
    let s = (twice_root * near * (T::ONE + cubic * square)).sigmoid();
    let inner = twice_root * (T::ONE + T::from_double(3.0) * cubic * square);
    (x * s, s + near * s * (T::ONE - s) * inner)
}

#[expect(
    clippy::inline_always,
    reason = "only what is inlined into a dispatched closure is compiled for its instruction set"
)]
#[inline(always)]
fn zip_in_place<T: Copy>(values: &mut [T], others: &[T], f: impl Fn(T, T) -> T) {
    vectorise(
        #[inline(always)]
        || {
            for (v, &o) in values.iter_mut().zip(others) {
                *v = f(*v, o);
            }
        },
    );
}

/// Replaces every value by the activation there.
pub(crate) fn activate(out: &Tensor, activation: Activation) -> Result<()> {
    unary("activation", out, |operands| match operands {
        Operands::Cpu(out, []) => for_float!(dtype(out.0), "activation", T => {
            activation.forward::<T>(destination(out)?);
            Ok(())
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(out, []) => cuda::activate(out, activation),
    })
}

/// Multiplies a gradient with respect to the output (destination) by the derivative at that output
/// (source).
pub(crate) fn activation_backward(dst: &Tensor, output: &Tensor, activation: Activation) -> Result<()> {
    binary("activation-backward", dst, output, |operands| match operands {
        Operands::Cpu(dst, [output]) => for_float!(dtype(dst.0), "activation-backward", T => {
            let gradient = destination::<T>(dst)?;
            let output = source::<T>(output)?;
            same("length of the activation's output", gradient.len(), output.len())?;
            activation.backward(gradient, output)
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [output]) => cuda::activation_backward(dst, output, activation),
    })
}

/// Writes the derivative (destination) at an input (source), for activations whose derivative is no
/// function of the output.
pub(crate) fn activation_slope(dst: &Tensor, input: &Tensor, activation: Activation) -> Result<()> {
    binary("activation-slope", dst, input, |operands| match operands {
        Operands::Cpu(dst, [input]) => for_float!(dtype(dst.0), "activation-slope", T => {
            let slope = destination::<T>(dst)?;
            let input = source::<T>(input)?;
            same("length of the activation's input", slope.len(), input.len())?;
            activation.slope(slope, input)
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [input]) => cuda::activation_slope(dst, input, activation),
    })
}

/// `dst *= src`.
pub(crate) fn multiply(dst: &Tensor, src: &Tensor) -> Result<()> {
    binary("multiply", dst, src, |operands| match operands {
        Operands::Cpu(dst, [src]) => for_float!(dtype(dst.0), "multiply", T => {
            let dst = destination::<T>(dst)?;
            let src = source::<T>(src)?;
            same("elements to multiply", dst.len(), src.len())?;
            zip_in_place(dst, src, |a, b| a * b);
            Ok(())
        }),
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [src]) => cuda::multiply(dst, src),
    })
}
