//! A second opinion on the accountants: profiles in arithmetic of 200 bits, by formulas of their own, on random and adversarial settings.
//!
//! Nothing here is shared with what it judges: neither the numbers nor the special functions nor the inversion. It is slow, so it is behind the
//! feature `audit`, and whoever does without compiles none of it.
//!
//! ```
//! let finding = dp_accounting::audit::check(7, 3);
//! assert!(finding.violations.is_empty(), "{finding:?}");
//! ```

mod ball;
mod check;
mod exact;
mod fixed;
mod inversion;
mod normal;
mod settings;
mod turning;

pub use check::{Evidence, Finding};

/// Checks the `index`-th setting of a seed.
pub fn check(seed: u64, index: u64) -> Finding {
    settings::Setting::random(seed, index).check()
}

/// From now on, in this program, Rényi moments are too low where nearly every record is in the batch: a fault that was once there, and that an
/// audit must find.
pub fn plant_low_rdp() {
    crate::rdp::plant::low_rdp();
}
