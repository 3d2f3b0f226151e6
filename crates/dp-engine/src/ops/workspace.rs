//! Memory that operations work in.

use super::element::Element;

/// Working memory of a layer's operations, grown to the largest call and kept between calls.
#[derive(Debug, Default)]
pub struct Workspace {
    /// Records that a batch is expected to have, if that is known. A CUDA device chooses by it how
    /// many it works on at once.
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "the CPU's caches decide there"))]
    pub(super) expected: Option<usize>,
    pub(super) single: Vec<f32>,
    pub(super) double: Vec<f64>,
}

impl Workspace {
    /// A workspace for batches of `expected` records on average.
    pub(crate) fn for_batches(expected: Option<usize>) -> Self {
        Self { expected, ..Self::default() }
    }

    /// One piece of each length. The contents are whatever was written last.
    pub(super) fn pieces<T: Element, const N: usize>(&mut self, lengths: [usize; N]) -> [&mut [T]; N] {
        let values = T::workspace(self);
        let needed = lengths.iter().sum();
        if values.len() < needed {
            values.resize(needed, T::ZERO);
        }
        let mut rest = values.as_mut_slice();
        lengths.map(|length| {
            let (piece, after) = std::mem::take(&mut rest).split_at_mut(length);
            rest = after;
            piece
        })
    }
}
