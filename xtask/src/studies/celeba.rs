//! `cargo xtask reproduce celeba`: Esipova 2023, Table 3. Groups by eyeglasses.

use dp_data::celeba::{CHANNELS, SIDE};
use dp_train::{ImageShape, ModelConfig};
use study_report::{StudyPresentation, TablePresentation};

use super::esipova::{self, GlobalSetting};
use super::study::{Protocol, Study, StudyArgs};
use crate::run::data_setting::Source;
use crate::run::images;

const ID: &str = "esipova-celeba";

/// The study.
pub(crate) fn study(args: &StudyArgs) -> anyhow::Result<Study> {
    let quick = args.options.quick;
    let experiment = esipova::experiment(
        esipova::Setting {
            id: ID,
            title: "Esipova 2023: CelebA, CNN of 32 and 16 channels",
            data: Source::Celeba { share: images::quick_share(quick) }.into(),
            model: ModelConfig::EsipovaCnn { image: ImageShape { height: SIDE, width: SIDE, channels: CHANNELS } },
            epochs: images::epochs(quick, 30),
            noise_multiplier: 0.8,
            clip_norm: 1.0,
            rate: 0.01,
            global: GlobalSetting { rate: 0.1, upper_bound: 100.0 },
            global_adapt: GlobalSetting { rate: 0.1, upper_bound: 100.0 },
            tolerance: 0.7,
            with_fairlens: false,
            protocol: Protocol::Text,
            published: esipova::budget(2.49, 636, 30),
        },
        Vec::new(),
    )?;
    let table = include_str!("published/esipova2023-table3-celeba.tsv");
    Ok(Study::new(
        "celeba",
        StudyPresentation {
            ranked: Vec::new(),
            searches: Vec::new(),
            pooled: None,
            title: "CelebA: what privacy costs people with eyeglasses".to_owned(),
            tables: vec![TablePresentation::new("esipova2023-table-3", ID, table, Vec::new())?],
            claims: esipova::claims(ID, "CelebA", esipova::IN_THE_TEXT, None, false, false)?,
        },
        vec![experiment],
    ))
}
