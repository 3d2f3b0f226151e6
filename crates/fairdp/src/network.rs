//! Convolutional networks of the papers on the pixels of images: `dp_train` trains them, and the same layers
//! answer.

use std::collections::BTreeMap;
use std::path::Path;

use dp_table::{Column, Encoding, Schema};
use dp_train::{DType, Device, ImageShape, Model, ModelConfig, ParameterVector, TrainError, ZhaoCnnLayout};

use crate::config::NetworkName;
use crate::error::{FairdpError, Result};
use crate::model::Layer;

/// A layer that fits into an image of this side fits into every larger one.
const LARGE: usize = 32;

impl NetworkName {
    /// Its layers for images of this shape.
    pub(crate) fn config(self, image: ImageShape) -> ModelConfig {
        match self {
            Self::ZhaoCnn => ModelConfig::ZhaoCnn { image, layout: ZhaoCnnLayout::Text },
            Self::EsipovaCnn => ModelConfig::EsipovaCnn { image },
        }
    }

    /// As a configuration has it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ZhaoCnn => "zhao-cnn",
            Self::EsipovaCnn => "esipova-cnn",
        }
    }

    /// Says so if images are too small for its windows.
    pub(crate) fn check(self, ImageShape { height, width, .. }: ImageShape) -> Result<(), String> {
        let fits = |height: usize, width: usize| {
            let image = ImageShape { height: height.min(LARGE), width: width.min(LARGE), channels: 1 };
            Model::new(&self.config(image), image.len(), 1, DType::F32, &Device::Cpu).is_ok()
        };
        if fits(height, width) {
            return Ok(());
        }
        let least = (1..=LARGE).find(|&side| fits(side, side)).unwrap_or(LARGE);
        Err(format!(
            "model.network = \"{}\": images of {height} × {width} pixels are too small for its layers: expected {least} × {least} or more",
            self.name()
        ))
    }
}

/// The shape of the images whose pixels are the only inputs, if they are.
pub(crate) fn image_of(schema: &Schema) -> Option<ImageShape> {
    let mut inputs = schema.columns.iter().map(|(_, column)| column).filter(|column| **column != Column::Dropped);
    match (inputs.next(), inputs.next()) {
        (Some(&Column::Image { height, width, channels, missing: false, pixels: true, .. }), None) => {
            Some(ImageShape { height, width, channels })
        }
        _ => None,
    }
}

/// Pixels as a network takes them, of features as they are.
pub(crate) fn pixel_factor(scale: f64) -> f64 {
    1.0 / scale
}

/// A trained network.
#[derive(Debug, Clone)]
pub(crate) struct PixelNetwork {
    model: Model,
    factor: f64,
}

impl PixelNetwork {
    /// With weights of 0.
    fn new(name: NetworkName, encoding: &Encoding, n_outputs: usize) -> Result<Self> {
        let Some(image) = image_of(encoding.schema()) else {
            let expected = "one column of pixels and no other input";
            return Err(FairdpError::invalid("columns of a network", encoding.schema().columns.len(), expected));
        };
        let model = Model::new(&name.config(image), image.len(), n_outputs, DType::F32, &Device::Cpu);
        Ok(Self { model: model.map_err(TrainError::from)?, factor: pixel_factor(f64::from(encoding.scale())) })
    }

    /// With the parameters of these layers.
    pub(crate) fn of_layers(
        name: NetworkName,
        encoding: &Encoding,
        n_outputs: usize,
        layers: &[Layer],
    ) -> Result<Self> {
        let network = Self::new(name, encoding, n_outputs)?;
        let values = layers.iter().flat_map(|layer| layer.weights.iter().chain(&layer.biases));
        let values: Vec<f64> = values.map(|&value| f64::from(value)).collect();
        network.model.parameters().set(&values).map_err(TrainError::from)?;
        network.tried()
    }

    /// With the weights of a file of these bytes; `path` is for messages.
    pub(crate) fn of_file(
        name: NetworkName,
        encoding: &Encoding,
        n_outputs: usize,
        (path, bytes): (&Path, &[u8]),
    ) -> Result<Self> {
        let network = Self::new(name, encoding, n_outputs)?;
        network.model.load_weights_from_bytes(path, bytes).map_err(TrainError::from)?;
        let values = network.model.parameters().to_vec().map_err(TrainError::from)?;
        if values.iter().any(|value| !value.is_finite()) {
            return Err(FairdpError::file(path, "a value that is not finite"));
        }
        network.tried()
    }

    /// Answers once: what fails then would fail for every record.
    fn tried(self) -> Result<Self> {
        self.model.logits(&vec![0.0; self.model.n_inputs()]).map_err(TrainError::from)?;
        Ok(self)
    }

    /// The file of its weights, under PyTorch's names and in its layout.
    pub(crate) fn to_bytes(&self, metadata: &BTreeMap<String, String>) -> Result<Vec<u8>> {
        Ok(self.model.weights_to_bytes(metadata).map_err(TrainError::from)?)
    }

    /// Its layers in order, as they are in memory.
    pub(crate) fn layers(&self) -> Result<Vec<Layer>> {
        layers_of(self.model.parameters())
    }

    /// Its architecture.
    pub(crate) fn config(&self) -> &ModelConfig {
        self.model.config()
    }

    /// The logits of a row's features. They are no numbers if the processor fails, which it did not do when
    /// the network was made.
    pub(crate) fn logits(&self, features: impl Iterator<Item = (usize, f32)>) -> Vec<f64> {
        let mut pixels = vec![0.0; self.model.n_inputs()];
        // The constant is behind the pixels.
        for (place, value) in features.filter(|(place, _)| *place < self.model.n_inputs()) {
            pixels[place] = (f64::from(value) * self.factor) as f32;
        }
        self.model.logits(&pixels).unwrap_or_else(|_| vec![f64::NAN; self.model.n_outputs()])
    }
}

/// Layers of parameters that are weights and biases in turn.
pub(crate) fn layers_of(parameters: &ParameterVector) -> Result<Vec<Layer>> {
    let values = parameters.to_vec().map_err(TrainError::from)?;
    let mut values = values.into_iter().map(|value| value as f32);
    let sizes = parameters.specs().chunks_exact(2).map(|pair| [pair[0].len(), pair[1].len()]);
    let layer = |[weights, biases]: [usize; 2]| Layer {
        weights: values.by_ref().take(weights).collect(),
        biases: values.by_ref().take(biases).collect(),
    };
    Ok(sizes.map(layer).collect())
}

/// What was fixed beforehand of a network on this many pixels of a column, in words.
pub(crate) fn fixed(name: NetworkName, column: &str, n_pixels: usize) -> String {
    format!(
        "column `{column}`: {n_pixels} pixels from 0 to 1; the layers of {}, whose first weights were drawn at random",
        name.name()
    )
}
