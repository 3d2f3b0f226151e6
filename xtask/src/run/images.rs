//! What studies of MNIST and Fashion-MNIST have in common.

use dp_data::GroupSample;
use dp_data::mnist::{Collection, RareClass, SIDE};
use dp_train::ImageShape;

/// A record.
pub(crate) const SHAPE: ImageShape = ImageShape { height: SIDE, width: SIDE, channels: 1 };

/// For people.
pub(crate) fn title(collection: Collection) -> &'static str {
    match collection {
        Collection::Mnist => "MNIST",
        Collection::FashionMnist => "Fashion-MNIST",
    }
}

/// Class 8 with exactly this many images.
pub(crate) fn few_eights(images: usize) -> RareClass {
    RareClass { class: 8, keep: GroupSample::Exactly(images) }
}

/// A quick run trains on this share of the images.
pub(crate) fn quick_share(quick: bool) -> Option<f64> {
    quick.then_some(0.2)
}

/// A quick run takes one epoch.
pub(crate) fn epochs(quick: bool, published: u64) -> u64 {
    if quick { 1 } else { published }
}
