#![doc = include_str!("../README.md")]

pub mod adult;
mod dataset;
mod download;
mod error;
mod locator;
mod manifest;
mod provenance;
mod scaling;
mod split;
mod verified_file;

pub use dataset::{Dataset, Split};
pub use download::{DownloadProgress, Silent};
pub use error::{Attempt, DataError};
pub use locator::{DataLocator, Located, RealFiles};
pub use manifest::{Manifest, ManifestColumn, ManifestFile};
pub use provenance::{FileRecord, Provenance};
pub use scaling::ScalingFit;
pub use split::{Keep, TestFraction};
pub use verified_file::VerifiedFile;
