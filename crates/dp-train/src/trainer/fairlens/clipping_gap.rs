//! The regulariser R1 of a batch, and its derivatives.
//!
//! With `w = Σ_j lost[j] g_j` over the clipped records and `u = Σ_i c_i g_i` over all, R1 is `⟨u,
//! w⟩`: a sum over layers of `lost[j] c_i ⟨a_j, a_i⟩ ⟨d_j, d_i⟩`, where the gradient of record `i`
//! is `d_i ⊗ a_i` (a 1 at the end of `a_i` is the bias's). Every layer takes the cheaper of two
//! forms:
//!
//! - *sums*: `w` and `u` are formed, and multiplied with the records' inputs and deltas;
//! - *Gram matrices* of the inputs and of the deltas, clipped records against all. The products `c_i
//!   w` and `lost[i] u` then come out of one matrix product, since both are sums over the same pairs
//!   of records.
//!
//! Only the clipped records have a part in `w`. They come first, so that a product over them is one
//! over a prefix.

use dp_engine::ops::{Element, Matrix, product};

use super::network::{Adjoints, Affine, Network, Tape};
use crate::error::Result;
use crate::loops::{add_products, add_scaled, add_to, combine, dot, multiply, scale, scale_rows};

/// R1's derivatives.
pub(super) struct ClippingGap<T> {
    /// With respect to the tape.
    pub(super) adjoints: Adjoints<T>,
    /// With respect to `lost`: `⟨g_j, u⟩` for every clipped record.
    pub(super) of_lost: Vec<f64>,
}

/// What a layer keeps of the pairs of records.
enum Pairs<T> {
    Sums {
        w: Affine<T>,
        /// `w a_i` by record.
        along_w: Vec<T>,
    },
    /// `[clipped, records]`
    Gram { inputs: Vec<T>, deltas: Vec<T> },
}

impl<T: Element> ClippingGap<T> {
    /// Of a batch whose first `lost.len()` records are clipped. `weights` gives the `c_i` for the
    /// products `⟨g_i, w⟩`. Derivatives are times `factor`, except those with respect to `lost`.
    pub(super) fn new(
        network: &Network<T>,
        tape: &Tape<T>,
        factor: f64,
        lost: &[f64],
        weights: impl FnOnce(&[f64]) -> Vec<f64>,
    ) -> Result<Self> {
        let layers = || (0..).zip(&network.layers);
        let mut along_w = vec![0.0; tape.rows];
        let pairs = layers()
            .map(|(index, layer)| Pairs::new(index, layer, tape, lost, &mut along_w))
            .collect::<Result<Vec<_>>>()?;

        let weights = weights(&along_w);
        let mut of_lost = vec![0.0; lost.len()];
        let mut adjoints = Adjoints { deltas: Vec::new(), inputs: Vec::new() };
        let weighted = Weighted { factor, lost, weights: &weights };
        for ((index, layer), pairs) in layers().zip(pairs) {
            let (deltas, inputs) = pairs.adjoints(index, layer, tape, &weighted, &mut of_lost)?;
            adjoints.deltas.push(deltas);
            adjoints.inputs.push(inputs);
        }
        adjoints.inputs.push(vec![T::ZERO; tape.rows * network.n_outputs()]);
        Ok(Self { adjoints, of_lost })
    }
}

/// The coefficients of the pairs of records.
struct Weighted<'a> {
    factor: f64,
    lost: &'a [f64],
    weights: &'a [f64],
}

impl<T: Element> Pairs<T> {
    /// Adds `⟨g_i, w⟩` of this layer to `along_w`.
    fn new(index: usize, layer: &Affine<T>, tape: &Tape<T>, lost: &[f64], slopes: &mut [f64]) -> Result<Self> {
        let (x, d) = (&tape.inputs[index], &tape.deltas[index]);
        if are_grams_cheaper(index, layer, tape.rows, lost.len()) {
            let inputs = gram(x, layer.inputs, tape.rows, lost.len(), T::ONE)?;
            let deltas = gram(d, layer.outputs, tape.rows, lost.len(), T::ZERO)?;
            let mut products = vec![0.0; tape.rows];
            for ((x, d), &lost) in inputs.chunks_exact(tape.rows).zip(deltas.chunks_exact(tape.rows)).zip(lost) {
                multiply(&mut products, x, d);
                add_scaled(slopes, lost, &products);
            }
            return Ok(Self::Gram { inputs, deltas });
        }
        let w = layer.weighted_sum(d, x, lost)?;
        let along_w = w.forward(x, tape.rows)?;
        add_products(slopes, d, &along_w, layer.outputs);
        Ok(Self::Sums { w, along_w })
    }

    /// Derivatives with respect to the deltas, and to the inputs of any layer but the first. Adds
    /// `⟨g_j, u⟩` of this layer to `of_lost`.
    fn adjoints(
        self,
        index: usize,
        layer: &Affine<T>,
        tape: &Tape<T>,
        &Weighted { factor, lost, weights }: &Weighted<'_>,
        of_lost: &mut [f64],
    ) -> Result<(Vec<T>, Vec<T>)> {
        let (x, d, rows) = (&tape.inputs[index], &tape.deltas[index], tape.rows);
        let (of_w, of_u): (Vec<f64>, Vec<f64>) =
            (weights.iter().map(|c| factor * c).collect(), lost.iter().map(|lost| factor * lost).collect());
        match self {
            Self::Sums { w, mut along_w } => {
                let u = layer.weighted_sum(d, x, weights)?;
                let mut along_u = u.forward(x, lost.len())?;
                add_products(of_lost, d, &along_u, layer.outputs);
                scale_rows(&mut along_w, layer.outputs, &of_w);
                scale_rows(&mut along_u, layer.outputs, &of_u);
                add_to(&mut along_w, &along_u);
                let mut of_inputs = Vec::new();
                if index > 0 {
                    of_inputs = vec![T::ZERO; rows * layer.inputs];
                    for (direction, factors) in [(&w, &of_w), (&u, &of_u)] {
                        let mut d = d[..factors.len() * layer.outputs].to_vec();
                        scale_rows(&mut d, layer.outputs, factors);
                        direction.backward(&d, factors.len(), &mut of_inputs)?;
                    }
                }
                Ok((along_w, of_inputs))
            }
            Self::Gram { mut inputs, mut deltas } => {
                let mut lost_by_record = lost.to_vec();
                lost_by_record.resize(rows, 0.0);
                let mut of_pairs = vec![0.0; rows];
                for (j, (x, d)) in inputs.chunks_exact_mut(rows).zip(deltas.chunks_exact_mut(rows)).enumerate() {
                    multiply(&mut of_pairs, x, d);
                    of_lost[j] += dot(weights, &of_pairs);
                    combine(&mut of_pairs, (of_u[j], weights), (of_w[j], &lost_by_record));
                    scale(x, &of_pairs);
                    scale(d, &of_pairs);
                }
                let of_deltas = apply(&inputs, d, layer.outputs, rows, lost.len())?;
                let of_inputs = if index > 0 { apply(&deltas, x, layer.inputs, rows, lost.len())? } else { Vec::new() };
                Ok((of_deltas, of_inputs))
            }
        }
    }
}

/// Whether Gram matrices take fewer multiplications than sums.
fn are_grams_cheaper<T>(index: usize, layer: &Affine<T>, rows: usize, clipped: usize) -> bool {
    let (to, from) = (layer.outputs, layer.inputs);
    // Two matrices over the pairs, and what they are applied to.
    let pairs = clipped * (2 * rows - clipped);
    let grams = clipped * rows * (from + to) + pairs * (to + if index > 0 { from } else { 0 });
    // Of either sum: itself, its product with the inputs, and that with the deltas.
    let sums = (rows + clipped) * from * to * if index > 0 { 3 } else { 2 };
    grams < sums
}

/// `⟨v_j, v_i⟩ + one` for the first records against all, `[clipped, rows]`.
fn gram<T: Element>(values: &[T], width: usize, rows: usize, clipped: usize, one: T) -> Result<Vec<T>> {
    let mut gram = vec![one; clipped * rows];
    let all = Matrix::strided(values, rows, width, width)?;
    product(&mut gram, rows, Matrix::strided(values, clipped, width, width)?, all.transposed(), true)?;
    Ok(gram)
}

/// `Σ_j pairs[j, i] v_j` for every record `i`, over the pairs of which one record is among the
/// first, `[clipped, rows]`.
fn apply<T: Element>(pairs: &[T], values: &[T], width: usize, rows: usize, clipped: usize) -> Result<Vec<T>> {
    let mut out = vec![T::ZERO; rows * width];
    let (first, rest) = out.split_at_mut(clipped * width);
    let all = Matrix::strided(values, rows, width, width)?;
    product(first, width, Matrix::strided(pairs, clipped, rows, rows)?, all, false)?;
    let with_rest = Matrix::strided(pairs.get(clipped..).unwrap_or(&[]), clipped, rows - clipped, rows)?.transposed();
    product(rest, width, with_rest, Matrix::strided(values, clipped, width, width)?, false)?;
    Ok(out)
}
