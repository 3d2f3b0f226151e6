//! A loss from outside of this crate, one record at a time.

use candle_core::{Error, Result, Tensor};

use super::element::{Element, destination, dtype, for_float, rows_and_columns, same, source};
use super::in_place::{binary, ternary};
use crate::own::OwnLoss;

/// `dst[i]` = the loss of record `i`, in `f64`.
pub(crate) fn own_losses(dst: &Tensor, logits: &Tensor, labels: &Tensor, own: &dyn OwnLoss) -> Result<()> {
    ternary("own-losses", dst, logits, labels, |operands| {
        let (dst, [logits, labels]) = operands.on_cpu("own-losses")?;
        let (losses, labels) = (destination::<f64>(dst)?, source::<u32>(labels)?);
        for_float!(dtype(logits.0), "own-losses", T => {
            let (rows, columns) = rows_and_columns(logits.1)?;
            same("losses of a batch", rows, losses.len())?;
            same("labels of a batch", rows, labels.len())?;
            for ((row, loss), &label) in source::<T>(logits)?.chunks_exact(columns).zip(losses).zip(labels) {
                let logits: Vec<f64> = row.iter().map(|z| z.to_double()).collect();
                *loss = own.loss(&logits, checked(label, columns)?);
            }
            Ok(())
        })
    })
}

/// Turns logits into the gradient of the loss with respect to them.
pub(crate) fn own_loss_gradient(dst: &Tensor, labels: &Tensor, own: &dyn OwnLoss) -> Result<()> {
    binary("own-loss-gradient", dst, labels, |operands| {
        let (dst, [labels]) = operands.on_cpu("own-loss-gradient")?;
        let labels = source::<u32>(labels)?;
        for_float!(dtype(dst.0), "own-loss-gradient", T => {
            let (rows, columns) = rows_and_columns(dst.1)?;
            same("labels of a batch", rows, labels.len())?;
            for (row, &label) in destination::<T>(dst)?.chunks_exact_mut(columns).zip(labels) {
                let logits: Vec<f64> = row.iter().map(|z| z.to_double()).collect();
                let mut gradient = vec![0.0; columns];
                own.gradient(&logits, checked(label, columns)?, &mut gradient);
                for (z, value) in row.iter_mut().zip(gradient) {
                    *z = T::from_double(value);
                }
            }
            Ok(())
        })
    })
}

/// A label of as many classes as logits tell apart.
fn checked(label: u32, n_logits: usize) -> Result<usize> {
    let n_classes = n_logits.max(2);
    if (label as usize) < n_classes {
        return Ok(label as usize);
    }
    Err(Error::Msg(format!("label {label}: expected 0..{n_classes}")))
}
