//! A small evaluator of the operators that the graphs use, written from their specification, to
//! compare a graph with the model that it was made of.

use std::collections::HashMap;

use regex::Regex;

/// Values of one type, row-major.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Data {
    Floats(Vec<f32>),
    Doubles(Vec<f64>),
    Integers(Vec<i64>),
    Bools(Vec<bool>),
    Texts(Vec<String>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tensor {
    pub(super) shape: Vec<usize>,
    pub(super) data: Data,
}

/// A field of a message: its number, and its integer or its bytes.
type Field<'a> = (u64, i64, &'a [u8]);

fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return value;
        }
    }
}

fn fields(mut bytes: &[u8]) -> Vec<Field<'_>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        if key.is_multiple_of(8) {
            fields.push((key >> 3, varint(&mut bytes).cast_signed(), &[][..]));
        } else {
            let length = varint(&mut bytes) as usize;
            fields.push((key >> 3, 0, &bytes[..length]));
            bytes = &bytes[length..];
        }
    }
    fields
}

fn all<'a>(message: &[Field<'a>], number: u64) -> Vec<&'a [u8]> {
    message.iter().filter(|field| field.0 == number).map(|field| field.2).collect()
}

fn integers(message: &[Field<'_>], number: u64) -> Vec<i64> {
    message.iter().filter(|field| field.0 == number).map(|field| field.1).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn constant(bytes: &[u8]) -> (String, Tensor) {
    let message = fields(bytes);
    let raw = all(&message, 9).first().copied().unwrap_or_default();
    let data = match integers(&message, 2)[0] {
        1 => Data::Floats(raw.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()),
        7 => Data::Integers(raw.as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect()),
        11 => Data::Doubles(raw.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()),
        _ => Data::Texts(all(&message, 6).into_iter().map(text).collect()),
    };
    let shape = integers(&message, 1).into_iter().map(|size| size as usize).collect();
    (text(all(&message, 8)[0]), Tensor { shape, data })
}

/// The outputs of a model by name.
pub(super) fn evaluate(model: &[u8], inputs: HashMap<String, Tensor>) -> HashMap<String, Tensor> {
    let graph = fields(all(&fields(model), 7)[0]);
    let mut values = inputs;
    values.extend(all(&graph, 5).into_iter().map(constant));
    for node in all(&graph, 1) {
        let node = fields(node);
        let inputs: Vec<&Tensor> = all(&node, 1).into_iter().map(|name| &values[&text(name)]).collect();
        let attributes = all(&node, 5).into_iter().map(|attribute| {
            let attribute = fields(attribute);
            (text(all(&attribute, 1)[0]), attribute)
        });
        let result = apply(&text(all(&node, 4)[0]), &inputs, &attributes.collect());
        values.insert(text(all(&node, 2)[0]), result);
    }
    let outputs = all(&graph, 12).into_iter().map(|output| text(all(&fields(output), 1)[0]));
    outputs.map(|name| (name.clone(), values[&name].clone())).collect()
}

/// For each element of a result, its place in a tensor that is broadcast to the result.
fn places(shape: &[usize], result: &[usize]) -> Vec<usize> {
    let n = result.iter().product();
    (0..n)
        .map(|mut index| {
            let (mut place, mut stride) = (0, 1);
            for (at, size) in result.iter().enumerate().rev() {
                let coordinate = index % size;
                index /= size;
                let Some(own) = (at + shape.len()).checked_sub(result.len()).map(|at| shape[at]) else { continue };
                place += if own == 1 { 0 } else { coordinate * stride };
                stride *= own;
            }
            place
        })
        .collect()
}

/// The shape to which these are broadcast.
fn common(inputs: &[&Tensor]) -> Vec<usize> {
    let rank = inputs.iter().map(|input| input.shape.len()).max().unwrap();
    let size = |at: usize| {
        let sizes = inputs.iter().filter_map(|input| {
            let at = (at + input.shape.len()).checked_sub(rank)?;
            Some(input.shape[at])
        });
        sizes.max().unwrap()
    };
    (0..rank).map(size).collect()
}

fn pairs<T: Copy, U>(a: &[T], b: &[T], inputs: &[&Tensor], f: impl Fn(T, T) -> U) -> Vec<U> {
    let shape = common(inputs);
    let [left, right] = [0, 1].map(|input| places(&inputs[input].shape, &shape));
    left.into_iter().zip(right).map(|(left, right)| f(a[left], b[right])).collect()
}

fn floats(tensor: &Tensor) -> &[f32] {
    match &tensor.data {
        Data::Floats(values) => values,
        other => panic!("{other:?} where floats are expected"),
    }
}

fn whole(tensor: &Tensor) -> &[i64] {
    match &tensor.data {
        Data::Integers(values) => values,
        other => panic!("{other:?} where integers are expected"),
    }
}

fn texts(tensor: &Tensor) -> &[String] {
    match &tensor.data {
        Data::Texts(values) => values,
        other => panic!("{other:?} where texts are expected"),
    }
}

fn bools(tensor: &Tensor) -> &[bool] {
    match &tensor.data {
        Data::Bools(values) => values,
        other => panic!("{other:?} where truth values are expected"),
    }
}

fn product(a: &Tensor, b: &Tensor, is_transposed: bool) -> Tensor {
    let (n, inner) = (a.shape[0], a.shape[1]);
    let m = if is_transposed { b.shape[0] } else { b.shape[1] };
    let b_at = |i: usize, j: usize| floats(b)[if is_transposed { j * inner + i } else { i * m + j }];
    let sum = |place: usize| (0..inner).map(|i| floats(a)[place / m * inner + i] * b_at(i, place % m)).sum();
    Tensor { shape: vec![n, m], data: Data::Floats((0..n * m).map(sum).collect()) }
}

fn select<T: Clone>(values: &[T], places: &[usize]) -> Vec<T> {
    places.iter().map(|place| values[*place].clone()).collect()
}

/// Elements of a tensor by their places.
fn selected(data: &Data, places: &[usize]) -> Data {
    match data {
        Data::Floats(values) => Data::Floats(select(values, places)),
        Data::Doubles(values) => Data::Doubles(select(values, places)),
        Data::Integers(values) => Data::Integers(select(values, places)),
        Data::Bools(values) => Data::Bools(select(values, places)),
        Data::Texts(values) => Data::Texts(select(values, places)),
    }
}

/// Puts the elements of two tensors of one type into one list.
fn joined(a: &Data, b: &Data) -> Data {
    match (a, b) {
        (Data::Floats(a), Data::Floats(b)) => Data::Floats([&a[..], b].concat()),
        (Data::Integers(a), Data::Integers(b)) => Data::Integers([&a[..], b].concat()),
        (Data::Texts(a), Data::Texts(b)) => Data::Texts([&a[..], b].concat()),
        other => panic!("{other:?} in one result"),
    }
}

fn apply(operator: &str, inputs: &[&Tensor], attributes: &HashMap<String, Vec<Field<'_>>>) -> Tensor {
    elementwise(operator, inputs)
        .or_else(|| of_texts(operator, inputs[0], attributes))
        .unwrap_or_else(|| across_elements(operator, inputs, attributes))
}

/// Operators whose results have the shape of their inputs.
fn elementwise(operator: &str, inputs: &[&Tensor]) -> Option<Tensor> {
    let first = inputs[0];
    let same = |data: Data| Tensor { shape: first.shape.clone(), data };
    let map = |f: &dyn Fn(f32) -> f32| same(Data::Floats(floats(first).iter().map(|x| f(*x)).collect()));
    let broadcast = |data: Data| Tensor { shape: common(inputs), data };
    let arithmetic =
        |f: &dyn Fn(f32, f32) -> f32| broadcast(Data::Floats(pairs(floats(first), floats(inputs[1]), inputs, f)));
    Some(match operator {
        "Add" => arithmetic(&|a, b| a + b),
        "Sub" => arithmetic(&|a, b| a - b),
        "Mul" => arithmetic(&|a, b| a * b),
        "Max" => arithmetic(&f32::max),
        "Div" => arithmetic(&|a, b| a / b),
        "Sqrt" => map(&f32::sqrt),
        "Abs" => map(&f32::abs),
        "Greater" => broadcast(Data::Bools(pairs(floats(first), floats(inputs[1]), inputs, |a, b| a > b))),
        "Neg" => map(&|x| -x),
        "Log" => map(&f32::ln),
        "Tanh" => map(&f32::tanh),
        "Relu" => map(&|x| x.max(0.0)),
        "Sigmoid" => map(&|x| 1.0 / (1.0 + (-x).exp())),
        "Clip" => {
            let (low, high) = (floats(inputs[1])[0], floats(inputs[2])[0]);
            map(&|x| if x < low { low } else { x.min(high) })
        }
        "IsNaN" => same(Data::Bools(floats(first).iter().map(|x| x.is_nan()).collect())),
        "IsInf" => same(Data::Bools(floats(first).iter().map(|x| x.is_infinite()).collect())),
        "Or" => broadcast(Data::Bools(pairs(bools(first), bools(inputs[1]), inputs, |a, b| a | b))),
        "And" => broadcast(Data::Bools(pairs(bools(first), bools(inputs[1]), inputs, |a, b| a & b))),
        "Equal" => broadcast(Data::Bools(match (&first.data, &inputs[1].data) {
            (Data::Floats(a), Data::Floats(b)) => pairs(a, b, inputs, |a, b| a == b),
            (Data::Doubles(a), Data::Doubles(b)) => pairs(a, b, inputs, |a, b| a == b),
            (Data::Integers(a), Data::Integers(b)) => pairs(a, b, inputs, |a, b| a == b),
            other => panic!("{other:?} compared"),
        })),
        "Where" => {
            let shape = common(inputs);
            let n_left = places(&inputs[1].shape, &inputs[1].shape).len();
            let [condition, left, right] = [0, 1, 2].map(|input| places(&inputs[input].shape, &shape));
            let both = joined(&inputs[1].data, &inputs[2].data);
            let pick = |at: usize| if bools(first)[condition[at]] { left[at] } else { n_left + right[at] };
            let picked: Vec<usize> = (0..condition.len()).map(pick).collect();
            broadcast(selected(&both, &picked))
        }
        _ => return None,
    })
}

/// Operators on texts.
fn of_texts(operator: &str, first: &Tensor, attributes: &HashMap<String, Vec<Field<'_>>>) -> Option<Tensor> {
    let data = match operator {
        "LabelEncoder" => {
            let keys = all(&attributes["keys_strings"], 9).into_iter().map(text);
            let values: HashMap<String, i64> = keys.zip(integers(&attributes["values_int64s"], 8)).collect();
            let default = integers(&attributes["default_int64"], 3)[0];
            Data::Integers(texts(first).iter().map(|text| *values.get(text).unwrap_or(&default)).collect())
        }
        "RegexFullMatch" => {
            let pattern = text(all(&attributes["pattern"], 4)[0]);
            let regex = Regex::new(&format!("^(?:{pattern})$")).unwrap();
            Data::Bools(texts(first).iter().map(|text| regex.is_match(text)).collect())
        }
        "Cast" => Data::Doubles(texts(first).iter().map(|text| text.parse().unwrap()).collect()),
        _ => return None,
    };
    Some(Tensor { shape: first.shape.clone(), data })
}

/// Operators that combine elements of a row, or move elements.
fn across_elements(operator: &str, inputs: &[&Tensor], attributes: &HashMap<String, Vec<Field<'_>>>) -> Tensor {
    let first = inputs[0];
    match operator {
        "MatMul" => product(first, inputs[1], false),
        "Gemm" => {
            let product = product(first, inputs[1], attributes.contains_key("transB"));
            apply("Add", &[&product, inputs[2]], &HashMap::new())
        }
        "Softmax" => {
            let width = first.shape[1];
            let softmax = |row: &[f32]| -> Vec<f32> {
                let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let powers: Vec<f32> = row.iter().map(|x| (x - largest).exp()).collect();
                powers.iter().map(|power| power / powers.iter().sum::<f32>()).collect()
            };
            let data = Data::Floats(floats(first).chunks(width).flat_map(softmax).collect());
            Tensor { shape: first.shape.clone(), data }
        }
        "Concat" => {
            let rows = first.shape[0];
            let width: usize = inputs.iter().map(|input| input.shape[1]).sum();
            let row = |row: usize| {
                inputs.iter().flat_map(move |input| &floats(input)[row * input.shape[1]..(row + 1) * input.shape[1]])
            };
            Tensor { shape: vec![rows, width], data: Data::Floats((0..rows).flat_map(row).copied().collect()) }
        }
        "ArgMax" => {
            // The first one if there are NaN, as in ONNX Runtime.
            let largest = |row: &[f32]| {
                let better = |best: usize, at: usize| if row[at] > row[best] { at } else { best };
                (1..row.len()).fold(0, better).cast_signed() as i64
            };
            let data = Data::Integers(floats(first).chunks(first.shape[1]).map(largest).collect());
            Tensor { shape: vec![first.shape[0]], data }
        }
        "ReduceSumSquare" => {
            let rows = floats(first).chunks(first.shape[1]);
            let data = Data::Floats(rows.map(|row| row.iter().map(|x| x * x).sum()).collect());
            Tensor { shape: vec![first.shape[0], 1], data }
        }
        "ReduceMax" if matches!(first.data, Data::Floats(_)) => {
            let rows = floats(first).chunks(first.shape[1]);
            let data = Data::Floats(rows.map(|row| row.iter().copied().fold(f32::NEG_INFINITY, f32::max)).collect());
            Tensor { shape: vec![first.shape[0], 1], data }
        }
        "ReduceMax" => {
            let rows = whole(first).chunks(first.shape[1]);
            let data = Data::Integers(rows.map(|row| *row.iter().max().unwrap()).collect());
            Tensor { shape: vec![first.shape[0]], data }
        }
        "Reshape" => {
            let n = places(&first.shape, &first.shape).len();
            let shape = match whole(inputs[1]) {
                [-1] => vec![n],
                [-1, 1] => vec![n, 1],
                &[-1, ref others @ ..] => {
                    let others: Vec<usize> = others.iter().map(|&size| size as usize).collect();
                    [&[n / others.iter().product::<usize>()], &others[..]].concat()
                }
                other => panic!("{other:?} as a shape"),
            };
            Tensor { shape, data: first.data.clone() }
        }
        "Flatten" => {
            let rows = first.shape[0];
            Tensor { shape: vec![rows, first.shape[1..].iter().product()], data: first.data.clone() }
        }
        "Transpose" => {
            let order: Vec<usize> = integers(&attributes["perm"], 8).into_iter().map(|axis| axis as usize).collect();
            let shape: Vec<usize> = order.iter().map(|&axis| first.shape[axis]).collect();
            let stride = |axis: usize| first.shape[axis + 1..].iter().product::<usize>();
            let place = |mut index: usize| {
                let coordinates = shape.iter().zip(&order).rev().map(|(size, &axis)| {
                    let coordinate = index % size;
                    index /= size;
                    coordinate * stride(axis)
                });
                coordinates.sum()
            };
            let places: Vec<usize> = (0..shape.iter().product()).map(place).collect();
            Tensor { data: selected(&first.data, &places), shape }
        }
        "Conv" => {
            let (weights, biases) = (inputs[1], floats(inputs[2]));
            let per_filter: usize = weights.shape[1..].iter().product();
            over_windows(first, weights.shape[0], attributes, |filter, window| {
                let weights = &floats(weights)[filter * per_filter..(filter + 1) * per_filter];
                let sum: f32 = window.iter().flatten().zip(weights).map(|(pixel, weight)| pixel * weight).sum();
                sum + biases[filter]
            })
        }
        "MaxPool" => over_windows(first, first.shape[1], attributes, |channel, window| {
            window[channel].iter().copied().fold(f32::NEG_INFINITY, f32::max)
        }),
        "Gather" => {
            let row: usize = first.shape[1..].iter().product();
            let places = whole(inputs[1]).iter().flat_map(|&at| (0..row).map(move |i| at as usize * row + i));
            let shape = [&inputs[1].shape[..], &first.shape[1..]].concat();
            Tensor { shape, data: selected(&first.data, &places.collect::<Vec<_>>()) }
        }
        other => panic!("{other} has no evaluation"),
    }
}

/// An image of so many channels, each a function of its number and of the window of every channel before: without
/// padding or groups.
fn over_windows(
    image: &Tensor,
    n_channels: usize,
    attributes: &HashMap<String, Vec<Field<'_>>>,
    of: impl Fn(usize, &[Vec<f32>]) -> f32,
) -> Tensor {
    let whole = |name: &str| integers(&attributes[name], 8);
    assert!(whole("pads").iter().all(|&pad| pad == 0));
    assert!(attributes.get("group").is_none_or(|group| integers(group, 3) == [1]));
    let (kernel, stride) = (whole("kernel_shape")[0] as usize, whole("strides")[0] as usize);
    let [rows, channels, height, width] = image.shape[..] else { panic!("{:?} is no image", image.shape) };
    let [down, across] = [height, width].map(|side| (side - kernel) / stride + 1);
    let pixels = floats(image);
    let mut values = Vec::new();
    for row in 0..rows {
        let windows: Vec<Vec<Vec<f32>>> = (0..down * across)
            .map(|place| {
                let (top, left) = (place / across * stride, place % across * stride);
                let line = |channel: usize, y: usize| {
                    let start = ((row * channels + channel) * height + top + y) * width + left;
                    &pixels[start..start + kernel]
                };
                (0..channels).map(|channel| (0..kernel).flat_map(|y| line(channel, y)).copied().collect()).collect()
            })
            .collect();
        values.extend(
            (0..n_channels)
                .flat_map(|channel| windows.iter().map(move |window| (channel, window)))
                .map(|(channel, window)| of(channel, window)),
        );
    }
    Tensor { shape: vec![rows, n_channels, down, across], data: Data::Floats(values) }
}
