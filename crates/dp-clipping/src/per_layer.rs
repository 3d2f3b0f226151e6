//! Per-layer clipping: a method of its own for each layer.

use rand::CryptoRng;

use crate::{ClipBatch, ClipConfig, ClipError, ClipMethod, Clipped, MethodState, PublicContext, batch::is_valid_norm};

/// One method per layer, each seeing that layer's norms. (Flat clipping is one method over the
/// whole gradient's norms.)
///
/// **Guarantee.** A record changes layer `l`'s sum by at most `S_l`, so the whole sum by at most
/// `√Σ S_l²`; all layers get noise of that one size. With the flat bound `C` shared out evenly,
/// each of `L` layers has `C/√L`.
///
/// Every layer's controller makes its own count on the same batch: all of them are queries of the
/// step.
///
/// ```
/// use dp_clipping::{PublicContext, per_layer::PerLayer, registry::{PresetParams, find}};
/// use rand::SeedableRng;
/// let context = PublicContext { n_groups: 1, expected_batch_size: 2.0, noise_multiplier: 1.0 };
/// let layer = |clip_norm| find("dpsgd").map(|m| m.config(&PresetParams { clip_norm, ..PresetParams::default() }));
/// let mut layers = PerLayer::new(&[layer(3.0)?, layer(4.0)?], &context)?;
/// let mut rng = rand_chacha::ChaCha20Rng::seed_from_u64(1);
/// // Norms of two records in layer 0 and in layer 1.
/// let clipped = layers.clip(&[&[1.0, 6.0], &[8.0, 1.0]], &[0, 0], &mut rng)?;
/// assert_eq!(clipped.bound, 5.0);
/// assert!((clipped.layers[0].scales[1] - 0.5).abs() < 1e-5 && (clipped.layers[1].scales[0] - 0.5).abs() < 1e-5);
/// # Ok::<(), dp_clipping::ClipError>(())
/// ```
pub struct PerLayer {
    methods: Vec<Box<dyn ClipMethod>>,
}

/// The answer of every layer to one batch.
#[derive(Debug, Clone, PartialEq)]
pub struct ClippedLayers {
    /// One per layer; its `bound` holds for that layer's part of the gradient.
    pub layers: Vec<Clipped>,
    /// `√Σ S_l²`: sensitivity of the whole sum. The noise of every layer is `N(0, (σ·bound)²)`.
    pub bound: f64,
    /// Records with a norm that is not finite in some layer: they contribute nothing to any layer.
    pub n_non_finite: usize,
}

impl PerLayer {
    /// One configuration per layer.
    ///
    /// # Errors
    /// As [`ClipConfig::build`].
    pub fn new(configs: &[ClipConfig], context: &PublicContext) -> Result<Self, ClipError> {
        Ok(Self { methods: configs.iter().map(|config| config.build(context)).collect::<Result<_, _>>()? })
    }

    /// Noise multipliers of the counts of every step, layer after layer.
    pub fn count_noise_multipliers(configs: &[ClipConfig], context: &PublicContext) -> Vec<f64> {
        configs.iter().flat_map(|config| config.count_noise_multipliers(context)).collect()
    }

    /// Scales for one batch in every layer.
    ///
    /// **Shapes.** `norms`: `[layers][batch]`, `groups`: `[batch]`.
    ///
    /// # Errors
    /// [`ClipError::LengthMismatch`] if the number of layers or of records does not fit, and as
    /// [`ClipMethod::clip`].
    pub fn clip(
        &mut self,
        norms: &[&[f64]],
        groups: &[usize],
        rng: &mut dyn CryptoRng,
    ) -> Result<ClippedLayers, ClipError> {
        crate::error::check_lengths("norms", norms.len(), "layers", self.methods.len())?;
        for layer in norms {
            crate::error::check_lengths("norms", layer.len(), "groups", groups.len())?;
        }
        // A record is out of every layer if it is out of one: its gradient as a whole is not
        // finite.
        let valid: Vec<bool> =
            (0..groups.len()).map(|record| norms.iter().all(|layer| is_valid_norm(layer[record]))).collect();
        let mut layers = Vec::with_capacity(norms.len());
        for (method, layer) in self.methods.iter_mut().zip(norms) {
            let norms: Vec<f64> =
                layer.iter().zip(&valid).map(|(&norm, &valid)| if valid { norm } else { f64::NAN }).collect();
            layers.push(method.clip(&ClipBatch { norms: &norms, groups }, rng)?);
        }
        let bound = layers.iter().map(|layer| layer.bound * layer.bound).sum::<f64>().sqrt();
        Ok(ClippedLayers { layers, bound, n_non_finite: valid.iter().filter(|&&valid| !valid).count() })
    }

    /// What a checkpoint keeps, one per layer.
    pub fn state(&self) -> Vec<MethodState> {
        self.methods.iter().map(|method| method.state()).collect()
    }

    /// Continues from a checkpoint.
    ///
    /// # Errors
    /// [`ClipError::LengthMismatch`] for another number of layers, and as [`ClipMethod::restore`].
    pub fn restore(&mut self, states: &[MethodState]) -> Result<(), ClipError> {
        crate::error::check_lengths("states", states.len(), "layers", self.methods.len())?;
        self.methods.iter_mut().zip(states).try_for_each(|(method, state)| method.restore(state))
    }
}

impl std::fmt::Debug for PerLayer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PerLayer").field("layers", &self.state()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PresetParams, registry::find};
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    fn two_adaptive_layers() -> (Vec<ClipConfig>, PublicContext, PerLayer) {
        let context = PublicContext { n_groups: 1, expected_batch_size: 4.0, noise_multiplier: 2.0 };
        let config =
            |clip_norm| find("adaptive").unwrap().config(&PresetParams { clip_norm, ..PresetParams::default() });
        let configs = vec![config(1.0), config(2.0)];
        let layers = PerLayer::new(&configs, &context).unwrap();
        (configs, context, layers)
    }

    #[test]
    fn every_layer_makes_its_own_count() {
        let (configs, context, mut layers) = two_adaptive_layers();
        let clipped = layers.clip(&[&[0.5], &[9.0]], &[0], &mut ChaCha20Rng::seed_from_u64(1)).unwrap();
        let used: Vec<f64> =
            clipped.layers.iter().flat_map(|layer| &layer.queries).map(|query| query.noise_multiplier).collect();
        assert_eq!(used, PerLayer::count_noise_multipliers(&configs, &context));
        assert_eq!(used, vec![20.0, 20.0]);
        assert_eq!(clipped.bound, 5.0_f64.sqrt());
    }

    #[test]
    fn a_record_that_is_not_finite_in_one_layer_is_out_of_all() {
        let (_, _, mut layers) = two_adaptive_layers();
        let clipped =
            layers.clip(&[&[0.5, 0.5], &[f64::NAN, 1.0]], &[0, 0], &mut ChaCha20Rng::seed_from_u64(1)).unwrap();
        assert_eq!(clipped.n_non_finite, 1);
        assert!(clipped.layers.iter().all(|layer| layer.scales[0] == 0.0 && layer.scales[1] > 0.0));
    }

    #[test]
    fn states_and_shapes_are_checked() {
        let (_, _, mut layers) = two_adaptive_layers();
        let states = layers.state();
        layers.restore(&states).unwrap();
        insta::assert_snapshot!(
            layers.restore(&states[..1]).unwrap_err(),
            @"states has 1 entries but layers has 2, expected equal lengths"
        );
        insta::assert_snapshot!(
            layers.clip(&[&[0.5]], &[0], &mut ChaCha20Rng::seed_from_u64(1)).unwrap_err(),
            @"norms has 1 entries but layers has 2, expected equal lengths"
        );
        insta::assert_snapshot!(
            layers.clip(&[&[0.5], &[]], &[0], &mut ChaCha20Rng::seed_from_u64(1)).unwrap_err(),
            @"norms has 0 entries but groups has 1, expected equal lengths"
        );
    }
}
