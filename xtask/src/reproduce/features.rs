//! Features of records that look at no other record, and need no data.

use std::num::NonZeroUsize;

use anyhow::Context;
use dp_data::{Dataset, Split};
use dp_train::conditioning::unit_rows;
use dp_train::scattering::{ImageFeatures, ImageFeaturesConfig};
use ndarray::Array2;

use super::images;

/// What encoded records become before training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Features {
    /// They stay as they are.
    AsEncoded,
    /// Rows of norm 1.
    UnitRows,
    /// Images of MNIST's size become rows of norm 1 by a wavelet scattering transform.
    Scattering,
}

impl Features {
    /// Name of the encoding in reports.
    pub(crate) fn name(self, encoding: String) -> String {
        match self {
            Self::AsEncoded => encoding,
            Self::UnitRows => format!("{encoding}, rows of norm 1"),
            Self::Scattering => "scattering, rows of norm 1".to_owned(),
        }
    }

    /// The features of every part.
    ///
    /// # Errors
    /// If the records are no such images.
    pub(crate) fn of(self, mut split: Split) -> anyhow::Result<Split> {
        for part in [&mut split.train, &mut split.test].into_iter().chain(&mut split.validation) {
            match self {
                Self::AsEncoded => {}
                Self::UnitRows => {
                    let n_inputs = part.n_inputs();
                    let rows = part.features.as_slice_mut().context("features are not contiguous")?;
                    unit_rows(rows, n_inputs);
                }
                Self::Scattering => scatter(part)?,
            }
        }
        Ok(split)
    }
}

fn scatter(part: &mut Dataset) -> anyhow::Result<()> {
    let features = ImageFeatures::new(ImageFeaturesConfig::default(), images::SHAPE)?;
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let pixels = part.features.as_slice().context("features are not contiguous")?;
    let rows = features.of(pixels, threads)?;
    part.feature_names = (0..features.n_features()).map(|index| format!("scattering-{index}")).collect();
    part.features = Array2::from_shape_vec((part.labels.len(), features.n_features()), rows)?;
    Ok(())
}
