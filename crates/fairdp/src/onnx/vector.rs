//! A vector as operators: brought into the unit ball, and scaled.

use dp_table::{FeatureBlock, VectorBound};

use super::features::any;
use super::graph::{Attribute, Graph};

/// Whether a row of numbers has a NaN, and whether it has an infinite one: `[rows, 1]` each. `axis` is a constant
/// 1.
pub(super) fn missing_and_infinite(graph: &mut Graph, column: &str, axis: &str) -> [String; 2] {
    let name = |what: &str| format!("{column}: {what}");
    let mut holds = |operator: &str, what: &str| {
        let each = graph.apply(operator, &name(what), &[column], &[]);
        let [one, zero] = [1.0, 0.0].map(|number| graph.floats(&name("number"), &[1, 1], &[number]));
        let counted = graph.apply("Where", &name("counted"), &[&each, &one, &zero], &[]);
        let keep = [Attribute::Integer("keepdims", 1)];
        let square = graph.apply("ReduceSumSquare", &name("count"), &[&counted, axis], &keep);
        graph.apply("Greater", &name("holds"), &[&square, &zero], &[])
    };
    [holds("IsNaN", "is absent"), holds("IsInf", "is infinite")]
}

/// Returns the features, and whether the vector is refused: one with an infinite number, and a
/// missing one, which has a NaN, where nothing is declared for that.
pub(super) fn features(
    graph: &mut Graph,
    block: &FeatureBlock,
    bound: VectorBound,
    missing: bool,
    scale: f32,
) -> (String, String) {
    let column = block.column.as_str();
    let length = block.features.len() - usize::from(missing);
    let name = |what: &str| format!("{column}: {what}");
    let axis = graph.integers(&name("axis"), &[1]);
    let keep = [Attribute::Integer("keepdims", 1)];
    let present = match bound {
        VectorBound::Norm(norm) => {
            // Divided by its largest number first, whose square may be beyond single precision.
            let least = graph.floats(&name("norm"), &[1, 1], &[norm as f32]);
            let sizes = graph.apply("Abs", &name("sizes"), &[column], &[]);
            let largest = graph.apply("ReduceMax", &name("largest"), &[&sizes, &axis], &keep);
            let by = graph.apply("Max", &name("divisor"), &[&largest, &least], &[]);
            let small = graph.apply("Div", &name("small"), &[column, &by], &[]);
            let square = graph.apply("ReduceSumSquare", &name("square"), &[&small, &axis], &keep);
            let found = graph.apply("Sqrt", &name("length"), &[&square], &[]);
            let share = graph.apply("Div", &name("share"), &[&least, &by], &[]);
            let by = graph.apply("Max", &name("second divisor"), &[&found, &share], &[]);
            let unit = graph.apply("Div", &name("in the ball"), &[&small, &by], &[]);
            let factor = graph.floats(&name("scale"), &[1, 1], &[scale]);
            graph.apply("Mul", &name("scaled"), &[&unit, &factor], &[])
        }
        VectorBound::Range { low, high } => {
            let root = (length as f64).sqrt();
            let [lower, upper] = [low, high].map(|end| graph.floats(&name("end"), &[], &[end as f32]));
            let clipped = graph.apply("Clip", &name("clipped"), &[column, &lower, &upper], &[]);
            let above = graph.apply("Sub", &name("above"), &[&clipped, &lower], &[]);
            let by = 2.0 / (high - low) / root * f64::from(scale);
            let factor = graph.floats(&name("scale"), &[1, 1], &[by as f32]);
            let shift = graph.floats(&name("shift"), &[1, 1], &[(-f64::from(scale) / root) as f32]);
            let scaled = graph.apply("Mul", &name("scaled"), &[&above, &factor], &[]);
            graph.apply("Add", &name("shifted"), &[&scaled, &shift], &[])
        }
    };
    let [is_missing, is_infinite] = missing_and_infinite(graph, column, &axis);
    if !missing {
        return (present, any(graph, &name("is refused"), vec![is_infinite, is_missing]));
    }
    let mut indicator = vec![0.0; length + 1];
    indicator[length] = scale;
    let instead = graph.floats(&name("if missing"), &[1, length + 1], &indicator);
    // Zero either way: a column of as many rows.
    let zero = graph.floats(&name("zero"), &[1, 1], &[0.0]);
    let none = graph.apply("Where", &name("none"), &[&is_missing, &zero, &zero], &[]);
    let wide = graph.apply("Concat", &name("wide"), &[&present, &none], &[Attribute::Integer("axis", 1)]);
    (graph.apply("Where", &name("features"), &[&is_missing, &instead, &wide], &[]), is_infinite)
}
