//! A released model as an ONNX file that takes raw columns: encoding, weights and decision in one
//! graph.
//!
//! Every input column is a separate input `[rows, 1]`: numbers in single precision, NaN where
//! they are missing, categories as texts without blanks around them. A vector is one input `[rows,
//! length]`, and so are the features of an image, which its filters have made before; of a network on pixels
//! the pixels themselves, from 0 to 1, row by row with the channels of a pixel side by side. Outputs are `probabilities`,
//! `[rows, classes]`, and, unless decisions depend on the group or on a coin, `prediction`, the name of the
//! class. A model that predicts a number has the output `prediction`, `[rows, 1]`, alone; where something is
//! taken off it by group, the output is `before_groups`, from which it is not. Values outside the bounds are clamped as everywhere. A row that `fairdp predict` refuses
//! has no answer: NaN for every probability and an empty prediction. Such rows have a missing or
//! unknown value with no declared place, or an infinite number.

#[cfg(test)]
mod evaluate;
mod features;
mod graph;
mod network;
mod numbers;
mod proto;
#[cfg(test)]
mod tests;
mod vector;

use self::graph::{Attribute, Element, Graph};
use crate::error::Result;
use crate::model::FittedModel;

/// The file's bytes: a function of the model alone.
pub(crate) fn onnx(model: &FittedModel) -> Result<Vec<u8>> {
    let mut graph = Graph::default();
    let (values, refused) = match model.network() {
        Some(network) => network::outputs(&mut graph, model, network)?,
        None => outputs(&mut graph, model),
    };
    Ok(answers(graph, model, values, &refused))
}

/// The outputs of the layers, `[rows, outputs]`, and whether a row is refused.
fn outputs(graph: &mut Graph, model: &FittedModel) -> (String, String) {
    let encoding = model.encoding();
    let width = encoding.width();
    let (mut values, refused) = features::features(graph, encoding);
    for (place, layer) in model.layers().iter().enumerate() {
        let n_outputs = layer.biases.len();
        let (mut weights, mut biases) = (layer.weights.clone(), layer.biases.clone());
        if place == 0 {
            // The constant feature is last: its weight joins the bias.
            let rows = || layer.weights.chunks_exact(width);
            weights = rows().flat_map(|row| &row[..width - 1]).copied().collect();
            biases = rows().zip(&layer.biases).map(|(row, bias)| bias + row[width - 1] * encoding.scale()).collect();
        } else {
            values = graph.apply("Tanh", &format!("hidden {place}"), &[&values], &[]);
        }
        let n_inputs = weights.len() / n_outputs;
        let weights = graph.floats("weights", &[n_outputs, n_inputs], &weights);
        let biases = graph.floats("biases", &[n_outputs], &biases);
        let transposed = [Attribute::Integer("transB", 1)];
        values = graph.apply("Gemm", "logits", &[&values, &weights, &biases], &transposed);
    }
    (values, refused)
}

/// The file of a graph whose outputs become answers.
fn answers(mut graph: Graph, model: &FittedModel, values: String, refused: &str) -> Vec<u8> {
    if let Some(number) = model.number() {
        // The sum, set to the range; NaN for a row that is refused.
        let [low, high] =
            [("low", number.low), ("high", number.high)].map(|(name, bound)| graph.floats(name, &[], &[bound as f32]));
        let clipped = graph.apply("Clip", "within the range", &[&values, &low, &high], &[]);
        let nan = graph.floats("no prediction", &[1], &[f32::NAN]);
        // What is taken off by group is left to whoever knows the group.
        let name = if model.needs_groups() { "before_groups" } else { "prediction" };
        let output = graph.output(name, Element::Float, Some(1));
        graph.apply_to("Where", &output, &[refused, &nan, &clipped], &[]);
        return graph
            .into_model("fairdp", "Raw columns to a number; numbers as float, NaN if missing, categories as text.");
    }
    let logits = values;
    let n_outputs = model.layers().last().map_or(0, |layer| layer.biases.len());
    let output = graph.output("probabilities", Element::Float, Some(model.classes().len()));
    let axis = [Attribute::Integer("axis", 1)];
    let probabilities = if n_outputs == 1 {
        let positive = graph.apply("Sigmoid", "positive", &[&logits], &[]);
        let opposite = graph.apply("Neg", "opposite", &[&logits], &[]);
        let negative = graph.apply("Sigmoid", "negative", &[&opposite], &[]);
        graph.apply("Concat", "of all rows", &[&negative, &positive], &axis)
    } else {
        graph.apply("Softmax", "of all rows", &[&logits], &axis)
    };
    let nan = graph.floats("no probability", &[1, 1], &[f32::NAN]);
    graph.apply_to("Where", &output, &[refused, &nan, &probabilities], &[]);
    // A graph has no hash of its inputs that could toss a coin.
    if let ([offsets], None) = (&model.pipeline().offsets[..], &model.pipeline().coins) {
        decide(&mut graph, &probabilities, refused, offsets, model.classes());
    }
    graph.into_model("fairdp", "Raw columns to probabilities; numbers as float, NaN if missing, categories as text.")
}

/// The class with the largest log-probability after its offset; an empty text for a row that is
/// refused.
fn decide(graph: &mut Graph, probabilities: &str, refused: &str, offsets: &[f64], classes: &[String]) {
    let offsets: Vec<f32> = offsets.iter().map(|&offset| offset as f32).collect();
    let offsets = graph.floats("offsets", &[1, offsets.len()], &offsets);
    let logs = graph.apply("Log", "log-probabilities", &[probabilities], &[]);
    let scores = graph.apply("Add", "scores", &[&logs, &offsets], &[]);
    let attributes = [Attribute::Integer("axis", 1), Attribute::Integer("keepdims", 0)];
    let best = graph.apply("ArgMax", "best", &[&scores], &attributes);
    let none = graph.integers("no class", &[graph::length(classes.len())]);
    let flat = graph.integers("flat", &[-1]);
    let refused = graph.apply("Reshape", "refused rows", &[refused, &flat], &[]);
    let best = graph.apply("Where", "answers", &[&refused, &none, &best], &[]);
    let names: Vec<&str> = classes.iter().map(String::as_str).chain([""]).collect();
    let classes = graph.texts("classes", &names);
    let prediction = graph.output("prediction", Element::Text, None);
    graph.apply_to("Gather", &prediction, &[&classes, &best], &[Attribute::Integer("axis", 0)]);
}
