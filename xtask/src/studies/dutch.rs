//! `cargo xtask reproduce dutch`: the tables on the Dutch census of Esipova 2023 and Xu 2020, 2021.

use dp_data::dutch::{Encoding, GroupBy, Sampling};
use dp_train::ModelConfig;
use study_report::{Cause, Claim, StudyPresentation, TablePresentation};

use super::adult;
use super::esipova::{self, GlobalSetting};
use super::study::{Protocol, Study, StudyArgs};
use super::xu;
use crate::run::data_setting::Source;
use crate::run::experiment::Experiment;

const ESIPOVA: &str = "esipova-dutch";
const ESIPOVA_SQUASHED: &str = "esipova-dutch-squashed";
const XU: &str = "xu-dutch";
const XU_UNBALANCED: &str = "xu-unbalanced-dutch";

/// Xu's unbalanced data, and Esipova's in the authors' code.
const UNBALANCED: Sampling = Sampling::Exactly { male: 30_000, female: 10_000 };

/// The study.
pub(crate) fn study(args: &StudyArgs) -> anyhow::Result<Study> {
    let epochs = args.options.epochs(20);
    let mut experiments = match args.protocol {
        Protocol::Text => {
            vec![esipova(Setting::Text, args.protocol, epochs)?, esipova(Setting::Squashed, args.protocol, epochs)?]
        }
        Protocol::Code => {
            vec![esipova(Setting::Squashed, args.protocol, epochs)?, esipova(Setting::Code, args.protocol, epochs)?]
        }
    };
    experiments.extend(xu_experiments(args.protocol, epochs)?);
    Ok(Study::new(
        "dutch",
        StudyPresentation {
            ranked: Vec::new(),
            searches: Vec::new(),
            pooled: None,
            title: "Dutch census: what privacy costs each sex".to_owned(),
            tables: tables(args.protocol)?,
            claims: claims()?,
        },
        experiments,
    )
    .under(args.protocol))
}

/// Xu's settings, on all records and on the unbalanced ones.
fn xu_experiments(protocol: Protocol, epochs: u64) -> anyhow::Result<[Experiment; 2]> {
    let (encoding, group_by) = match protocol {
        Protocol::Text => (Encoding::Xu, GroupBy::Sex),
        Protocol::Code => (Encoding::XuMixed, GroupBy::SexExchanged),
    };
    // The paper's 30,000 men are of code 2 where its names are exchanged.
    let unbalanced = match protocol {
        Protocol::Text => UNBALANCED,
        Protocol::Code => Sampling::Exactly { male: 10_000, female: 30_000 },
    };
    let data = |sampling| Source::Dutch { encoding, sampling, group_by }.into();
    let original = xu::logistic_regression(
        XU,
        "Xu 2020, 2021: Dutch, logistic regression",
        data(Sampling::Original),
        epochs,
        xu::budget(2.66, 48_336.0, 20.0),
    )?;
    let unbalanced = xu::logistic_regression(
        XU_UNBALANCED,
        "Xu 2020: Dutch with 30,000 men and 10,000 women, logistic regression",
        data(unbalanced),
        epochs,
        xu::budget(3.29, 32_000.0, 20.0),
    )?;
    if protocol == Protocol::Text {
        return Ok([original, unbalanced]);
    }
    Ok([original, unbalanced].map(|experiment| {
        let mut experiment = xu::as_in_code(experiment);
        experiment.departures.push(
            "Code 2 is called male, which fits the paper's numbers of men and women; inputs are age, economic activity and marital status \
             one-hot and seven columns as one number each. The coding was found by its fit to the reference on all records, among 3,454 \
             with 35 inputs: likely for the rows that were not used to find it, a guess for that one."
                .to_owned(),
        );
        experiment
    }))
}

/// Readings of Esipova's setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Setting {
    /// The paper's text.
    Text,
    /// The same with the sigmoid that the authors' code has before the loss.
    Squashed,
    /// The authors' code.
    Code,
}

fn esipova(setting: Setting, protocol: Protocol, epochs: u64) -> anyhow::Result<Experiment> {
    let (id, title) = match setting {
        Setting::Text => (ESIPOVA, "Esipova 2023: Dutch, logistic regression"),
        Setting::Squashed => {
            (ESIPOVA_SQUASHED, "Esipova 2023: Dutch, logistic regression with the code's sigmoid before the loss")
        }
        Setting::Code => (ESIPOVA, "Esipova 2023: Dutch with 30,000 men and 10,000 women, as in the code"),
    };
    let (sampling, rate, clip_norm) = match setting {
        Setting::Text | Setting::Squashed => (Sampling::Original, 0.8, 0.1),
        Setting::Code => (UNBALANCED, 0.5, 0.5),
    };
    let followed = match setting {
        Setting::Text => esipova::followed(Protocol::Text, ""),
        Setting::Squashed => {
            "The setting follows the paper's text but for the model: as in the authors' code, a sigmoid squashes both outputs before \
             the softmax cross-entropy, so that no record's loss falls below ln(1 + 1/e) = 0.313."
                .to_owned()
        }
        Setting::Code => esipova::followed(
            Protocol::Code,
            "30,000 men and 10,000 women, rate and clipping norm 0.5, a sigmoid before the softmax",
        ),
    };
    let mut departures = vec![followed];
    let is_one_rate = protocol == Protocol::Code && setting == Setting::Squashed;
    if is_one_rate {
        departures.push(ONE_RATE.to_owned());
    }
    esipova::experiment(
        esipova::Setting {
            id,
            title,
            data: Source::Dutch { encoding: Encoding::Esipova, sampling, group_by: GroupBy::Sex }.into(),
            model: if setting == Setting::Text {
                ModelConfig::LogisticRegression
            } else {
                ModelConfig::SquashedRegression
            },
            epochs,
            noise_multiplier: 1.0,
            clip_norm,
            rate,
            global: GlobalSetting { rate: 2.0, upper_bound: 1.0 },
            global_adapt: GlobalSetting { rate: if is_one_rate { 2.0 } else { 1.0 }, upper_bound: 50.0 },
            tolerance: 1.0,
            with_fairlens: true,
            protocol,
            published: esipova::budget(2.27, 189, 20),
        },
        departures,
    )
}

/// What the settings of DPSGD-Global-Adapt rest on under [`Protocol::Code`].
const ONE_RATE: &str = "DPSGD-Global-Adapt has DPSGD-Global's rate of 2, where the text has 1: the authors' scripts for the censuses give both the \
                        same rate (likely).";

fn tables(protocol: Protocol) -> anyhow::Result<Vec<TablePresentation>> {
    let esipova = include_str!("published/esipova2023-table5-dutch.tsv");
    let loss = "The paper's losses are those of the authors' code, which squashes the outputs by a sigmoid before the softmax: see the \
                same table with it.";
    let dropped = "Without the code's sigmoid most gradients are longer than Z = 1 and DPSGD-Global drops them; with it they are short.";
    let text_causes = vec![
        Cause::new("fairlens", adult::FAIRLENS),
        Cause::new("non-private", loss),
        Cause::new("dpsgd", loss),
        Cause::new("dpsgd-f", loss),
        Cause::new("dpsgd-global", dropped),
        Cause::new("dpsgd-global-adapt", loss),
    ];
    let steps = "Its accuracies agree, its losses are 0.01 above the printed, as after shorter steps. The authors' scripts for the censuses \
                 give both global methods one rate; with DPSGD-Global's, 2, it agrees (likely; `--protocol code`).";
    let squashed_causes = match protocol {
        Protocol::Text => {
            vec![Cause::new("dpsgd-global-adapt", steps), Cause::new("fairlens", adult::FAIRLENS)]
        }
        Protocol::Code => Vec::new(),
    };
    let default = "These are the defaults of the authors' code, with which the table does not agree: the text's settings with the code's sigmoid \
                   agree with it, below.";
    let code_causes = ["dpsgd", "fairlens", "dpsgd-f", "dpsgd-global", "dpsgd-global-adapt"]
        .map(|method| Cause::new(method, default))
        .to_vec();
    let inputs = "The paper does not list its 35 inputs; ours are one reading. Its numbers of men and women are exchanged against the \
                  published file's codes. `--protocol code` has another reading.";
    let open = "Inputs and sexes are those that fit the paper's reference. DPSGD loses more accuracy than the paper's, \
                most of it with 10,000 women. Suspected, by programs that are not committed: a bound of 0.72 in place \
                of 0.5 would give the paper's rows there, but not those of all records. Suspected not to be it: the \
                other codings that were tried; the L2 term inside clipping, which changes nothing there; weights and \
                bias clipped apart, by Adult's training losses; two outputs, with which DPSGD loses still more.";
    let cause = if protocol == Protocol::Text { inputs } else { open };
    let table = |id, experiment, text| {
        let causes = ["non-private", "dpsgd", "naive", "dpsgd-f"].map(|method| Cause::new(method, cause)).to_vec();
        TablePresentation::new(id, experiment, text, causes)
    };
    let as_printed = match protocol {
        Protocol::Text => TablePresentation::new("esipova2023-table-5", ESIPOVA, esipova, text_causes)?,
        Protocol::Code => TablePresentation::new("esipova2023-table-5", ESIPOVA, esipova, code_causes)?
            .answered_by("on 30,000 men and 10,000 women, as the code has it by default"),
    };
    Ok(vec![
        as_printed,
        TablePresentation::new("esipova2023-table-5-squashed", ESIPOVA_SQUASHED, esipova, squashed_causes)?
            .answered_by("with the code's sigmoid"),
        table("xu2021-table-1", XU, include_str!("published/xu2021-table1-dutch.tsv"))?,
        table("xu2021-table-2", XU, include_str!("published/xu2021-table2-dutch.tsv"))?.noted(xu::NORMS),
        table("xu2020-table-1", XU, include_str!("published/xu2020-table1-dutch.tsv"))?,
        table(
            "xu2020-table-2-unbalanced",
            XU_UNBALANCED,
            include_str!("published/xu2020-table2-unbalanced-dutch.tsv"),
        )?
        .noted(xu::NORMS),
        table("xu2020-table-5-original", XU, include_str!("published/xu2020-table5-dutch.tsv"))?,
        table(
            "xu2020-table-5-unbalanced",
            XU_UNBALANCED,
            include_str!("published/xu2020-table5-unbalanced-dutch.tsv"),
        )?,
    ])
}

fn claims() -> anyhow::Result<Vec<Claim>> {
    let mut claims = esipova::claims(ESIPOVA, "Dutch", esipova::IN_THE_APPENDIX, None, true, true)?;
    let squashed = "Dutch with the code's sigmoid";
    claims.extend(esipova::claims(ESIPOVA_SQUASHED, squashed, esipova::IN_THE_APPENDIX, None, true, true)?);
    claims.extend(xu::claims(XU, "Dutch", xu::CENSUSES, ("female", "male"))?);
    claims.extend(xu::claims(XU_UNBALANCED, "unbalanced Dutch", xu::CENSUSES_2020, ("male", "female"))?);
    Ok(claims)
}
