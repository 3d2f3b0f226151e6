//! Features of records that look at no other record, and need no data.

use std::num::NonZeroUsize;

use anyhow::Context;
use dp_data::{Dataset, InputConstant, Split};
use dp_linear::scattering::{ImageFeatures, ImageFeaturesConfig, ImageSize};
use dp_linear::unit_rows;
use ndarray::Array2;

use dp_train::ImageShape;

use super::images;

/// What encoded records become before training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Features {
    /// They stay as they are.
    AsEncoded,
    /// Pixels from 0 to 255, as they are stored.
    BytePixels,
    /// Pixels less MNIST's mean, over its deviation, both as the field knows them.
    StandardPixels,
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
            Self::BytePixels => format!("{encoding} from 0 to 255"),
            Self::StandardPixels => format!("{encoding}, standardised"),
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
                Self::BytePixels => part.features.mapv_inplace(|pixel| pixel * f32::from(u8::MAX)),
                Self::StandardPixels => part.features.mapv_inplace(|pixel| (pixel - MNIST_MEAN) / MNIST_DEVIATION),
                Self::UnitRows => {
                    let n_inputs = part.n_inputs();
                    let rows = part.features.as_slice_mut().context("features are not contiguous")?;
                    unit_rows(rows, n_inputs);
                }
                Self::Scattering => scatter(part)?,
            }
        }
        if self == Self::StandardPixels {
            let why = "uses mean and deviation of MNIST's own training images, as everybody publishes them";
            split.constants.push(InputConstant::from_records("the scaling", why));
        }
        Ok(split)
    }
}

/// Of the pixels of MNIST's training images, in `[0, 1]`.
const MNIST_MEAN: f32 = 0.1307;
const MNIST_DEVIATION: f32 = 0.3081;

fn scatter(part: &mut Dataset) -> anyhow::Result<()> {
    let ImageShape { height, width, channels } = images::SHAPE;
    let size = ImageSize { height, width, channels };
    let features = ImageFeatures::new(ImageFeaturesConfig::default(), size)?;
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let pixels = part.features.as_slice().context("features are not contiguous")?;
    let rows = features.of(pixels, threads)?;
    part.feature_names = (0..features.n_features()).map(|index| format!("scattering-{index}")).collect();
    part.features = Array2::from_shape_vec((part.labels.len(), features.n_features()), rows)?;
    Ok(())
}
