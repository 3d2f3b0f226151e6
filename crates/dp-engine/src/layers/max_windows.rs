//! Max pooling, as a layer and as the end of another.

use candle_core::{Result, Tensor};

use super::blueprint::BuildContext;
use super::pieces::Piece;
use crate::buffer::RowBuffer;
use crate::ops::{self, PoolShape, Winners};

/// Max pooling, piece by piece of a batch. Images need not be kept for the backward pass, nor the
/// gradient of all at once: a layer that makes the images can drop both as soon as it has used
/// them, while they are in the cache.
pub(crate) struct MaxWindows {
    shape: PoolShape,
    /// The largest pixels, of all records.
    winners: Winners,
    output: RowBuffer,
    image_gradient: RowBuffer,
}

impl MaxWindows {
    pub(super) fn new(shape: PoolShape, context: BuildContext<'_>) -> Result<Self> {
        let (output, image_gradient) = (context.rows(shape.outputs())?, context.rows(shape.inputs())?);
        Ok(Self { shape, winners: Winners::default(), output, image_gradient })
    }

    /// The output of `n_records`, `[n_records, outputs]`, to be filled by [`Self::forward`].
    pub(super) fn output(&mut self, n_records: usize) -> Result<Tensor> {
        self.winners.make_room(n_records * self.shape.outputs(), self.output.device())?;
        self.output.rows(n_records)
    }

    /// Pools the images of a piece of the batch into its rows of `output`.
    pub(super) fn forward(&mut self, piece: Piece, images: &Tensor, output: &Tensor) -> Result<()> {
        let range = piece.values(self.shape.outputs());
        ops::max_pool(&piece.rows(output)?, images, &self.shape, &mut self.winners, &range)
    }

    /// Gradient with respect to the images of a piece, from that of the batch's output.
    pub(super) fn backward(&mut self, piece: Piece, output_gradient: &Tensor) -> Result<Tensor> {
        let gradient = self.image_gradient.rows(piece.len())?;
        self.backward_into(&gradient, piece, output_gradient)?;
        Ok(gradient)
    }

    /// The same in memory of the caller's.
    pub(super) fn backward_into(&self, gradient: &Tensor, piece: Piece, output_gradient: &Tensor) -> Result<()> {
        let range = piece.values(self.shape.outputs());
        ops::max_pool_backward(gradient, &piece.rows(output_gradient)?, &self.shape, &self.winners, &range)
    }
}
