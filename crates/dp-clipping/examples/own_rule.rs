//! A clipping rule written outside of the crate, with a memory between steps.

use dp_clipping::kernels::{Gradients, KernelExecution, add_noise};
use dp_clipping::rand::{CryptoRng, SeedableRng};
use dp_clipping::rand_chacha::ChaCha20Rng;
use dp_clipping::serde_json::{Value, json};
use dp_clipping::{ClipBatch, ClipError, ClipMethod, Clipped, clip_gradients};

/// Hard clipping at a threshold that falls to 99 % after every step: a public schedule, which costs
/// no privacy.
#[derive(Debug)]
struct Falling {
    threshold: f64,
    n_groups: usize,
}

impl ClipMethod for Falling {
    fn clip(&mut self, batch: &ClipBatch<'_>, _: &mut dyn CryptoRng) -> Result<Clipped, ClipError> {
        let scales = batch.norms.iter().map(|norm| (self.threshold / norm).min(1.0)).collect();
        let mut clipped = Clipped::new(batch, scales, vec![self.threshold; self.n_groups])?;
        clipped.thresholds = vec![self.threshold];
        self.threshold *= 0.99;
        Ok(clipped)
    }

    fn state(&self) -> Value {
        json!({ "threshold": self.threshold })
    }

    fn restore(&mut self, state: &Value) -> Result<(), ClipError> {
        self.threshold = state["threshold"].as_f64().ok_or(ClipError::StateMismatch { what: "form" })?;
        Ok(())
    }
}

pub(crate) fn main() -> Result<(), ClipError> {
    // 100 records of 20 parameters.
    let rows: Vec<f32> = (0..2_000).map(|i| ((i * 37) % 101) as f32 / 50.0 - 1.0).collect();
    let gradients = Gradients::from_slice(&rows, 20)?;
    let (groups, execution) = (vec![0; 100], KernelExecution::default());
    let mut method = Falling { threshold: 1.0, n_groups: 1 };
    let mut rng = ChaCha20Rng::from_os_rng();
    let mut sum = [0.0; 20];
    for step in 0..3 {
        let clipped = clip_gradients(&mut method, &gradients, &groups, &mut rng, &mut sum, &execution)?;
        // A noise multiplier of 1.
        add_noise(&mut sum, clipped.bound, &mut rng, &execution)?;
        println!("step {step}: bound {:.4}, first entry of the private sum {:.2}", clipped.bound, sum[0]);
        assert_eq!((clipped.n_capped, clipped.n_non_finite), (0, 0));
    }

    let saved = method.state();
    let mut restored = Falling { threshold: 1.0, n_groups: 1 };
    restored.restore(&saved)?;
    assert_eq!(restored.threshold, method.threshold);
    Ok(())
}
