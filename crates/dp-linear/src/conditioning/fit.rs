//! Centring and whitening by a noisy mean and a noisy covariance.

use std::num::NonZeroUsize;
use std::ops::Range;

use dp_accounting::{DpEvent, Ledger, NoiseMultiplier};
use dp_engine::noise::StepNoise;
use dp_engine::vector_math::vectorise;
use dp_engine::{Grid, Threads};
use rand_chacha::rand_core::CryptoRng;
use serde::{Deserialize, Serialize};

use super::gram::{gram, row_sum};
use super::triangular::Lower;
use super::whitening::Whitening;
use crate::error::{LinearError, Result};
use crate::release::record;
use crate::rows::{scale, scale_to_unit};

/// Ridge over the edge of the noise's spectrum.
pub(super) const RIDGE: f64 = 2.0;
/// Records that are whitened at once.
pub(super) const AT_ONCE: usize = 512;

/// The releases about the rows, and the length of the results.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConditioningConfig {
    /// Noise multiplier of the sum of all rows; `None` does not centre.
    pub mean: Option<NoiseMultiplier>,
    /// Noise multiplier of the sum of all outer products; `None` does not whiten.
    pub covariance: Option<NoiseMultiplier>,
    /// Norm of the rows that come out. Beside it stands the constant 1 that a bias is multiplied
    /// by: a longer row gives the bias less weight, and the bias less of the noise.
    pub row_norm: f64,
}

impl Default for ConditioningConfig {
    /// Nothing is released; rows of norm 10/3, a constant of 0.3 beside rows of norm 1.
    fn default() -> Self {
        Self { mean: None, covariance: None, row_norm: 10.0 / 3.0 }
    }
}

impl ConditioningConfig {
    /// The releases of [`Conditioning::fit`], in order. They are fixed beforehand and do not depend
    /// on the records.
    pub fn events(&self) -> Vec<DpEvent> {
        self.mean.iter().chain(&self.covariance).map(|&sigma| DpEvent::gaussian(sigma)).collect()
    }
}

/// A transformation of rows, `x ↦ ρ · W(x − m)/‖W(x − m)‖`, with the released mean `m` and a factor
/// `W` of the inverse of the released covariance.
///
/// `WᵀW = (C̃ + λI)⁻¹`. `W` is the inverse of a Cholesky factor: it differs from the symmetric root
/// by a rotation, which neither the Gaussian noise of the gradients nor a linear model sees. The
/// ridge `λ` is twice the edge `√2 σ √d` of the spectrum of the covariance's noise, a public
/// number, so that directions in which the covariance is all noise are left about as they are.
/// Should `C̃ + λI` not be positive definite all the same, `λ` is doubled until it is: that looks
/// at released values alone.
///
/// **Guarantee.** Fitting releases `Σ x` and the upper triangle of `Σ x xᵀ` with Gaussian noise.
/// Rows have norm at most 1 by construction: what is longer counts as a blanked record. So one
/// record changes the first by at most 1 in L2 norm. In the second, off-diagonal entries stand for
/// two, and their noise is smaller by `√2`: the noise has covariance `σ²` times the metric in which
/// one record's change is `‖x xᵀ‖_F ≤ 1`. All sums are exact (multiples of a public grid), and the
/// noise is rounded exactly, so no rounding is left uncharged. What follows from the released
/// values, this transformation, costs nothing more.
///
/// **Edge cases.** A row of zeros, or one that is not finite, stays a row of zeros: it is a blanked
/// record.
///
/// **Source.** Noisy covariance: Dwork et al. 2014, "Analyze Gauss".
#[derive(Debug, Clone, PartialEq)]
pub struct Conditioning {
    pub(super) config: ConditioningConfig,
    pub(super) n_features: usize,
    pub(super) mean: Option<Vec<f64>>,
    /// `L` with `L Lᵀ = C̃ + λI`.
    pub(super) factor: Option<Lower>,
    whitening: Option<Whitening>,
}

impl Conditioning {
    /// Releases what the configuration says about these rows, `[n_records, n_features]`, and notes
    /// it in the ledger.
    ///
    /// # Errors
    /// [`LinearError::InvalidParameter`] if there is no feature, more than 2³³ records, or the row
    /// norm is not a finite number above 0; [`LinearError::Mismatch`] unless there is a whole number
    /// of rows, one at least; [`LinearError::Accounting`] if the ledger refuses.
    pub fn fit(
        config: &ConditioningConfig,
        rows: &[f32],
        n_features: usize,
        threads: NonZeroUsize,
        rng: &mut dyn CryptoRng,
        ledger: &mut Ledger,
    ) -> Result<Self> {
        let mut fitted = Self::unfitted(*config, n_features)?;
        let n_records = fitted.check(rows)?;
        if n_records == 0 {
            return Err(LinearError::mismatch("records to fit to", "at least 1", 0));
        }
        let grid = Grid::for_products(n_records)?;
        let unit = grid.per_unit();
        if let Some(sigma) = config.mean {
            record(ledger, sigma)?;
            let sum = grid.release(row_sum(grid, rows, n_features), sigma.get(), rng);
            fitted.mean = Some(sum.iter().map(|v| v / n_records as f64).collect());
        }
        if let Some(sigma) = config.covariance {
            record(ledger, sigma)?;
            let centred = |range: Range<usize>| {
                let rows = &rows[range.start * n_features..range.end * n_features];
                let mut centred = vec![0.0; rows.len()];
                fitted.centre(rows, &mut centred);
                Ok(centred)
            };
            let mut triangle = gram(grid, n_records, n_features, centred, threads)?;
            add_symmetric_noise(&mut triangle, n_features, sigma.get() * unit * unit, rng);
            for value in &mut triangle {
                *value /= unit * unit * n_records as f64;
            }
            let edge = std::f64::consts::SQRT_2 * sigma.get() * (n_features as f64).sqrt() / n_records as f64;
            fitted.set_factor(regularised_factor(&triangle, n_features, RIDGE * edge)?);
        }
        Ok(fitted)
    }

    /// Without mean and covariance.
    pub(super) fn unfitted(config: ConditioningConfig, n_features: usize) -> Result<Self> {
        if n_features == 0 {
            return Err(LinearError::invalid("n_features", 0, "at least 1"));
        }
        if !(config.row_norm.is_finite() && config.row_norm > 0.0) {
            return Err(LinearError::invalid("row_norm", config.row_norm, "a finite number above 0"));
        }
        Ok(Self { config, n_features, mean: None, factor: None, whitening: None })
    }

    pub(super) fn set_factor(&mut self, factor: Lower) {
        self.whitening = Some(Whitening::new(factor.inverse()));
        self.factor = Some(factor);
    }

    /// The configuration.
    pub fn config(&self) -> &ConditioningConfig {
        &self.config
    }

    /// The mean as it was released, `[n_features]`; `None` without centring.
    pub fn mean(&self) -> Option<&[f64]> {
        self.mean.as_deref()
    }

    /// Row-major `[n_features, n_features]`: the lower triangular `L` whose `L Lᵀ` is the released
    /// covariance with its ridge; `None` without whitening.
    pub fn covariance_factor(&self) -> Option<&[f64]> {
        self.factor.as_ref().map(|factor| &factor.values[..])
    }

    /// Length of a row.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// Largest L2 norm of a record's gradient in a linear layer with bias behind rows of this norm,
    /// for a loss whose gradient by the logits has norm at most `logit_bound` (√2 for a softmax).
    ///
    /// A clipping threshold of that much never clips.
    pub fn gradient_bound(&self, logit_bound: f64) -> f64 {
        logit_bound * (self.config.row_norm.powi(2) + 1.0).sqrt()
    }

    /// Rows as a model gets them, `[n_records, n_features]`: in training and in prediction.
    ///
    /// # Errors
    /// [`LinearError::Mismatch`] unless there is a whole number of rows.
    pub fn apply(&self, rows: &[f32], threads: NonZeroUsize) -> Result<Vec<f32>> {
        let n_records = self.check(rows)?;
        let threads = Threads::new(threads)?;
        let share = n_records.div_ceil(threads.count()).max(1) * self.n_features;
        let mut out = vec![0.0; rows.len()];
        let jobs: Vec<_> = rows.chunks(share).zip(out.chunks_mut(share)).collect();
        let results = threads.each(jobs.into_iter(), |(rows, out)| {
            let pieces = rows.chunks(AT_ONCE * self.n_features).zip(out.chunks_mut(AT_ONCE * self.n_features));
            for (rows, out) in pieces {
                self.centre(rows, out);
                if let Some(whitening) = &self.whitening {
                    whitening.apply(out)?;
                }
                for row in out.chunks_exact_mut(self.n_features) {
                    scale_to_unit(row);
                    scale(row, self.config.row_norm);
                }
            }
            Ok(())
        });
        results.into_iter().collect::<Result<()>>()?;
        Ok(out)
    }

    /// A linear model on conditioned rows as one on raw features: weights `[n_outputs, n_features]`
    /// and an offset per output, such that output `k` of the model is `ρ (weights[k] · x +
    /// offsets[k])/‖W(x − m)‖` plus the model's own bias.
    ///
    /// The divisor is the same for all outputs of a record.
    ///
    /// # Errors
    /// [`LinearError::Mismatch`] unless there is a whole number of rows of weights.
    pub fn on_raw_features(&self, weights: &[f64]) -> Result<(Vec<f64>, Vec<f64>)> {
        if !weights.len().is_multiple_of(self.n_features) {
            let expected = format!("a multiple of {}", self.n_features);
            return Err(LinearError::mismatch("weights on conditioned rows", expected, weights.len()));
        }
        let (mut raw, mut offsets) = (Vec::with_capacity(weights.len()), Vec::new());
        for row in weights.chunks_exact(self.n_features) {
            let row = match &self.whitening {
                Some(whitening) => whitening.inverse.transposed_times(row),
                None => row.to_vec(),
            };
            let along = |mean: &Vec<f64>| row.iter().zip(mean).map(|(a, b)| a * b).sum::<f64>();
            offsets.push(-self.mean.as_ref().map_or(0.0, along));
            raw.extend(row);
        }
        Ok((raw, offsets))
    }

    /// Number of rows in these values.
    fn check(&self, rows: &[f32]) -> Result<usize> {
        if !rows.len().is_multiple_of(self.n_features) {
            let expected = format!("a multiple of {}", self.n_features);
            return Err(LinearError::mismatch("values of all rows", expected, rows.len()));
        }
        Ok(rows.len() / self.n_features)
    }

    /// Rows less the mean, of norm 1; rows of zeros stay.
    pub(super) fn centre(&self, rows: &[f32], out: &mut [f32]) {
        let pairs = rows.chunks_exact(self.n_features).zip(out.chunks_exact_mut(self.n_features));
        for (row, out) in pairs {
            out.copy_from_slice(row);
            let blank = row.iter().all(|&v| v == 0.0);
            if let Some(mean) = self.mean.as_ref().filter(|_| !blank) {
                vectorise(
                    #[inline(always)]
                    || {
                        for (value, mean) in out.iter_mut().zip(mean) {
                            *value = (f64::from(*value) - mean) as f32;
                        }
                    },
                );
            }
            scale_to_unit(out);
        }
    }
}

/// Adds noise to the upper triangle of a symmetric matrix of integers: of this standard deviation
/// on the diagonal, and smaller by `√2` beside it, where each entry stands for two.
pub(crate) fn add_symmetric_noise(triangle: &mut [f64], size: usize, std: f64, rng: &mut dyn CryptoRng) {
    let starts = || (0..size).scan(0, |start, row| Some(std::mem::replace(start, *start + size - row)));
    let mut diagonal: Vec<f64> = starts().map(|start| triangle[start]).collect();
    StepNoise::draw(rng, std).add_f64(0, &mut diagonal);
    // The constant is rounded up, and so is the product.
    StepNoise::draw(rng, (std * std::f64::consts::FRAC_1_SQRT_2).next_up()).add_f64(0, triangle);
    for (start, value) in starts().zip(diagonal) {
        triangle[start] = value;
    }
}

/// A Cholesky factor with the smallest ridge out of `ridge`, `2 ridge`, … that has one.
pub(super) fn regularised_factor(triangle: &[f64], size: usize, ridge: f64) -> Result<Lower> {
    /// Doublings until a ridge dwarfs any covariance of rows of norm 1 and its noise.
    const DOUBLINGS: i32 = 64;
    (0..DOUBLINGS)
        .find_map(|doublings| Lower::cholesky(triangle, size, ridge * 2f64.powi(doublings)))
        .ok_or_else(|| LinearError::mismatch("noisy covariance", "finite values", "others"))
}

#[cfg(test)]
mod tests {
    use dp_accounting::NeighbouringRelation;

    use super::super::whitening::TILE;
    use super::*;
    use dp_train::{Purpose, Randomness};

    /// Correlated rows of norm 1 around a mean that is not 0.
    fn rows(n: usize, d: usize) -> Vec<f32> {
        let mut rows = Vec::with_capacity(n * d);
        for i in 0..n {
            let common = ((i * 37) % 101) as f32 / 50.0 - 1.0;
            let mut row: Vec<f32> =
                (0..d).map(|j| 1.0 + common * (j % 3) as f32 + (((i * 7919 + j * 31) % 97) as f32 / 97.0)).collect();
            scale_to_unit(&mut row);
            rows.extend(row);
        }
        rows
    }

    fn fit(rows: &[f32], d: usize, mean: f64, covariance: f64) -> (Conditioning, Ledger) {
        let mut ledger = Ledger::new(NeighbouringRelation::ZeroOut);
        let mut rng = Randomness::from_seed(5).stream(Purpose::Conditioning, 0, 0).unwrap();
        let sigma = |value| Some(NoiseMultiplier::new(value).unwrap());
        let config =
            ConditioningConfig { mean: sigma(mean), covariance: sigma(covariance), ..ConditioningConfig::default() };
        let threads = NonZeroUsize::new(2).unwrap();
        (Conditioning::fit(&config, rows, d, threads, &mut rng, &mut ledger).unwrap(), ledger)
    }

    /// With hardly any noise the mean is the mean, and the factor is one of the covariance around
    /// it.
    #[test]
    fn hardly_any_noise_centres_and_whitens() {
        let (n, d) = (4_000, 5);
        let rows = rows(n, d);
        let (fitted, _) = fit(&rows, d, 1e-3, 1e-3);
        for (j, mean) in fitted.mean.as_ref().unwrap().iter().enumerate() {
            let exact = rows.iter().skip(j).step_by(d).map(|&v| f64::from(v)).sum::<f64>() / n as f64;
            assert!((mean - exact).abs() < 1e-5, "{mean} {exact}");
        }
        let mut centred = vec![0.0; rows.len()];
        fitted.centre(&rows, &mut centred);
        let factor = fitted.factor.as_ref().unwrap();
        for k in 0..d {
            let mut unit = vec![0.0; d];
            unit[k] = 1.0;
            for (i, value) in factor.times(&factor.transposed_times(&unit)).into_iter().enumerate() {
                let products = centred.chunks_exact(d).map(|row| f64::from(row[i]) * f64::from(row[k]));
                let exact = products.sum::<f64>() / n as f64;
                assert!((value - exact).abs() < 1e-5, "{value} {exact}");
            }
        }
        let out = fitted.apply(&rows, NonZeroUsize::MIN).unwrap();
        assert!(out == fitted.apply(&rows, NonZeroUsize::new(3).unwrap()).unwrap());
    }

    /// Tiles that are full and that are not, against the plain product.
    #[test]
    fn whitening_in_tiles_is_the_plain_product() {
        let d = TILE + 9;
        let rows = rows(60, d);
        let (fitted, _) = fit(&rows, d, 1.0, 1.0);
        let out = fitted.apply(&rows, NonZeroUsize::MIN).unwrap();
        for (row, out) in rows.chunks_exact(d).zip(out.chunks_exact(d)) {
            let mut centred = vec![0.0; d];
            fitted.centre(row, &mut centred);
            let centred: Vec<f64> = centred.iter().map(|&v| f64::from(v)).collect();
            let expected = fitted.whitening.as_ref().unwrap().inverse.times(&centred);
            let norm = expected.iter().map(|v| v * v).sum::<f64>().sqrt();
            for (got, expected) in out.iter().zip(&expected) {
                assert!((f64::from(*got) - expected / norm * 10.0 / 3.0).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn blank_rows_stay_blank_and_others_have_the_norm() {
        let mut rows = rows(20, 4);
        rows[..4].fill(0.0);
        rows[5] = f32::NAN;
        let (fitted, _) = fit(&rows, 4, 1.0, 1.0);
        let out = fitted.apply(&rows, NonZeroUsize::MIN).unwrap();
        assert!(out[..8].iter().all(|&v| v == 0.0));
        for row in out[8..].chunks_exact(4) {
            let norm = row.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>().sqrt();
            assert!(norm <= 10.0 / 3.0 * (1.0 + 1e-7) && norm > 3.333, "{norm}");
        }
    }

    #[test]
    fn the_ledger_holds_what_was_announced() {
        let (fitted, ledger) = fit(&rows(30, 3), 3, 10.0, 4.0);
        let noted: Vec<DpEvent> = ledger.entries().iter().map(|entry| entry.event().clone()).collect();
        assert_eq!(noted, fitted.config().events());
        assert_eq!(noted.len(), 2);
    }

    /// Sums with and without one record differ by its own contribution, exactly, whatever the
    /// others are: in norm at most 1, in the metric of the noise.
    #[test]
    fn one_record_changes_the_sums_by_at_most_one() {
        let (n, d) = (700, 6);
        let all = rows(n, d);
        let grid = Grid::for_products(n).unwrap();
        let unit = grid.per_unit();
        for blanked in [0, 1, 333, n - 1] {
            let mut without = all.clone();
            without[blanked * d..(blanked + 1) * d].fill(0.0);
            let norm: f64 = row_sum(grid, &all, d)
                .iter()
                .zip(row_sum(grid, &without, d))
                .map(|(a, b)| ((a - b) / unit).powi(2))
                .sum();
            assert!(norm <= 1.0 && norm > 0.999, "{norm}");
            let gram = |rows: &[f32]| {
                gram(grid, n, d, |range| Ok(rows[range.start * d..range.end * d].to_vec()), NonZeroUsize::MIN).unwrap()
            };
            let (mut square, mut place) = (0.0, 0);
            let (with, without) = (gram(&all), gram(&without));
            for i in 0..d {
                for j in i..d {
                    let change = (with[place] - without[place]) / (unit * unit);
                    square += change * change * if i == j { 1.0 } else { 2.0 };
                    place += 1;
                }
            }
            assert!(square <= 1.0 && square > 0.999, "{square}");
        }
    }

    /// Standard deviations of the released noise over many draws: within 3 % (200,000 values of
    /// each kind; about nine standard errors).
    #[test]
    fn noise_beside_the_diagonal_is_smaller_by_the_root_of_two() {
        let size = 640;
        let mut triangle = vec![0.0; size * (size + 1) / 2];
        let mut rng = Randomness::from_seed(6).stream(Purpose::Conditioning, 0, 0).unwrap();
        let (mut diagonal, mut beside) = (Vec::new(), Vec::new());
        for _ in 0..10 {
            triangle.fill(0.0);
            add_symmetric_noise(&mut triangle, size, 1e6, &mut rng);
            let mut place = 0;
            for i in 0..size {
                for j in i..size {
                    if i == j {
                        diagonal.push(triangle[place]);
                    } else {
                        beside.push(triangle[place]);
                    }
                    place += 1;
                }
            }
        }
        let std = |values: &[f64]| (values.iter().map(|v| v * v).sum::<f64>() / values.len() as f64).sqrt() / 1e6;
        assert!((std(&beside) - std::f64::consts::FRAC_1_SQRT_2).abs() < 0.003, "{}", std(&beside));
        // 6,400 values: within 6 %, nearly seven standard errors.
        assert!((std(&diagonal) - 1.0).abs() < 0.06, "{}", std(&diagonal));
    }

    #[test]
    fn a_linear_model_can_be_had_on_raw_features() {
        let (n, d) = (200, 7);
        let rows = rows(n, d);
        let (fitted, _) = fit(&rows, d, 0.5, 0.5);
        let weights: Vec<f64> = (0..2 * d).map(|i| ((i * 13) % 7) as f64 - 3.0).collect();
        let (raw, offsets) = fitted.on_raw_features(&weights).unwrap();
        let out = fitted.apply(&rows, NonZeroUsize::MIN).unwrap();
        for (row, out) in rows.chunks_exact(d).zip(out.chunks_exact(d)) {
            let score =
                |weights: &[f64], row: &[f32]| -> f64 { weights.iter().zip(row).map(|(w, &x)| w * f64::from(x)).sum() };
            let conditioned = [score(&weights[..d], out), score(&weights[d..], out)];
            let affine = [score(&raw[..d], row) + offsets[0], score(&raw[d..], row) + offsets[1]];
            // One divisor for both outputs.
            assert!(
                (conditioned[0] * affine[1] - conditioned[1] * affine[0]).abs()
                    < 1e-3 * affine[0].abs().max(affine[1].abs())
            );
            assert!(conditioned[0] * affine[0] >= 0.0);
        }
        assert!(fitted.on_raw_features(&weights[1..]).is_err());
    }

    #[test]
    fn rows_that_do_not_fit_are_refused() {
        let mut rng = Randomness::from_seed(5).stream(Purpose::Conditioning, 0, 0).unwrap();
        let mut ledger = Ledger::new(NeighbouringRelation::ZeroOut);
        let mut refused = |config: ConditioningConfig, rows: &[f32], d| {
            Conditioning::fit(&config, rows, d, NonZeroUsize::MIN, &mut rng, &mut ledger).unwrap_err().to_string()
        };
        let config = ConditioningConfig::default();
        insta::assert_snapshot!(refused(config, &[0.0; 7], 2), @"values of all rows: expected a multiple of 2, got 7");
        insta::assert_snapshot!(refused(config, &[], 2), @"records to fit to: expected at least 1, got 0");
        insta::assert_snapshot!(refused(config, &[], 0), @"n_features = 0: expected at least 1");
        let config = ConditioningConfig { row_norm: f64::NAN, ..config };
        insta::assert_snapshot!(refused(config, &[0.0; 4], 2), @"row_norm = NaN: expected a finite number above 0");
    }
}
