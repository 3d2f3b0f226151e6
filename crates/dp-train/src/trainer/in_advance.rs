//! Scales that are known before the batch.

use dp_clipping::{AdvanceScale, ClipMethod};

use super::Trainer;

impl Trainer<'_> {
    /// The scale of each group's records, if no other record of the batch has a say in it: a
    /// constant threshold, or one that moves only between steps. Where groups have rates of their own a
    /// coin has a say.
    pub(super) fn scales_in_advance(&self) -> Option<Vec<AdvanceScale>> {
        let method: &dyn ClipMethod = self.method.as_deref().filter(|_| self.by_group.is_none())?;
        (0..self.records.facts().n_groups).map(|group| method.scale_in_advance(group)).collect()
    }
}
