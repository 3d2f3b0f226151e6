//! What made-up records answer, for tests.

use super::{Cause, StudyPresentation, TablePresentation};
pub(crate) use run_records::made_up::study;

/// Esipova's Table 4, answered by [`study`].
pub(crate) fn presentation() -> StudyPresentation {
    let table = TablePresentation::new(
        "esipova2023-table-4",
        "esipova-adult",
        include_str!("fixture.tsv"),
        vec![Cause::new("dpsgd-f", "A cause.")],
    )
    .unwrap();
    StudyPresentation {
        ranked: Vec::new(),
        searches: Vec::new(),
        pooled: None,
        title: "Adult".to_owned(),
        tables: vec![table],
        claims: Vec::new(),
    }
}
