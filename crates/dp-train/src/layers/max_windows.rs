//! Max pooling as the end of another layer.

use std::cell::RefCell;

use candle_core::{DType, Device, Result, Tensor};

use super::pieces::Piece;
use crate::buffer::RowBuffer;
use crate::ops::{MaxPool, MaxPoolBackward, PoolShape};

/// Max pooling of the images that a layer makes, a few records at a time. They are dropped as soon as they are pooled, still in the cache; so
/// is their gradient, which is formed again where it is needed once more.
pub(super) struct MaxWindows {
    shape: PoolShape,
    /// Numbers of the largest pixels, of all records.
    winners: Vec<u32>,
    output: RowBuffer,
    image_gradient: RowBuffer,
}

impl MaxWindows {
    pub(super) fn new(shape: PoolShape, dtype: DType, device: &Device) -> Result<Self> {
        let output = RowBuffer::new(shape.outputs(), dtype, device)?;
        let image_gradient = RowBuffer::new(shape.inputs(), dtype, device)?;
        Ok(Self { shape, winners: Vec::new(), output, image_gradient })
    }

    /// The output of `n_records`, `[n_records, outputs]`, to be filled by [`Self::forward`].
    pub(super) fn output(&mut self, n_records: usize) -> Result<Tensor> {
        self.winners.resize(n_records * self.shape.outputs(), 0);
        self.output.rows(n_records)
    }

    /// Pools the images of a piece of the batch into its rows of `output`.
    pub(super) fn forward(&mut self, piece: Piece, images: &Tensor, output: &Tensor) -> Result<()> {
        let range = piece.values(self.shape.outputs());
        let winners = RefCell::new(&mut self.winners[range]);
        piece.rows(output)?.inplace_op2(images, &MaxPool { shape: &self.shape, winners })
    }

    /// Gradient with respect to the images of a piece, from that of the batch's output. What is in `images` counts on a CUDA device only.
    pub(super) fn backward(&mut self, piece: Piece, images: &Tensor, output_gradient: &Tensor) -> Result<Tensor> {
        let winners = &self.winners[piece.values(self.shape.outputs())];
        let gradient = self.image_gradient.rows(piece.len())?;
        let backward = MaxPoolBackward { shape: &self.shape, winners };
        gradient.inplace_op3(&piece.rows(output_gradient)?, images, &backward)?;
        Ok(gradient)
    }
}
