//! `cargo xtask reproduce grid`: Zhao 2025, Table 6 and Figures 3, 7, 8. Every point of the grid, then the best ones.

use super::study::{Study, StudyArgs};
use super::zhao;
use crate::report::{StudyPresentation, TablePresentation};

/// The study.
pub(crate) fn study(args: &StudyArgs) -> anyhow::Result<Study> {
    let searches = zhao::censuses(args);
    let mut experiments = Vec::new();
    let mut claims = Vec::new();
    for search in &searches {
        experiments.extend(search.grids()?);
        claims.extend(
            search.claims(&[("women's accuracy", "accuracy", "female"), ("men's accuracy", "accuracy", "male")])?,
        );
    }
    let [adult, dutch] = &searches;
    let table = |id, experiment: &str, text| TablePresentation::new(id, experiment, text, Vec::new());
    let tables = vec![
        table("zhao2025-table-6-adult", &adult.final_id(), include_str!("published/zhao2025-table6-adult.tsv"))?,
        table("zhao2025-table-6-dutch", &dutch.final_id(), include_str!("published/zhao2025-table6-dutch.tsv"))?,
    ];
    let title = "Learning rate and bound: constant, adaptive and bounded adaptive clipping".to_owned();
    Ok(Study {
        name: "grid",
        presentation: StudyPresentation { ranked: Vec::new(), title, tables, claims },
        experiments,
        follow_up: Some(zhao::follow_up(searches.into())),
    })
}
