//! Pointwise activations and their derivatives, in place.

use candle_core::{CpuStorage, InplaceOp1, InplaceOp2, Layout, Result};
use serde::{Deserialize, Serialize};

use super::element::{Element, destination, dtype, for_float, same, source};
use crate::vector_math::{map_in_place, vectorise};

/// A pointwise activation whose derivative is a function of its output, so that its input need not be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// `tanh(x)`; derivative `1 − y²`.
    Tanh,
    /// `max(x, 0)`; derivative 1 where `y > 0`, else 0 (at 0 too, as PyTorch has it).
    Relu,
    /// `1 / (1 + e⁻ˣ)`; derivative `y (1 − y)`.
    Sigmoid,
}

impl Activation {
    fn forward<T: Element>(self, values: &mut [T]) {
        match self {
            Self::Tanh => map_in_place(values, T::tanh),
            // `if` and not `max`, which would turn NaN into 0 and hide it.
            Self::Relu => map_in_place(values, |x| if x < T::ZERO { T::ZERO } else { x }),
            Self::Sigmoid => map_in_place(values, T::sigmoid),
        }
    }

    fn backward<T: Element>(self, gradient: &mut [T], output: &[T]) {
        match self {
            Self::Tanh => zip_in_place(gradient, output, |d, y| d * (T::ONE - y * y)),
            Self::Relu => zip_in_place(gradient, output, |d, y| if y > T::ZERO { d } else { T::ZERO }),
            Self::Sigmoid => zip_in_place(gradient, output, |d, y| d * y * (T::ONE - y)),
        }
    }
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

impl InplaceOp1 for Activation {
    fn name(&self) -> &'static str {
        "activation"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        for_float!(dtype(storage), "activation", T => {
            self.forward::<T>(destination(storage, layout)?);
            Ok(())
        })
    }
}

/// Multiplies a gradient with respect to the output (destination) by the derivative at that output (source).
pub(crate) struct ActivationBackward(pub(crate) Activation);

impl InplaceOp2 for ActivationBackward {
    fn name(&self) -> &'static str {
        "activation-backward"
    }

    fn cpu_fwd(&self, dst: &mut CpuStorage, dst_l: &Layout, output: &CpuStorage, output_l: &Layout) -> Result<()> {
        for_float!(dtype(dst), "activation-backward", T => {
            let gradient = destination::<T>(dst, dst_l)?;
            let output = source::<T>((output, output_l))?;
            same("length of the activation's output", gradient.len(), output.len())?;
            self.0.backward(gradient, output);
            Ok(())
        })
    }
}
