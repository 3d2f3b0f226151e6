//! Studies: what a paper trained, as data, one file each, with what it published beside it in
//! `published/`.

pub(crate) mod accounting;
pub(crate) mod adult;
pub(crate) mod all;
pub(crate) mod analyse;
mod asked_methods;
pub(crate) mod beyond;
pub(crate) mod celeba;
pub(crate) mod chosen;
pub(crate) mod combinations;
pub(crate) mod committed;
pub(crate) mod comparison;
pub(crate) mod direction_vs_magnitude;
pub(crate) mod dphpo;
pub(crate) mod dutch;
pub(crate) mod eicu;
pub(crate) mod epsilon_sweep;
pub(crate) mod esipova;
pub(crate) mod fashion;
pub(crate) mod fixed_features;
pub(crate) mod grid;
pub(crate) mod groups;
pub(crate) mod income;
pub(crate) mod mimic;
pub(crate) mod mnist;
mod pages;
pub(crate) mod pixels;
pub(crate) mod resnet;
mod rivals;
pub(crate) mod sensitivity;
pub(crate) mod soleymani;
pub(crate) mod study;
pub(crate) mod table;
pub(crate) mod toy;
pub(crate) mod uniform_clipping;
pub(crate) mod xu;
pub(crate) mod zhao;
