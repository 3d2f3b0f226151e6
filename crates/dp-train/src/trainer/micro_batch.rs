//! How many records of a batch are in memory at once.

use dp_engine::{Engine, free_bytes};

use super::Execution;

/// Rows may take the free memory divided by this: operations need working memory, and runs side by
/// side rows of their own.
const SHARE: usize = 4;
/// Buffers are grown by more than they need ([`RowBuffer`](crate::buffer::RowBuffer)).
const GROWN: f64 = 1.25;

/// Records at once in a run. What a certified run computes does not depend on it.
pub(super) fn of(execution: &Execution, engine: &Engine, is_certified: bool) -> usize {
    let flat = engine.model().parameters().flat();
    let of_memory = match execution.micro_batch {
        None if is_certified => free_bytes(&execution.device),
        _ => None,
    };
    of_memory.map_or_else(
        || execution.records_at_once(),
        |free| fitting(free, engine.row_values() * flat.dtype().size_in_bytes()),
    )
}

/// Records whose rows, of `row_bytes` bytes each, fit into their share of the memory.
fn fitting(free: usize, row_bytes: usize) -> usize {
    let row = GROWN * row_bytes.max(1) as f64;
    ((free / SHARE) as f64 / row).max(1.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_take_a_quarter_of_the_free_memory() {
        assert_eq!(fitting(80_000, 16), 1_000);
        assert_eq!(fitting(79_999, 16), 999);
        assert_eq!(fitting(0, 16), 1);
    }
}
