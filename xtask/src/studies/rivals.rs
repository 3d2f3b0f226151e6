//! Methods that ours are compared with.

/// The clipping methods of the papers, and their baselines.
pub(crate) const RIVALS: [&str; 9] = [
    "dpsgd",
    "dpsgd-f",
    "dpsgd-global",
    "dpsgd-global-adapt",
    "adaptive",
    "bounded-adaptive",
    "unbounded-adaptive",
    "fixed-soft",
    "soft-adaptive",
];
