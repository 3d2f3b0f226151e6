//! A trained model with everything that prediction needs: the schema, the weights and how
//! probabilities become decisions.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use dp_linear::{Linear, sigmoid, softmax};
use dp_table::declaration::TextMarks;
use dp_table::{Encoding, NumberLabel, Schema};
use fair_decisions::Mode;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use serde::{Deserialize, Serialize};

use crate::coins::Coins;
use crate::config::{Decision, NetworkName};
use crate::error::{FairdpError, Result};
use crate::input;
use crate::network::PixelNetwork;
use crate::scores::{balance, class_order, offsets};
use crate::seal::sha256;
use crate::thresholds::Thresholds;

/// Names of the files of a release that a prediction reads.
pub(crate) const WEIGHTS: &str = "model.safetensors";
pub(crate) const PIPELINE: &str = "pipeline.json";
const ADDITIVE: &str = "additive";
const MLP: &str = "mlp";
const NETWORK: &str = "network";

/// A model of one's own table: layers on the encoded features, with tanh between them, or a convolutional
/// network on pixels.
#[derive(Debug, Clone)]
pub struct FittedModel {
    pipeline: Pipeline,
    encoding: Encoding,
    layers: Vec<Layer>,
    /// The network whose layers they are, if it is one on pixels.
    network: Option<PixelNetwork>,
}

/// A linear layer; of a network on pixels also a convolution.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// `[n_outputs, n_inputs]` row-major; of a convolution `[filters, height, width, channels]`.
    pub weights: Vec<f32>,
    /// One per output.
    pub biases: Vec<f32>,
}

impl Layer {
    pub(crate) fn of(linear: &Linear) -> Self {
        Self {
            weights: linear.weights.iter().flatten().map(|&weight| weight as f32).collect(),
            biases: linear.intercepts.iter().map(|&bias| bias as f32).collect(),
        }
    }

    /// The same in units of a number, of one whose answers are places in its range, from -1 to 1.
    pub(crate) fn in_range(mut self, number: &NumberLabel) -> Self {
        let half = number.half();
        let scaled = |value: f32| (f64::from(value) * half) as f32;
        for weight in &mut self.weights {
            *weight = scaled(*weight);
        }
        for bias in &mut self.biases {
            *bias = (number.middle() + f64::from(*bias) * half) as f32;
        }
        self
    }

    pub(crate) fn n_inputs(&self) -> usize {
        self.weights.len() / self.biases.len()
    }
}

/// Everything of a model but its weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pipeline {
    pub(crate) version: u32,
    pub(crate) kind: String,
    /// Widths of hidden layers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) hidden: Vec<usize>,
    /// The network on pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) network: Option<NetworkName>,
    pub(crate) schema: Schema,
    /// Shares of the classes, from noisy counts; none of a number.
    pub(crate) priors: Vec<f64>,
    pub(crate) decision: Decision,
    pub(crate) fairness: Mode,
    /// Added to the log-probability of each class before the largest is answered: `[classes]`,
    /// or `[groups][classes]`.
    pub(crate) offsets: Vec<Vec<f64>>,
    /// Taken off a predicted number, one for each group: its released mean error, with `fairness = "mean-error"`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) subtracted: Vec<f64>,
    /// The positive class of more than two, where groups have thresholds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) class: Option<String>,
    /// Where a coin decides between thresholds of a group: then offsets are those of the most probable ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) coins: Option<Coins>,
    /// How the table was written, as it was declared: new ones are read so.
    #[serde(default, skip_serializing_if = "TextMarks::is_empty")]
    pub(crate) text: TextMarks,
}

pub(crate) const PIPELINE_VERSION: u32 = 1;

impl Pipeline {
    /// Decisions that treat every group alike.
    pub(crate) fn new(schema: Schema, priors: Vec<f64>, decision: Decision) -> Self {
        let offsets = common_offsets(&priors, decision);
        Self {
            version: PIPELINE_VERSION,
            kind: ADDITIVE.into(),
            hidden: Vec::new(),
            network: None,
            schema,
            priors,
            decision,
            fairness: Mode::None,
            offsets: vec![offsets],
            subtracted: Vec::new(),
            class: None,
            coins: None,
            text: TextMarks::default(),
        }
    }

    /// The offsets of decisions that treat every group alike.
    pub(crate) fn common_offsets(&self) -> Vec<f64> {
        common_offsets(&self.priors, self.decision)
    }
}

fn common_offsets(priors: &[f64], decision: Decision) -> Vec<f64> {
    let weight = balance(decision);
    priors.iter().map(|prior| -weight * prior.ln()).collect()
}

impl FittedModel {
    pub(crate) fn new(mut pipeline: Pipeline, layers: Vec<Layer>) -> Result<Self> {
        let encoding = Encoding::new(&pipeline.schema)?;
        if let Some(name) = pipeline.network {
            pipeline.kind = NETWORK.into();
            let n_outputs = n_outputs(pipeline.schema.label.classes.len());
            let network = Some(PixelNetwork::of_layers(name, &encoding, n_outputs, &layers)?);
            return Ok(Self { pipeline, encoding, layers, network });
        }
        pipeline.hidden = layers.iter().rev().skip(1).rev().map(|layer| layer.biases.len()).collect();
        pipeline.kind = if pipeline.hidden.is_empty() { ADDITIVE } else { MLP }.into();
        Ok(Self { pipeline, encoding, layers, network: None })
    }

    /// Reads `model.safetensors` and `pipeline.json` of a release.
    ///
    /// # Errors
    /// [`FairdpError::Io`], [`FairdpError::File`] for files that are damaged or do not fit each
    /// other.
    pub fn load(release: &Path) -> Result<Self> {
        Self::load_checked(release, |_, _| Ok(()))
    }

    /// The same, of files that a `check` of their names and bytes lets pass.
    pub(crate) fn load_checked(release: &Path, check: impl Fn(&str, &[u8]) -> Result<()>) -> Result<Self> {
        let [pipeline, weights] = [PIPELINE, WEIGHTS].map(|name| release.join(name));
        let files = [input::bytes(&pipeline)?, input::bytes(&weights)?];
        check(PIPELINE, &files[0])?;
        check(WEIGHTS, &files[1])?;
        Self::of_files([(&pipeline, &files[0]), (&weights, &files[1])])
    }

    /// A model from the bytes of a release's `pipeline.json` and `model.safetensors`.
    ///
    /// # Errors
    /// [`FairdpError::File`] for bytes that are damaged or do not fit each other.
    pub fn from_bytes(pipeline: &[u8], weights: &[u8]) -> Result<Self> {
        Self::of_files([(Path::new(PIPELINE), pipeline), (Path::new(WEIGHTS), weights)])
    }

    fn of_files([(path, text), (weights_path, bytes)]: [(&Path, &[u8]); 2]) -> Result<Self> {
        let pipeline: Pipeline = serde_json::from_slice(text).map_err(|error| FairdpError::file(path, error))?;
        if pipeline.version != PIPELINE_VERSION {
            let problem = format!("version {}: this program reads {PIPELINE_VERSION}", pipeline.version);
            return Err(FairdpError::file(path, problem));
        }
        let encoding = Encoding::new(&pipeline.schema)?;
        let (n_classes, n_groups) = (pipeline.schema.label.classes.len(), encoding.groups().len());
        let by_group = pipeline.offsets.len() == n_groups || pipeline.offsets.len() == 1;
        if !by_group || pipeline.offsets.iter().any(|offsets| offsets.len() != n_classes) {
            return Err(FairdpError::file(path, "offsets: expected one per class, once or for every group"));
        }
        let subtracted = &pipeline.subtracted;
        if !subtracted.is_empty() && (n_classes > 0 || subtracted.len() != n_groups)
            || !subtracted.iter().all(|number| number.is_finite())
        {
            return Err(FairdpError::file(
                path,
                "subtracted: expected a number for every group, of a predicted number",
            ));
        }
        if let Some(problem) = pipeline.coins.as_ref().and_then(|coins| coins.check(n_groups).err()) {
            return Err(FairdpError::file(path, problem));
        }
        if pipeline.priors.len() != n_classes {
            let problem =
                format!("priors: {} numbers, expected one for each of {n_classes} classes", pipeline.priors.len());
            return Err(FairdpError::file(path, problem));
        }
        if n_classes == 0 && (!pipeline.hidden.is_empty() || pipeline.network.is_some()) {
            return Err(FairdpError::file(path, "hidden layers: expected none of a model that predicts a number"));
        }
        if pipeline.network.is_some() != (pipeline.kind == NETWORK)
            || pipeline.network.is_some() && !pipeline.hidden.is_empty()
        {
            let named = pipeline.network.map_or("none", NetworkName::name);
            let problem =
                format!("kind `{}` with network {named} and hidden layers of {:?}", pipeline.kind, pipeline.hidden);
            return Err(FairdpError::file(path, problem));
        }
        if let Some(name) = pipeline.network {
            let network = PixelNetwork::of_file(name, &encoding, n_outputs(n_classes), (weights_path, bytes))?;
            return Ok(Self { pipeline, encoding, layers: network.layers()?, network: Some(network) });
        }
        if pipeline.hidden.contains(&0) {
            let problem = format!("hidden layers of {:?}: expected a width of at least 1", pipeline.hidden);
            return Err(FairdpError::file(path, problem));
        }
        if pipeline.hidden.is_empty() != (pipeline.kind == ADDITIVE) || ![ADDITIVE, MLP].contains(&&*pipeline.kind) {
            let problem = format!("kind `{}` with hidden layers of {:?}", pipeline.kind, pipeline.hidden);
            return Err(FairdpError::file(path, problem));
        }
        let path = weights_path;
        let file = SafeTensors::deserialize(bytes).map_err(|error| FairdpError::file(path, error))?;
        let n_outputs = n_outputs(n_classes);
        let values = |name: &str, shape: &[usize]| -> Result<Vec<f32>> {
            let tensor = file.tensor(name).map_err(|error| FairdpError::file(path, error))?;
            if tensor.dtype() != Dtype::F32 || tensor.shape() != shape {
                let problem = format!("{name}: {:?} {:?}, expected F32 {shape:?}", tensor.dtype(), tensor.shape());
                return Err(FairdpError::file(path, problem));
            }
            let values: Vec<f32> = tensor.data().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
            if values.iter().any(|value| !value.is_finite()) {
                return Err(FairdpError::file(path, format!("{name}: a value that is not finite")));
            }
            Ok(values)
        };
        let sizes = [&[encoding.width()], &pipeline.hidden[..], &[n_outputs]].concat();
        let layer = |(place, pair): (usize, &[usize])| -> Result<Layer> {
            let [weight, bias] = names(&pipeline, place);
            Ok(Layer { weights: values(&weight, &[pair[1], pair[0]])?, biases: values(&bias, &[pair[1]])? })
        };
        let layers = sizes.windows(2).enumerate().map(layer).collect::<Result<_>>()?;
        Ok(Self { pipeline, encoding, layers, network: None })
    }

    /// The bytes of `model.safetensors`: a function of the weights alone.
    pub(crate) fn safetensors(&self) -> Result<Vec<u8>> {
        let format = ("format".to_owned(), format!("fairdp {} 1", self.pipeline.kind));
        if let Some(network) = &self.network {
            return network.to_bytes(&BTreeMap::from([format]));
        }
        let bytes = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        let broken = |error: safetensors::SafeTensorError| FairdpError::file(Path::new(WEIGHTS), error);
        let mut tensors = Vec::new();
        for (place, layer) in self.layers.iter().enumerate() {
            let [weight, bias] = names(&self.pipeline, place);
            tensors.push((weight, vec![layer.biases.len(), layer.n_inputs()], bytes(&layer.weights)));
            tensors.push((bias, vec![layer.biases.len()], bytes(&layer.biases)));
        }
        let mut views = Vec::new();
        for (name, shape, bytes) in &tensors {
            views.push((name, TensorView::new(Dtype::F32, shape.clone(), bytes).map_err(broken)?));
        }
        safetensors::serialize(views, Some(HashMap::from([format]))).map_err(broken)
    }

    /// The network on pixels, if it is one.
    pub(crate) fn network(&self) -> Option<&PixelNetwork> {
        self.network.as_ref()
    }

    pub(crate) fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// How the table of the run was written.
    pub(crate) fn set_text(&mut self, text: TextMarks) {
        self.pipeline.text = text;
    }

    /// Gives groups their thresholds; where none moved, all the common one, as without a mode.
    pub(crate) fn set_thresholds(&mut self, thresholds: &Thresholds) -> Result<()> {
        let key = sha256(&self.safetensors()?);
        let common = self.pipeline.common_offsets();
        let pipeline = &mut self.pipeline;
        if thresholds.has_moved() {
            pipeline.fairness = thresholds.mode;
            pipeline.class.clone_from(&thresholds.class);
            let order = class_order(thresholds.class.as_deref(), &pipeline.schema.label.classes);
            let positive = order.last().copied().unwrap_or_default();
            let of = |&threshold: &f64| offsets(threshold, &common, positive);
            pipeline.offsets = thresholds.by_group.iter().map(of).collect();
            if thresholds.aim.is_some_and(|aim| aim.one_threshold) {
                pipeline.offsets.truncate(1);
            }
        } else {
            pipeline.fairness = Mode::None;
            pipeline.class = None;
            pipeline.offsets = vec![common];
        }
        let has_coins = !thresholds.coins.is_empty();
        pipeline.coins = has_coins.then(|| Coins { key, by_group: thresholds.coins.clone() });
        Ok(())
    }

    /// Takes this off the numbers that it predicts, by group; nothing where there is none.
    pub(crate) fn subtract(&mut self, subtracted: Vec<f64>) {
        self.pipeline.subtracted = subtracted;
    }

    /// The encoding of its features.
    pub fn encoding(&self) -> &Encoding {
        &self.encoding
    }

    /// The range of the number that it predicts; `None` if it predicts classes.
    pub fn number(&self) -> Option<&NumberLabel> {
        self.pipeline.schema.label.number.as_ref()
    }

    /// The classes, in the order of the probabilities; none of a number.
    pub fn classes(&self) -> &[String] {
        &self.pipeline.schema.label.classes
    }

    /// The layers: one for an additive model, of `[n_outputs, width]`, with one output for two
    /// classes, else one per class; of a network on pixels its convolutions, then its linear layers.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Whether decisions depend on the group.
    pub fn needs_groups(&self) -> bool {
        self.pipeline.offsets.len() > 1 || !self.pipeline.subtracted.is_empty()
    }

    /// The number that is predicted for a row's features: the additive model's sum, set to the nearer end
    /// of the declared range where it is beyond it; then less what is taken off its group's.
    pub(crate) fn predicted_number(
        &self,
        features: impl Iterator<Item = (usize, f32)>,
        group: usize,
        range: &NumberLabel,
    ) -> f64 {
        let layer = &self.layers[0];
        let sum: f64 = features.map(|(j, value)| f64::from(layer.weights[j]) * f64::from(value)).sum();
        let number = (sum + f64::from(layer.biases[0])).clamp(range.low, range.high);
        match self.pipeline.subtracted.get(group) {
            Some(subtracted) => (number - subtracted).clamp(range.low, range.high),
            None => number,
        }
    }

    /// Fills the probabilities of the classes for a row's features: positions and values.
    pub(crate) fn probabilities(&self, features: impl Iterator<Item = (usize, f32)> + Clone, out: &mut [f64]) {
        if let Some(network) = &self.network {
            let logits = network.logits(features);
            answer(|output| logits[output], out);
            return;
        }
        let unit = |layer: &Layer, output: usize| {
            let width = layer.n_inputs();
            let weights = &layer.weights[output * width..(output + 1) * width];
            let sum: f64 = features.clone().map(|(j, value)| f64::from(weights[j]) * f64::from(value)).sum();
            sum + f64::from(layer.biases[output])
        };
        let (first, others) = (&self.layers[0], &self.layers[1..]);
        let mut hidden: Vec<f64> = Vec::new();
        if !others.is_empty() {
            hidden.extend((0..first.biases.len()).map(|output| unit(first, output)));
        }
        for layer in others {
            for value in &mut hidden {
                *value = libm::tanh(*value);
            }
            let next = layer.weights.chunks_exact(layer.n_inputs()).zip(&layer.biases).map(|(weights, bias)| {
                let sum: f64 = weights.iter().zip(&hidden).map(|(&weight, value)| f64::from(weight) * value).sum();
                sum + f64::from(*bias)
            });
            hidden = next.collect();
        }
        answer(|output| if others.is_empty() { unit(first, output) } else { hidden[output] }, out);
    }

    /// The class that is answered; `group` matters only where decisions depend on it, and features where a coin
    /// decides.
    pub(crate) fn decide(
        &self,
        probabilities: &[f64],
        features: impl Iterator<Item = (usize, f32)>,
        group: usize,
    ) -> usize {
        let pipeline = &self.pipeline;
        match &pipeline.coins {
            None => decide(probabilities, pipeline.offsets.get(group).unwrap_or(&pipeline.offsets[0])),
            Some(coins) => {
                let order = class_order(pipeline.class.as_deref(), self.classes());
                let positive = order.last().copied().unwrap_or_default();
                let threshold = coins.threshold(group, features);
                decide(probabilities, &offsets(threshold, &pipeline.common_offsets(), positive))
            }
        }
    }
}

/// Outputs of a model of so many classes: one for two.
fn n_outputs(n_classes: usize) -> usize {
    if n_classes > 2 { n_classes } else { 1 }
}

/// Fills the probabilities of the classes by the logits of outputs.
fn answer(logit: impl Fn(usize) -> f64, out: &mut [f64]) {
    if let [negative, positive] = out {
        let z = logit(0);
        (*negative, *positive) = (sigmoid(-z), sigmoid(z));
        return;
    }
    for (output, value) in out.iter_mut().enumerate() {
        *value = logit(output);
    }
    softmax(out);
}

/// The class with the largest log-probability after its offset; of equals the first.
pub(crate) fn decide(probabilities: &[f64], offsets: &[f64]) -> usize {
    let mut best = (0, f64::NEG_INFINITY);
    for (class, (probability, offset)) in probabilities.iter().zip(offsets).enumerate() {
        let score = probability.ln() + offset;
        if score > best.1 {
            best = (class, score);
        }
    }
    best.0
}

/// Names of a layer's weight and bias in the file.
fn names(pipeline: &Pipeline, place: usize) -> [String; 2] {
    let prefix = if pipeline.hidden.is_empty() { String::new() } else { format!("fc{}.", place + 1) };
    ["weight", "bias"].map(|name| format!("{prefix}{name}"))
}

#[cfg(test)]
mod tests {
    use dp_table::{BadRows, Bins, Column, Label, NumberFormat};

    use super::*;

    /// A network of one input and its files.
    fn files() -> (String, Vec<u8>) {
        let column = Column::Number {
            low: 0.0,
            high: 1.0,
            bins: Bins::Equal(1),
            missing: None,
            format: NumberFormat::default(),
        };
        let schema = Schema {
            columns: vec![("x".into(), column)],
            label: Label::of_classes("y", vec!["0".into(), "1".into()]),
            groups: Vec::new(),
            group_as_input: false,
            unit: None,
            weight: None,
            bad_rows: BadRows::Refuse,
            missing: vec![String::new()],
        };
        let pipeline = Pipeline::new(schema, vec![0.5, 0.5], Decision::Accuracy);
        let layers = [(2, 3), (3, 1)].map(|(n_inputs, n_outputs)| Layer {
            weights: vec![0.5; n_inputs * n_outputs],
            biases: vec![0.25; n_outputs],
        });
        let model = FittedModel::new(pipeline, layers.into()).unwrap();
        (serde_json::to_string(model.pipeline()).unwrap(), model.safetensors().unwrap())
    }

    #[test]
    fn parts_that_do_not_fit_each_other_are_named() {
        let (pipeline, weights) = files();
        FittedModel::from_bytes(pipeline.as_bytes(), &weights).unwrap();
        for (from, to, named) in [
            (
                "\"hidden\":[3]",
                "\"hidden\":[0]",
                "pipeline.json`: hidden layers of [0]: expected a width of at least 1",
            ),
            ("\"hidden\":[3]", "\"hidden\":[4]", "model.safetensors`: fc1.weight: F32 [3, 2], expected F32 [4, 2]"),
            ("\"hidden\":[3]", "\"hidden\":[]", "pipeline.json`: kind `mlp` with hidden layers of []"),
            (
                "\"priors\":[0.5,0.5]",
                "\"priors\":[1.0]",
                "pipeline.json`: priors: 1 numbers, expected one for each of 2",
            ),
            ("\"offsets\":[[", "\"offsets\":[[0.0,", "pipeline.json`: offsets: expected one per class"),
        ] {
            let changed = pipeline.replacen(from, to, 1);
            assert_ne!(changed, pipeline, "{from}");
            let message = FittedModel::from_bytes(changed.as_bytes(), &weights).unwrap_err().to_string();
            assert!(message.contains(named), "{message}");
        }
    }
}
