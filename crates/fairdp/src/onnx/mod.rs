//! A released model as an ONNX file that takes raw columns: encoding, weights and decision in one graph.
//!
//! Every input column is an input of its own, `[rows, 1]`: numbers in single precision, NaN where they are missing, categories as texts without blanks
//! around them. Outputs are `probabilities`, `[rows, classes]`, and, unless decisions depend on the group, `prediction`, the name of the class.
//! Values outside the bounds are clamped as everywhere. What `fairdp predict` refuses, a missing or unknown value with no declared place, has NaN for
//! probabilities.

mod features;
mod graph;
mod proto;

use self::graph::{Attribute, Element, Graph};
use crate::model::Model;

/// The file's bytes: a function of the model alone.
pub(crate) fn onnx(model: &Model) -> Vec<u8> {
    let encoding = model.encoding();
    let (width, n_outputs) = (encoding.width(), model.biases().len());
    let mut graph = Graph::default();
    let features = features::features(&mut graph, encoding);
    // The constant feature is last: its weight joins the bias.
    let (mut weights, mut biases) = (Vec::with_capacity(n_outputs * (width - 1)), Vec::with_capacity(n_outputs));
    for (row, bias) in model.weights().chunks_exact(width).zip(model.biases()) {
        weights.extend_from_slice(&row[..width - 1]);
        biases.push(bias + row[width - 1] * encoding.scale());
    }
    let weights = graph.floats("weights", &[n_outputs, width - 1], &weights);
    let biases = graph.floats("biases", &[n_outputs], &biases);
    let inputs = [features.as_str(), &weights, &biases];
    let logits = graph.apply("Gemm", "logits", &inputs, &[Attribute::Integer("transB", 1)]);
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
