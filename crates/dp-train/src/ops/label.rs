//! Factors by class.

use candle_core::{CpuStorage, Error, InplaceOp2, Layout, Result, WithDType};

use super::element::{destination, dtype, for_float, rows_and_columns, same, source};
use super::on_cuda::on_cuda;

/// `dst[i, :] *= factors[labels[i]]`.
pub(crate) struct ScaleByLabel<'a> {
    /// One factor per class.
    pub(crate) factors: &'a [f64],
}

impl InplaceOp2 for ScaleByLabel<'_> {
    fn name(&self) -> &'static str {
        "scale-by-label"
    }

    fn cpu_fwd(&self, dst: &mut CpuStorage, dst_l: &Layout, labels: &CpuStorage, labels_l: &Layout) -> Result<()> {
        let labels = source::<u32>((labels, labels_l))?;
        for_float!(dtype(dst), "scale-by-label", T => {
            let (rows, columns) = rows_and_columns(dst_l)?;
            same("labels of a batch", rows, labels.len())?;
            let dst = destination::<T>(dst, dst_l)?;
            for (i, (row, &label)) in dst.chunks_exact_mut(columns.max(1)).zip(labels).enumerate() {
                let Some(&factor) = self.factors.get(label as usize) else {
                    let n = self.factors.len();
                    return Err(Error::Msg(format!("label {label} of record {i} of the batch: expected 0..{n}")));
                };
                let factor = T::from_f64(factor);
                for v in row {
                    *v *= factor;
                }
            }
            Ok(())
        })
    }

    on_cuda!(|self, dst, labels| cuda::scale_by_label(self, dst, labels));
}
