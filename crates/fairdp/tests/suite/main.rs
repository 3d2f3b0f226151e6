//! The program, from a table to a release.

#![expect(clippy::unwrap_used, reason = "a failing test may panic")]

mod account;
mod audits;
mod bad_rows;
#[cfg(target_os = "linux")]
mod commands;
mod conditioned;
#[path = "../../examples/csv_to_release.rs"]
mod csv_to_release;
mod cuda;
mod curves;
mod exports;
mod fairness;
mod groups;
#[cfg(feature = "images")]
mod images;
mod init;
#[cfg(target_os = "linux")]
mod interrupts;
mod json_schema;
#[cfg(target_os = "linux")]
mod keys;
#[cfg(unix)]
mod kills;
mod ledgers;
mod memory;
mod messy;
mod methods;
mod mistakes;
mod new_records;
mod numbers;
mod plans;
mod predictions;
mod program;
mod ranks;
mod releases;
mod schema;
mod signatures;
mod starts;
mod streams;
mod tuning;
mod units;
mod values;
mod vectors;
mod weights;

/// The example runs, and ends with a check of its own result.
#[test]
fn the_example_runs() {
    csv_to_release::main().unwrap();
}
