//! Losses and their gradients.

use candle_core::op::BackpropOp;
use candle_core::{CudaDevice, CudaStorage, Result, Storage, Tensor};

use super::launch::launch;
use super::upload::upload;
use super::view::{Destination, Source, destination, dtype, source};
use crate::ops::element::{for_float, rows_and_columns, same};
use crate::ops::softmax::rows_and_classes;

/// A batch's labels on the device.
pub(in crate::ops) fn labels(device: &CudaDevice, labels: &[u32]) -> Result<Tensor> {
    let storage = CudaStorage::wrap_cuda_slice(upload(device, labels)?, device.clone());
    Ok(Tensor::from_storage(Storage::Cuda(storage), labels.len(), BackpropOp::none(), false))
}

pub(in crate::ops) fn softmax_losses(dst: Destination<'_>, logits: Source<'_>, labels: Source<'_>) -> Result<()> {
    for_float!(dtype(logits.0), "softmax-losses", T => {
        let device = dst.0.device.clone();
        let (rows, classes) = rows_and_classes(logits.1)?;
        let (losses, labels) = (destination::<f64>(dst)?, source::<u32>(labels)?);
        same("losses of a batch", rows, losses.len())?;
        same("labels of a batch", rows, labels.len())?;
        launch!(T, &device, "softmax_losses", rows; classes, source::<T>(logits)?, labels, losses)
    })
}

pub(in crate::ops) fn softmax_gradient(dst: Destination<'_>, labels: Source<'_>) -> Result<()> {
    for_float!(dtype(dst.0), "softmax-gradient", T => {
        let device = dst.0.device.clone();
        let (rows, classes) = rows_and_classes(dst.1)?;
        let labels = source::<u32>(labels)?;
        same("labels of a batch", rows, labels.len())?;
        launch!(T, &device, "softmax_gradient", rows; classes, destination::<T>(dst)?, labels)
    })
}

pub(in crate::ops) fn bce_losses(dst: Destination<'_>, logits: Source<'_>, labels: Source<'_>) -> Result<()> {
    for_float!(dtype(logits.0), "bce-losses", T => {
        let device = dst.0.device.clone();
        let (losses, labels) = (destination::<f64>(dst)?, source::<u32>(labels)?);
        let logits = source::<T>(logits)?;
        same("one logit per record", losses.len(), logits.len())?;
        same("labels of a batch", losses.len(), labels.len())?;
        launch!(T, &device, "bce_losses", losses.len(); logits, labels, losses)
    })
}

pub(in crate::ops) fn bce_gradient(dst: Destination<'_>, labels: Source<'_>) -> Result<()> {
    for_float!(dtype(dst.0), "bce-gradient", T => {
        let device = dst.0.device.clone();
        let (logits, labels) = (destination::<T>(dst)?, source::<u32>(labels)?);
        same("one logit per record", labels.len(), logits.len())?;
        launch!(T, &device, "bce_gradient", logits.len(); logits, labels)
    })
}

pub(in crate::ops) fn scale_by_label(dst: Destination<'_>, labels: Source<'_>, factors: &[f64]) -> Result<()> {
    for_float!(dtype(dst.0), "scale-by-label", T => {
        let device = dst.0.device.clone();
        let (rows, columns) = rows_and_columns(dst.1)?;
        let (dst, labels) = (destination::<T>(dst)?, source::<u32>(labels)?);
        same("labels of a batch", rows, labels.len())?;
        let factors = upload(&device, factors)?;
        launch!(T, &device, "scale_by_label", dst.len(); columns, dst, labels, factors.as_view(), factors.len())
    })
}
