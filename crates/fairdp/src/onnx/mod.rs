//! A released model as an ONNX file that takes raw columns: encoding, weights and decision in one
//! graph.
//!
//! Every input column is an input of its own, `[rows, 1]`: numbers in single precision, NaN where
//! they are missing, categories as texts without blanks around them. Outputs are `probabilities`,
//! `[rows, classes]`, and, unless decisions depend on the group, `prediction`, the name of the
//! class. Values outside the bounds are clamped as everywhere. What `fairdp predict` refuses, a
//! missing or unknown value with no declared place, has NaN for probabilities.

mod features;
mod graph;
mod proto;

use self::graph::{Attribute, Element, Graph};
use crate::model::Model;

/// The file's bytes: a function of the model alone.
pub(crate) fn onnx(model: &Model) -> Vec<u8> {
    let encoding = model.encoding();
    let width = encoding.width();
    let mut graph = Graph::default();
    let mut values = features::features(&mut graph, encoding);
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
    let logits = values;
    let n_outputs = model.layers().last().map_or(0, |layer| layer.biases.len());
    let probabilities = graph.output("probabilities", Element::Float, Some(model.classes().len()));
    if n_outputs == 1 {
        let positive = graph.apply("Sigmoid", "positive", &[&logits], &[]);
        let opposite = graph.apply("Neg", "opposite", &[&logits], &[]);
        let negative = graph.apply("Sigmoid", "negative", &[&opposite], &[]);
        graph.apply_to("Concat", &probabilities, &[&negative, &positive], &[Attribute::Integer("axis", 1)]);
    } else {
        graph.apply_to("Softmax", &probabilities, &[&logits], &[Attribute::Integer("axis", 1)]);
    }
    if let [offsets] = &model.pipeline().offsets[..] {
        decide(&mut graph, &probabilities, offsets, model.classes());
    }
    graph.into_model("fairdp", "Raw columns to probabilities; numbers as float, NaN if missing, categories as text.")
}

/// The class with the largest log-probability after its offset.
fn decide(graph: &mut Graph, probabilities: &str, offsets: &[f64], classes: &[String]) {
    let offsets: Vec<f32> = offsets.iter().map(|&offset| offset as f32).collect();
    let offsets = graph.floats("offsets", &[1, offsets.len()], &offsets);
    let logs = graph.apply("Log", "log-probabilities", &[probabilities], &[]);
    let scores = graph.apply("Add", "scores", &[&logs, &offsets], &[]);
    let attributes = [Attribute::Integer("axis", 1), Attribute::Integer("keepdims", 0)];
    let best = graph.apply("ArgMax", "best", &[&scores], &attributes);
    let classes = graph.texts("classes", classes);
    let prediction = graph.output("prediction", Element::Text, None);
    graph.apply_to("Gather", &prediction, &[&classes, &best], &[Attribute::Integer("axis", 0)]);
}
