#![doc = include_str!("../README.md")]

pub mod adult;
pub mod catalogue;
pub mod celeba;
mod constants;
mod csv_rows;
mod dataset;
mod download;
pub mod dutch;
pub mod eicu;
mod error;
mod locator;
mod manifest;
pub mod mimic;
pub mod mnist;
mod output;
mod placed_files;
mod provenance;
mod scaling;
mod split;
pub mod table;
mod verified_file;
mod weighted;

pub use constants::{ConstantSource, InputConstant};
pub use dataset::{Dataset, Split};
pub use download::{DownloadProgress, Silent};
pub use error::{Attempt, DataError};
pub use locator::{DataLocator, Located, RealFiles};
pub use manifest::{Manifest, ManifestColumn, ManifestFile, ManifestTable};
pub use provenance::{FileRecord, Provenance};
pub use scaling::ScalingFit;
pub use split::{Keep, TestFraction};
pub use verified_file::VerifiedFile;
