//! A rule of one's own; see [`ScaleRule::Own`](super::ScaleRule::Own).

use std::any::Any;
use std::fmt::Debug;

use serde::{Deserialize, Serialize};

/// A scale rule from outside of this crate: how a record's scale follows from its norm.
///
/// **Guarantee.** The bound `S` is declared beside the rule ([`OwnBound`]), as plain data that is
/// fixed before a norm is seen, and every scale is lowered until `s‖g‖ ≤ S` in floating point. A wrong
/// formula can therefore spoil a model, but not exceed its bound. [`check`](crate::check) says what
/// the cap hides. One thing nothing enforces: a rule must be a function of what it is given, without
/// a memory. Statements name it as a condition.
///
/// **Example**: [`ScaleRule::Own`](super::ScaleRule::Own).
pub trait OwnRule: Any + Debug + Send + Sync {
    /// Its name: lower-case letters, digits and hyphens, and not the name of another rule.
    fn name(&self) -> &'static str;

    /// Names of its parameters, at most 4.
    fn parameters(&self) -> &'static [&'static str] {
        &[]
    }

    /// `s` of a record of this norm under the threshold in force. The norm is finite and at least 0;
    /// there is a value for each parameter.
    fn scale(&self, norm: f64, threshold: f64, parameters: &[f64]) -> f64;
}

/// What a rule of one's own declares as its bound on `s‖g‖`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnBound {
    /// The threshold in force.
    Threshold,
    /// This number, whatever the threshold is.
    Constant(f64),
}
