//! An ONNX graph: inputs, constants, operators, outputs. Field numbers come from `onnx.proto`.

use std::collections::HashSet;

use super::proto::Message;

/// Version of the file format and of the two sets of operators: what ONNX Runtime has read since
/// 1.17 (2024).
const IR_VERSION: i64 = 9;
const OPSET: i64 = 20;
const ML_OPSET: i64 = 3;
const ML: &str = "ai.onnx.ml";

const FLOAT: i64 = 1;
const INT64: i64 = 7;
const STRING: i64 = 8;
pub(super) const DOUBLE: i64 = 11;

/// The type of an input or output.
#[derive(Debug, Clone, Copy)]
pub(super) enum Element {
    Float,
    Text,
}

/// An attribute of an operator.
#[derive(Debug, Clone, Copy)]
pub(super) enum Attribute<'a> {
    Integer(&'a str, i64),
    Integers(&'a str, &'a [i64]),
    Text(&'a str, &'a str),
    Texts(&'a str, &'a [String]),
}

/// A graph while it is put together.
#[derive(Debug, Default)]
pub(super) struct Graph {
    names: HashSet<String>,
    nodes: Vec<Message>,
    constants: Vec<Message>,
    inputs: Vec<Message>,
    outputs: Vec<Message>,
}

impl Graph {
    /// Declares an input of any number of rows and this many columns. Inputs come before everything else,
    /// so that their names are kept.
    pub(super) fn input(&mut self, name: &str, element: Element, width: usize) {
        self.names.insert(name.to_owned());
        self.inputs.push(value(name, element, &[None, Some(width)]));
    }

    /// Declares an output of any number of rows, and of columns where a number is given. Returns
    /// its name, which is made unique.
    pub(super) fn output(&mut self, name: &str, element: Element, columns: Option<usize>) -> String {
        let name = self.unique(name);
        let shape: &[Option<usize>] = if columns.is_some() { &[None, columns] } else { &[None] };
        self.outputs.push(value(&name, element, shape));
        name
    }

    /// Numbers of this shape; returns their name.
    pub(super) fn floats(&mut self, name: &str, shape: &[usize], values: &[f32]) -> String {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(name, shape, FLOAT, |tensor| tensor.bytes(9, &bytes))
    }

    /// Numbers in double precision in a row.
    pub(super) fn doubles(&mut self, name: &str, values: &[f64]) -> String {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(name, &[values.len()], DOUBLE, |tensor| tensor.bytes(9, &bytes))
    }

    /// Integers in a row.
    pub(super) fn integers(&mut self, name: &str, values: &[i64]) -> String {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(name, &[values.len()], INT64, |tensor| tensor.bytes(9, &bytes))
    }

    /// Texts in a row.
    pub(super) fn texts<S: AsRef<str>>(&mut self, name: &str, values: &[S]) -> String {
        self.constant(name, &[values.len()], STRING, |tensor| {
            values.iter().fold(tensor, |tensor, value| tensor.text(6, value.as_ref()))
        })
    }

    fn constant(&mut self, name: &str, shape: &[usize], element: i64, fill: impl FnOnce(Message) -> Message) -> String {
        let name = self.unique(name);
        let tensor = shape.iter().fold(Message::default(), |tensor, size| tensor.integer(1, length(*size)));
        self.constants.push(fill(tensor.integer(2, element)).text(8, &name));
        name
    }

    /// Applies an operator; returns its result's name, made from `name`.
    pub(super) fn apply(
        &mut self,
        operator: &str,
        name: &str,
        inputs: &[&str],
        attributes: &[Attribute<'_>],
    ) -> String {
        let name = self.unique(name);
        self.apply_to(operator, &name, inputs, attributes);
        name
    }

    /// Applies an operator whose result is an output.
    pub(super) fn apply_to(&mut self, operator: &str, output: &str, inputs: &[&str], attributes: &[Attribute<'_>]) {
        let node = inputs.iter().fold(Message::default(), |node, input| node.text(1, input));
        let node = node.text(2, output).text(3, output).text(4, operator);
        let node = attributes.iter().fold(node, |node, attribute| node.message(5, &attribute.message()));
        let domain = if operator == "LabelEncoder" { ML } else { "" };
        self.nodes.push(node.text(7, domain));
    }

    /// The whole file.
    pub(super) fn into_model(self, name: &str, description: &str) -> Vec<u8> {
        let graph = Message::default()
            .messages(1, &self.nodes)
            .text(2, name)
            .messages(5, &self.constants)
            .text(10, description)
            .messages(11, &self.inputs)
            .messages(12, &self.outputs);
        let opset = |domain: &str, version| Message::default().text(1, domain).integer(2, version);
        Message::default()
            .integer(1, IR_VERSION)
            .text(2, "fairdp")
            .message(7, &graph)
            .messages(8, [&opset("", OPSET), &opset(ML, ML_OPSET)])
            .into_bytes()
    }

    fn unique(&mut self, name: &str) -> String {
        let mut name = name.to_owned();
        while !self.names.insert(name.clone()) {
            name.push('_');
        }
        name
    }
}

impl Attribute<'_> {
    fn message(&self) -> Message {
        match self {
            Self::Integer(name, value) => Message::default().text(1, name).integer(3, *value).integer(20, 2),
            Self::Integers(name, values) => {
                let attribute = Message::default().text(1, name);
                values.iter().fold(attribute, |attribute, value| attribute.integer(8, *value)).integer(20, 7)
            }
            Self::Text(name, value) => Message::default().text(1, name).text(4, value).integer(20, 3),
            Self::Texts(name, values) => {
                let attribute = Message::default().text(1, name);
                values.iter().fold(attribute, |attribute, value| attribute.text(9, value)).integer(20, 8)
            }
        }
    }
}

/// A length or position; none is near the largest integer.
pub(super) fn length(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn value(name: &str, element: Element, shape: &[Option<usize>]) -> Message {
    let shape = shape.iter().fold(Message::default(), |shape, size| {
        let dimension = match size {
            Some(size) => Message::default().integer(1, length(*size)),
            None => Message::default().text(2, "rows"),
        };
        shape.message(1, &dimension)
    });
    let element = match element {
        Element::Float => FLOAT,
        Element::Text => STRING,
    };
    let tensor = Message::default().integer(1, element).message(2, &shape);
    Message::default().text(1, name).message(2, &Message::default().message(1, &tensor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_keeps_its_name_and_an_output_gets_another() {
        let mut graph = Graph::default();
        graph.input("prediction", Element::Text, 1);
        assert_eq!(graph.output("prediction", Element::Text, None), "prediction_");
        assert_eq!(graph.apply("Neg", "prediction", &["x"], &[]), "prediction__");
    }

    /// Version 9, the producer, a graph that is called `g`, two sets of operators.
    #[test]
    fn an_empty_model_by_hand() {
        let bytes = Graph::default().into_model("g", "");
        let expected = b"\x08\x09\x12\x06fairdp\x3a\x05\x12\x01g\x52\x00\x42\x04\x0a\x00\x10\x14\x42\x0e\x0a\x0aai.onnx.ml\x10\x03";
        assert_eq!(bytes, expected);
    }
}
