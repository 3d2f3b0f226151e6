//! Tensors that are reused from step to step.

use candle_core::{DType, Device, Result, Tensor};

/// Rows of a fixed width, kept between steps and grown when a batch is larger than any before:
/// fresh large allocations cost a page fault per 4 KiB, more than the arithmetic on them.
#[derive(Debug)]
pub(crate) struct RowBuffer {
    rows: Tensor,
    capacity: usize,
    width: usize,
}

impl RowBuffer {
    /// A buffer for rows of `width` values, with room for one: CUDA has no memory of size 0.
    pub(crate) fn new(width: usize, dtype: DType, device: &Device) -> Result<Self> {
        Ok(Self { rows: Tensor::zeros((1, width), dtype, device)?, capacity: 1, width })
    }

    /// Where they are.
    pub(crate) fn device(&self) -> &Device {
        self.rows.device()
    }

    /// The first `n` rows, `[n, width]`. Their contents are whatever was written last.
    pub(crate) fn rows(&mut self, n: usize) -> Result<Tensor> {
        if n > self.capacity {
            // Poisson batches vary in size: a little more than asked for saves growing again at the
            // next larger one.
            self.capacity = n + n / 4;
            self.rows = Tensor::zeros((self.capacity, self.width), self.rows.dtype(), self.rows.device())?;
        }
        self.rows.narrow(0, 0, n)
    }
}
