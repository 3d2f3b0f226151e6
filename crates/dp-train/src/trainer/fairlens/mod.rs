//! FairLens: what two regularisers of the whole batch add to the gradient of each of its records.

mod clipping_gap;
mod code;
mod differences;
mod groups;
mod network;
mod paper;

use candle_core::DType;
use dp_clipping::{ClipMethod, Coupling, FairlensForm};
use dp_engine::Records;
use dp_engine::ops::Element;

use self::differences::Differences;
use self::groups::Groups;
use self::network::{Network, Tape, flat};
use crate::error::{Result, TrainError};
use crate::loops::dot;
use crate::train_config::TrainConfig;

/// FairLens's regularisers, and their derivatives.
///
/// With `g_Bk` the mean gradient of group `k` over the batch's records of it, and `w = ḡ_B − g_B`
/// the clipped less the plain mean gradient, `R1` is the mean over pairs of groups of `|⟨g_Ba −
/// g_Bb, w⟩|`: it holds clipping's excessive risk down. `R2`, which stands in for the trace of the
/// Hessian and holds the noise's down, and what a record gets of `γ1 ∇R1 + γ2 ∇R2`, differ between
/// the paper ([`paper`]) and the trainer that printed its rows ([`code`]).
///
/// Derivatives are exact for networks of linear layers ([`network`]), in the number type of the
/// records; for others they are differences of gradients in `f64`, good to 1e-8, and the paper's
/// form alone is defined.
///
/// **Guarantee.** None: one record moves the gradients of all others.
///
/// **Source.** Tran 2021; Esipova 2023, Algorithm 4.
pub(crate) struct FairLens {
    derivatives: Derivatives,
    gamma: [f64; 2],
    form: FairlensForm,
    /// Positions of the last batch's records, those with a clipped gradient first.
    order: Vec<usize>,
}

enum Derivatives {
    Single(Exact<f32>),
    Double(Exact<f64>),
    Other(Box<Differences>),
}

struct Exact<T> {
    network: Network<T>,
    /// The last batch. Once it is regularised, its usable records in [`FairLens::order`], and with the
    /// deltas that the code's form gives them.
    batch: Option<Tape<T>>,
}

/// What the regularisers do to the gradients of a batch.
pub(crate) enum Regularised {
    /// This vector is added to each.
    Common(Vec<f64>),
    /// Each has its own, which [`FairLens::weighted_sum`] has in it.
    Own,
}

/// A vector that is added to every record's gradient, and its product with each.
struct Addition {
    /// `v`, `[params]`.
    vector: Vec<f64>,
    /// `⟨g_i, v⟩`, `[records]`.
    products: Vec<f64>,
}

/// The records of a batch that have a finite gradient.
pub(crate) struct Usable<'a> {
    /// The numbers of the batch's records.
    pub(crate) rows: &'a [usize],
    /// The positions of the usable ones.
    pub(crate) positions: &'a [usize],
    /// The norms of their gradients.
    pub(crate) norms: &'a mut [f64],
}

impl FairLens {
    /// The regularisers of a plan's method; `None` if it has none.
    ///
    /// # Errors
    /// [`TrainError::InvalidParameter`] if the code's form is asked for with a model that it is not
    /// defined for.
    pub(crate) fn of(config: &TrainConfig, records: &Records) -> Result<Option<Self>> {
        let coupling = config.privacy.as_ref().map(|privacy| privacy.clipping.coupling);
        let Some(Coupling::Fairlens { gamma_1, gamma_2, form }) = coupling else { return Ok(None) };
        let n_inputs = records.facts().n_inputs;
        let derivatives = match records.dtype() {
            DType::F32 => Exact::of(config, n_inputs).map(Derivatives::Single),
            _ => Exact::of(config, n_inputs).map(Derivatives::Double),
        };
        let derivatives = match derivatives {
            Some(exact) => exact,
            None if form == FairlensForm::Code => {
                let expected = "the form Paper: that of the code is for logistic regressions and perceptrons with tanh, ReLU or sigmoid";
                return Err(TrainError::invalid("privacy.clipping.coupling", format!("{coupling:?}"), expected));
            }
            None => Derivatives::Other(Box::new(Differences::new(config, records)?)),
        };
        Ok(Some(Self { derivatives, gamma: [gamma_1, gamma_2], form, order: Vec::new() }))
    }

    /// Moves to these parameters. Losses and gradient norms of a batch of these rows there; `None`
    /// where the derivatives are differences.
    pub(crate) fn losses_and_norms(
        &mut self,
        records: &Records,
        rows: &[usize],
        parameters: &[f64],
    ) -> Result<Option<(Vec<f64>, Vec<f64>)>> {
        match &mut self.derivatives {
            Derivatives::Single(exact) => exact.losses_and_norms(records, rows, parameters).map(Some),
            Derivatives::Double(exact) => exact.losses_and_norms(records, rows, parameters).map(Some),
            Derivatives::Other(differences) => differences.set_parameters(parameters).map(|()| None),
        }
    }

    /// What is added to the gradients of the batch, after [`Self::losses_and_norms`] of it; the norms
    /// become those of the regularised gradients.
    pub(crate) fn regularise(
        &mut self,
        method: &dyn ClipMethod,
        records: &Records,
        usable: Usable<'_>,
        expected_batch_size: f64,
    ) -> Result<Regularised> {
        let Usable { rows, positions, norms } = usable;
        let scale = |(&position, &norm): (&usize, &f64)| {
            method
                .scale_in_advance(records.groups()[rows[position]])
                .map(|scale| [scale.scale(norm), slope(|n| scale.scale(n), norm)])
        };
        let factors: Vec<[f64; 2]> =
            positions.iter().zip(&*norms).map(scale).collect::<Option<_>>().ok_or_else(|| {
                TrainError::mismatch("clipping factors that depend on the record alone", "some", "none")
            })?;
        let is_clipped = |&i: &usize| factors[i] != [1.0, 0.0];
        let (clipped, kept): (Vec<usize>, Vec<usize>) = (0..positions.len()).partition(is_clipped);
        let factors: (Vec<f64>, Vec<f64>) = clipped.iter().map(|&i| (factors[i][0], factors[i][1])).unzip();
        self.order = [clipped, kept].concat();
        let positions: Vec<usize> = self.order.iter().map(|&i| positions[i]).collect();
        let rows: Vec<usize> = positions.iter().map(|&position| rows[position]).collect();
        let groups = Groups::new(records.labels_and_groups(&rows).1, records.facts().n_groups);
        let weights = (self.gamma, expected_batch_size);
        let found = match &mut self.derivatives {
            Derivatives::Single(exact) => exact.regularise(&positions, &groups, &factors, weights, self.form)?,
            Derivatives::Double(exact) => exact.regularise(&positions, &groups, &factors, weights, self.form)?,
            Derivatives::Other(differences) => {
                Found::Addition(differences.addition(records, &rows, &factors.0, weights)?)
            }
        };
        match found {
            Found::Norms(regularised) => {
                self.order.iter().zip(regularised).for_each(|(&i, norm)| norms[i] = norm);
                Ok(Regularised::Own)
            }
            Found::Addition(Addition { vector, products }) => {
                let sq_norm = dot(&vector, &vector);
                for (&i, product) in self.order.iter().zip(products) {
                    // Rounding can take a norm near 0 below it: ‖g + v‖² = ‖g‖² + 2⟨g, v⟩ + ‖v‖².
                    norms[i] = (norms[i].powi(2) + 2.0 * product + sq_norm).max(0.0).sqrt();
                }
                Ok(Regularised::Common(vector))
            }
        }
    }

    /// `Σ_i scales[i] g_i` over the usable records of the last batch: of the code's form, each with
    /// its own share of the regularisers' gradient. `None` where the derivatives are differences.
    pub(crate) fn weighted_sum(&self, scales: &[f64]) -> Result<Option<Vec<f64>>> {
        let scales: Vec<f64> = self.order.iter().map(|&i| scales[i]).collect();
        match &self.derivatives {
            Derivatives::Single(exact) => exact.weighted_sum(&scales).map(Some),
            Derivatives::Double(exact) => exact.weighted_sum(&scales).map(Some),
            Derivatives::Other(_) => Ok(None),
        }
    }
}

/// What the regularisers of a batch come to, by form.
enum Found {
    /// The paper's.
    Addition(Addition),
    /// The code's: norms of the regularised gradients.
    Norms(Vec<f64>),
}

impl<T: Element> Exact<T> {
    fn of(config: &TrainConfig, n_inputs: usize) -> Option<Self> {
        Some(Self { network: Network::of(&config.model, &config.loss, n_inputs)?, batch: None })
    }

    fn losses_and_norms(
        &mut self,
        records: &Records,
        rows: &[usize],
        parameters: &[f64],
    ) -> Result<(Vec<f64>, Vec<f64>)> {
        let tape = self.tape(records, rows, parameters)?;
        let found = (self.network.losses(&tape), self.network.norms(&tape));
        self.batch = Some(tape);
        Ok(found)
    }

    /// The way of these records through the network, at these parameters, and back.
    fn tape(&mut self, records: &Records, rows: &[usize], parameters: &[f64]) -> Result<Tape<T>> {
        self.network.set(parameters);
        let inputs = if rows.is_empty() { Vec::new() } else { records.inputs(rows)? };
        self.network.tape(inputs, &records.labels_and_groups(rows).0)
    }

    fn regularise(
        &mut self,
        positions: &[usize],
        groups: &Groups,
        (scales, slopes): &(Vec<f64>, Vec<f64>),
        weights: ([f64; 2], f64),
        form: FairlensForm,
    ) -> Result<Found> {
        let tape = self.batch.take().ok_or_else(no_batch)?.select(positions);
        match form {
            FairlensForm::Paper => self.addition(tape, groups, scales, weights).map(Found::Addition),
            FairlensForm::Code => self.share(tape, groups, (scales, slopes), weights.0).map(Found::Norms),
        }
    }

    fn weighted_sum(&self, scales: &[f64]) -> Result<Vec<f64>> {
        let batch = self.batch.as_ref().ok_or_else(no_batch)?;
        Ok(flat(&self.network.weighted_sum(batch, scales)?))
    }
}

fn no_batch() -> TrainError {
    TrainError::mismatch("FairLens's batch", "one that was differentiated", "none")
}

/// The derivative of a clipping factor with respect to the norm: a central difference, except at a
/// kink good to 1e-9.
fn slope(scale: impl Fn(f64) -> f64, norm: f64) -> f64 {
    const STEP: f64 = 1e-6;
    if norm > 0.0 { (scale(norm * (1.0 + STEP)) - scale(norm * (1.0 - STEP))) / (2.0 * STEP * norm) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use candle_core::Device;
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    use super::*;
    use crate::batch_plan::BatchPlan;
    use crate::schedule::LearningRate;
    use crate::{Engine, Loss, ModelConfig, PublicFacts};
    use dp_engine::ops::Activation;

    /// Three groups, a fourth without a record; the last group's mean gradient is that of one
    /// record.
    fn setting(model: ModelConfig, loss: Loss) -> (TrainConfig, Records, Vec<f64>) {
        let facts = PublicFacts { n_records: 9, n_inputs: 3, n_classes: 2, n_groups: 4 };
        let features: Vec<f32> = (0..27).map(|i| ((i * 7) % 11) as f32 * 0.3 - 1.5).collect();
        let groups = [0, 1, 0, 1, 1, 0, 0, 1, 2];
        let labels = [1, 0, 1, 1, 0, 0, 1, 1, 0];
        let records = Records::new(&features, &labels, &groups, facts, DType::F64, &Device::Cpu).unwrap();
        let batches = BatchPlan::exact(facts, 9, 1).unwrap();
        let config = TrainConfig::new(model, loss, batches, LearningRate::Constant(0.1));
        let engine = Engine::new(&config.model, config.loss.clone(), &records, &Device::Cpu).unwrap();
        engine.model().initialise(&mut ChaCha20Rng::seed_from_u64(3)).unwrap();
        let parameters = engine.model().parameters().to_vec().unwrap();
        (config, records, parameters)
    }

    /// `γ1 R1 + γ2 R2` as defined, from per-sample gradients, with clipping factors given.
    fn regulariser(config: &TrainConfig, records: &Records, at: &[f64], scales: &[f64], gamma: [f64; 2]) -> f64 {
        let mut engine = Engine::new(&config.model, config.loss.clone(), records, &Device::Cpu).unwrap();
        engine.model().parameters().set(at).unwrap();
        let n_groups = 3;
        let mut group_gradients = vec![vec![0.0; at.len()]; n_groups];
        let mut f = vec![0.0; n_groups];
        let mut w = vec![0.0; at.len()];
        let sum = engine.zero_gradient().unwrap();
        for (i, scale) in scales.iter().enumerate() {
            let group = records.groups()[i];
            let size = records.groups().iter().filter(|&&g| g == group).count() as f64;
            engine.differentiate(records, &[i], &[]).unwrap();
            engine.weighted_sum(&[1.0], &sum, false).unwrap();
            let p = (-engine.losses().unwrap()[0]).exp();
            let class_1 = if records.labels()[i] == 1 { p } else { 1.0 - p };
            f[group] += class_1 / size;
            for (j, g) in sum.to_vec().unwrap().into_iter().enumerate() {
                group_gradients[group][j] += g / size;
                w[j] += (scale - 1.0) * g / 8.0;
            }
        }
        let mut r1 = 0.0;
        for a in 0..n_groups {
            for b in 0..a {
                let product = |k: usize| -> f64 { group_gradients[k].iter().zip(&w).map(|(g, w)| g * w).sum() };
                r1 += (product(a) - product(b)).abs() / 3.0;
            }
        }
        let r2: f64 = f.iter().map(|f| f * (1.0 - f) / 3.0).sum();
        gamma[0] * r1 + gamma[1] * r2
    }

    /// Networks whose derivatives are exact, and one whose are differences.
    fn models() -> Vec<(ModelConfig, Loss, bool)> {
        let mlp = |hidden: &[usize], activation| ModelConfig::Mlp { hidden: hidden.to_vec(), activation };
        vec![
            (ModelConfig::LogisticRegression, Loss::BceWithLogits, true),
            (ModelConfig::LogisticRegression, Loss::SoftmaxCrossEntropy, true),
            (ModelConfig::SquashedRegression, Loss::SoftmaxCrossEntropy, true),
            (mlp(&[4], Activation::Tanh), Loss::SoftmaxCrossEntropy, true),
            (mlp(&[4, 3], Activation::Tanh), Loss::BceWithLogits, true),
            (mlp(&[12, 10], Activation::Tanh), Loss::SoftmaxCrossEntropy, true),
            (mlp(&[3, 4], Activation::Sigmoid), Loss::SoftmaxCrossEntropy, true),
            (mlp(&[4], Activation::Relu), Loss::SoftmaxCrossEntropy, true),
            (mlp(&[4], Activation::Gelu), Loss::SoftmaxCrossEntropy, false),
        ]
    }

    fn addition(
        config: &TrainConfig,
        records: &Records,
        rows: &[usize],
        scales: &[f64],
        (gamma, expected): ([f64; 2], f64),
        parameters: &[f64],
    ) -> Addition {
        if let Some(mut exact) = Exact::<f64>::of(config, records.facts().n_inputs) {
            return exact_addition(&mut exact, records, rows, scales, (gamma, expected), parameters);
        }
        let mut differences = Differences::new(config, records).unwrap();
        differences.set_parameters(parameters).unwrap();
        differences.addition(records, rows, scales, (gamma, expected)).unwrap()
    }

    fn exact_addition<T: Element>(
        exact: &mut Exact<T>,
        records: &Records,
        rows: &[usize],
        scales: &[f64],
        weights: ([f64; 2], f64),
        parameters: &[f64],
    ) -> Addition {
        let tape = exact.tape(records, rows, parameters).unwrap();
        let groups = Groups::new(records.labels_and_groups(rows).1, 4);
        exact.addition(tape, &groups, scales, weights).unwrap()
    }

    #[test]
    fn the_addition_is_the_regularisers_gradient() {
        for (model, loss, is_exact) in models() {
            let (config, records, parameters) = setting(model, loss);
            assert_eq!(Exact::<f64>::of(&config, 3).is_some(), is_exact);
            let rows: Vec<usize> = (0..9).collect();
            for (gamma, n_clipped) in
                [([1.0, 0.0], 9), ([0.0, 1.0], 9), ([0.7, 1.3], 4), ([0.7, 1.3], 2), ([1.0, 1.0], 0)]
            {
                let mut scales: Vec<f64> = (0..n_clipped).map(|i| 0.2 + 0.1 * f64::from(i)).collect();
                let addition = addition(&config, &records, &rows, &scales, (gamma, 8.0), &parameters);
                scales.resize(9, 1.0);
                for j in 0..parameters.len() {
                    let value = |h: f64| {
                        let mut moved = parameters.clone();
                        moved[j] += h;
                        regulariser(&config, &records, &moved, &scales, gamma)
                    };
                    let slope = (value(1e-5) - value(-1e-5)) / 2e-5;
                    let label = config.model.label();
                    assert!(
                        (addition.vector[j] - slope).abs() < 1e-8,
                        "{label} {gamma:?} {n_clipped} {j}: {} {slope}",
                        addition.vector[j]
                    );
                }
            }
        }
    }

    #[test]
    fn products_are_those_with_each_records_gradient() {
        for (model, loss, _) in models() {
            let (config, records, parameters) = setting(model, loss);
            let rows = [4, 0, 8];
            let addition = addition(&config, &records, &rows, &[0.5, 1.0, 0.1], ([1.0, 1.0], 2.0), &parameters);
            let mut engine = Engine::new(&config.model, config.loss.clone(), &records, &Device::Cpu).unwrap();
            engine.model().parameters().set(&parameters).unwrap();
            let sum = engine.zero_gradient().unwrap();
            for (row, product) in rows.into_iter().zip(addition.products) {
                engine.differentiate(&records, &[row], &[]).unwrap();
                engine.weighted_sum(&[1.0], &sum, false).unwrap();
                let exact: f64 = sum.to_vec().unwrap().iter().zip(&addition.vector).map(|(g, v)| g * v).sum();
                assert!((product - exact).abs() < 1e-9, "{} {product} {exact}", config.model.label());
            }
        }
    }

    #[test]
    fn losses_and_norms_are_the_engines() {
        let mut weighted = models();
        let classes = Loss::WeightedSoftmaxCrossEntropy { class_weights: vec![0.5, 3.0] };
        weighted.push((ModelConfig::LogisticRegression, classes, true));
        let positive = Loss::WeightedBceWithLogits { positive_weight: 3.0 };
        weighted.push((ModelConfig::LogisticRegression, positive, true));
        for (model, loss, _) in weighted.into_iter().filter(|(.., is_exact)| *is_exact) {
            let (config, records, parameters) = setting(model, loss);
            let rows = [7, 0, 8, 1];
            let mut exact = Exact::<f64>::of(&config, 3).unwrap();
            let (losses, norms) = exact.losses_and_norms(&records, &rows, &parameters).unwrap();
            let mut engine = Engine::new(&config.model, config.loss.clone(), &records, &Device::Cpu).unwrap();
            engine.model().parameters().set(&parameters).unwrap();
            let expected = engine.differentiate_for_norms(&records, &rows).unwrap();
            let pairs = losses.into_iter().zip(engine.losses().unwrap()).chain(norms.into_iter().zip(expected));
            for (ours, expected) in pairs {
                assert!(
                    (ours - expected).abs() < 1e-12 * expected.max(1.0),
                    "{} {ours} {expected}",
                    config.model.label()
                );
            }
        }
    }

    #[test]
    fn an_empty_batch_adds_nothing() {
        for form in [FairlensForm::Paper, FairlensForm::Code] {
            let mlp = ModelConfig::Mlp { hidden: vec![4], activation: Activation::Tanh };
            let (config, records, parameters) = setting(mlp, Loss::SoftmaxCrossEntropy);
            let mut exact = Exact::<f64>::of(&config, 3).unwrap();
            exact.losses_and_norms(&records, &[], &parameters).unwrap();
            let groups = Groups::new(Vec::new(), 4);
            match exact.regularise(&[], &groups, &(Vec::new(), Vec::new()), ([1.0; 2], 8.0), form).unwrap() {
                Found::Norms(norms) => assert!(norms.is_empty()),
                Found::Addition(Addition { vector, .. }) => assert_eq!(vector, vec![0.0; parameters.len()]),
            }
            assert_eq!(exact.weighted_sum(&[]).unwrap(), vec![0.0; parameters.len()]);
        }
    }

    /// In the number type of a training the vector is that of `f64` up to its rounding.
    #[test]
    fn single_precision_is_as_good_as_its_rounding() {
        for (model, loss, _) in models().into_iter().filter(|(.., is_exact)| *is_exact) {
            let (config, records, parameters) = setting(model, loss);
            let scales: Vec<f64> = (0..9).map(|i| 0.2 + 0.1 * f64::from(i)).collect();
            let rows: Vec<usize> = (0..9).collect();
            let double = addition(&config, &records, &rows, &scales, ([1.0; 2], 8.0), &parameters);
            let mut exact = Exact::<f32>::of(&config, 3).unwrap();
            let single = exact_addition(&mut exact, &records, &rows, &scales, ([1.0; 2], 8.0), &parameters);
            let norm = double.vector.iter().map(|v| v * v).sum::<f64>().sqrt();
            for (a, b) in single.vector.iter().zip(&double.vector) {
                assert!((a - b).abs() <= 1e-6 * norm, "{}: {a} {b}", config.model.label());
            }
        }
    }
}
