//! A training loop of one's own: logistic regression on Poisson batches, clipped, with noise, and
//! with a ledger that says what it cost.

use dp_accounting::{Delta, DpEvent, Ledger, NeighbouringRelation, NoiseMultiplier, SamplingRate};
use dp_clipping::kernels::{Gradients, KernelExecution, add_noise};
use dp_clipping::rand::{Rng, SeedableRng};
use dp_clipping::rand_chacha::ChaCha20Rng;
use dp_clipping::{PublicContext, clip_gradients, registry};

const N: usize = 4_000;
const RATE: f64 = 0.05;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Two inputs and a constant; the class is the sign of their difference.
    let mut rng = ChaCha20Rng::from_os_rng();
    let features: Vec<[f32; 3]> =
        (0..N).map(|_| [rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0), 1.0]).collect();
    let labels: Vec<f32> = features.iter().map(|x| f32::from(u8::from(x[0] > x[1]))).collect();

    let context = PublicContext { n_groups: 1, expected_batch_size: RATE * N as f64, noise_multiplier: 1.0 };
    let mut method = registry::find("dpsgd")?.default_config().build(&context)?;
    let sigma = NoiseMultiplier::new(context.noise_multiplier)?;
    let step = DpEvent::gaussian(sigma).poisson_sampled(SamplingRate::new(RATE)?);
    let mut ledger = Ledger::new(NeighbouringRelation::AddRemove);

    let (mut weights, execution) = ([0.0_f32; 3], KernelExecution::default());
    for _ in 0..200 {
        // Every record is in the batch by a coin of its own; the batch may be empty.
        let batch: Vec<usize> = (0..N).filter(|_| rng.random_bool(RATE)).collect();
        let gradient = |&i: &usize| {
            let z: f32 = weights.iter().zip(&features[i]).map(|(w, x)| w * x).sum();
            features[i].map(|x| x * (1.0 / (1.0 + (-z).exp()) - labels[i]))
        };
        let gradients: Vec<f32> = batch.iter().flat_map(gradient).collect();
        let gradients = Gradients::from_slice(&gradients, 3)?;
        let (groups, mut sum) = (vec![0; batch.len()], vec![0.0; 3]);
        let clipped = clip_gradients(&mut *method, &gradients, &groups, &mut rng, &mut sum, &execution)?;
        add_noise(&mut sum, context.noise_multiplier * clipped.bound, &mut rng, &execution)?;
        ledger.record(&step, 1)?;
        // The divisor is public: the size that a batch is expected to have.
        weights.iter_mut().zip(&sum).for_each(|(w, g)| *w -= 2.0 * g / context.expected_batch_size as f32);
    }

    let is_right = |i: &usize| {
        let z: f32 = weights.iter().zip(&features[*i]).map(|(w, x)| w * x).sum();
        (z > 0.0) == (labels[*i] > 0.5)
    };
    let n_right = (0..N).filter(is_right).count();
    println!("{n_right} of {N} right, epsilon at most {:.3}", ledger.epsilon(Delta::new(1e-5)?)?.epsilon.get());
    assert!(n_right > N * 9 / 10);
    Ok(())
}
