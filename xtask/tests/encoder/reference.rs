//! The encoder written down as plainly as it can be, in double precision: sums over indices, one
//! token at a time.

use super::tiny::{HEADS, HIDDEN, INNER, Kind, LAYERS, Tiny};

/// Features of a text that was cut into these tokens.
pub(super) fn features(tiny: &Tiny, tokens: &[usize]) -> Vec<f64> {
    let model = Model { tiny };
    let mut rows: Vec<Vec<f64>> =
        tokens.iter().enumerate().map(|(position, &token)| model.embedding(position, token)).collect();
    for layer in 0..LAYERS {
        rows = model.layer(&format!("encoder.layer.{layer}"), &rows);
    }
    match tiny.kind {
        Kind::Bert => model.linear("pooler.dense", &rows[0], HIDDEN).iter().map(|x| x.tanh()).collect(),
        Kind::Distilbert => rows.swap_remove(0),
    }
}

struct Model<'a> {
    tiny: &'a Tiny,
}

impl Model<'_> {
    fn parameter(&self, name: &str, index: usize) -> f64 {
        f64::from(self.tiny.parameters[name].1[index])
    }

    fn embedding(&self, position: usize, token: usize) -> Vec<f64> {
        let row = (0..HIDDEN)
            .map(|i| {
                let word = self.parameter("embeddings.word_embeddings.weight", token * HIDDEN + i);
                let place = self.parameter("embeddings.position_embeddings.weight", position * HIDDEN + i);
                let kind = match self.tiny.kind {
                    Kind::Bert => self.parameter("embeddings.token_type_embeddings.weight", i),
                    Kind::Distilbert => 0.0,
                };
                word + place + kind
            })
            .collect::<Vec<_>>();
        self.norm("embeddings.LayerNorm", &row)
    }

    fn linear(&self, name: &str, x: &[f64], n_outputs: usize) -> Vec<f64> {
        let (weight, bias) = (format!("{name}.weight"), format!("{name}.bias"));
        let output = |o: usize| {
            let sum: f64 =
                x.iter().enumerate().map(|(i, value)| self.parameter(&weight, o * x.len() + i) * value).sum();
            sum + self.parameter(&bias, o)
        };
        (0..n_outputs).map(output).collect()
    }

    fn norm(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let n = x.len() as f64;
        let mean = x.iter().sum::<f64>() / n;
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        let (weight, bias) = (format!("{name}.weight"), format!("{name}.bias"));
        let scaled = |(i, x): (usize, &f64)| {
            (x - mean) / (variance + 1e-12).sqrt() * self.parameter(&weight, i) + self.parameter(&bias, i)
        };
        x.iter().enumerate().map(scaled).collect()
    }

    fn layer(&self, name: &str, rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let project = |part: &str| -> Vec<Vec<f64>> {
            rows.iter().map(|row| self.linear(&format!("{name}.attention.self.{part}"), row, HIDDEN)).collect()
        };
        let (queries, keys, values) = (project("query"), project("key"), project("value"));
        let attended = queries.iter().map(|query| attend(query, &keys, &values));
        attended
            .zip(rows)
            .map(|(context, row)| {
                let output = self.linear(&format!("{name}.attention.output.dense"), &context, HIDDEN);
                let attended = self.norm(&format!("{name}.attention.output.LayerNorm"), &sum(&output, row));
                let inner = self.linear(&format!("{name}.intermediate.dense"), &attended, INNER);
                let inner: Vec<f64> = inner.iter().map(|&x| gelu(x)).collect();
                let output = self.linear(&format!("{name}.output.dense"), &inner, HIDDEN);
                self.norm(&format!("{name}.output.LayerNorm"), &sum(&output, &attended))
            })
            .collect()
    }
}

/// What one token takes from all, head by head.
fn attend(query: &[f64], keys: &[Vec<f64>], values: &[Vec<f64>]) -> Vec<f64> {
    const WIDTH: usize = HIDDEN / HEADS;
    let of_head = |head: usize| {
        let range = head * WIDTH..(head + 1) * WIDTH;
        let score = |key: &Vec<f64>| -> f64 {
            let product: f64 = query[range.clone()].iter().zip(&key[range.clone()]).map(|(q, k)| q * k).sum();
            (product / (WIDTH as f64).sqrt()).exp()
        };
        let scores: Vec<f64> = keys.iter().map(score).collect();
        let total: f64 = scores.iter().sum();
        range
            .map(|i| scores.iter().zip(values).map(|(score, value)| score / total * value[i]).sum())
            .collect::<Vec<f64>>()
    };
    (0..HEADS).flat_map(of_head).collect()
}

fn sum(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + libm::erf(x / 2.0_f64.sqrt()))
}
