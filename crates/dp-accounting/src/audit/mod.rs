//! A second opinion on the accountants: privacy profiles in arithmetic of 200 bits, by independent
//! formulas, on random and adversarial settings.
//!
//! Nothing here is shared with what it judges: neither the numbers nor the special functions nor
//! the inversion. It is slow, so it is behind the feature `audit` and is not compiled without
//! it.
//!
//! ```
//! let finding = dp_accounting::audit::check(7, 3);
//! assert!(finding.violations.is_empty(), "{finding:?}");
//! ```

mod allocation;
mod ball;
mod check;
mod claim;
mod exact;
mod fixed;
mod inversion;
mod normal;
mod rotating_sum;
mod second_stream;
mod settings;
mod truth;

pub use check::{Evidence, Finding};
pub use claim::{Opinion, judge};

use crate::NeighbouringRelation;

/// Checks the `index`-th setting of a seed.
pub fn check(seed: u64, index: u64) -> Finding {
    let setting = settings::RandomComposition::random(seed, index);
    setting.case(NeighbouringRelation::AddRemove).map_or_else(|error| Finding::unanswered(&error), |case| case.check())
}

/// The same of another stream: one direction alone, batches cut to a physical size and random
/// allocation.
pub fn check_second_stream(seed: u64, index: u64) -> Finding {
    second_stream::random(seed, index).map_or_else(|error| Finding::unanswered(&error), |case| case.check())
}
