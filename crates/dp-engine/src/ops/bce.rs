//! Binary cross-entropy on one logit, stable for logits of any size.

use candle_core::{Error, Result, Tensor};

#[cfg(feature = "cuda")]
use super::cuda;
use super::element::{Element, destination, dtype, for_float, same, source};
use super::in_place::{Operands, binary, ternary};

/// −1 or +1 for label 0 or 1: the loss of `z` is `ln(1 + exp(−sign · z))`.
fn sign<T: Element>(label: u32, row: usize) -> Result<T> {
    match label {
        0 => Ok(T::ZERO - T::ONE),
        1 => Ok(T::ONE),
        _ => Err(Error::Msg(format!("label {label} of record {row} of the batch: expected 0 or 1"))),
    }
}

/// `dst[i] = ln(1 + exp(−s z_i))` with `s = ±1` from the label, in `f64`.
pub(crate) fn bce_losses(dst: &Tensor, logits: &Tensor, labels: &Tensor) -> Result<()> {
    ternary("bce-losses", dst, logits, labels, |operands| match operands {
        Operands::Cpu(dst, [logits, labels]) => {
            let dtype = dtype(logits.0);
            let losses = destination::<f64>(dst)?;
            let labels = source::<u32>(labels)?;
            for_float!(dtype, "bce-losses", T => {
                let logits = source::<T>(logits)?;
                same("one logit per record", losses.len(), logits.len())?;
                same("labels of a batch", losses.len(), labels.len())?;
                for (i, ((loss, &z), &label)) in losses.iter_mut().zip(logits).zip(labels).enumerate() {
                    let margin = sign::<T>(label, i)? * z;
                    // exp of a non-positive number never overflows.
                    let decay = if margin > T::ZERO { T::ZERO - margin } else { margin };
                    let linear = if margin > T::ZERO { T::ZERO } else { T::ZERO - margin };
                    *loss = (linear + decay.exp().ln_1p()).to_double();
                }
                Ok(())
            })
        }
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [logits, labels]) => cuda::bce_losses(dst, logits, labels),
    })
}

/// Turns logits into the gradient of the loss with respect to them: `sigmoid(z) − label`.
pub(crate) fn bce_gradient(dst: &Tensor, labels: &Tensor) -> Result<()> {
    binary("bce-gradient", dst, labels, |operands| match operands {
        Operands::Cpu(dst, [labels]) => {
            let labels = source::<u32>(labels)?;
            for_float!(dtype(dst.0), "bce-gradient", T => {
                let dst = destination::<T>(dst)?;
                same("one logit per record", labels.len(), dst.len())?;
                for (i, (z, &label)) in dst.iter_mut().zip(labels).enumerate() {
                    // −s · sigmoid(−s z): no subtraction from 1, so nothing cancels.
                    let sign = sign::<T>(label, i)?;
                    *z = T::ZERO - sign * (T::ZERO - sign * *z).sigmoid();
                }
                Ok(())
            })
        }
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [labels]) => cuda::bce_gradient(dst, labels),
    })
}
