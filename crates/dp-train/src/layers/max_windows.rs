//! Max pooling, as a layer and as the end of another.

use candle_core::{Error, Result, Tensor};

use super::blueprint::Place;
use super::pieces::Piece;
use crate::buffer::RowBuffer;
use crate::ops::{self, PoolShape};

/// Max pooling, piece by piece of a batch. Images need not be kept for the backward pass, nor the
/// gradient of all at once: a layer that makes the images can drop both as soon as it has used
/// them, while they are in the cache.
pub(crate) struct MaxWindows {
    shape: PoolShape,
    /// Numbers of the largest pixels, of all records.
    winners: Vec<u32>,
    output: RowBuffer,
    image_gradient: RowBuffer,
}

impl MaxWindows {
    pub(super) fn new(shape: PoolShape, place: Place<'_>) -> Result<Self> {
        let (output, image_gradient) = (place.rows(shape.outputs())?, place.rows(shape.inputs())?);
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
        ops::max_pool(&piece.rows(output)?, images, &self.shape, &mut self.winners[range])
    }

    /// Gradient with respect to the images of a piece, from that of the batch's output. On a CUDA
    /// device the images must still be there.
    pub(super) fn backward(&mut self, piece: Piece, images: &Tensor, output_gradient: &Tensor) -> Result<Tensor> {
        let Some(winners) = self.winners.get(piece.values(self.shape.outputs())) else {
            return Err(Error::Msg("max pooling's backward pass for records that had no forward pass".into()));
        };
        let gradient = self.image_gradient.rows(piece.len())?;
        ops::max_pool_backward(&gradient, &piece.rows(output_gradient)?, images, &self.shape, winners)?;
        Ok(gradient)
    }
}
