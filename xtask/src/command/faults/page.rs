//! The page of figures.

use faults::{Tally, tables};

use crate::host;

/// `docs/benchmarks/faults.md`.
pub(super) fn page(written: &[Tally], read: &[Tally], quick: bool) -> String {
    let all = || written.iter().chain(read);
    let sum = |count: fn(&Tally) -> u64| all().map(count).sum::<u64>();
    format!(
        "# Faults\n\n\
         Every command that writes files is killed, or refused a call, at its writes, creations, truncations, renames,\n\
         removals and flushes: a preloaded library (`xtask/fault-shim`) counts these calls and fails the n-th. The disk is\n\
         full or read-only from that call on, the time of day jumps by twenty years from one look to the next, and the same\n\
         command runs twice at once. After each fault every file that was there must hold what it held or what it should\n\
         come to, and the same command without a fault must bring the folder to where it should be, with nothing left over.\n\
         Stored files are read with a bit flipped, cut short, and with random bytes in them.\n\n\
         `cargo xtask faults{}`, on {}:\n\n\
         | cases | as without a fault | one clear line | killed | unclear | panics | hangs | losses |\n\
         |---|---|---|---|---|---|---|---|\n\
         | {} | {} | {} | {} | {} | {} | {} | {} |\n\n\
         A loss is also a damaged file of a format with checksums that is read as if it were whole. A digit that is\n\
         another digit in a plain text file cannot be told from one that was meant.\n\n{}",
        if quick { " --quick" } else { "" },
        host::description(),
        sum(|tally| tally.cases),
        sum(|tally| tally.successes),
        sum(|tally| tally.clear_errors),
        sum(|tally| tally.kills),
        sum(|tally| tally.unclear_errors),
        sum(|tally| tally.panics),
        sum(|tally| tally.hangs),
        sum(|tally| tally.losses),
        tables(written, read)
    )
}
