//! `fairdp.clipping`.

mod arrays;
mod clipped;
mod entry;
mod method;
mod noise;
mod random;

use pyo3::prelude::*;

#[pymodule]
pub(crate) mod clipping {
    #[pymodule_export]
    use super::clipped::{Clipped, CountQuery};
    #[pymodule_export]
    use super::entry::{MethodEntry, methods};
    #[pymodule_export]
    use super::method::{Method, capped, method, method_of_config};
    #[pymodule_export]
    use super::noise::NoiseSource;
}
