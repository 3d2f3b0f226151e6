//! A convolutional network as operators, layer by layer as the trainer has them.

use std::path::Path;

use dp_train::{Activation, ImageShape, LayerConfig, ModelConfig, Pooling};
use safetensors::SafeTensors;

use super::features::any;
use super::graph::{Attribute, Element, Graph, length};
use super::vector;
use crate::error::{FairdpError, Result};
use crate::model::{FittedModel, WEIGHTS};
use crate::network::PixelNetwork;

/// Declares the pixels as an input, `[rows, height · width · channels]`. Returns the names of the logits and of
/// whether a row is refused: one with a number that is none or infinite.
pub(super) fn outputs(graph: &mut Graph, model: &FittedModel, network: &PixelNetwork) -> Result<(String, String)> {
    let column = &model.encoding().blocks()[0].column;
    let ModelConfig::Cnn { image, features, hidden, activation } = network.config().spelled_out() else {
        return Err(no_operator(&network.config().label()));
    };
    graph.input(column, Element::Float, image.len());
    let axis = graph.integers("axis", &[1]);
    let refused = vector::missing_and_infinite(graph, column, &axis);
    let refused = any(graph, "refused", refused.into());
    let bytes = model.safetensors()?;
    let file = SafeTensors::deserialize(&bytes).map_err(broken)?;
    let mut values = first_image(graph, column, image);
    let mut n_convolutions = 0;
    for layer in &features {
        match *layer {
            LayerConfig::Conv { kernel, stride, padding, groups, .. } => {
                n_convolutions += 1;
                let name = format!("conv{n_convolutions}");
                let [weights, biases] = constants(graph, &file, &name)?;
                let sizes = Windows::new(kernel, stride, padding);
                let attributes = [&sizes.attributes()[..], &[Attribute::Integer("group", length(groups))]].concat();
                values = graph.apply("Conv", &name, &[&values, &weights, &biases], &attributes);
                values = activated(graph, &values, activation)?;
            }
            LayerConfig::Pool { pooling: Pooling::Max, kernel, stride, padding } => {
                let sizes = Windows::new(kernel, stride, padding);
                values = graph.apply("MaxPool", "pooled", &[&values], &sizes.attributes());
            }
            ref other => return Err(no_operator(&format!("{other:?}"))),
        }
    }
    // Channel by channel, as the trainer has it.
    values = graph.apply("Flatten", "flat", &[&values], &[Attribute::Integer("axis", 1)]);
    for place in 0..=hidden.len() {
        let name = format!("fc{}", place + 1);
        let [weights, biases] = constants(graph, &file, &name)?;
        values = graph.apply("Gemm", &name, &[&values, &weights, &biases], &[Attribute::Integer("transB", 1)]);
        if place < hidden.len() {
            values = activated(graph, &values, activation)?;
        }
    }
    Ok((values, refused))
}

/// The pixels as an image with its channels first.
fn first_image(graph: &mut Graph, column: &str, ImageShape { height, width, channels }: ImageShape) -> String {
    let shape = graph.integers("shape", &[-1, length(height), length(width), length(channels)]);
    let image = graph.apply("Reshape", "image", &[column, &shape], &[]);
    graph.apply("Transpose", "channels first", &[&image], &[Attribute::Integers("perm", &[0, 3, 1, 2])])
}

fn activated(graph: &mut Graph, values: &str, activation: Activation) -> Result<String> {
    let operator = match activation {
        Activation::Relu => "Relu",
        Activation::Tanh => "Tanh",
        other => return Err(no_operator(&format!("{other:?}"))),
    };
    Ok(graph.apply(operator, "activated", &[values], &[]))
}

/// Weights and biases of a layer, in PyTorch's layout, which is that of ONNX.
fn constants(graph: &mut Graph, file: &SafeTensors<'_>, layer: &str) -> Result<[String; 2]> {
    let mut constant = |what: &str| -> Result<String> {
        let name = format!("{layer}.{what}");
        let tensor = file.tensor(&name).map_err(broken)?;
        let values: Vec<f32> = tensor.data().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        Ok(graph.floats(&name, tensor.shape(), &values))
    };
    Ok([constant("weight")?, constant("bias")?])
}

/// Square windows as attributes.
struct Windows {
    kernel: [i64; 2],
    strides: [i64; 2],
    pads: [i64; 4],
}

impl Windows {
    fn new(kernel: usize, stride: usize, padding: usize) -> Self {
        Self { kernel: [length(kernel); 2], strides: [length(stride); 2], pads: [length(padding); 4] }
    }

    fn attributes(&self) -> [Attribute<'_>; 3] {
        [
            Attribute::Integers("kernel_shape", &self.kernel),
            Attribute::Integers("strides", &self.strides),
            Attribute::Integers("pads", &self.pads),
        ]
    }
}

fn broken(error: safetensors::SafeTensorError) -> FairdpError {
    FairdpError::file(Path::new(WEIGHTS), error)
}

fn no_operator(layer: &str) -> FairdpError {
    FairdpError::Internal(format!("{layer}: no operator of ONNX is known for it"))
}
