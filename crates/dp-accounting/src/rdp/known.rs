//! Divergences that were asked for before.

use std::cell::RefCell;
use std::collections::HashMap;

/// Divergences that are remembered at most; then all are forgotten. Three megabytes.
const CAPACITY: usize = 1 << 16;

thread_local! {
    static KNOWN: RefCell<HashMap<[u64; 3], f64>> = RefCell::new(HashMap::new());
}

/// `divergence` of `(q, σ, α)`, computed once for each: accountants ask at the same orders again
/// and again, for the same steps, or for the same question. The answer is the same to the last bit.
pub(super) fn once(q: f64, sigma: f64, order: f64, divergence: impl FnOnce(f64, f64, f64) -> f64) -> f64 {
    let key = [q, sigma, order].map(f64::to_bits);
    if let Some(known) = KNOWN.with_borrow(|known| known.get(&key).copied()) {
        return known;
    }
    let value = divergence(q, sigma, order);
    KNOWN.with_borrow_mut(|known| {
        if known.len() >= CAPACITY {
            known.clear();
        }
        known.insert(key, value);
    });
    value
}
