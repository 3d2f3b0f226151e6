//! Numbers among texts, in whatever way they are spelled.

use super::graph::{Attribute, DOUBLE, Graph, length};

/// A number that is no code such as `01`, and so short that a double tells it from all others: one
/// with a point has at most 15 digits in 16 characters.
const NUMBER: &str = r"[+-]?((0|[1-9][0-9]{0,14})(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,2})?";
const SHORT: &str = ".{1,16}";

/// The position of each text's number in a list, `[rows]`, and `position` of those that are not in
/// it. What this does in rows of `texts` is [`Value::of`](dp_table::Value::of) for short
/// numbers.
pub(super) fn positions(graph: &mut Graph, column: &str, texts: &str, position: &str, known: &[(f64, i64)]) -> String {
    let name = |what: &str| format!("{column}: {what}");
    let [is_number, is_short] = [NUMBER, SHORT].map(|pattern| {
        graph.apply("RegexFullMatch", &name("is a number"), &[texts], &[Attribute::Text("pattern", pattern)])
    });
    let is_number = graph.apply("And", &name("is a short number"), &[&is_number, &is_short], &[]);
    // Another text cannot be cast.
    let zero = graph.texts(&name("no number"), &["0"]);
    let digits = graph.apply("Where", &name("digits"), &[&is_number, texts, &zero], &[]);
    let number = graph.apply("Cast", &name("number"), &[&digits], &[Attribute::Integer("to", DOUBLE)]);
    let upright = graph.integers(&name("upright"), &[-1, 1]);
    let [number, is_number] =
        [number, is_number].map(|row| graph.apply("Reshape", &name("by row"), &[&row, &upright], &[]));
    let keys: Vec<f64> = known.iter().map(|(number, _)| *number).collect();
    let keys = graph.doubles(&name("numbers"), &keys);
    let is_equal = graph.apply("Equal", &name("is equal"), &[&number, &keys], &[]);
    let is_equal = graph.apply("And", &name("is this number"), &[&is_equal, &is_number], &[]);
    let places: Vec<i64> = known.iter().map(|(_, place)| *place).collect();
    let places = graph.integers(&name("places"), &places);
    let nowhere = graph.integers(&name("nowhere"), &[-1]);
    let found = graph.apply("Where", &name("found"), &[&is_equal, &places, &nowhere], &[]);
    let across = graph.integers(&name("across"), &[1]);
    let found =
        graph.apply("ReduceMax", &name("place"), &[&found, &across], &[Attribute::Integer("keepdims", length(0))]);
    let is_nowhere = graph.apply("Equal", &name("is nowhere"), &[&found, &nowhere], &[]);
    graph.apply("Where", &name("position by number"), &[&is_nowhere, position, &found], &[])
}
