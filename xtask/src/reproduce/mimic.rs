//! `cargo xtask reproduce mimic`: Soleymani 2025 on lengths of stay in MIMIC-III.

use dp_train::{Loss, ModelConfig};

use super::data_setting::Source;
use super::soleymani::{self, Schedule, Setting};
use super::study::{Study, StudyArgs};
use crate::report::{StudyPresentation, TablePresentation};

const ID: &str = "mimic";

/// The study.
pub(crate) fn study(args: &StudyArgs) -> anyhow::Result<Study> {
    let epochs = |published| args.options.epochs(published);
    let experiment = soleymani::experiment(
        Setting {
            id: ID,
            title: "Soleymani 2025: MIMIC-III, length of stay from discharge summaries",
            source: Source::Mimic,
            model: ModelConfig::LogisticRegression,
            loss: Loss::SoftmaxCrossEntropy,
            reference: Schedule { batch_size: 40, epochs: epochs(20), rate: 1e-3 },
            private: Schedule { batch_size: 500, epochs: epochs(200), rate: 1e-3 },
            clip_norms: &[0.1],
        },
        vec![
            "Inputs are counts of hashed words and the model is one linear layer; the paper fine-tunes ClinicalBERT."
                .to_owned(),
            "The reference takes rate 1e-3; the paper's 1e-5 is for the whole encoder.".to_owned(),
        ],
    )?;
    let table = |id, text| TablePresentation::new(id, ID, text, Vec::new());
    Ok(Study {
        name: "mimic",
        presentation: StudyPresentation {
            title: "MIMIC-III: soft against hard clipping".to_owned(),
            tables: vec![
                table("soleymani2025-table-1-mimic", include_str!("published/soleymani2025-table1-mimic.tsv"))?,
                table("soleymani2025-table-2-mimic", include_str!("published/soleymani2025-table2-mimic.tsv"))?,
                table("soleymani2025-table-3-mimic", include_str!("published/soleymani2025-table3-mimic.tsv"))?,
                table("soleymani2025-table-4-mimic", include_str!("published/soleymani2025-table4-mimic.tsv"))?,
            ],
            claims: soleymani::claims(ID, "MIMIC-III", "", &["male|female", "younger|older", "white|non-white"])?,
        },
        experiments: vec![experiment],
        follow_up: None,
    })
}
