//! Noise and normalisation of a clipped sum.

use std::cell::RefCell;

use candle_core::{CpuStorage, InplaceOp1, Layout, Result, WithDType};
use rand_chacha::ChaCha20Rng;

use super::element::{Element, destination, dtype, for_float};
use crate::vector_math::map_in_place;

/// `dst = (dst + N(0, std² I)) / normaliser`.
pub(crate) struct Privatise<'a> {
    /// Standard deviation of the noise: noise multiplier times sensitivity. 0 draws nothing.
    pub(crate) std: f64,
    /// A public constant: the expected batch size.
    pub(crate) normaliser: f64,
    /// The noise stream.
    pub(crate) rng: RefCell<&'a mut ChaCha20Rng>,
}

impl InplaceOp1 for Privatise<'_> {
    fn name(&self) -> &'static str {
        "privatise"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        for_float!(dtype(storage), "privatise", T => {
            let values = destination::<T>(storage, layout)?;
            if self.std > 0.0 {
                T::add_gaussian(&mut self.rng.borrow_mut(), self.std, values);
            }
            let factor = T::from_f64(1.0 / self.normaliser);
            map_in_place(values, |v| v * factor);
            Ok(())
        })
    }
}
