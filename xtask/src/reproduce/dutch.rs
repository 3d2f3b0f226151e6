//! `cargo xtask reproduce dutch`: the tables on the Dutch census of Esipova 2023 and Xu 2020, 2021.

use dp_data::dutch::{Encoding, Sampling};
use dp_train::ModelConfig;

use super::data_setting::Source;
use super::esipova::{self, GlobalSetting};
use super::study::{Protocol, Study, StudyArgs};
use super::xu;
use crate::report::{StudyPresentation, TablePresentation};

const ESIPOVA: &str = "esipova-dutch";
const XU: &str = "xu-dutch";
const XU_UNBALANCED: &str = "xu-unbalanced-dutch";

/// The study.
pub(crate) fn study(args: &StudyArgs) -> anyhow::Result<Study> {
    let epochs = args.options.epochs(20);
    let (sampling, rate, clip_norm) = match args.protocol {
        Protocol::Text => (Sampling::Original, 0.8, 0.1),
        Protocol::Code => (Sampling::Exactly { male: 30_000, female: 10_000 }, 0.5, 0.5),
    };
    let esipova = esipova::experiment(
        esipova::Setting {
            id: ESIPOVA,
            title: "Esipova 2023: Dutch, logistic regression",
            data: Source::Dutch { encoding: Encoding::Esipova, sampling }.into(),
            model: ModelConfig::LogisticRegression,
            epochs,
            noise_multiplier: 1.0,
            clip_norm,
            rate,
            global: GlobalSetting { rate: 2.0, upper_bound: 1.0 },
            global_adapt: GlobalSetting { rate: 1.0, upper_bound: 50.0 },
            tolerance: 1.0,
            published: esipova::budget(2.27, 189, 20),
        },
        vec![esipova::followed(
            args.protocol,
            "30,000 men and 10,000 women, rate and clipping norm 0.5. Its sigmoid before the softmax is left out",
        )],
    )?;
    let xu_data = |sampling| Source::Dutch { encoding: Encoding::Xu, sampling }.into();
    let original = xu::logistic_regression(
        XU,
        "Xu 2020, 2021: Dutch, logistic regression",
        xu_data(Sampling::Original),
        epochs,
        xu::budget(2.66, 48_336.0, 20.0),
    )?;
    let unbalanced = xu::logistic_regression(
        XU_UNBALANCED,
        "Xu 2020: Dutch with 30,000 men and 10,000 women, logistic regression",
        xu_data(Sampling::Exactly { male: 30_000, female: 10_000 }),
        epochs,
        xu::budget(3.29, 32_000.0, 20.0),
    )?;
    Ok(Study {
        name: "dutch",
        presentation: StudyPresentation {
            title: "Dutch census: what privacy costs each sex".to_owned(),
            tables: tables()?,
        },
        experiments: vec![esipova, original, unbalanced],
        follow_up: None,
    })
}

fn tables() -> anyhow::Result<Vec<TablePresentation>> {
    let table = |id, experiment, text| TablePresentation::new(id, experiment, text, Vec::new());
    Ok(vec![
        table("esipova2023-table-5", ESIPOVA, include_str!("published/esipova2023-table5-dutch.tsv"))?,
        table("xu2021-table-1", XU, include_str!("published/xu2021-table1-dutch.tsv"))?,
        table("xu2021-table-2", XU, include_str!("published/xu2021-table2-dutch.tsv"))?,
        table("xu2020-table-5-original", XU, include_str!("published/xu2020-table5-dutch.tsv"))?,
        table(
            "xu2020-table-5-unbalanced",
            XU_UNBALANCED,
            include_str!("published/xu2020-table5-unbalanced-dutch.tsv"),
        )?,
    ])
}
