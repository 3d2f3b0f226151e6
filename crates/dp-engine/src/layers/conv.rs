//! Convolution layer.

use std::ops::Range;

#[cfg(feature = "cuda")]
use candle_core::{DType, Device};
use candle_core::{Error, Result, Tensor};

use super::blueprint::{Blueprint, BuildContext};
use super::max_windows::MaxWindows;
use super::pieces::{Piece, pieces};
use super::{Initial, KernelCrop, Layer, ParameterSpec};
use crate::buffer::RowBuffer;
use crate::ops::{self, ConvShape, PerSampleForm, PoolShape, WeightOrder, Workspace};

/// Two-dimensional convolution with stride, zero padding and groups; the bias is optional, and so
/// is a max pooling of the output.
///
/// The gradient of record `i` is `Σ_t d_{i,t} x_{i,t}ᵀ` over positions `t`, with patches `x` and
/// output gradients `d`. How its norm is found, and what is kept of it, follows from the shape and
/// the batch ([`PerSampleForm`]).
pub(crate) struct Conv2d {
    /// Without the taps that meet no pixel.
    shape: ConvShape,
    form: PerSampleForm,
    weight: Tensor,
    bias: Option<Tensor>,
    pooling: Option<MaxWindows>,
    /// With a pooling, what it takes: of one piece of the batch.
    output: RowBuffer,
    input_gradient: RowBuffer,
    scaled: RowBuffer,
    /// With a pooling on a CUDA device, the gradient of its images from a scaled one of its output.
    scaled_images: RowBuffer,
    /// Gradients of records, weight and bias.
    gradients: RowBuffer,
    /// Sums of such gradients, in their order.
    sum: RowBuffer,
    workspace: Workspace,
    other_workspace: Workspace,
}

/// The factors of the per-sample gradients.
pub(crate) struct Factors {
    input: Tensor,
    output_gradient: Tensor,
    /// The gradients themselves, if they were formed and kept.
    gradients: Option<Tensor>,
    /// The gradient of all images before a pooling: on a CUDA device, which has the memory to form
    /// it once.
    before_pooling: Option<Tensor>,
}

/// Values of gradients that stay in the cache: 1 MiB in single precision.
const VALUES_AT_ONCE: usize = 1 << 18;

/// The form that a device uses for every batch. On a GPU sums that belong to Gram matrices are in
/// `f64`, which must be more precise than their number type.
#[cfg_attr(not(feature = "cuda"), expect(unused_variables, reason = "there is no device"))]
fn form_at(context: BuildContext<'_>, shape: &ConvShape) -> PerSampleForm {
    #[cfg(feature = "cuda")]
    if let Device::Cuda(gpu) = context.device {
        return shape.per_sample_form_on_gpu(context.dtype == DType::F32 && ops::has_fast_double(gpu));
    }
    shape.per_sample_form()
}

/// Values of weight and bias.
fn n_params(shape: &ConvShape, has_bias: bool) -> usize {
    shape.weights() + if has_bias { shape.filters } else { 0 }
}

impl Conv2d {
    /// The blueprint of a convolution of images with this shape, followed by a max pooling if
    /// `pooling` is given.
    pub(crate) fn blueprint(shape: ConvShape, has_bias: bool, pooling: Option<PoolShape>) -> Blueprint {
        let whole = shape.kernel;
        let (shape, first) = shape.cropped();
        let ConvShape { filters, channels, groups, kernel, .. } = shape;
        let initial = Initial::Uniform { fan_in: whole * whole * channels / groups };
        let crop = (kernel < whole).then_some(KernelCrop { kernel: whole, first });
        let (name, weight) = ("weight".into(), vec![filters, kernel, kernel, channels / groups]);
        let mut specs = vec![ParameterSpec { name, shape: weight, initial, decays: true, crop }];
        if has_bias {
            let (name, shape) = ("bias".into(), vec![filters]);
            specs.push(ParameterSpec { name, shape, initial, decays: false, crop: None });
        }
        Blueprint::new(specs, move |parameters, context| Self::new(shape, pooling, parameters, context))
    }

    /// `shape` must have a cropped kernel.
    fn new(
        shape: ConvShape,
        pooling: Option<PoolShape>,
        parameters: &[Tensor],
        context: BuildContext<'_>,
    ) -> Result<Self> {
        let (weight, bias) = match parameters {
            [weight] => (weight.clone(), None),
            [weight, bias] => (weight.clone(), Some(bias.clone())),
            _ => return Err(Error::Msg(format!("parameter tensors of a convolution: got {}", parameters.len()))),
        };
        let n_params = n_params(&shape, bias.is_some());
        let n_outputs = pooling.map_or(shape.outputs(), |pooling| pooling.outputs());
        Ok(Self {
            shape,
            form: form_at(context, &shape),
            weight,
            bias,
            pooling: pooling.map(|pooling| MaxWindows::new(pooling, context)).transpose()?,
            output: context.rows(shape.outputs())?,
            input_gradient: context.rows(shape.inputs())?,
            scaled: context.rows(n_outputs)?,
            scaled_images: context.rows(shape.outputs())?,
            gradients: context.gradients(n_params)?,
            sum: context.gradients(n_params)?,
            workspace: Workspace::for_batches(context.expected),
            other_workspace: Workspace::default(),
        })
    }

    /// Rows of the batch in pieces of `at_once` records, or of fewer where there is a pooling: so
    /// few that the images it takes are in the cache from the convolution on. A CUDA device has the
    /// whole batch at once.
    fn pieces(&self, rows: Range<usize>, at_once: usize) -> impl Iterator<Item = Piece> + use<> {
        let at_once = match self.pooling {
            _ if self.output.device().is_cuda() => rows.len(),
            Some(_) => self.shape.images_at_once(),
            None => at_once,
        };
        pieces(rows, at_once)
    }

    /// The gradient of a piece's images before the pooling, from that of the batch's output, unless
    /// that of all images was formed.
    fn image_gradient(
        &mut self,
        piece: Piece,
        output_gradient: &Tensor,
        before_pooling: Option<&Tensor>,
    ) -> Result<Tensor> {
        match (&mut self.pooling, before_pooling) {
            (Some(_), Some(gradient)) => piece.rows(gradient),
            (Some(pooling), None) if self.output.device().is_cuda() => {
                // The pooling's own memory holds that of all images.
                let gradient = self.scaled_images.rows(piece.len())?;
                pooling.backward_into(&gradient, piece, output_gradient)?;
                Ok(gradient)
            }
            (Some(pooling), None) => pooling.backward(piece, output_gradient),
            (None, _) => piece.rows(output_gradient),
        }
    }

    /// `[batch, outputs]` as `[batch · positions, filters]`.
    fn by_position(&self, output: &Tensor) -> Result<Tensor> {
        output.reshape(((), self.shape.filters))
    }

    /// Adds the squared norms, found in the given way.
    fn add_sq_norms_by(&mut self, form: PerSampleForm, factors: &mut Factors, sq_norms: &Tensor) -> Result<()> {
        let Factors { input, output_gradient, gradients, before_pooling } = factors;
        let (shape, order, n_records) = (self.shape, self.shape.weight_order(), input.dim(0)?);
        let (shape, has_bias) = (&shape, self.bias.is_some());
        let at_once = match form {
            // A few at a time, so that they are still in the cache when their norms are taken.
            PerSampleForm::Materialised => VALUES_AT_ONCE / n_params(shape, has_bias),
            PerSampleForm::Gram => n_records,
        };
        for piece in self.pieces(0..n_records, at_once) {
            let gradient = self.image_gradient(piece, output_gradient, before_pooling.as_ref())?;
            let (input, sq_norms) = (piece.rows(input)?, piece.rows(sq_norms)?);
            match form {
                PerSampleForm::Materialised => {
                    let gradients = piece.rows(&self.gradients.rows(n_records)?)?;
                    ops::conv_gradients(&gradients, &input, &gradient, shape, order, &mut self.workspace)?;
                    ops::row_sq_norms(&sq_norms, &gradients)?;
                }
                PerSampleForm::Gram => {
                    let workspaces = (&mut self.workspace, &mut self.other_workspace);
                    ops::conv_gram_sq_norms(&sq_norms, &input, &gradient, shape, has_bias, workspaces)?;
                }
            }
        }
        if form == PerSampleForm::Materialised {
            *gradients = Some(self.gradients.rows(n_records)?);
        }
        Ok(())
    }
}

impl Layer for Conv2d {
    /// The input.
    type Pass = Tensor;
    type Factors = Factors;

    fn forward(&mut self, input: Tensor) -> Result<(Tensor, Tensor)> {
        let n_records = input.dim(0)?;
        let output = match &mut self.pooling {
            Some(pooling) => pooling.output(n_records)?,
            None => self.output.rows(n_records)?,
        };
        for piece in self.pieces(0..n_records, n_records) {
            let images = match self.pooling {
                Some(_) => self.output.rows(piece.len())?,
                None => output.clone(),
            };
            let (input, bias) = (piece.rows(&input)?, self.bias.as_ref());
            ops::conv_forward(&images, &input, &self.weight, &self.shape, bias, &mut self.workspace)?;
            if let Some(pooling) = &mut self.pooling {
                pooling.forward(piece, &images, &output)?;
            }
        }
        Ok((output, input))
    }

    fn backward(
        &mut self,
        input: Tensor,
        output_gradient: Tensor,
        wants_input_gradient: bool,
    ) -> Result<(Option<Tensor>, Factors)> {
        let n_records = output_gradient.dim(0)?;
        let before_pooling = match &mut self.pooling {
            Some(pooling) if self.output.device().is_cuda() => {
                Some(pooling.backward(Piece::whole(n_records), &output_gradient)?)
            }
            _ => None,
        };
        let input_gradient = if wants_input_gradient {
            let input_gradient = self.input_gradient.rows(n_records)?;
            for piece in self.pieces(0..n_records, n_records) {
                let gradient = self.image_gradient(piece, &output_gradient, before_pooling.as_ref())?;
                let to = piece.rows(&input_gradient)?;
                ops::conv_input_gradient(&to, &gradient, &self.weight, &self.shape, &mut self.workspace)?;
            }
            Some(input_gradient)
        } else {
            None
        };
        Ok((input_gradient, Factors { input, output_gradient, gradients: None, before_pooling }))
    }

    fn add_sq_norms(&mut self, factors: &mut Factors, sq_norms: &Tensor) -> Result<()> {
        self.add_sq_norms_by(self.form, factors, sq_norms)
    }

    fn weighted_sum(
        &mut self,
        factors: &Factors,
        rows: Range<usize>,
        weights: &[f64],
        gradients: &[Tensor],
        accumulate: bool,
    ) -> Result<()> {
        let (Some(weight_gradient), bias_gradient) = (gradients.first(), gradients.get(1)) else {
            return Err(Error::Msg("a convolution has a weight".into()));
        };
        let (shape, order) = (self.shape, self.shape.weight_order());
        let unpack = |sum: &Tensor| ops::unpack_weight(weight_gradient, sum, &shape, order, accumulate);

        if let Some(gradients) = &factors.gradients {
            let sum = self.sum.rows(1)?.squeeze(0)?;
            ops::sum_rows(&sum, &gradients.narrow(0, rows.start, rows.len())?, weights)?;
            unpack(&sum.narrow(0, 0, shape.weights())?)?;
            if let Some(bias_gradient) = bias_gradient {
                if !accumulate {
                    ops::fill(bias_gradient, 0.0)?;
                }
                let sum = sum.narrow(0, shape.weights(), shape.filters)?;
                ops::axpy(bias_gradient, &sum, 1.0)?;
            }
            return Ok(());
        }

        let gradient = &factors.output_gradient;
        let as_it_is = weights.iter().all(|&weight| weight == 1.0);
        let before_pooling = factors.before_pooling.as_ref().filter(|_| as_it_is);
        let scaled = if as_it_is {
            gradient.clone()
        } else {
            // A row is where it is in the batch, as the pooling's winners are.
            let scaled = self.scaled.rows(gradient.dim(0)?)?;
            let part = |of: &Tensor| of.narrow(0, rows.start, rows.len());
            ops::scale_rows(&part(&scaled)?, &part(gradient)?, weights)?;
            scaled
        };
        if let Some(bias_gradient) = bias_gradient {
            let scaled = self.by_position(&scaled.narrow(0, rows.start, rows.len())?)?;
            ops::column_sum(bias_gradient, &scaled, accumulate)?;
        }
        let in_place = order == WeightOrder::FiltersFirst;
        let sum = if in_place {
            weight_gradient.clone()
        } else {
            self.sum.rows(1)?.squeeze(0)?.narrow(0, 0, shape.weights())?
        };
        for (i, piece) in self.pieces(rows.clone(), rows.len()).enumerate() {
            let gradient = self.image_gradient(piece, &scaled, before_pooling)?;
            let accumulate = i > 0 || (in_place && accumulate);
            let input = piece.rows(&factors.input)?;
            let how = (order, self.form);
            ops::conv_weight_sum(&sum, &input, &gradient, &shape, how, accumulate, &mut self.workspace)?;
        }
        if in_place { Ok(()) } else { unpack(&sum) }
    }

    fn chained_terms(&self) -> Vec<usize> {
        // A device adds such terms in `f64` and rounds once. Their errors, in any order, are at
        // most 2⁻⁵³ T m² · limit(T) · S for m records: less than the errors of m terms in `f32`,
        // which every sum is charged for, up to 2¹⁸ positions T.
        let is_chained = self.form == PerSampleForm::Gram && !self.output.device().is_cuda();
        if is_chained { vec![self.shape.positions()] } else { Vec::new() }
    }

    fn kept_values(&self) -> usize {
        if self.form == PerSampleForm::Materialised { n_params(&self.shape, self.bias.is_some()) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device};

    use super::*;
    use crate::layers::{Pool2d, Pooling};

    const CONTEXT: BuildContext<'static> =
        BuildContext { dtype: DType::F64, device: &Device::Cpu, expected: None, row_values: None };

    /// Layer with seeded parameters and factors of `n` records; the parameters' gradient is flat.
    struct Case {
        layer: Conv2d,
        input: Tensor,
        output_gradient: Tensor,
        gradient: Tensor,
        views: Vec<Tensor>,
    }

    fn values(n: usize, seed: u64) -> Vec<f64> {
        (0..n as u64).map(|i| ((i * 7_919 + seed * 104_729) % 1_009) as f64 / 504.5 - 1.0).collect()
    }

    impl Case {
        fn new(shape: ConvShape, bias: bool, pooling: Option<PoolShape>, n: usize) -> Self {
            let tensor = |n: usize, width: usize, seed| {
                Tensor::from_vec(values(n * width, seed), (n, width), &Device::Cpu).unwrap()
            };
            let specs = Conv2d::blueprint(shape, bias, pooling).parameters().to_vec();
            let n_params = specs.iter().map(ParameterSpec::len).sum();
            let gradient = Tensor::zeros(n_params, DType::F64, &Device::Cpu).unwrap();
            let split = |flat: &Tensor| -> Vec<Tensor> {
                let mut start = 0;
                let views = specs.iter().map(|spec| {
                    start += spec.len();
                    flat.narrow(0, start - spec.len(), spec.len()).unwrap().reshape(&*spec.shape).unwrap()
                });
                views.collect()
            };
            let views = split(&gradient);
            let parameters = split(&tensor(1, n_params, 1).squeeze(0).unwrap());
            let layer = Conv2d::new(shape.cropped().0, pooling, &parameters, CONTEXT).unwrap();
            let (input, output_gradient) = (tensor(n, shape.inputs(), 2), tensor(n, shape.outputs(), 3));
            Self { layer, input, output_gradient, gradient, views }
        }

        /// Norms by a form, if one is given, and the weighted sum, of the records from `first` on.
        fn ask(&mut self, form: Option<PerSampleForm>, first: usize, weights: &[f64]) -> (Vec<f64>, Vec<f64>) {
            let rows = |tensor: &Tensor| tensor.narrow(0, first, weights.len()).unwrap().copy().unwrap();
            let (_, pass) = self.layer.forward(rows(&self.input)).unwrap();
            let (_, mut factors) = self.layer.backward(pass, rows(&self.output_gradient), true).unwrap();
            self.norms_and_sum(form, &mut factors, weights)
        }

        /// The same of the records that the factors are of.
        fn norms_and_sum(
            &mut self,
            form: Option<PerSampleForm>,
            factors: &mut Factors,
            weights: &[f64],
        ) -> (Vec<f64>, Vec<f64>) {
            let norms = Tensor::zeros(weights.len(), DType::F64, &Device::Cpu).unwrap();
            if let Some(form) = form {
                self.layer.add_sq_norms_by(form, factors, &norms).unwrap();
            }
            self.layer.weighted_sum(factors, 0..weights.len(), weights, &self.views, false).unwrap();
            (norms.to_vec1().unwrap(), self.gradient.to_vec1().unwrap())
        }
    }

    fn flat(tensor: &Tensor) -> Vec<f64> {
        tensor.flatten_all().unwrap().to_vec1().unwrap()
    }

    fn assert_close(a: &[f64], b: &[f64]) {
        assert_eq!(a.len(), b.len());
        let scale = b.iter().fold(0.0_f64, |largest, b| largest.max(b.abs()));
        assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-12 * scale));
    }

    /// Every form, and one record at a time: the same norms and the same sum. Shapes on all ways:
    /// with and without patches, padding, strides, groups, both orders of the weight's gradient.
    #[test]
    fn all_forms_agree() {
        let base =
            ConvShape { height: 7, width: 9, channels: 4, filters: 6, kernel: 3, stride: 1, padding: 1, groups: 1 };
        let shapes = [
            base,
            ConvShape { stride: 2, ..base },
            ConvShape { groups: 2, padding: 0, ..base },
            ConvShape { height: 3, width: 3, filters: 40, channels: 40, ..base },
            ConvShape { height: 23, width: 21, channels: 17, ..base },
            ConvShape { height: 23, width: 21, channels: 17, filters: 34, kernel: 5, padding: 2, ..base },
            ConvShape { height: 1, width: 1, kernel: 1, padding: 0, ..base },
            ConvShape { channels: 1, ..base },
            ConvShape { channels: 1, height: 1, width: 1, kernel: 5, padding: 2, ..base },
            ConvShape { height: 2, width: 2, stride: 2, groups: 2, ..base },
            ConvShape { height: 1, width: 1, channels: 40, filters: 40, ..base },
        ];
        let weights = [0.5, -1.0, 2.0];
        for shape in shapes {
            for bias in [true, false] {
                let mut case = Case::new(shape, bias, None, 3);
                let (norms, sum) = case.ask(Some(PerSampleForm::Materialised), 0, &weights);
                for form in [Some(PerSampleForm::Gram), None] {
                    let (other_norms, other_sum) = case.ask(form, 0, &weights);
                    assert_close(&other_sum, &sum);
                    if form.is_some() {
                        // Not below: where positions cancel it is more.
                        assert!(other_norms.iter().zip(&norms).all(|(gram, norm)| *gram >= norm * (1.0 - 1e-12)));
                    }
                }
                let mut total = vec![0.0; sum.len()];
                for (i, (norm, weight)) in norms.iter().zip(weights).enumerate() {
                    let (_, gradient) = case.ask(None, i, &[1.0]);
                    assert_close(&[gradient.iter().map(|g| g * g).sum()], &[*norm]);
                    total.iter_mut().zip(gradient).for_each(|(total, g)| *total += weight * g);
                }
                assert_close(&total, &sum);
            }
        }
    }

    /// Pooling piece by piece in the layer and pooling of the batch behind it: the same outputs,
    /// and the same gradients in every form.
    #[test]
    fn a_pooling_inside_is_one_behind() {
        let square = |size, channels, filters, padding, groups| {
            let (kernel, stride) = (3, 1);
            ConvShape { height: size, width: size, channels, filters, kernel, stride, padding, groups }
        };
        // A piece holds five of the first images.
        for (shape, kernel, stride, padding) in [(square(28, 1, 64, 0, 1), 3, 2, 0), (square(9, 4, 6, 1, 2), 2, 2, 1)] {
            let (height, width, channels) = (shape.out_height(), shape.out_width(), shape.filters);
            let pool = PoolShape { height, width, channels, kernel: [kernel, kernel], stride, padding };
            let (n, weights) = (7, [0.5, -1.0, 2.0, 1.0, 0.0, -0.25, 1.5]);
            let mut apart = Case::new(shape, true, None, n);
            let mut behind = Pool2d::new(pool, Pooling::Max, CONTEXT).unwrap();
            let mut inside = Case::new(shape, true, Some(pool), n);
            let output_gradient = values(n * pool.outputs(), 4);
            let output_gradient = Tensor::from_vec(output_gradient, (n, pool.outputs()), &Device::Cpu).unwrap();

            let (images, apart_pass) = apart.layer.forward(apart.input.clone()).unwrap();
            let (output, behind_pass) = behind.forward(images).unwrap();
            let (inside_output, inside_pass) = inside.layer.forward(inside.input.clone()).unwrap();
            assert_eq!(flat(&inside_output), flat(&output));
            let gradient = behind.backward(behind_pass, output_gradient.clone(), true).unwrap().0.unwrap();
            let (gradient, mut apart_factors) = apart.layer.backward(apart_pass, gradient, true).unwrap();
            let (inside_gradient, mut inside_factors) =
                inside.layer.backward(inside_pass, output_gradient, true).unwrap();
            assert_close(&flat(&inside_gradient.unwrap()), &flat(&gradient.unwrap()));
            for form in [None, Some(PerSampleForm::Gram), Some(PerSampleForm::Materialised)] {
                let a = inside.norms_and_sum(form, &mut inside_factors, &weights);
                let b = apart.norms_and_sum(form, &mut apart_factors, &weights);
                assert_close(&a.0, &b.0);
                assert_close(&a.1, &b.1);
            }
        }
    }

    /// Two positions whose gradients cancel up to 2⁻²⁰: what is left of them is not what a sum of
    /// rounded terms leaves, and the norm is that of the terms over their limit.
    #[test]
    fn the_gram_form_is_not_below_what_cancelling_terms_can_leave() {
        let shape =
            ConvShape { height: 1, width: 2, channels: 1, filters: 1, kernel: 1, stride: 1, padding: 0, groups: 1 };
        let weight = Tensor::zeros((1, 1, 1, 1), DType::F32, &Device::Cpu).unwrap();
        let mut layer = Conv2d::new(shape, None, &[weight], BuildContext { dtype: DType::F32, ..CONTEXT }).unwrap();
        let tiny = (-20.0_f32).exp2();
        let tensor = |values: [f32; 2]| Tensor::from_slice(&values, (1, 2), &Device::Cpu).unwrap();
        let (_, pass) = layer.forward(tensor([1.0 + tiny, 1.0])).unwrap();
        let (_, mut factors) = layer.backward(pass, tensor([1.0, -1.0]), false).unwrap();
        let norms = Tensor::zeros(1, DType::F64, &Device::Cpu).unwrap();
        layer.add_sq_norms_by(PerSampleForm::Gram, &mut factors, &norms).unwrap();
        let terms = 2.0 + f64::from(tiny);
        let norm = norms.to_vec1::<f64>().unwrap()[0].sqrt();
        assert!((norm - terms / crate::ops::cancellation_limit(2)).abs() < 1e-12);
    }
}
