#![doc = include_str!("../README.md")]
#![deny(missing_debug_implementations)]

mod account;
mod bounds;
mod card;
pub mod config;
mod diagnostics;
mod error;
mod exit;
mod fairness;
mod fit;
#[cfg(test)]
mod hook;
mod init;
mod input;
mod key;
mod methods;
mod model;
mod onnx;
mod output;
mod planned;
mod predict;
mod predictions;
mod predictor;
mod printable;
mod rank_files;
mod reasons;
mod recipe;
mod release;
mod seal;
mod sgd;
mod shared_ledger;
mod statement;
mod subset;
mod subsets;
mod thresholds;
mod unit_means;
mod verify;

pub use dp_train::{DeviceName, ranks};

pub use account::{Account, Attacks, Release};
pub use diagnostics::{Diagnostics, GroupDiagnostics};
pub use error::{FairdpError, Result};
pub use exit::Exit;
pub use fairness::{Difference, FairnessReport, GroupRates, Rate};
pub use fit::{
    FitOptions, FitPlan, Fitted, PlannedFeatures, Progress, TableSize, fit, fit_table, plan, plan_without_data,
};
pub use init::{InitOptions, default_delta, init};
pub use methods::{MethodLine, methods};
pub use model::{FittedModel, Layer};
pub use planned::Planned;
pub use predict::{PredictOptions, Predicted, predict};
pub use predictor::Predictor;
pub use printable::{printable, printable_json};
pub use statement::{Program, ReleaseStatement, Unit};
pub use subset::Subset;
pub use thresholds::{Thresholds, WithoutClass};
pub use verify::{Verified, verify};

/// The page for users has the exit codes of the program.
///
/// ```
/// let page = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/your-own-table.md"));
/// for exit in fairdp::Exit::ALL {
///     let row = format!("\n| {} | {} |\n", exit.code(), exit.meaning());
///     assert!(page.contains(&row), "{exit:?}");
/// }
/// ```
#[cfg(doctest)]
struct ExitCodesOfThePage;
