//! A plain logistic regression for the tests that ask whether data can be learned from.

use dp_data::{Dataset, Split};
use ndarray::{Array1, Axis};

/// Full-batch gradient descent with momentum on 12,000 records: enough for two stable digits of
/// accuracy.
fn fit(data: &Dataset) -> (Array1<f32>, f32) {
    let data = data.select(&(0..data.len().min(12_000)).collect::<Vec<_>>());
    let labels: Array1<f32> = data.labels.iter().map(|&label| label as f32).collect();
    let n = data.len() as f32;
    let (mut weights, mut bias) = (Array1::zeros(data.n_inputs()), 0.0);
    let (mut velocity, mut bias_velocity) = (Array1::<f32>::zeros(data.n_inputs()), 0.0);
    for _ in 0..150 {
        let error = (data.features.dot(&weights) + bias).mapv(|z: f32| (1.0 + (-z).exp()).recip()) - &labels;
        velocity = velocity * 0.9 - data.features.t().dot(&error) / n;
        bias_velocity = bias_velocity * 0.9 - error.sum() / n;
        weights += &velocity;
        bias += bias_velocity;
    }
    (weights, bias)
}

/// Accuracy on the test part of two groups, after training on the training part.
pub(crate) fn accuracy_by_group(split: &Split) -> [f64; 2] {
    let (weights, bias) = fit(&split.train);
    let mut right = [0.0; 2];
    for (index, row) in split.test.features.axis_iter(Axis(0)).enumerate() {
        let predicted = u32::from(row.dot(&weights) + bias > 0.0);
        right[split.test.groups[index]] += f64::from(u8::from(predicted == split.test.labels[index]));
    }
    let sizes = split.test.group_sizes();
    [right[0] / sizes[0] as f64, right[1] / sizes[1] as f64]
}
