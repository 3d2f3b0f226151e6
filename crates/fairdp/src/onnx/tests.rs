//! The graph against the model that it was made of.

use std::collections::HashMap;
use std::fs;

use dp_table::{BadRows, Bins, Column, Label, NumberFormat, Schema, TableFiles, Value, VectorBound};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::evaluate::{Data, Tensor, evaluate};
use super::onnx;
use crate::config::Decision;
use crate::model::{FittedModel, Layer, Pipeline};
use crate::predictor::Predictor;

const ROWS: usize = 1_000;

/// Texts that a file may hold where a number is expected.
const NUMBERS: [&str; 16] =
    ["17", "30", "30.0", "+45", "4.5e1", "90", "1e3", "-5", "-0", "3e38", "", "NA", "99", "99.0", "inf", "-inf"];
/// And where a vector of two is.
const VECTORS: [&str; 8] = ["0.5 0.25", "3 4", "-3 40", "0 0", "1e30 -1e30", "", "NA", "inf 1"];
/// And where one of a list is: spellings, near misses, codes, and texts that are no numbers.
const TEXTS: [&str; 37] = [
    "1",
    "1.0",
    "+1",
    "1.",
    "1e0",
    "1E+00",
    "01",
    "2",
    "2.00",
    "20e-1",
    "0.5",
    ".5",
    "-0",
    "0",
    "0.0",
    "10",
    "1e1",
    "1e",
    "true",
    "True",
    "TRUE",
    "tRUE",
    "false",
    "False",
    "",
    "NA",
    "99",
    "99.0",
    "clerk",
    "Clerk",
    "inf",
    "nan",
    "1_0",
    "9007199254740993",
    "9007199254740992",
    "1e400",
    "na",
];

fn category(values: &[&str], other: bool, missing: bool) -> Column {
    Column::Category { values: values.iter().map(|&value| value.into()).collect(), other, missing }
}

fn vector(bound: VectorBound, missing: bool) -> Column {
    Column::Vector { length: 2, bound, missing }
}

fn number(bins: usize, missing: Option<f64>) -> Column {
    Column::Number { low: 17.0, high: 90.0, bins: Bins::Equal(bins), missing, format: NumberFormat::default() }
}

fn model(columns: Vec<(&str, Column)>, classes: &[&str], hidden: &[usize], rng: &mut ChaCha8Rng) -> FittedModel {
    let classes: Vec<String> = classes.iter().map(|&class| class.into()).collect();
    let schema = Schema {
        columns: columns.into_iter().map(|(name, column)| (name.to_owned(), column)).collect(),
        label: Label::of_classes("y", classes.clone()),
        groups: Vec::new(),
        group_as_input: false,
        unit: None,
        weight: None,
        bad_rows: BadRows::Drop,
        missing: ["", "NA", "99"].map(str::to_owned).to_vec(),
    };
    let width = dp_table::Encoding::new(&schema).unwrap().width();
    let n_outputs = if classes.len() == 2 { 1 } else { classes.len() };
    let sizes = [&[width], hidden, &[n_outputs]].concat();
    let mut random = |n: usize| (0..n).map(|_| rng.random_range(-3.0..3.0)).collect::<Vec<f32>>();
    let layers = sizes.windows(2).map(|pair| Layer { weights: random(pair[0] * pair[1]), biases: random(pair[1]) });
    let layers = layers.collect();
    FittedModel::new(Pipeline::new(schema, vec![1.0 / classes.len() as f64; classes.len()], Decision::Accuracy), layers)
        .unwrap()
}

/// The numbers that a caller of ONNX Runtime makes of a column's texts: NaN for missing values.
fn tensor(model: &FittedModel, column: &Column, texts: &[&str]) -> Tensor {
    if let Column::Vector { length, .. } = column {
        let numbers = |text: &&str| match text.split_once(' ') {
            Some((one, other)) => [one, other].map(|number| number.parse().unwrap()),
            None => [f32::NAN; 2],
        };
        return Tensor {
            shape: vec![texts.len(), *length],
            data: Data::Floats(texts.iter().flat_map(numbers).collect()),
        };
    }
    let shape = vec![texts.len(), 1];
    let number = |text: &&str| match Value::of(text) {
        // Numbers that are markers are left to the graph.
        Value::Text(_) if model.encoding().is_missing(text) => f32::NAN,
        _ => text.parse().unwrap(),
    };
    let data = match column {
        Column::Number { .. } => Data::Floats(texts.iter().map(number).collect()),
        _ => Data::Texts(texts.iter().map(|&text| text.to_owned()).collect()),
    };
    Tensor { shape, data }
}

/// Rows of odd values, as a file and as what the graph makes of them.
struct Asked {
    texts: Vec<Vec<&'static str>>,
    folder: tempfile::TempDir,
    outputs: HashMap<String, Tensor>,
}

impl Asked {
    fn files(&self) -> TableFiles {
        TableFiles::new(&[self.folder.path().join("t.csv").to_str().unwrap()]).unwrap()
    }

    fn line(&self, row: usize) -> Vec<&str> {
        self.texts.iter().map(|column| column[row]).collect()
    }
}

fn asked(model: &FittedModel, rng: &mut ChaCha8Rng) -> Asked {
    let columns = &model.encoding().schema().columns;
    let of = |column: &Column| match column {
        Column::Number { .. } => &NUMBERS[..],
        Column::Vector { .. } => &VECTORS[..],
        _ => &TEXTS[..],
    };
    let texts: Vec<Vec<&str>> = columns
        .iter()
        .map(|(_, column)| (0..ROWS).map(|_| of(column)[rng.random_range(0..of(column).len())]).collect())
        .collect();
    let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    let mut csv = format!("row,{}\n", names.join(","));
    for row in 0..ROWS {
        let fields: Vec<&str> = texts.iter().map(|column| column[row]).collect();
        csv += &format!("{row},{}\n", fields.join(","));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    fs::write(&path, csv).unwrap();
    let inputs = columns.iter().zip(&texts);
    let inputs: HashMap<String, Tensor> =
        inputs.map(|((name, column), texts)| (name.clone(), tensor(model, column, texts))).collect();
    let outputs = evaluate(&onnx(model).unwrap(), inputs);
    Asked { texts, folder, outputs }
}

/// Both ways of asking a model, over the same rows.
fn compare(model: &FittedModel, rng: &mut ChaCha8Rng) -> (usize, usize) {
    let asked = asked(model, rng);
    let outputs = &asked.outputs;
    let n_classes = model.classes().len();
    let (Data::Floats(probabilities), Data::Texts(predictions)) =
        (&outputs["probabilities"].data, &outputs["prediction"].data)
    else {
        panic!("other types of outputs");
    };
    let mut predictor = Predictor::new(model, &asked.files()).unwrap();
    let mut n_answered = 0;
    for row in 0..ROWS {
        let found = &probabilities[row * n_classes..(row + 1) * n_classes];
        let line = asked.line(row);
        match predictor.answer() {
            Ok(Some((class, expected))) => {
                n_answered += 1;
                let difference = found.iter().zip(expected).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
                assert!(difference < 1e-5, "{line:?}: {found:?} {expected:?}");
                // Where two classes are as probable as each other, rounding decides.
                let margin = expected.iter().filter(|other| expected[class] - **other < 1e-5).count();
                assert!(margin > 1 || predictions[row] == model.classes()[class], "{line:?}: {}", predictions[row]);
            }
            Ok(None) => panic!("{row} rows"),
            Err(error) => {
                assert!(found.iter().all(|value| value.is_nan()), "{line:?}: {found:?}, but {error}");
                assert_eq!(predictions[row], "", "{line:?}: {error}");
            }
        }
    }
    (n_answered, predictor.counts().dropped as usize)
}

/// A column of every kind.
fn columns() -> Vec<(&'static str, Column)> {
    vec![
        ("age", number(8, None)),
        ("pay", number(1, Some(30.0))),
        ("code", category(&["1", "2.00", "10", "0.5", "01"], false, false)),
        ("flag", category(&["false", "true"], false, true)),
        ("bit", category(&["1", "0"], true, false)),
        ("mixed", category(&["true", "1", "clerk"], false, true)),
        ("job", category(&["clerk"], true, true)),
        ("account", category(&["9007199254740993", "1e400"], true, false)),
        ("bool", Column::Boolean { values: ["false", "true"].map(str::to_owned), missing: true }),
        ("certain", Column::Boolean { values: ["0", "1"].map(str::to_owned), missing: false }),
        ("short", vector(VectorBound::Norm(1.0), true)),
        ("long", vector(VectorBound::Norm(50.0), false)),
        ("ranged", vector(VectorBound::Range { low: -1.0, high: 4.0 }, true)),
    ]
}

/// Every column alone, so that most rows have an answer; then all of them together.
#[test]
fn both_ways_answer_the_same_of_the_same_odd_rows() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for column in columns() {
        for (classes, hidden) in [(&["no", "yes"][..], &[][..]), (&["a", "b", "c"], &[]), (&["no", "yes"], &[3])] {
            let name = column.0;
            let (n_answered, n_refused) = compare(&model(vec![column.clone()], classes, hidden, &mut rng), &mut rng);
            assert!(n_answered > 0 && n_answered + n_refused == ROWS, "{name}: {n_answered} {n_refused}");
        }
    }
    let (n_answered, n_refused) = compare(&model(columns(), &["no", "yes"], &[4], &mut rng), &mut rng);
    assert!(n_answered > 0 && n_refused > 0, "{n_answered} {n_refused}");
}

/// The number of the graph is that of a prediction to a millionth of the range, and NaN where there is none.
#[test]
fn both_ways_predict_the_same_number() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    for columns in columns().into_iter().map(|column| vec![column]).chain([columns()]) {
        let mut model = model(columns, &["no", "yes"], &[], &mut rng);
        let schema = Schema { label: Label::of_number("y", -2.0, 3.0), ..model.encoding().schema().clone() };
        let layers = model.layers().to_vec();
        model = FittedModel::new(Pipeline::new(schema, Vec::new(), Decision::default()), layers).unwrap();
        let bytes = serde_json::to_vec(model.pipeline()).unwrap();
        FittedModel::from_bytes(&bytes, &model.safetensors().unwrap()).unwrap();
        let asked = asked(&model, &mut rng);
        assert!(!asked.outputs.contains_key("probabilities"));
        let Data::Floats(found) = &asked.outputs["prediction"].data else { panic!("another type") };
        let mut predictor = Predictor::new(&model, &asked.files()).unwrap();
        for (row, found) in found.iter().enumerate() {
            match predictor.number() {
                Ok(Some(expected)) => {
                    assert!((-2.0..=3.0).contains(&expected));
                    let difference = (f64::from(*found) - expected).abs();
                    assert!(difference < 5e-6, "{:?}: {found} {expected}", asked.line(row));
                }
                Ok(None) => panic!("{row} rows"),
                Err(error) => assert!(found.is_nan(), "{:?}: {found}, but {error}", asked.line(row)),
            }
        }
    }
}

/// Both networks of the papers on grey and coloured pixels: probabilities of the graph are those of the model to a
/// millionth, files of a model give it again, and a pixel that is no number has no answer.
#[cfg(feature = "images")]
#[test]
fn networks_answer_the_same_of_the_same_pixels() {
    use dp_train::{DType, Device, ImageShape, Model};

    use crate::config::NetworkName;
    use crate::network::layers_of;

    let mut rng = rand_chacha::ChaCha20Rng::seed_from_u64(3);
    for (name, side, channels, n_classes) in
        [(NetworkName::ZhaoCnn, 17, 1, 3), (NetworkName::EsipovaCnn, 8, 3, 2), (NetworkName::ZhaoCnn, 13, 3, 2)]
    {
        let image = ImageShape { height: side, width: side + 1, channels };
        let (height, width) = (image.height, image.width);
        let column = Column::Image { height, width, channels, resize: false, missing: false, pixels: true };
        let schema = Schema {
            columns: vec![("scan".into(), column)],
            label: Label::of_classes("y", (0..n_classes).map(|class| class.to_string()).collect()),
            groups: Vec::new(),
            group_as_input: false,
            unit: None,
            weight: None,
            bad_rows: BadRows::Drop,
            missing: vec![String::new()],
        };
        let n_outputs = if n_classes == 2 { 1 } else { n_classes };
        let drawn = Model::new(&name.config(image), image.len(), n_outputs, DType::F32, &Device::Cpu).unwrap();
        drawn.initialise(&mut rng).unwrap();
        let layers = layers_of(drawn.parameters()).unwrap();
        let priors = vec![1.0 / n_classes as f64; n_classes];
        let pipeline = Pipeline { network: Some(name), ..Pipeline::new(schema, priors, Decision::Accuracy) };
        let model = FittedModel::new(pipeline, layers).unwrap();
        let bytes = serde_json::to_vec(model.pipeline()).unwrap();
        let model = FittedModel::from_bytes(&bytes, &model.safetensors().unwrap()).unwrap();

        let n_rows = 12;
        let mut pixels: Vec<f32> = (0..n_rows * image.len()).map(|_| rng.random_range(0.0..1.0)).collect();
        let scale = model.encoding().scale();
        let mut expected = vec![vec![0.0; n_classes]; n_rows];
        for (row, out) in pixels.chunks(image.len()).zip(&mut expected) {
            let constant = [scale];
            let features = row.iter().map(|pixel| pixel * scale).chain(constant);
            model.probabilities(features.enumerate(), out);
        }
        pixels[3] = f32::NAN;
        let input = Tensor { shape: vec![n_rows, image.len()], data: Data::Floats(pixels) };
        let outputs = evaluate(&onnx(&model).unwrap(), HashMap::from([("scan".to_owned(), input)]));
        let Data::Floats(found) = &outputs["probabilities"].data else { panic!("another type") };
        assert!(found[..n_classes].iter().all(|value| value.is_nan()));
        for (found, expected) in found.chunks(n_classes).zip(&expected).skip(1) {
            let difference = found.iter().zip(expected).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
            assert!(difference < 1e-6, "{name:?}: {found:?} {expected:?}");
        }
        assert!(expected[1] != expected[2], "{name:?}");
    }
}
