//! `cargo xtask reproduce fashion`: Zhao 2025 on Fashion-MNIST, Table 5. Groups are the classes.

use dp_data::mnist::Collection;
use study_report::{StudyPresentation, TablePresentation};

use super::study::{Study, StudyArgs};
use super::zhao;

/// The study.
pub(crate) fn study(args: &StudyArgs) -> anyhow::Result<Study> {
    let search = zhao::images(args, Collection::FashionMnist);
    let table = TablePresentation::new(
        "zhao2025-table-5-fashion",
        &search.final_id(),
        include_str!("published/zhao2025-table5-fashion.tsv"),
        Vec::new(),
    )?;
    Ok(Study::new(
        "fashion",
        StudyPresentation {
            ranked: Vec::new(),
            searches: vec![search.searched()],
            pooled: None,
            title: "Fashion-MNIST: what privacy costs classes that are easily confused".to_owned(),
            tables: vec![table],
            claims: search.claims(&zhao::WORST_CLASS)?,
        },
        search.grids()?,
    )
    .selecting(zhao::follow_up(vec![search]))
    .under(args.protocol))
}
