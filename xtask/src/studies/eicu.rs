//! `cargo xtask reproduce eicu`: Soleymani 2025 on GOSSIS-1-eICU.

use dp_train::{Loss, ModelConfig};
use study_report::{StudyPresentation, TablePresentation};

use super::soleymani::{self, Schedule, Setting};
use super::study::{Protocol, Study, StudyArgs};
use crate::run::data_setting::Source;

const ID: &str = "eicu";

/// The study.
pub(crate) fn study(args: &StudyArgs) -> anyhow::Result<Study> {
    let epochs = |published| args.options.epochs(published);
    let experiment = soleymani::experiment(
        Setting {
            id: ID,
            title: "Soleymani 2025: GOSSIS-1-eICU",
            source: Source::Eicu,
            model: ModelConfig::SoleymaniComplex { normalisation: soleymani::NORMALISATION },
            loss: Loss::WeightedSoftmaxCrossEntropy { class_weights: vec![0.5, 1.0] },
            reference: Schedule { batch_size: 32, epochs: epochs(30), rate: 1e-5 },
            private: Schedule { batch_size: 64, epochs: epochs(60), rate: 1e-3 },
            clip_norms: &[0.1],
            protocol: Protocol::Text,
        },
        vec![soleymani::normalisation_note()],
    )?;
    let table = |id, text| TablePresentation::new(id, ID, text, Vec::new());
    Ok(Study::new(
        "eicu",
        StudyPresentation {
            ranked: Vec::new(),
            searches: Vec::new(),
            pooled: None,
            title: "GOSSIS-1-eICU: soft against hard clipping".to_owned(),
            tables: vec![
                table("soleymani2025-table-1-eicu", include_str!("published/soleymani2025-table1-eicu.tsv"))?,
                table("soleymani2025-table-2-eicu", include_str!("published/soleymani2025-table2-eicu.tsv"))?,
                table("soleymani2025-table-3-eicu", include_str!("published/soleymani2025-table3-eicu.tsv"))?,
                table("soleymani2025-table-4-eicu", include_str!("published/soleymani2025-table4-eicu.tsv"))?,
            ],
            claims: soleymani::claims(ID, "eICU", "", &["male|female", "younger|older"])?,
        },
        vec![experiment],
    ))
}
