//! Methods as papers write them.

use dp_clipping::registry;
use run_records::MethodResults;

use super::metric::REFERENCE;

/// The label of the method, with what tells several runs of it apart: `DPSGD-F ε=1` for `dpsgd-f
/// ε=1`.
pub(super) fn label(method: &MethodResults) -> String {
    let MethodResults { method: id, base, .. } = method;
    let label =
        if base == REFERENCE { Some("Non-private") } else { registry::find(base).ok().map(|entry| entry.label) };
    match (label, id.strip_prefix(base.as_str())) {
        (Some(label), Some(rest)) => format!("{label}{rest}"),
        _ => id.clone(),
    }
}
