//! `cargo xtask reproduce income`: Soleymani 2025 on Adult, the simple and the complex model.

use dp_data::ScalingFit;
use dp_data::adult::{Encoding, GroupBy, Sampling};
use dp_train::{Loss, ModelConfig};
use study_report::pooled::Pooled;
use study_report::{Cause, StudyPresentation, TablePresentation};

use super::soleymani::{self, Schedule, Setting};
use super::study::{Protocol, Study, StudyArgs};
use crate::run::data_setting::Source;

const SIMPLE: &str = "income-simple";
const COMPLEX: &str = "income-complex";
/// Loss gaps of the paper: by sex and by age.
const GAPS: [&str; 2] = ["male|female", "younger|older"];

/// How losses are read.
const LOSSES: &str = "The paper's losses are sums over a batch (5.2: `reduction=sum`). For Table 3 at C = 0.05 section 5.2 prints the means, 0.364 and \
                      0.532: the sums divided by 256. That divisor is taken for all private rows, and the batch size 32 for those without \
                      privacy, whose means the paper does not print.";
/// How training losses are read.
const TRAINING_LOSSES: &str = "Training losses: those of private rows are a seventh to a thirteenth of the test losses beside them, by no batch size \
                               that the paper names, so only their order is compared.";
/// Why claims at the largest bound are ours.
const EXEMPT: &str = "the paper exempts C = 0.1 (appendix B)";

fn notes(protocol: Protocol) -> Vec<String> {
    let mut notes = vec![
        "70 % of the records are trained on, 10 % validated with and 20 % tested with, as the paper has it for eICU; for Adult it does \
         not say."
            .to_owned(),
    ];
    if protocol == Protocol::Code {
        notes.push(
            "7,250 copies of incomes above 50,000 are drawn before the split, so that there are about 60 for every 100 below. The share of \
             about 37 % follows from the paper's accuracy and F1; that it comes about so is a guess. Copies of a record are in training and \
             test part, so that figures are too good, and ε is that of one copy. Inputs are Esipova's 98, without merged categories (a \
             guess): with the 39 of the text the reference has an accuracy of 0.81 and an F1 of 0.78 on these records."
                .to_owned(),
        );
    }
    notes
}

fn source(protocol: Protocol) -> Source {
    let (encoding, sampling) = match protocol {
        Protocol::Text => (Encoding::Soleymani, Sampling::Balanced { per_group: 14_000 }),
        Protocol::Code => (Encoding::Esipova, Sampling::Oversampled { per_group: 14_000, copies: 7_250 }),
    };
    Source::Adult { encoding, sampling, scaling: ScalingFit::TrainOnly, group_by: GroupBy::SexAndAge }
}

/// Why rows of a table differ, and why those that are not named.
fn causes(protocol: Protocol, experiment: &str, table: u8) -> (Vec<Cause>, Option<&'static str>) {
    match protocol {
        Protocol::Text => (causes_in_text(experiment, table), None),
        Protocol::Code => causes_in_code(experiment, table),
    }
}

/// What is left once the authors' code is followed.
fn causes_in_code(experiment: &str, table: u8) -> (Vec<Cause>, Option<&'static str>) {
    let reference = "Which records were drawn is a guess, chosen by the share of higher incomes and by the accuracy of this row. Suspected not to be the cause: \
                     the 39 inputs of the text, with which the reference has an accuracy of 0.81.";
    let fall = "The paper's DPSGD loses its accuracy at C = 0.05 and 0.01 (0.69, 0.63; ours 0.84, 0.83). Suspected, by runs that are not committed: these took \
                plain SGD's steps, not Adam's, at a rate that is not printed. At 16 to 20 times the printed rate, chosen by its fit, \
                and without early stopping DPSGD then has 0.81 to 0.82 at C = 0.1, 0.63 to 0.75 at 0.05 and 0.63 at 0.01 (two and \
                three seeds), since gradients of equal length drive all answers to the larger class first. Suspected not to be it: the bound itself \
                under Adam, which divides by the size of the gradient, so that C cancels; the share of higher incomes, which is the \
                paper's here; noise that stays that of C = 0.1, twice and ten times too much (0.84, 0.83 over three seeds); and \
                gradients 128 times as long, as Opacus makes them of a loss that is a sum (0.83, 0.83 over two seeds).";
    let losses = "Accuracy and F1 agree, or nearly so; losses do not. Not the cause: another batch that they are sums over, since ours are 1.2 \
                  to 2.6 times the printed sums over 256, by method. Losses grow with a model's certainty while its answers stay: when \
                  runs stop, which the text does not say, is a guess, and so is plain SGD (suspected, see DPSGD): with it adaptive clipping has \
                  losses of 0.75 to 0.79, the paper of 0.51 to 0.55.";
    let from_dpsgd = "Reductions count from DPSGD's loss gap, and the paper's DPSGD falls at C = 0.05 and 0.01 where \
                      ours does not; against adaptive clipping ours are too wide to tell.";
    let from_adaptive = "In the paper SoftAdaClip's loss is a quarter below that of adaptive clipping (means over 256 \
                         of 0.39 and 0.52), here it is one per cent below (1.02 and 1.04): see the losses. Against \
                         DPSGD ours agrees.";
    let norms = "The paper (4.1) accumulates gradients over the batch, which does not explain the figures: after clipping those of DPSGD on \
                 men are about 11, 94 and 116 times ours at C = 0.1, 0.05 and 0.01, not one factor. Excluded: one record's gradient, \
                 since the printed norms exceed C (0.58 at C = 0.01).";
    let of_all = match (table, experiment) {
        (2, SIMPLE) => from_dpsgd,
        (2, _) => from_adaptive,
        (4, _) => norms,
        _ => losses,
    };
    let mut causes = Vec::new();
    if matches!(table, 1 | 3) {
        causes.push(Cause::new("non-private", reference));
        // The complex model has one bound.
        if experiment == SIMPLE {
            let fallen = ["dpsgd C=0.05", "dpsgd C=0.01", "fixed-soft C=0.05", "fixed-soft C=0.01"];
            causes.extend(fallen.map(|method| Cause::new(method, fall)));
        }
    }
    (causes, Some(of_all))
}

/// Why rows differ under the text's settings.
fn causes_in_text(experiment: &str, table: u8) -> Vec<Cause> {
    let incomes = "By the paper's accuracy and F1, 37 % of its records have the higher income (by arithmetic), of balanced Adult 21 %; how it came \
                   by them is a guess (`--protocol code`).";
    let fall = "The paper's DPSGD falls at this C, ours does not. Excluded: its share of higher incomes (37 %, by its accuracy and F1), with \
                which ours does not fall either. A guess: plain SGD's steps (`--protocol code`).";
    let norms = "The paper (4.1) accumulates gradients over the batch, which does not explain the figures: no one factor leads from ours to \
                 them (`--protocol code`).";
    let bound = "By the paper's accuracy and F1, 37 % of its records have the higher income (by arithmetic). One of \
                 Opacus's two adaptive optimisers bounds thresholds by 1 from below unless told otherwise (likely); here they fall (`--protocol code`).";
    let names = |name: &str| match experiment {
        COMPLEX => vec![name.to_owned()],
        _ => ["0.1", "0.05", "0.01"].map(|clip_norm| format!("{name} C={clip_norm}")).to_vec(),
    };
    let mut causes = vec![Cause::new("non-private", if table == 4 { norms } else { incomes })];
    for name in soleymani::METHODS {
        let is_adaptive = matches!(name, "adaptive" | "soft-adaptive");
        causes.extend(names(name).iter().map(|name| {
            let falls = !is_adaptive && experiment == SIMPLE && !name.ends_with("C=0.1");
            let cause = match (table, is_adaptive, falls) {
                (4, ..) => norms,
                (_, true, _) => bound,
                (_, _, true) => fall,
                _ => incomes,
            };
            Cause::new(name, cause)
        }));
    }
    causes
}

/// The study.
pub(crate) fn study(args: &StudyArgs) -> anyhow::Result<Study> {
    let epochs = |published| args.options.epochs(published);
    let source = source(args.protocol);
    let simple = soleymani::experiment(
        Setting {
            id: SIMPLE,
            title: "Soleymani 2025: Adult, simple model",
            source,
            model: ModelConfig::SoleymaniSimple,
            loss: Loss::WeightedBceWithLogits { positive_weight: 2.0 },
            reference: Schedule { batch_size: 32, epochs: epochs(15), rate: 3e-4 },
            private: Schedule { batch_size: 128, epochs: epochs(30), rate: 3e-3 },
            clip_norms: &[0.1, 0.05, 0.01],
            protocol: args.protocol,
        },
        notes(args.protocol),
    )?;
    let complex = soleymani::experiment(
        Setting {
            id: COMPLEX,
            title: "Soleymani 2025: Adult, complex model",
            source,
            model: ModelConfig::SoleymaniComplex { normalisation: soleymani::NORMALISATION },
            loss: Loss::WeightedSoftmaxCrossEntropy { class_weights: vec![1.0, 2.0] },
            reference: Schedule { batch_size: 32, epochs: epochs(8), rate: 3e-5 },
            private: Schedule { batch_size: 128, epochs: epochs(16), rate: 3e-4 },
            clip_norms: &[0.1],
            protocol: args.protocol,
        },
        [notes(args.protocol), vec![soleymani::normalisation_note()]].concat(),
    )?;
    let table = |number, experiment, model: &str, text| {
        let (causes, of_others) = causes(args.protocol, experiment, number);
        let id = format!("soleymani2025-table-{number}-{model}");
        let mut table = TablePresentation::new(&id, experiment, text, causes)?;
        if let Some(cause) = of_others {
            table = table.because(cause);
        }
        anyhow::Ok(if matches!(number, 1 | 3) { table.noted(LOSSES) } else { table })
    };
    let table_of_losses = |experiment, model: &str, text| {
        let (causes, of_others) = causes(args.protocol, experiment, 1);
        let table = TablePresentation::new(&format!("soleymani2025-table-1-losses-{model}"), experiment, text, causes)?;
        let table = table.noted(LOSSES).noted(TRAINING_LOSSES);
        anyhow::Ok(if let Some(cause) = of_others { table.because(cause) } else { table })
    };
    let mut claims = Vec::new();
    for clip_norm in ["0.1", "0.05", "0.01"] {
        let data = format!("Adult, simple model, C = {clip_norm}");
        let of_norm = soleymani::claims(SIMPLE, &data, &format!(" C={clip_norm}"), &GAPS)?;
        let exempt = clip_norm == "0.1";
        claims.extend(of_norm.into_iter().map(|claim| if exempt { claim.ours(EXEMPT) } else { claim }));
    }
    claims.extend(soleymani::claims(COMPLEX, "Adult, complex model", "", &GAPS)?);
    Ok(Study::new(
        "income",
        StudyPresentation {
            ranked: Vec::new(),
            searches: Vec::new(),
            pooled: Some(Pooled {
                source: "Soleymani 2025, 5.1",
                gaps: GAPS.to_vec(),
                methods: vec!["soft-adaptive", "dpsgd", "adaptive"],
            }),
            title: "Adult: soft against hard clipping".to_owned(),
            tables: vec![
                table(1, SIMPLE, "simple", include_str!("published/soleymani2025-table1-income-simple.tsv"))?,
                table_of_losses(
                    SIMPLE,
                    "simple",
                    include_str!("published/soleymani2025-table1-losses-income-simple.tsv"),
                )?,
                table(2, SIMPLE, "simple", include_str!("published/soleymani2025-table2-income-simple.tsv"))?,
                table(3, SIMPLE, "simple", include_str!("published/soleymani2025-table3-income-simple.tsv"))?,
                table(4, SIMPLE, "simple", include_str!("published/soleymani2025-table4-income-simple.tsv"))?,
                table(1, COMPLEX, "complex", include_str!("published/soleymani2025-table1-income-complex.tsv"))?,
                table_of_losses(
                    COMPLEX,
                    "complex",
                    include_str!("published/soleymani2025-table1-losses-income-complex.tsv"),
                )?,
                table(2, COMPLEX, "complex", include_str!("published/soleymani2025-table2-income-complex.tsv"))?,
                table(3, COMPLEX, "complex", include_str!("published/soleymani2025-table3-income-complex.tsv"))?,
                table(4, COMPLEX, "complex", include_str!("published/soleymani2025-table4-income-complex.tsv"))?,
            ],
            claims,
        },
        vec![simple, complex],
    )
    .under(args.protocol))
}
