//! A constant threshold: public, no query.

use super::Control;

pub(super) fn step(threshold: f64) -> Control {
    Control { thresholds: vec![threshold], query: None, next: None }
}
