//! Layers before they have parameters.

use std::cell::Cell;

use candle_core::{DType, Device, Error, Result, Tensor};

use super::stage::{Stage, StatefulLayer};
use super::{Layer, ParameterSpec};
use crate::buffer::RowBuffer;

/// The device and number type that layers are built for, and the sizes that decide their buffers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BuildContext<'a> {
    /// Number type of parameters and activations.
    pub dtype: DType,
    /// Device of both.
    pub device: &'a Device,
    /// Records that a batch is expected to have, if that is known.
    pub(crate) expected: Option<usize>,
    /// Counts the values for each record in the buffers that layers ask for.
    pub(crate) row_values: Option<&'a Cell<usize>>,
}

impl BuildContext<'_> {
    /// Room for rows of `width` values.
    pub(super) fn rows(self, width: usize) -> Result<RowBuffer> {
        if let Some(counted) = self.row_values {
            counted.set(counted.get() + width);
        }
        RowBuffer::new(width, self.dtype, self.device)
    }

    /// Room for gradients of `width` values; how many of them a batch keeps is
    /// [`Layer::kept_values`].
    pub(super) fn gradients(self, width: usize) -> Result<RowBuffer> {
        RowBuffer::new(width, self.dtype, self.device)
    }
}

type Build = dyn FnOnce(&[Tensor], BuildContext<'_>) -> Result<Box<dyn Stage>>;

/// The parameters that a layer takes, and how it is made of them.
pub(crate) struct Blueprint {
    parameters: Vec<ParameterSpec>,
    build: Box<Build>,
}

impl Blueprint {
    /// `build` takes views into the model's parameters, in the order of `parameters`; the names of
    /// these are local to the layer (`weight`).
    pub(super) fn new<L: Layer + 'static>(
        parameters: Vec<ParameterSpec>,
        build: impl FnOnce(&[Tensor], BuildContext<'_>) -> Result<L> + 'static,
    ) -> Self {
        let build = Box::new(move |parameters: &[Tensor], context: BuildContext<'_>| {
            Ok(Box::new(StatefulLayer::new(build(parameters, context)?)) as Box<dyn Stage>)
        });
        Self { parameters, build }
    }

    pub(super) fn parameters(&self) -> &[ParameterSpec] {
        &self.parameters
    }

    pub(super) fn build(self, parameters: &[Tensor], context: BuildContext<'_>) -> Result<Box<dyn Stage>> {
        (self.build)(parameters, context)
    }
}

/// The tensors of a layer that has `N`, parameters or their gradients.
pub(super) fn exactly<const N: usize>(tensors: &[Tensor]) -> Result<&[Tensor; N]> {
    let error = || Error::Msg(format!("parameter tensors of a layer: expected {N}, got {}", tensors.len()));
    tensors.try_into().map_err(|_| error())
}
