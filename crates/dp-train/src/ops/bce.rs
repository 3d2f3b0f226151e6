//! Binary cross-entropy on one logit, stable for logits of any size.

use candle_core::{CpuStorage, Error, InplaceOp2, InplaceOp3, Layout, Result, WithDType};

use super::element::{Element, destination, dtype, for_float, same, source};
use super::on_cuda::on_cuda;

/// −1 or +1 for label 0 or 1: the loss of `z` is `ln(1 + exp(−sign · z))`.
fn sign<T: Element>(label: u32, row: usize) -> Result<T> {
    match label {
        0 => Ok(T::ZERO - T::ONE),
        1 => Ok(T::ONE),
        _ => Err(Error::Msg(format!("label {label} of record {row} of the batch: expected 0 or 1"))),
    }
}

/// `dst[i] = ln(1 + exp(−s z_i))` with `s = ±1` from the label, in `f64`.
pub(crate) struct BceLosses;

impl InplaceOp3 for BceLosses {
    fn name(&self) -> &'static str {
        "bce-losses"
    }

    fn cpu_fwd(
        &self,
        dst: &mut CpuStorage,
        dst_l: &Layout,
        logits: &CpuStorage,
        logits_l: &Layout,
        labels: &CpuStorage,
        labels_l: &Layout,
    ) -> Result<()> {
        let (logits, labels) = ((logits, logits_l), (labels, labels_l));
        let dtype = dtype(logits.0);
        let losses = destination::<f64>(dst, dst_l)?;
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
                *loss = (linear + decay.exp().ln_1p()).to_f64();
            }
            Ok(())
        })
    }

    on_cuda!(|self, dst, logits, labels| cuda::bce_losses(dst, logits, labels));
}

/// Turns logits into the gradient of the loss with respect to them: `sigmoid(z) − label`.
pub(crate) struct BceGradient;

impl InplaceOp2 for BceGradient {
    fn name(&self) -> &'static str {
        "bce-gradient"
    }

    fn cpu_fwd(&self, dst: &mut CpuStorage, dst_l: &Layout, labels: &CpuStorage, labels_l: &Layout) -> Result<()> {
        let labels = source::<u32>((labels, labels_l))?;
        for_float!(dtype(dst), "bce-gradient", T => {
            let dst = destination::<T>(dst, dst_l)?;
            same("one logit per record", labels.len(), dst.len())?;
            for (i, (z, &label)) in dst.iter_mut().zip(labels).enumerate() {
                // −s · sigmoid(−s z): no subtraction from 1, so nothing cancels.
                let sign = sign::<T>(label, i)?;
                *z = T::ZERO - sign * (T::ZERO - sign * *z).sigmoid();
            }
            Ok(())
        })
    }

    on_cuda!(|self, dst, labels| cuda::bce_gradient(dst, labels));
}
