//! Reasons for an answer: how much each column moved it.

use crate::model::FittedModel;

impl FittedModel {
    /// Whether every column acts for itself, so that [`Self::reasons`] exist.
    pub fn is_additive(&self) -> bool {
        self.layers().len() == 1
    }

    /// Fills what each column adds to the log-odds of an answer: the values of the columns' curves
    /// in the card. Positive numbers speak for the answer, negative ones against it.
    ///
    /// Of two classes the answer's log-odds are the sum of these numbers and of an intercept that is
    /// the same for every row. Of more classes a number is the answer's score less the mean of the
    /// other classes' scores. Without any column everyone would have the shares of the classes.
    ///
    /// **Shapes.** `features`: [`Encoding::width`](dp_table::Encoding::width). `out`: one for each
    /// block of [`Encoding::blocks`](dp_table::Encoding::blocks), the constant last. `answer` is a
    /// position in [`Self::classes`].
    ///
    /// Of a number these are its own units: what each column adds to it, before it is set to its range.
    ///
    /// For a network, whose columns act together, every number is NaN.
    pub fn reasons(&self, features: &[f32], answer: usize, out: &mut [f64]) {
        let [layer] = self.layers() else {
            out.fill(f64::NAN);
            return;
        };
        let n_outputs = layer.biases.len();
        let is_number = self.number().is_some();
        let weight_of_class = |output: usize| match (n_outputs, output == answer) {
            _ if is_number => 1.0,
            // The one output speaks for the second class.
            (1, _) => f64::from(i8::from(answer == 1)) - f64::from(i8::from(answer == 0)),
            (_, true) => 1.0,
            (n, false) => -1.0 / (n - 1) as f64,
        };
        out.fill(0.0);
        for (output, weights) in layer.weights.chunks_exact(features.len()).enumerate() {
            let sign = weight_of_class(output);
            for (block, sum) in self.encoding().blocks().iter().zip(&mut *out) {
                let terms = block.features.clone().map(|j| f64::from(weights[j]) * f64::from(features[j]));
                *sum += sign * terms.sum::<f64>();
            }
        }
    }
}
