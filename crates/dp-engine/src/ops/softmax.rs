//! Softmax cross-entropy, stable for logits of any size.

use candle_core::{Error, Layout, Result, Tensor};

#[cfg(feature = "cuda")]
use super::cuda;
use super::element::{Element, destination, dtype, for_float, rows_and_columns, same, source};
use super::in_place::{Operands, binary, ternary};

fn largest<T: Element>(logits: &[T]) -> T {
    let mut largest = logits[0];
    for &z in logits {
        if z > largest {
            largest = z;
        }
    }
    largest
}

/// `ln Σ_j exp(z_j)` less the largest logit, and that logit.
fn log_sum_exp<T: Element>(logits: &[T]) -> (T, T) {
    let largest = largest(logits);
    // The largest term is exp(0) = 1: the rest is summed apart so that ln(1 + rest) keeps its
    // digits.
    let mut rest = T::ZERO;
    let mut seen = false;
    for &z in logits {
        if z == largest && !seen {
            seen = true;
        } else {
            rest += (z - largest).exp();
        }
    }
    (rest.ln_1p(), largest)
}

/// Rows and classes of the logits. One class has a loss of 0 whatever the logit: a vector of logits
/// is a mistake.
pub(super) fn rows_and_classes(layout: &Layout) -> Result<(usize, usize)> {
    let (rows, classes) = rows_and_columns(layout)?;
    if classes < 2 {
        return Err(Error::Msg(format!("logits per record of a softmax: expected at least 2, got {classes}")));
    }
    Ok((rows, classes))
}

fn checked_label(label: u32, n_classes: usize, row: usize) -> Result<usize> {
    let label = label as usize;
    if label < n_classes {
        return Ok(label);
    }
    Err(Error::Msg(format!("label {label} of record {row} of the batch: expected 0..{n_classes}")))
}

/// `dst[i] = −ln softmax(logits[i])[labels[i]]`, in `f64`.
pub(crate) fn softmax_losses(dst: &Tensor, logits: &Tensor, labels: &Tensor) -> Result<()> {
    ternary("softmax-losses", dst, logits, labels, |operands| match operands {
        Operands::Cpu(dst, [logits, labels]) => {
            let dtype = dtype(logits.0);
            let losses = destination::<f64>(dst)?;
            let labels = source::<u32>(labels)?;
            for_float!(dtype, "softmax-losses", T => {
                let (rows, classes) = rows_and_classes(logits.1)?;
                same("losses of a batch", rows, losses.len())?;
                same("labels of a batch", rows, labels.len())?;
                let logits = source::<T>(logits)?;
                for (i, (loss, &label)) in losses.iter_mut().zip(labels).enumerate() {
                    let row = &logits[i * classes..(i + 1) * classes];
                    let label = checked_label(label, classes, i)?;
                    let (log_sum, largest) = log_sum_exp(row);
                    *loss = (log_sum + (largest - row[label])).to_double();
                }
                Ok(())
            })
        }
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [logits, labels]) => cuda::softmax_losses(dst, logits, labels),
    })
}

/// Turns logits into the gradient of the loss with respect to them: `softmax(logits) −
/// onehot(label)`.
pub(crate) fn softmax_gradient(dst: &Tensor, labels: &Tensor) -> Result<()> {
    binary("softmax-gradient", dst, labels, |operands| match operands {
        Operands::Cpu(dst, [labels]) => {
            let labels = source::<u32>(labels)?;
            for_float!(dtype(dst.0), "softmax-gradient", T => {
                let (rows, classes) = rows_and_classes(dst.1)?;
                same("labels of a batch", rows, labels.len())?;
                let dst = destination::<T>(dst)?;
                for (i, &label) in labels.iter().enumerate() {
                    let row = &mut dst[i * classes..(i + 1) * classes];
                    let label = checked_label(label, classes, i)?;
                    let largest = largest(row);
                    for z in row.iter_mut() {
                        *z = (*z - largest).exp();
                    }
                    let own = std::mem::replace(&mut row[label], T::ZERO);
                    let others = row.iter().fold(T::ZERO, |sum, &p| sum + p);
                    let total = own + others;
                    for p in row.iter_mut() {
                        *p /= total;
                    }
                    // 1 − p as the sum of the others: exact where p rounds to 1.
                    row[label] = T::ZERO - others / total;
                }
                Ok(())
            })
        }
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [labels]) => cuda::softmax_gradient(dst, labels),
    })
}
