//! `cargo xtask reproduce mimic`: Soleymani 2025 on lengths of stay in MIMIC-III.

use dp_train::Loss;
use study_report::{StudyPresentation, TablePresentation};

use super::soleymani::{self, Schedule, Setting};
use super::study::{Protocol, Study, StudyArgs};
use crate::run::data_setting::Source;
use crate::run::text_inputs::TextInputs;

const ID: &str = "mimic";

/// The study, on features of an encoder if one is given.
///
/// # Errors
/// If the encoder cannot be read.
pub(crate) fn study(args: &StudyArgs) -> anyhow::Result<Study> {
    let inputs = TextInputs::new(args.encoder.as_deref())?;
    let epochs = |published| args.options.epochs(published);
    let mut departures = inputs.departures.clone();
    departures.push("The reference takes rate 1e-3; the paper's 1e-5 is for the whole encoder.".to_owned());
    let experiment = soleymani::experiment(
        Setting {
            id: ID,
            title: "Soleymani 2025: MIMIC-III, length of stay from discharge summaries",
            source: Source::Mimic,
            model: inputs.model.clone(),
            loss: Loss::SoftmaxCrossEntropy,
            reference: Schedule { batch_size: 40, epochs: epochs(20), rate: 1e-3 },
            private: Schedule { batch_size: 500, epochs: epochs(200), rate: 1e-3 },
            clip_norms: &[0.1],
            protocol: Protocol::Text,
        },
        departures,
    )?;
    let table = |id, text| TablePresentation::new(id, ID, text, Vec::new());
    Ok(Study::new(
        "mimic",
        StudyPresentation {
            ranked: Vec::new(),
            searches: Vec::new(),
            pooled: None,
            title: "MIMIC-III: soft against hard clipping".to_owned(),
            tables: vec![
                table("soleymani2025-table-1-mimic", include_str!("published/soleymani2025-table1-mimic.tsv"))?,
                table("soleymani2025-table-2-mimic", include_str!("published/soleymani2025-table2-mimic.tsv"))?,
                table("soleymani2025-table-3-mimic", include_str!("published/soleymani2025-table3-mimic.tsv"))?,
                table("soleymani2025-table-4-mimic", include_str!("published/soleymani2025-table4-mimic.tsv"))?,
            ],
            claims: soleymani::claims(ID, "MIMIC-III", "", &["male|female", "younger|older", "white|non-white"])?,
        },
        vec![experiment],
    )
    .on_texts(inputs))
}
