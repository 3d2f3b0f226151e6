//! Algorithm 4: the gradient of both regularisers, added to every record's.
//!
//! `R2` is the mean over groups of `f_k (1 − f_k)` with `f_k` the mean predicted probability of
//! class 1. Both means of plain and clipped gradients are over the expected batch size. A pair, or
//! group, without a record in the batch is left out of the means. Clipping factors count as
//! constants in ∇R1: with `u = Σ_k c_k g_Bk`, `c_k` the mean sign of the pairs of `k`, it is that
//! of `⟨u, w⟩`.

use dp_engine::ops::Element;

use super::clipping_gap::ClippingGap;
use super::groups::{Groups, group_means};
use super::network::{Network, Tape, flat};
use super::{Addition, Exact};
use crate::error::Result;

impl<T: Element> Exact<T> {
    /// The addition for a batch, the first records of it clipped by these factors.
    pub(super) fn addition(
        &mut self,
        tape: Tape<T>,
        groups: &Groups,
        scales: &[f64],
        ([gamma_1, gamma_2], expected_batch_size): ([f64; 2], f64),
    ) -> Result<Addition> {
        let network = &self.network;
        let lost: Vec<f64> = scales.iter().map(|s| (s - 1.0) / expected_batch_size).collect();
        let by_pair = |slopes: &[f64]| groups.pair_weights(slopes);
        let mut adjoints = ClippingGap::new(network, &tape, gamma_1, &lost, by_pair)?.adjoints;

        let means = group_means(&tape.probabilities, &groups.members);
        let present = means.iter().flatten().count() as f64;
        let of_probability = |i: usize| {
            let group = groups.of_records[i];
            let slope = means[group].map_or(0.0, |mean| 1.0 - 2.0 * mean);
            gamma_2 * slope / (present * groups.members[group].len() as f64)
        };
        network.add_to_outputs(&tape, &mut adjoints, of_probability, |_, _| 0.0);

        let mut v = network.zeros();
        network.sweep(&tape, adjoints, Some(&mut v))?;
        let products = network.slopes(&tape, &Network::along(&tape, &v)?);
        self.batch = Some(tape);
        Ok(Addition { vector: flat(&v), products })
    }
}
