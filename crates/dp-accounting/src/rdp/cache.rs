//! Divergences that were computed before.

use std::cell::RefCell;
use std::collections::HashMap;

/// Largest number of cached divergences, three megabytes; then the cache is emptied.
const CAPACITY: usize = 1 << 16;

thread_local! {
    static CACHE: RefCell<HashMap<[u64; 3], f64>> = RefCell::new(HashMap::new());
}

/// `divergence` of `(q, σ, α)`, computed once for each: accountants ask at the same orders again
/// and again, for the same steps, or for the same question. The answer is the same to the last bit.
pub(super) fn cached(q: f64, sigma: f64, order: f64, divergence: impl FnOnce(f64, f64, f64) -> f64) -> f64 {
    let key = [q, sigma, order].map(f64::to_bits);
    if let Some(known) = CACHE.with_borrow(|cache| cache.get(&key).copied()) {
        return known;
    }
    let value = divergence(q, sigma, order);
    CACHE.with_borrow_mut(|cache| {
        if cache.len() >= CAPACITY {
            cache.clear();
        }
        cache.insert(key, value);
    });
    value
}
