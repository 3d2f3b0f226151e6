//! Layers over images, one after the other, with the shape of the image in between.

use super::{ImageShape, NamedLayer};
use crate::error::{EngineError, Result};
use crate::layers::{Conv2d, Flatten, Pool2d, Pooling};
use crate::ops::{ConvShape, PoolShape};

/// Sizes of a convolution, without those of its image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Convolution {
    /// Channels of the output.
    pub(crate) filters: usize,
    /// Height and width of a filter.
    pub(crate) kernel: usize,
    /// Pixels from one position to the next.
    pub(crate) stride: usize,
    /// Pixels of zeros on every side.
    pub(crate) padding: usize,
    /// Parts that channels and filters are split into.
    pub(crate) groups: usize,
    /// Whether there is a bias.
    pub(crate) bias: bool,
}

/// Sizes of a pooling, without those of its image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Windows {
    /// Height and width of a window.
    pub(crate) kernel: usize,
    /// Pixels from one window to the next.
    pub(crate) stride: usize,
    /// Pixels outside of the image on every side.
    pub(crate) padding: usize,
}

/// Layers collected so far and the image that comes out of them.
pub(crate) struct ImageChain {
    image: ImageShape,
    layers: Vec<NamedLayer>,
}

impl ImageChain {
    /// No layer yet: the image is a record of `n_inputs` values.
    pub(crate) fn new(image: ImageShape, n_inputs: usize) -> Result<Self> {
        image.check(n_inputs)?;
        Ok(Self { image, layers: Vec::new() })
    }

    /// Adds a layer that leaves the shape of the image as it is.
    pub(crate) fn push(&mut self, layer: NamedLayer) {
        self.layers.push(layer);
    }

    /// Adds a layer that puts out an image of another shape.
    pub(crate) fn push_into(&mut self, layer: NamedLayer, image: ImageShape) {
        self.layers.push(layer);
        self.image = image;
    }

    /// The image that comes out of the layers so far.
    pub(crate) fn image(&self) -> ImageShape {
        self.image
    }

    /// All layers.
    pub(crate) fn into_layers(self) -> Vec<NamedLayer> {
        self.layers
    }

    /// Adds a convolution, as one layer with the max pooling right behind it if there is one.
    pub(crate) fn conv(
        &mut self,
        name: impl Into<String>,
        sizes: Convolution,
        max_pool: Option<Windows>,
    ) -> Result<()> {
        let (shape, mut image) = self.conv_shape(sizes)?;
        let mut pooling = None;
        if let Some(windows) = max_pool {
            let pool = pool_shape(image, windows)?;
            (pooling, image) = (Some(pool.0), pool.1);
        }
        self.push_into(NamedLayer::new(name, Conv2d::blueprint(shape, sizes.bias, pooling)), image);
        Ok(())
    }

    /// A convolution of the image so far, and the image that comes out of it.
    fn conv_shape(&self, sizes: Convolution) -> Result<(ConvShape, ImageShape)> {
        let ImageShape { height, width, channels } = self.image;
        let Convolution { filters, kernel, stride, padding, groups, .. } = sizes;
        check_windows(self.image, kernel, stride, padding)?;
        if filters == 0 {
            return Err(EngineError::invalid("model.filters", filters, "at least 1"));
        }
        if groups == 0 || !channels.is_multiple_of(groups) || !filters.is_multiple_of(groups) {
            let expected = format!("a divisor of {channels} channels and {filters} filters");
            return Err(EngineError::invalid("model.groups", groups, expected));
        }
        let shape = ConvShape { height, width, channels, filters, kernel, stride, padding, groups };
        Ok((shape, ImageShape { height: shape.out_height(), width: shape.out_width(), channels: filters }))
    }

    /// Adds a pooling.
    pub(crate) fn pool(&mut self, name: impl Into<String>, pooling: Pooling, windows: Windows) -> Result<()> {
        let (shape, image) = pool_shape(self.image, windows)?;
        self.push_into(NamedLayer::new(name, Pool2d::blueprint(shape, pooling)), image);
        Ok(())
    }

    /// Adds the mean over all pixels of a channel.
    pub(crate) fn global_average_pool(&mut self, name: impl Into<String>) {
        let ImageShape { height, width, channels } = self.image;
        let shape = PoolShape { height, width, channels, kernel: [height, width], stride: 1, padding: 0 };
        let image = ImageShape { height: 1, width: 1, channels };
        self.push_into(NamedLayer::new(name, Pool2d::blueprint(shape, Pooling::Average)), image);
    }

    /// Turns the image into a vector in channel-first order; returns its length and all layers.
    pub(crate) fn flatten(mut self, name: impl Into<String>) -> (usize, Vec<NamedLayer>) {
        let ImageShape { height, width, channels } = self.image;
        self.layers.push(NamedLayer::new(name, Flatten::blueprint(height * width, channels)));
        (self.image.len(), self.layers)
    }
}

/// The geometry of a pooling over square windows, and the image that comes out of it.
fn pool_shape(image: ImageShape, windows: Windows) -> Result<(PoolShape, ImageShape)> {
    let Windows { kernel, stride, padding } = windows;
    check_windows(image, kernel, stride, padding)?;
    if padding > kernel / 2 {
        let expected = format!("at most half of the window, {}", kernel / 2);
        return Err(EngineError::invalid("model.padding", padding, expected));
    }
    let ImageShape { height, width, channels } = image;
    let shape = PoolShape { height, width, channels, kernel: [kernel, kernel], stride, padding };
    Ok((shape, ImageShape { height: shape.out_height(), width: shape.out_width(), channels }))
}

/// An error unless windows of this size fit into the padded image at least once.
fn check_windows(image: ImageShape, kernel: usize, stride: usize, padding: usize) -> Result<()> {
    let smallest = image.height.min(image.width).saturating_add(padding.saturating_mul(2));
    if kernel == 0 || kernel > smallest {
        let expected = format!("1 to {smallest}, the smaller side of the padded image");
        return Err(EngineError::invalid("model.kernel", kernel, expected));
    }
    if stride == 0 {
        return Err(EngineError::invalid("model.stride", stride, "at least 1"));
    }
    if padding >= kernel {
        let expected = format!("less than the kernel, {kernel}");
        return Err(EngineError::invalid("model.padding", padding, expected));
    }
    Ok(())
}
