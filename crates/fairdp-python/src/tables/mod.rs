//! The base of `fairdp.tables`: what the program does with tables in files.

mod export;
mod fit;
mod init;
mod predict;
mod signature;

use pyo3::prelude::*;

#[pymodule]
pub(crate) mod tables {
    #[pymodule_export]
    use super::export::{model_card, registry_entry};
    #[pymodule_export]
    use super::fit::{fit, plan};
    #[pymodule_export]
    use super::init::{default_delta, init};
    #[pymodule_export]
    use super::predict::predict;
    #[pymodule_export]
    use super::signature::{keygen, sign};
}
