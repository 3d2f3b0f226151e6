//! `cargo xtask reproduce mnist`: the MNIST tables of Esipova 2023, Xu 2020 and 2021, and
//! Zhao 2025. Groups are the classes.

use dp_data::mnist::{Collection, RareClass};
use dp_train::ModelConfig;
use study_report::{Cause, Claim, StudyPresentation, TablePresentation};

use super::esipova::{self, GlobalSetting};
use super::study::{Protocol, Study, StudyArgs};
use super::xu;
use super::zhao::{self, Search};
use crate::run::data_setting::Source;
use crate::run::experiment::Experiment;
use crate::run::features::Features;
use crate::run::images::{self, few_eights};

const ESIPOVA: &str = "esipova-mnist";
const ESIPOVA_TABLE: &str = include_str!("published/esipova2023-table2-mnist.tsv");
const XU: &str = "xu-mnist";
const XU_BALANCED: &str = "xu-balanced-mnist";

/// The study.
pub(crate) fn study(args: &StudyArgs) -> anyhow::Result<Study> {
    if args.protocol == Protocol::Code {
        return as_in_code(args);
    }
    let esipova = esipova_experiment(args)?;
    let search = zhao::images(args, Collection::Mnist);
    let [original, balanced] = xu_experiments(args)?;
    let mut experiments = vec![esipova, original, balanced];
    experiments.extend(search.grids()?);
    let mut claims = claims()?;
    claims.extend(search.claims(&zhao::WORST_CLASS)?);
    Ok(Study::new(
        "mnist",
        StudyPresentation {
            ranked: Vec::new(),
            searches: vec![search.searched()],
            pooled: None,
            title: "MNIST: what privacy costs a rare class".to_owned(),
            tables: tables(&search)?,
            claims,
        },
        experiments,
    )
    .selecting(zhao::follow_up(vec![search])))
}

/// Esipova's and Zhao's settings as in their code, and Xu's as in the code that they are said to
/// follow.
fn as_in_code(args: &StudyArgs) -> anyhow::Result<Study> {
    let xu = xu_experiments(args)?.map(|experiment| {
        let mut experiment = xu::with_momentum(xu::as_in_code(experiment));
        experiment.data.features = Features::StandardPixels;
        experiment
    });
    let search = zhao::images(args, Collection::Mnist);
    let mut experiments = vec![esipova_experiment(args)?];
    experiments.extend(xu);
    experiments.extend(search.grids()?);
    let mut tables = vec![esipova::in_batches("esipova2023-table-2", ESIPOVA, ESIPOVA_TABLE, Vec::new())?];
    tables.extend(xu_tables(Protocol::Code)?);
    tables.push(zhao_table(&search)?);
    let mut claims = claims()?;
    claims.extend(search.claims(&zhao::WORST_CLASS)?);
    let study = Study::new(
        "mnist",
        StudyPresentation {
            ranked: Vec::new(),
            searches: vec![search.searched()],
            pooled: None,
            title: "MNIST: what privacy costs a rare class".to_owned(),
            tables,
            claims,
        },
        experiments,
    );
    Ok(study.selecting(zhao::follow_up(vec![search])).under(Protocol::Code))
}

fn zhao_table(search: &Search) -> anyhow::Result<TablePresentation> {
    table("zhao2025-table-5-mnist", &search.final_id(), include_str!("published/zhao2025-table5-mnist.tsv"))
}

fn source(quick: bool, rare: Option<RareClass>) -> Source {
    Source::Images { collection: Collection::Mnist, rare, share: images::quick_share(quick) }
}

/// Esipova's setting, with the DPSGD-F of the text or of the code.
fn esipova_experiment(args: &StudyArgs) -> anyhow::Result<Experiment> {
    let quick = args.options.quick;
    esipova::experiment(
        esipova::Setting {
            id: ESIPOVA,
            title: "Esipova 2023: MNIST with class 8 rare, CNN of 32 and 16 channels",
            data: source(quick, Some(few_eights(527))).into(),
            model: ModelConfig::EsipovaCnn { image: images::SHAPE },
            epochs: images::epochs(quick, 60),
            noise_multiplier: 0.8,
            clip_norm: 1.0,
            rate: 0.01,
            global: GlobalSetting { rate: 0.2, upper_bound: 100.0 },
            global_adapt: GlobalSetting { rate: 0.1, upper_bound: 50.0 },
            tolerance: 0.7,
            with_fairlens: false,
            protocol: args.protocol,
            published: esipova::budget(5.90, 214, 60),
        },
        vec![
            "Class 8 has exactly 527 images, 9 %; the paper keeps each with probability 9 %, so that sizes vary with the seed."
                .to_owned(),
        ],
    )
}

/// Xu's settings, with class 8 rare and with all images.
fn xu_experiments(args: &StudyArgs) -> anyhow::Result<[Experiment; 2]> {
    let quick = args.options.quick;
    let epochs = images::epochs(quick, 60);
    let data = |rare| source(quick, rare).into();
    let title = "Xu 2021: MNIST with 500 images of class 8, CNN";
    let original = xu::cnn(XU, title, data(Some(few_eights(500))), epochs, xu::budget(6.55, 54_649.0, 60.0))?;
    let balanced = xu::cnn(XU_BALANCED, "Xu 2020: MNIST, CNN", data(None), epochs, xu::budget(6.23, 60_000.0, 60.0))?;
    Ok([original, balanced])
}

fn tables(search: &Search) -> anyhow::Result<Vec<TablePresentation>> {
    let of_losses = |method| Cause::new(method, esipova::LOSSES);
    let of_shares = || Cause::new("dpsgd-f", esipova::GROUP_SHARES);
    let causes = vec![of_losses("non-private"), of_losses("dpsgd-global-adapt"), of_shares()];
    let mut tables = vec![
        TablePresentation::new("esipova2023-table-2", ESIPOVA, ESIPOVA_TABLE, causes)?,
        esipova::in_batches("esipova2023-table-2-batches", ESIPOVA, ESIPOVA_TABLE, vec![of_shares()])?,
    ];
    tables.extend(xu_tables(Protocol::Text)?);
    tables.push(zhao_table(search)?);
    Ok(tables)
}

fn xu_tables(protocol: Protocol) -> anyhow::Result<Vec<TablePresentation>> {
    let causes = || match protocol {
        Protocol::Text => {
            let mut causes = ["non-private", "dpsgd"].map(|method| Cause::new(method, xu::BAGDASARYAN)).to_vec();
            causes.extend([Cause::new("naive", xu::NAIVE), Cause::new("dpsgd-f", xu::TOO_LITTLE_NOISE)]);
            causes
        }
        Protocol::Code => Vec::new(),
    };
    let with_causes = |id, experiment, text| TablePresentation::new(id, experiment, text, causes());
    Ok(vec![
        with_causes("xu2021-table-1", XU, include_str!("published/xu2021-table1-mnist.tsv"))?,
        with_causes("xu2021-table-2", XU, include_str!("published/xu2021-table2-mnist.tsv"))?.noted(xu::NORMS),
        with_causes("xu2020-table-1", XU, include_str!("published/xu2020-table1-mnist.tsv"))?,
        with_causes("xu2020-table-2", XU, include_str!("published/xu2020-table2-mnist.tsv"))?.noted(xu::NORMS),
        with_causes("xu2020-table-3", XU_BALANCED, include_str!("published/xu2020-table3-mnist.tsv"))?,
    ])
}

fn table(id: &str, experiment: &str, text: &str) -> anyhow::Result<TablePresentation> {
    TablePresentation::new(id, experiment, text, Vec::new())
}

fn claims() -> anyhow::Result<Vec<Claim>> {
    let mut claims = esipova::claims(ESIPOVA, "MNIST", esipova::IN_THE_TEXT, Some(("2", "8")), false, false)?;
    claims.extend(xu::claims(XU, "MNIST with class 8 rare", xu::MNIST, ("2", "8"))?);
    claims.push(Claim::greatest_for(
        "Class 8 has the largest bound of all in the first tenth of DPSGD-F's training on MNIST with class 8 rare",
        "Xu 2020, 6.2, Figure 5",
        XU,
        ("dpsgd-f", "first_threshold"),
        "8",
        &["0", "1", "2", "3", "4", "5", "6", "7", "9"],
    )?);
    Ok(claims)
}
