//! Optimisers: what is done with the private gradient. They see nothing else of the data, hence
//! cost no privacy.

mod config;

use candle_core::Tensor;
pub use config::OptimiserConfig;

use crate::error::Result;
use crate::ops;
use crate::ops::Activation;
use crate::parameters::ParameterVector;
use crate::threads::Threads;

/// The public facts of one step.
#[derive(Debug, Clone, Copy)]
pub struct OptimiserStep {
    /// Its number, from 0.
    pub step: u64,
    /// Learning rate.
    pub rate: f64,
    /// Standard deviation of the noise in every element of the gradient, 0 for none.
    pub noise_std: f64,
}

/// An optimiser at work: its rule, and the moments it keeps between steps.
///
/// **Shapes.** Every moment has the layout of the parameters.
#[derive(Debug)]
pub struct Optimiser {
    config: OptimiserConfig,
    moments: Vec<ParameterVector>,
}

impl Optimiser {
    /// Before the first step: all moments 0. `zeros` makes a vector in the layout of the
    /// parameters.
    ///
    /// # Errors
    /// [`EngineError::InvalidParameter`](crate::EngineError::InvalidParameter) if a setting is out of range;
    /// [`EngineError::Tensor`](crate::EngineError::Tensor) if the device fails.
    pub fn new(config: OptimiserConfig, zeros: impl Fn() -> Result<ParameterVector>) -> Result<Self> {
        let moments = config.moments().iter().map(|_| zeros()).collect::<Result<_>>()?;
        Ok(Self { config, moments })
    }

    /// The moments with their names.
    pub fn moments(&self) -> impl Iterator<Item = (&'static str, &ParameterVector)> {
        self.config.moments().iter().copied().zip(&self.moments)
    }

    /// Moves the parameters by one step. The gradient is used up.
    ///
    /// # Errors
    /// [`EngineError::Tensor`](crate::EngineError::Tensor) if the device fails.
    pub fn step(
        &mut self,
        parameters: &ParameterVector,
        gradient: &ParameterVector,
        of: OptimiserStep,
        threads: &Threads,
    ) -> Result<()> {
        let (p, g, rate) = (parameters.flat(), gradient.flat(), of.rate);
        let add = |to: &Tensor, what: &Tensor, scale, alpha| ops::scale_add(to, what, scale, alpha, threads);
        match self.config {
            OptimiserConfig::Sgd {} => add(p, g, 1.0, -rate)?,
            OptimiserConfig::Momentum { momentum, nesterov } => {
                let velocity = self.moments[0].flat();
                add(velocity, g, momentum, 1.0)?;
                if nesterov {
                    add(g, velocity, 1.0, momentum)?;
                    add(p, g, 1.0, -rate)?;
                } else {
                    add(p, velocity, 1.0, -rate)?;
                }
            }
            OptimiserConfig::Adam { beta_1, beta_2, epsilon } => {
                self.adam((p, g), (beta_1, beta_2, epsilon), of, threads)?;
            }
            OptimiserConfig::AdamBc { beta_1, beta_2, epsilon } => {
                self.adam_bc((p, g), (beta_1, beta_2, epsilon), of, threads)?;
            }
            OptimiserConfig::AdamW { beta_1, beta_2, epsilon, weight_decay } => {
                for (view, _) in parameters.views().iter().zip(parameters.specs()).filter(|(_, spec)| spec.decays) {
                    ops::scale(view, 1.0 - rate * weight_decay)?;
                }
                self.adam((p, g), (beta_1, beta_2, epsilon), of, threads)?;
            }
        }
        Ok(())
    }

    /// The first and second moment, with a gradient and its squares in them.
    fn take_in(&self, g: &Tensor, (beta_1, beta_2): (f64, f64), threads: &Threads) -> Result<(&Tensor, &Tensor)> {
        let (first, second) = (self.moments[0].flat(), self.moments[1].flat());
        ops::scale_add(first, g, beta_1, 1.0 - beta_1, threads)?;
        ops::scale_add_square(second, g, beta_2, 1.0 - beta_2, threads)?;
        Ok((first, second))
    }

    fn adam(
        &self,
        (p, g): (&Tensor, &Tensor),
        (beta_1, beta_2, epsilon): (f64, f64, f64),
        of: OptimiserStep,
        threads: &Threads,
    ) -> Result<()> {
        let (first, second) = self.take_in(g, (beta_1, beta_2), threads)?;
        let (rate, root) = of.corrected(beta_1, beta_2);
        Ok(ops::adam_update(p, first, second, rate, root, epsilon, threads)?)
    }

    fn adam_bc(
        &self,
        (p, g): (&Tensor, &Tensor),
        (beta_1, beta_2, epsilon): (f64, f64, f64),
        of: OptimiserStep,
        threads: &Threads,
    ) -> Result<()> {
        let (first, second) = self.take_in(g, (beta_1, beta_2), threads)?;
        // The gradient is used up: its memory takes the variance, then the moment without the
        // negative values. The moment itself keeps them, because their mean over steps is right.
        ops::fill(g, of.noise_std.powi(2))?;
        ops::scale_add(second, g, 1.0, beta_2 - 1.0, threads)?;
        ops::copy(g, second)?;
        ops::activate(g, Activation::Relu)?;
        let (rate, root) = of.corrected(beta_1, beta_2);
        Ok(ops::adam_update(p, first, g, rate, root, epsilon, threads)?)
    }
}

impl OptimiserStep {
    /// The rate over the bias correction of the first moment, and the root of the second's.
    fn corrected(self, beta_1: f64, beta_2: f64) -> (f64, f64) {
        // A power beyond the range of i32 is 0 to the last bit.
        let power = i32::try_from(self.step.saturating_add(1)).unwrap_or(i32::MAX);
        let correction = |beta: f64| 1.0 - beta.powi(power);
        (self.rate / correction(beta_1), correction(beta_2).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use candle_core::{DType, Device};

    use super::*;
    use crate::layers::{Initial, ParameterSpec};

    /// Two weights and a bias after five steps at rate 0.1 with the gradients `0.1 t`, `−0.2/t` and
    /// `±0.3`, `t = 1…5`.
    fn run(config: OptimiserConfig, dtype: DType) -> Vec<f64> {
        let spec = |name: &str, len, decays| ParameterSpec {
            name: name.into(),
            shape: vec![len],
            initial: Initial::Zeros,
            decays,
            crop: None,
        };
        let specs = [spec("weight", 2, true), spec("bias", 1, false)];
        let zeros = || ParameterVector::zeros(&specs, dtype, &Device::Cpu);
        let (parameters, gradient) = (zeros().unwrap(), zeros().unwrap());
        parameters.set(&[0.5, -1.0, 0.25]).unwrap();
        let mut optimiser = Optimiser::new(config, zeros).unwrap();
        let threads = Threads::new(NonZeroUsize::MIN).unwrap();
        for step in 0..5 {
            let t = (step + 1) as f64;
            gradient.set(&[0.1 * t, -0.2 / t, if step % 2 == 0 { 0.3 } else { -0.3 }]).unwrap();
            let of = OptimiserStep { step, rate: 0.1, noise_std: 0.0 };
            optimiser.step(&parameters, &gradient, of, &threads).unwrap();
        }
        parameters.to_vec().unwrap()
    }

    /// Recorded from PyTorch 2.15.0 in `float64`, the bias in a parameter group without weight
    /// decay.
    #[test]
    fn parameters_are_pytorch_s() {
        let adam = |beta_1, beta_2, epsilon| OptimiserConfig::Adam { beta_1, beta_2, epsilon };
        let adamw = OptimiserConfig::AdamW { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-8, weight_decay: 0.1 };
        let momentum = |nesterov| OptimiserConfig::Momentum { momentum: 0.9, nesterov };
        for (config, expected) in [
            (OptimiserConfig::default(), [0.35, -0.954_333_333_333_333_3, 0.22]),
            (momentum(false), [0.182_968_999_999_999_9, -0.852_141_333_333_333_2, 0.176_016_999_999_999_98]),
            (momentum(true), [0.064_672_099_999_999_9, -0.821_260_533_333_333_3, 0.153_415_3]),
            (adam(0.8, 0.99, 1e-3), [0.001_401_755_773_094_232, -0.579_847_263_954_888, 0.116_299_727_874_640_14]),
            (adamw, [8.587_482_750_029_019e-5, -0.520_111_880_890_764_3, 0.106_505_481_519_272_65]),
        ] {
            for (dtype, tolerance) in [(DType::F64, 1e-14), (DType::F32, 1e-6)] {
                for (got, expected) in run(config, dtype).iter().zip(expected) {
                    assert!((got - expected).abs() < tolerance, "{config:?} {dtype:?}: {got} for {expected}");
                }
            }
        }
    }

    fn two_zeros() -> Result<ParameterVector> {
        let spec =
            ParameterSpec { name: "weight".into(), shape: vec![2], initial: Initial::Zeros, decays: true, crop: None };
        ParameterVector::zeros(&[spec], DType::F64, &Device::Cpu)
    }

    /// `m̂ = g` and `v̂ = g²` after the first step, so that Adam moves by the rate, whatever the
    /// gradient's size.
    #[test]
    fn the_first_step_of_adam_by_hand() {
        let (parameters, gradient) = (two_zeros().unwrap(), two_zeros().unwrap());
        gradient.set(&[1e-3, -40.0]).unwrap();
        let config = OptimiserConfig::Adam { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-30 };
        let threads = Threads::new(NonZeroUsize::MIN).unwrap();
        let of = OptimiserStep { step: 0, rate: 0.25, noise_std: 0.0 };
        Optimiser::new(config, two_zeros).unwrap().step(&parameters, &gradient, of, &threads).unwrap();
        for (got, expected) in parameters.to_vec().unwrap().iter().zip([-0.25, 0.25]) {
            assert!((got - expected).abs() < 1e-14, "{got}");
        }
    }

    /// Noise of variance 4, β₁ = ½, β₂ = ¾, ε = ½. The first element has the gradient 2.5 twice: v̂ =
    /// 6.25 − 4 at both steps, whose root is 1.5. The second has 1 and then √8: v is ¼(1 − 4) = −¾,
    /// which counts as 0, and then ¾·(−¾) + ¼(8 − 4) = 7/16, so v̂ = 1; m̂ is (¼ + ½√8)/¾.
    #[test]
    fn noise_is_subtracted_from_the_second_moment_by_hand() {
        let (parameters, gradient) = (two_zeros().unwrap(), two_zeros().unwrap());
        let config = OptimiserConfig::AdamBc { beta_1: 0.5, beta_2: 0.75, epsilon: 0.5 };
        let mut optimiser = Optimiser::new(config, two_zeros).unwrap();
        let threads = Threads::new(NonZeroUsize::MIN).unwrap();
        let root_8 = 8.0_f64.sqrt();
        let second = 0.1 * (0.25 + 0.5 * root_8) / 0.75 / 1.5;
        for (step, last, expected) in [(0, 1.0, [-0.125, -0.2]), (1, root_8, [-0.25, -0.2 - second])] {
            gradient.set(&[2.5, last]).unwrap();
            let of = OptimiserStep { step, rate: 0.1, noise_std: 2.0 };
            optimiser.step(&parameters, &gradient, of, &threads).unwrap();
            for (got, expected) in parameters.to_vec().unwrap().iter().zip(expected) {
                assert!((got - expected).abs() < 1e-14, "step {step}: {got} for {expected}");
            }
        }
    }

    /// Without noise the parameters are Adam's, bit for bit.
    #[test]
    fn without_noise_nothing_is_subtracted() {
        let adam = OptimiserConfig::Adam { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-3 };
        let corrected = OptimiserConfig::AdamBc { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-3 };
        for dtype in [DType::F64, DType::F32] {
            assert_eq!(run(adam, dtype), run(corrected, dtype));
        }
    }
}
