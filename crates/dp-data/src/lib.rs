#![doc = include_str!("../README.md")]
#![deny(missing_debug_implementations)]

pub mod adult;
pub mod catalogue;
pub mod celeba;
mod census;
mod constants;
mod csv_rows;
mod dataset;
#[cfg(feature = "download")]
mod download;
mod download_progress;
pub mod dutch;
pub mod eicu;
mod error;
mod file;
mod hospital;
mod loaded;
mod locator;
mod manifest;
pub mod mimic;
pub mod mnist;
mod numpy;
mod placed_files;
mod provenance;
mod published_set;
mod scaling;
mod split;
mod stand_in_files;
mod verified_file;
mod weighted;

pub use constants::{ConstantSource, InputConstant};
pub use dataset::{Dataset, Split};
pub use download_progress::{DownloadProgress, Silent};
pub use error::{Attempt, DataError};
pub use loaded::Loaded;
pub use locator::{DataLocator, Located, RealFiles};
pub use manifest::{Manifest, ManifestColumn, ManifestFile, ManifestTable};
pub use provenance::{FileRecord, Provenance};
pub use published_set::{Counts, PublishedSet};
pub use scaling::ScalingFit;
pub use split::{GroupSample, TestFraction};
pub use verified_file::VerifiedFile;

/// Pages of the book, whose examples are tests of this crate.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../../../docs/add-a-data-set.md")]
    mod add_a_data_set {}
}
