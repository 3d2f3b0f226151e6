#![doc = include_str!("../README.md")]
#![deny(missing_debug_implementations)]

mod account;
mod blocks;
mod bounds;
mod card;
mod coins;
mod commands;
pub mod config;
mod curves;
mod diagnostics;
mod drift;
mod error;
mod evaluate;
mod exit;
mod export;
mod fairness;
mod fit;
mod group_scores;
#[cfg(test)]
mod hook;
mod init;
mod input;
mod key;
mod mean_errors;
mod methods;
mod model;
mod network;
mod new_records;
mod numbers;
mod onnx;
mod output;
mod output_format;
mod planned;
mod post_processing;
mod predict;
mod predictions;
mod predictor;
mod price;
mod printable;
mod rank_files;
mod reasons;
mod recipe;
mod release;
mod scores;
mod seal;
mod sgd;
mod shared_ledger;
mod signature;
mod statement;
mod streams;
mod subset;
mod subsets;
mod text_marks;
mod thresholds;
mod unfinished;
mod unit_means;
mod verify;

// The commands name this crate as its users do.
extern crate self as fairdp;

pub use dp_table::ReadProgress;
pub use dp_train::{DeviceName, ranks};
/// Bounds from the scores of one run's canaries, for runs of others.
pub mod one_run {
    pub use dp_audit::one_run::{Claim, EpsilonBounds, Score};
    pub use dp_train::TrainError;
}
pub use fair_decisions;
pub use fair_metrics::noisy::NoisyNumber;

pub use account::{Account, Attacks, Release};
pub use coins::CoinThreshold;
pub use config::{EpsilonChoice, Mistake, config_schema};
pub use curves::{Curve, CurvePlace, CurvePoint, Curves};
pub use diagnostics::{Diagnostics, GroupDiagnostics};
pub use drift::{ColumnDrift, Drift, DriftOptions, ScoreDrift, drift};
pub use error::{FairdpError, Result};
pub use evaluate::{Comparison, Evaluated, FigureChange, evaluate};
pub use exit::Exit;
pub use export::{Exported, model_card, registry_entry};
pub use fairness::{ColumnRates, Difference, FairnessReport, GroupRates, Rate};
pub use fit::{
    AttackedRelease, AttackedRun, AuditFault, AuditOptions, AuditReport, FitOptions, FitPlan, Fitted, OfKind,
    PlannedFeatures, PlannedGroup, PlannedWidths, Progress, TableSize, audit, audit_table, finished, fit, fit_table,
    holds_key, plan, plan_without_data,
};
pub use group_scores::CalibrationRange;
pub use init::{InitOptions, NamedFiles, default_delta, init};
pub use mean_errors::{MeanErrorCorrection, MeanErrorCorrections};
pub use methods::{MethodLine, methods, methods_like};
pub use model::{FittedModel, Layer};
pub use new_records::{NewTableOptions, PaymentOptions};
pub use numbers::{NumberDiagnostics, NumberFigures, NumberReport, figure_in_words};
pub use planned::Planned;
pub use post_processing::{with_fairness, write_with_fairness};
pub use predict::{PredictOptions, Predicted, predict, predict_to};
pub use predictor::Predictor;
pub use price::{Price, PriceFigures, PricePoint};
pub use printable::{printable, printable_json};
pub use shared_ledger::{LedgerFit, LedgerTotals, LedgerView};
pub use signature::{Signature, generate_key, sign};
pub use statement::{AttackOnRun, Derivation, Program, ReleaseStatement, StartedFrom, Unit};
pub use streams::{is_stream, spool, stream_name};
pub use subset::Subset;
pub use thresholds::{Thresholds, WithoutClass};
pub use verify::{Verified, verify, verify_author};

/// The program `fairdp`: does what its command line says. A program of one's own that registers a method
/// first ([`dp_clipping::registry::register`]) is `fairdp` with that method.
pub fn main() -> std::process::ExitCode {
    commands::run()
}

/// The page for users has the exit codes of the program.
///
/// ```
/// let page = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/command-line.md"));
/// let rows = fairdp::Exit::ALL.map(|exit| format!("| {} | {} |\n", exit.code(), exit.meaning())).concat();
/// let table = page.split("| code | meaning |\n|---|---|\n").nth(1).unwrap().split("\n\n").next().unwrap();
/// assert_eq!(table.to_owned() + "\n", rows);
/// ```
#[cfg(doctest)]
struct ExitCodesOfThePage;

/// Every piece of a configuration on the pages fits the schema.
///
/// ```
/// mod json_schema {
///     include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/json_schema.rs"));
/// }
///
/// let schema = fairdp::config_schema();
/// let pages = [
///     include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/columns.md")),
///     include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fairness.md")),
///     include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/images.md")),
///     include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/numbers.md")),
///     include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/production.md")),
///     include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/several-rows-of-one-person.md")),
///     include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/the-model.md")),
/// ];
/// let mut n_pieces = 0;
/// for piece in pages.iter().flat_map(|page| page.split("```toml\n").skip(1)) {
///     let piece = piece.split("```").next().unwrap_or_default();
///     let value = toml::from_str(piece).unwrap();
///     assert_eq!(json_schema::refusal(&schema, &schema, &value, true), None, "{piece}");
///     n_pieces += 1;
/// }
/// assert!(n_pieces >= 9);
/// ```
#[cfg(doctest)]
struct ConfigurationsOfThePages;
