//! Clips a gradient matrix of your own, adds noise and averages: one private step.

use dp_clipping::{
    PublicContext, clip_gradients,
    kernels::{Gradients, KernelExecution, add_noise},
    registry,
};
use dp_clipping::{
    ndarray::Array2,
    rand::{SeedableRng, rngs::StdRng},
};

pub(crate) fn main() -> Result<(), dp_clipping::ClipError> {
    let per_sample = Array2::from_shape_fn((256, 1000), |(i, j)| ((i * 31 + j * 17) % 101) as f32 / 50.0 - 1.0);
    let groups: Vec<usize> = (0..256).map(|i| usize::from(i % 4 == 0)).collect();

    let context = PublicContext { n_groups: 2, expected_batch_size: 256.0, noise_multiplier: 1.0 };
    let mut method = registry::find("dpsgd-f")?.default_config().build(&context)?;
    let (mut rng, execution) = (StdRng::from_os_rng(), KernelExecution::default());
    let gradients = Gradients::from_view(&per_sample)?;
    let mut sum = vec![0.0; gradients.n_params()];
    let clipped = clip_gradients(&mut *method, &gradients, &groups, &mut rng, &mut sum, &execution)?;
    add_noise(&mut sum, context.noise_multiplier * clipped.bound, &mut rng, &execution)?;
    let mean: Vec<f32> = sum.iter().map(|x| x / context.expected_batch_size as f32).collect();

    println!("bound {:.3}, thresholds by group {:.3?}", clipped.bound, clipped.thresholds);
    for query in &clipped.queries {
        println!(
            "counted: {} (noise multiplier {}), released {:.1?}",
            query.name, query.noise_multiplier, query.released
        );
    }
    println!("first entries of the private mean gradient: {:.4?}", &mean[..4]);
    Ok(())
}
