//! Algorithm 4: the gradient of both regularisers, added to every record's.
//!
//! `R2` is the mean over groups of `f_k (1 − f_k)` with `f_k` the mean predicted probability of
//! class 1. Both means of plain and clipped gradients are over the expected batch size. A pair, or
//! group, without a record in the batch is left out of the means. Clipping factors count as
//! constants in ∇R1: with `u = Σ_k c_k g_Bk`, `c_k` the mean sign of the pairs of `k`, it is that
//! of `⟨u, w⟩`.

use dp_engine::Records;
use dp_engine::ops::Element;

use super::clipping_gap::ClippingGap;
use super::groups::{group_means, members, pair_weights};
use super::network::{Network, flat};
use super::{Addition, Exact};
use crate::error::Result;

impl<T: Element> Exact<T> {
    /// The addition for a batch of these rows, the first of them clipped by these factors, at these
    /// parameters.
    pub(super) fn addition(
        &mut self,
        records: &Records,
        rows: &[usize],
        scales: &[f64],
        ([gamma_1, gamma_2], expected_batch_size): ([f64; 2], f64),
        parameters: &[f64],
    ) -> Result<Addition> {
        let network = &mut self.network;
        network.set(parameters);
        if rows.is_empty() {
            return Ok(Addition { vector: vec![0.0; parameters.len()], products: Vec::new() });
        }
        let (labels, groups) = records.labels_and_groups(rows);
        let members = members(&groups, records.facts().n_groups);
        let tape = network.tape(records.inputs(rows)?, &labels)?;

        let lost: Vec<f64> = scales.iter().map(|s| (s - 1.0) / expected_batch_size).collect();
        let by_pair = |slopes: &[f64]| pair_weights(slopes, &groups, &members);
        let mut adjoints = ClippingGap::new(network, &tape, gamma_1, &lost, by_pair)?.adjoints;

        let means = group_means(&tape.probabilities, &members);
        let present = means.iter().flatten().count() as f64;
        let of_probability = |i: usize| {
            let slope = means[groups[i]].map_or(0.0, |mean| 1.0 - 2.0 * mean);
            gamma_2 * slope / (present * members[groups[i]].len() as f64)
        };
        network.add_to_outputs(&tape, &mut adjoints, of_probability, |_, _| 0.0);

        let mut v = network.zeros();
        network.sweep(&tape, adjoints, Some(&mut v))?;
        let products = network.slopes(&tape, &Network::along(&tape, &v)?);
        Ok(Addition { vector: flat(&v), products })
    }
}
