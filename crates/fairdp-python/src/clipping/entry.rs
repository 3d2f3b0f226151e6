//! The registry.

use dp_clipping::registry;
use pyo3::prelude::*;

/// A named method.
#[pyclass(frozen, get_all, module = "fairdp.clipping")]
pub(crate) struct MethodEntry {
    /// Its one name everywhere.
    name: &'static str,
    /// As papers write it.
    label: &'static str,
    /// A short description.
    summary: &'static str,
    /// The publication.
    source: &'static str,
    /// Differences from the publication, with reasons; empty if there are none.
    differs: &'static str,
    /// Whether its bound is a proven sensitivity.
    certified: bool,
    /// Whether group labels influence training.
    needs_groups: bool,
    /// Whether it asks for the losses of records: it then takes no bare gradients.
    needs_losses: bool,
}

#[pymethods]
impl MethodEntry {
    fn __repr__(&self) -> String {
        format!("<MethodEntry: {}: {}>", self.name, self.summary)
    }
}

/// Every named method, in the order of the tables.
#[pyfunction]
pub(crate) fn methods() -> Vec<MethodEntry> {
    let entry = |entry: &dp_clipping::MethodEntry| {
        let config = entry.default_config();
        MethodEntry {
            name: entry.name,
            label: entry.label,
            summary: entry.summary,
            source: entry.source,
            differs: entry.differs,
            certified: config.certified(),
            needs_groups: config.needs_groups(),
            needs_losses: config.needs_losses(),
        }
    };
    registry::methods().iter().map(entry).collect()
}
