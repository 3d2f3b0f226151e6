//! Factors by class.

use candle_core::{Device, Error, Result, Tensor};

#[cfg(feature = "cuda")]
use super::cuda;
use super::element::{Element, destination, dtype, for_float, rows_and_columns, same, source};
use super::in_place::{Operands, binary};

/// The labels of a batch as a tensor, `[batch]`.
pub(crate) fn labels(labels: Vec<u32>, device: &Device) -> Result<Tensor> {
    match device {
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::labels(device, &labels),
        _ => {
            let n_labels = labels.len();
            Tensor::from_vec(labels, n_labels, device)
        }
    }
}

/// `dst[i, :] *= factors[labels[i]]`.
pub(crate) fn scale_by_label(dst: &Tensor, labels: &Tensor, factors: &[f64]) -> Result<()> {
    binary("scale-by-label", dst, labels, |operands| match operands {
        Operands::Cpu(dst, [labels]) => {
            let labels = source::<u32>(labels)?;
            for_float!(dtype(dst.0), "scale-by-label", T => {
                let (rows, columns) = rows_and_columns(dst.1)?;
                same("labels of a batch", rows, labels.len())?;
                let dst = destination::<T>(dst)?;
                for (i, (row, &label)) in dst.chunks_exact_mut(columns.max(1)).zip(labels).enumerate() {
                    let Some(&factor) = factors.get(label as usize) else {
                        let n = factors.len();
                        return Err(Error::Msg(format!("label {label} of record {i} of the batch: expected 0..{n}")));
                    };
                    let factor = T::from_double(factor);
                    for v in row {
                        *v *= factor;
                    }
                }
                Ok(())
            })
        }
        #[cfg(feature = "cuda")]
        Operands::Cuda(dst, [labels]) => cuda::scale_by_label(dst, labels, factors),
    })
}
