//! The named methods, one file each; [`crate::registry`] lists them.

pub(crate) mod adaptive;
pub(crate) mod asc;
pub(crate) mod asc_by_loss;
pub(crate) mod automatic;
pub(crate) mod bounded_adaptive;
pub(crate) mod bounded_global_adapt;
pub(crate) mod bounded_soft_adaptive;
pub(crate) mod bounded_soft_global_adapt;
pub(crate) mod direction_only;
pub(crate) mod dpsgd;
pub(crate) mod dpsgd_f;
pub(crate) mod dpsgd_global;
pub(crate) mod dpsgd_global_adapt;
pub(crate) mod dpsgd_normalised;
pub(crate) mod fairlens;
pub(crate) mod fixed_soft;
pub(crate) mod group_dro;
pub(crate) mod magnitude_only;
pub(crate) mod naive;
pub(crate) mod soft_adaptive;
pub(crate) mod soft_dpsgd_f;
pub(crate) mod soft_global_adapt;
pub(crate) mod unbounded_adaptive;

mod published_controllers;

#[cfg(test)]
pub(crate) mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    use crate::{ClipBatch, ClipMethod, Clipped, MethodEntry, PresetParams, PublicContext};

    /// The method without noise (K = 2), so that a step can be worked by hand.
    pub(crate) fn noiseless(entry: &MethodEntry, params: &PresetParams, batch_size: f64) -> Box<dyn ClipMethod> {
        let context = PublicContext { n_groups: 2, expected_batch_size: batch_size, noise_multiplier: 0.0 };
        entry.config(params).unwrap().build(&context).unwrap()
    }

    /// One step with a seeded generator.
    pub(crate) fn step(method: &mut dyn ClipMethod, norms: &[f64], groups: &[usize]) -> Clipped {
        method.clip(&ClipBatch::new(norms, groups), &mut ChaCha20Rng::seed_from_u64(1)).unwrap()
    }

    /// Equal but for the headroom under the bound.
    pub(crate) fn assert_close(actual: f64, expected: f64) {
        assert!((actual - expected).abs() <= 5e-6 * expected.abs(), "{actual} is not {expected}");
    }
}
