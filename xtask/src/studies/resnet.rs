//! `cargo xtask reproduce resnet`: Zhao 2025, Figure 2 (a). The searches of `mnist` and `fashion`
//! with ResNet-18, GroupNorm in the place of BatchNorm, from scratch. Groups are the classes.

use dp_data::mnist::Collection;
use study_report::{StudyPresentation, TablePresentation};

use super::study::{Study, StudyArgs};
use super::zhao;

const WHOSE: &str = "Figure 2 has two networks, and the paper does not say of which Table 5 is. `reproduce mnist` and `reproduce fashion` \
                     compare the table with the two-layer CNN.";

/// The study.
pub(crate) fn study(args: &StudyArgs) -> anyhow::Result<Study> {
    let mnist = zhao::residual(args, Collection::Mnist);
    let fashion = zhao::residual(args, Collection::FashionMnist);
    let table =
        |id, experiment: &str, text| anyhow::Ok(TablePresentation::new(id, experiment, text, Vec::new())?.noted(WHOSE));
    let tables = vec![
        table("zhao2025-table-5-mnist", &mnist.final_id(), include_str!("published/zhao2025-table5-mnist.tsv"))?,
        table("zhao2025-table-5-fashion", &fashion.final_id(), include_str!("published/zhao2025-table5-fashion.tsv"))?,
    ];
    let mut experiments = Vec::new();
    let mut claims = Vec::new();
    for search in [&mnist, &fashion] {
        experiments.extend(search.grids()?);
        claims.extend(search.claims(&zhao::WORST_CLASS)?);
    }
    let title = "ResNet-18 on images: constant, adaptive and bounded adaptive clipping".to_owned();
    let searches = vec![mnist.searched(), fashion.searched()];
    Ok(Study::new(
        "resnet",
        StudyPresentation { ranked: Vec::new(), searches, pooled: None, title, tables, claims },
        experiments,
    )
    .selecting(zhao::follow_up(vec![mnist, fashion])))
}
