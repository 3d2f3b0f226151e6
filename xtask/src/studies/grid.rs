//! `cargo xtask reproduce grid`: Zhao 2025, Table 6 and Figures 3, 7, 8. Every point of the grid,
//! then the best ones.

use study_report::{Cause, StudyPresentation, TablePresentation};

use super::study::{Protocol, Study, StudyArgs};
use super::zhao::{self, Search};

const DUTCH: &str = include_str!("published/zhao2025-table6-dutch.tsv");

/// What the published trainer prints as a sex on Dutch, and the groups that it takes for it.
const STATUSES: [(&str, &str); 2] = [("female", "status 1 to 3"), ("male", "status 4")];

/// Why rows differ.
fn causes(protocol: Protocol, search: &Search) -> Vec<Cause> {
    let adult = "All seeds share one partition, and the published trainer's is another than ours (`--protocol code` \
                 has it). Its test part has 2,192 women: their accuracy is suspected to move by 0.6 points (one \
                 standard deviation) from partition to partition, men's by 0.3. The printed errors are over seeds \
                 alone.";
    let adult_unbounded = "On women the partition (see the other strategies). On men ours is better by a point: the trainer's partition, its 70 % \
                           of records and its noise of counts were tried (`--protocol code`) and do not explain it.";
    let adult_unbounded_in_code = "On men ours is better by a point. Excluded: the trainer's partition, its 70 % of records and its noise of \
                                   counts, which all strategies share here. That its file of Adult has another order is a guess.";
    let noisy = "The point with the greatest mean over three runs has the largest rate and a large bound: \
                 its accuracy varies from seed to seed two to three times as much as at ε = 0.2. The \
                 paper chooses on test records.";
    let dutch_groups = "The published trainer takes the group from the last input column, which on Dutch is marital status 4 and not the \
                        sex (established, by its source; `--protocol code`).";
    let cause = |strategy: &str, epsilon: f64| match (search.name, protocol) {
        ("adult", Protocol::Text) if strategy == "unbounded-adaptive" => Some(adult_unbounded),
        ("adult", Protocol::Text) => Some(adult),
        ("adult", Protocol::Code) if strategy == "unbounded-adaptive" => Some(adult_unbounded_in_code),
        ("adult", Protocol::Code) if strategy == "bounded-adaptive" && epsilon < 0.2 => Some(noisy),
        (_, Protocol::Text) => Some(dutch_groups),
        (_, Protocol::Code) => None,
    };
    let mut causes = Vec::new();
    for strategy in zhao::STRATEGIES {
        for epsilon in search.epsilons {
            let method = format!("{strategy} ε={epsilon}");
            causes.extend(cause(strategy, epsilon).map(|cause| Cause::new(&method, cause)));
        }
    }
    causes
}

/// The study.
pub(crate) fn study(args: &StudyArgs) -> anyhow::Result<Study> {
    let searches = zhao::censuses(args);
    let [adult, dutch] = &searches;
    let of_sex = [("women's accuracy", "accuracy", "female"), ("men's accuracy", "accuracy", "male")];
    let (dutch_columns, dutch_table) = match args.protocol {
        Protocol::Text => (of_sex, DUTCH.to_owned()),
        Protocol::Code => (
            STATUSES.map(|(_, status)| (status, "accuracy", status)),
            STATUSES.iter().fold(DUTCH.to_owned(), |text, (sex, status)| {
                text.replace(&format!("\t{sex}\t"), &format!("\t{status}\t"))
            }),
        ),
    };
    let mut experiments = Vec::new();
    let mut claims = Vec::new();
    for (search, columns) in [(adult, of_sex), (dutch, dutch_columns)] {
        experiments.extend(search.grids()?);
        claims.extend(search.claims(&columns)?);
    }
    let table = |id, search: &Search, text: &str| {
        TablePresentation::new(id, &search.final_id(), text, causes(args.protocol, search))
    };
    let tables = vec![
        table("zhao2025-table-6-adult", adult, include_str!("published/zhao2025-table6-adult.tsv"))?,
        table("zhao2025-table-6-dutch", dutch, &dutch_table)?,
    ];
    let title = "Learning rate and bound: constant, adaptive and bounded adaptive clipping".to_owned();
    let searched = searches.iter().map(Search::searched).collect();
    let presentation =
        StudyPresentation { ranked: Vec::new(), searches: searched, pooled: None, title, tables, claims };
    Ok(Study::new("grid", presentation, experiments).selecting(zhao::follow_up(searches.into())).under(args.protocol))
}
