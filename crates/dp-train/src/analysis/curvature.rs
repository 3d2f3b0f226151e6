//! Second derivatives of the loss without a Hessian matrix.

use candle_core::DType;
use dp_engine::vector_math::vectorise;
use dp_engine::{Engine, ParameterVector, Records, ops};
use rand::CryptoRng;

use super::sampled::Sampled;
use super::vector::{dot, mean, norm, scale};
use crate::error::{Result, TrainError};
use crate::loops::add_scaled;
use crate::{Loss, ModelConfig};

/// Step of a central difference of gradients, relative to `1 + ‖θ‖`: truncation of order h²,
/// rounding of order 1e-16/h.
const GRADIENT_STEP: f64 = 1e-6;
/// Step of a second difference of losses, relative to `1 + ‖θ‖`: truncation of order h², rounding
/// of order 1e-16/h².
const LOSS_STEP: f64 = 1e-4;
/// Step of a central difference of losses, relative to `1 + ‖θ‖`: truncation of order h², rounding
/// of order 1e-16/h.
const SLOPE_STEP: f64 = 1e-5;
/// Records that are differentiated at once.
const MICRO_BATCH: usize = 1_024;

/// Hessian-vector products and quadratic forms of the mean loss over records, at one point, from
/// the engine's own gradients and losses in `f64`.
///
/// - [`Self::product`]: `Hv = (∇L(θ + hv̂) − ∇L(θ − hv̂)) ‖v‖ / 2h`, two gradients; about 1e-8
///   relative.
/// - [`Self::quadratic_forms`]: `vᵀH_i v = (ℓ_i(θ + hv̂) − 2ℓ_i(θ) + ℓ_i(θ − hv̂)) ‖v‖² / h²` for
///   every record at once, three forward passes; about 1e-6 relative. Half the cost of a product,
///   and all groups come out of one pass.
///
/// Memory is that of a gradient. With an activation that has kinks (ReLU) the result is the average
/// over the step, which counts the kinks that lie within it; the derivative between kinks would
/// leave them out.
///
/// **Example**
/// ```
/// use dp_train::analysis::Curvature;
/// use dp_train::{DType, Device, Loss, ModelConfig, PublicFacts, Records};
/// let facts = PublicFacts { n_records: 1, n_inputs: 1, n_classes: 2, n_groups: 1 };
/// let records = Records::new(&[3.0], &[1], &[0], facts, DType::F64, &Device::Cpu)?;
/// let mut curvature = Curvature::new(&ModelConfig::LogisticRegression, Loss::BceWithLogits, &records)?;
/// // All parameters are 0, so the probability is ½ and the Hessian ½ · ½ · (3, 1)ᵀ(3, 1): its trace is 2.5.
/// curvature.set_parameters(&[0.0, 0.0])?;
/// let product = curvature.product(&records, &[0], &[1.0, 0.0])?;
/// assert!((product[0] - 2.25).abs() < 1e-8 && (product[1] - 0.75).abs() < 1e-8);
/// assert!((curvature.quadratic_forms(&records, &[0], &[&[1.0, 1.0]])?[0][0] - 4.0).abs() < 1e-6);
/// # Ok::<(), dp_train::TrainError>(())
/// ```
pub struct Curvature {
    engine: Engine,
    gradient: ParameterVector,
    origin: Vec<f64>,
}

impl std::fmt::Debug for Curvature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Curvature").field("engine", &self.engine).finish_non_exhaustive()
    }
}

/// Largest eigenvalue of a Hessian, as far as power iteration got.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Eigenvalue {
    /// Rayleigh quotient of the last vector: never above the largest eigenvalue, up to rounding.
    pub value: f64,
    /// The vector, of norm 1: a start for the next search nearby.
    pub vector: Vec<f64>,
    /// `‖Hv − λv‖`: the Hessian has an eigenvalue no further from `value` than this.
    pub residual: f64,
}

impl Curvature {
    /// The model that fits the records, at the origin.
    ///
    /// # Errors
    /// [`TrainError::Mismatch`] unless the records are in `F64`, in which differences leave enough
    /// digits; the errors of [`Engine::new`].
    pub fn new(config: &ModelConfig, loss: Loss, records: &Records) -> Result<Self> {
        let engine = Engine::new(config, loss, records, records.device())?;
        if records.dtype() != DType::F64 {
            return Err(TrainError::mismatch(
                "number type of analysed records",
                DType::F64.as_str(),
                records.dtype().as_str(),
            ));
        }
        let origin = engine.model().parameters().to_vec()?;
        Ok(Self { gradient: engine.zero_gradient()?, engine, origin })
    }

    /// Moves to another point.
    ///
    /// # Errors
    /// [`TrainError::Tensor`] if there are not as many values as parameters.
    pub fn set_parameters(&mut self, parameters: &[f64]) -> Result<()> {
        self.engine.model().parameters().set(parameters)?;
        parameters.clone_into(&mut self.origin);
        Ok(())
    }

    pub(crate) fn origin(&self) -> &[f64] {
        &self.origin
    }

    /// `Hv` with `H` the Hessian of the mean loss over the rows, `[params]`.
    ///
    /// **Shapes.** `vector` `[params]`; `rows` record numbers.
    ///
    /// **Edge cases.** 0 for a vector of norm 0 and for no rows.
    ///
    /// # Errors
    /// [`TrainError::Mismatch`] if records or vector do not fit the model; [`TrainError::Tensor`]
    /// if a row is out of range.
    pub fn product(&mut self, records: &Records, rows: &[usize], vector: &[f64]) -> Result<Vec<f64>> {
        let weight = 1.0 / rows.len().max(1) as f64;
        self.weighted_product(records, rows, &vec![weight; rows.len()], vector)
    }

    /// `Σ_i weights[i] H_i v`, `[params]`.
    pub(crate) fn weighted_product(
        &mut self,
        records: &Records,
        rows: &[usize],
        weights: &[f64],
        vector: &[f64],
    ) -> Result<Vec<f64>> {
        let length = norm(vector);
        if length == 0.0 || rows.is_empty() {
            return Ok(vec![0.0; vector.len()]);
        }
        let t = self.step(GRADIENT_STEP) / length;
        self.move_along(t, vector)?;
        let mut product = self.weighted_gradient(records, rows, weights)?;
        self.move_along(-t, vector)?;
        let down = self.weighted_gradient(records, rows, weights)?;
        self.return_to_origin()?;
        add_scaled(&mut product, -1.0, &down);
        scale(&mut product, 1.0 / (2.0 * t));
        Ok(product)
    }

    /// `Σ_i weights[i] g_i`, `[params]`.
    pub(crate) fn weighted_gradient(&mut self, records: &Records, rows: &[usize], weights: &[f64]) -> Result<Vec<f64>> {
        let mut done = 0;
        for rows in rows.chunks(MICRO_BATCH) {
            self.engine.differentiate(records, rows, &[])?;
            self.engine.weighted_sum(&weights[done..done + rows.len()], &self.gradient, done > 0)?;
            done += rows.len();
        }
        if done == 0 { Ok(vec![0.0; self.origin.len()]) } else { Ok(self.gradient.to_vec()?) }
    }

    /// `⟨g_i, v⟩` by record, `[rows]`: a central difference of losses, about 1e-9 relative.
    pub(crate) fn slopes(&mut self, records: &Records, rows: &[usize], vector: &[f64]) -> Result<Vec<f64>> {
        let length = norm(vector);
        if length == 0.0 {
            return Ok(vec![0.0; rows.len()]);
        }
        let t = self.step(SLOPE_STEP) / length;
        self.move_along(t, vector)?;
        let up = self.losses(records, rows)?;
        self.move_along(-t, vector)?;
        let down = self.losses(records, rows)?;
        self.return_to_origin()?;
        Ok(up.iter().zip(&down).map(|(up, down)| (up - down) / (2.0 * t)).collect())
    }

    /// Loss of each record, `[rows]`.
    pub(crate) fn losses(&mut self, records: &Records, rows: &[usize]) -> Result<Vec<f64>> {
        let mut losses = Vec::with_capacity(rows.len());
        for rows in rows.chunks(MICRO_BATCH) {
            losses.extend(self.engine.losses_of(records, rows)?);
        }
        Ok(losses)
    }

    /// `vᵀH_i v` with `H_i` the Hessian of record `i`'s loss, `[vectors][rows]`. Its mean over rows
    /// is that of the mean loss.
    ///
    /// **Shapes.** Each vector `[params]`; `rows` record numbers.
    ///
    /// **Edge cases.** 0 for a vector of norm 0.
    ///
    /// # Errors
    /// As [`Self::product`].
    pub fn quadratic_forms(&mut self, records: &Records, rows: &[usize], vectors: &[&[f64]]) -> Result<Vec<Vec<f64>>> {
        self.forms(records, rows, vectors, norm)
    }

    /// The same for vectors of signs.
    pub(super) fn sign_forms(
        &mut self,
        records: &Records,
        rows: &[usize],
        vectors: &[Vec<i8>],
    ) -> Result<Vec<Vec<f64>>> {
        self.forms(records, rows, vectors, |signs| (signs.len() as f64).sqrt())
    }

    fn forms<V: Copy + Into<f64>>(
        &mut self,
        records: &Records,
        rows: &[usize],
        vectors: &[impl AsRef<[V]>],
        norm: impl Fn(&[V]) -> f64,
    ) -> Result<Vec<Vec<f64>>> {
        let here = self.losses(records, rows)?;
        let forms = vectors
            .iter()
            .map(|vector| {
                let vector = vector.as_ref();
                let length = norm(vector);
                if length == 0.0 {
                    return Ok(vec![0.0; rows.len()]);
                }
                let t = self.step(LOSS_STEP) / length;
                self.move_along(t, vector)?;
                let up = self.losses(records, rows)?;
                self.move_along(-t, vector)?;
                let down = self.losses(records, rows)?;
                // The two differences first: each is exact where the losses are close.
                let forms = up.iter().zip(&down).zip(&here).map(|((up, down), here)| (up - here) - (here - down));
                Ok(forms.map(|form| form / (t * t)).collect())
            })
            .collect::<Result<_>>()?;
        self.return_to_origin()?;
        Ok(forms)
    }

    /// Trace of the Hessian of the mean loss over the rows: mean of `zᵀHz` over vectors `z` of
    /// random signs.
    ///
    /// **Source.** Hutchinson 1990. The estimator is unbiased; its variance is twice the sum of the
    /// squared entries off the diagonal.
    ///
    /// # Errors
    /// As [`Self::product`].
    pub fn trace(
        &mut self,
        records: &Records,
        rows: &[usize],
        n_probes: usize,
        rng: &mut dyn CryptoRng,
    ) -> Result<Sampled> {
        let draws = (0..n_probes)
            .map(|_| {
                let probe = random_signs(self.origin.len(), rng);
                let forms = self.sign_forms(records, rows, &[probe])?;
                Ok(mean(&forms[0]))
            })
            .collect::<Result<Vec<f64>>>()?;
        Ok(Sampled::over(draws.into_iter()))
    }

    /// The largest eigenvalue of the Hessian of the mean loss over the rows, by power iteration
    /// from `start`, or from random signs.
    ///
    /// **Edge cases.** Where the eigenvalue of largest magnitude is negative, the iteration is run
    /// again on the Hessian shifted by it, so that the largest remains. A Hessian of 0 has
    /// eigenvalue 0.
    ///
    /// # Errors
    /// As [`Self::product`].
    pub fn largest_eigenvalue(
        &mut self,
        records: &Records,
        rows: &[usize],
        iterations: usize,
        start: Option<&[f64]>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Eigenvalue> {
        let n_params = self.origin.len();
        let mut anywhere = || random_signs(n_params, rng).into_iter().map(f64::from).collect();
        let start = start.map_or_else(&mut anywhere, <[f64]>::to_vec);
        let found = self.power_iteration(records, rows, iterations, start, 0.0)?;
        if found.value >= 0.0 {
            return Ok(found);
        }
        let start = anywhere();
        self.power_iteration(records, rows, iterations, start, -found.value)
    }

    fn power_iteration(
        &mut self,
        records: &Records,
        rows: &[usize],
        iterations: usize,
        start: Vec<f64>,
        shift: f64,
    ) -> Result<Eigenvalue> {
        let mut vector = start;
        let length = norm(&vector);
        scale(&mut vector, if length > 0.0 { 1.0 / length } else { 0.0 });
        let mut found = Eigenvalue { value: 0.0, vector: Vec::new(), residual: 0.0 };
        for _ in 0..iterations.max(1) {
            let mut next = self.product(records, rows, &vector)?;
            let value = dot(&vector, &next);
            let residual = (dot(&next, &next) - value * value).max(0.0).sqrt();
            add_scaled(&mut next, shift, &vector);
            found = Eigenvalue { value, vector, residual };
            let length = norm(&next);
            if length == 0.0 {
                break;
            }
            scale(&mut next, 1.0 / length);
            vector = next;
        }
        Ok(found)
    }

    fn step(&self, relative: f64) -> f64 {
        relative * (1.0 + norm(&self.origin))
    }

    /// Puts the parameters at the origin plus a multiple of a vector.
    fn move_along<V: Copy + Into<f64>>(&self, by: f64, vector: &[V]) -> Result<()> {
        Ok(ops::set_along(self.engine.model().parameters().flat(), &self.origin, by, vector)?)
    }

    fn return_to_origin(&self) -> Result<()> {
        Ok(self.engine.model().parameters().set(&self.origin)?)
    }
}

/// A vector of signs, each ±1 with equal probability. One byte each: a probe is then moved along in
/// the cache.
pub(super) fn random_signs(len: usize, rng: &mut dyn CryptoRng) -> Vec<i8> {
    let words: Vec<u64> = (0..len.div_ceil(64)).map(|_| rng.next_u64()).collect();
    let mut signs = vec![0; len];
    vectorise(
        #[inline(always)]
        || {
            for (chunk, bits) in signs.chunks_mut(64).zip(&words) {
                for (bit, sign) in chunk.iter_mut().enumerate() {
                    *sign = 1 - 2 * (bits >> bit & 1) as i8;
                }
            }
        },
    );
    signs
}
