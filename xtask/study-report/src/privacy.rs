//! What each method costs in privacy: ours beside the published ε, for one run and for all runs of
//! a report.

use dp_accounting::{Rounding, Scope, decimal};
use fair_report::number;
use fair_report::{Block, Cell, Row, Table, Tone};
use run_records::mark::{Mark, marked};
use run_records::{ExperimentResults, MethodResults, PrivacyRecord, StudyResults, mark_epsilon};

use super::all_runs::{by_data, composed, n_runs};
use super::label::label;
use super::search;
use super::shares::{self, Shares};

/// What a reader may take from a report, and what not: the top of every one.
pub(crate) fn what_may_be_released(results: &StudyResults) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let Some(seed) = results.seed {
        blocks.push(Block::Paragraph(format!(
            "THESE RUNS ARE NOT PRIVATE: their batches and noise follow from the seed {seed}, which is printed here, and who knows it can \
             take the noise off. The marks beside ε are those of the mechanisms, run with randomness from the operating system."
        )));
    }
    blocks.extend(by_data(results).iter().map(|all| Block::Paragraph(all.sentence())));
    blocks.push(Block::Paragraph("What is where in this report:".to_owned()));
    blocks.push(Block::List(vec![
        "Release, covered by the ε of the method: the parameters after every step, and so every prediction of a model for records of \
         which it was not told; the noisy thresholds; ε itself."
            .to_owned(),
        "Diagnostics, not for release, covered by no ε: training losses and gradient norms by group, metrics on training and validation \
         records, numbers of non-finite gradients and of empty batches, sizes of groups, running times, the analyses of single steps, the \
         trials of searches and their number, and the reference without privacy. They are shown because the records of these studies are \
         public, or the reader may see them."
            .to_owned(),
        "Every ε is marked. Certified: a proven upper bound, with everything that depends on the records in the ledger. Conditional: the \
         same, given something that is named. Nominal: no guarantee. ε is rounded up. Who sees what, and what is public: docs/threat-model.md."
            .to_owned(),
    ]));
    blocks
}

/// The ε table of one experiment; empty if no method is private.
pub(crate) fn blocks(experiment: &ExperimentResults, seeded: bool, mark: Option<Mark>) -> Vec<Block> {
    let private: Vec<(&MethodResults, &PrivacyRecord)> =
        experiment.methods.iter().filter_map(|method| Some((method, method.privacy.as_ref()?))).collect();
    if private.is_empty() {
        return Vec::new();
    }
    let columns = [
        "Method",
        "Guarantee",
        "ε of one run",
        "ε of all its runs",
        "ε, the paper's way",
        "ε, printed",
        "δ",
        "Mechanism",
    ];
    let mut table = Table {
        caption: marked(mark, &format!("Privacy: {}", experiment.title)),
        columns: columns.iter().map(ToString::to_string).collect(),
        rows: private.iter().map(|(method, privacy)| row(method, privacy, seeded, mark)).collect(),
        notes: vec![
            search_note(&private).to_owned(),
            "ε of one run: our upper bounds for the noisy gradients and the noisy counts of every step of one training, by \
             accountant. The whole ledger of each method is in results.json."
                .to_owned(),
            "ε of all its runs: of all seeds of the method together, as if every record were in each run's training part (PLD). The ε of \
             all runs of this report stands at its head."
                .to_owned(),
            "ε, the paper's way: with the accountant, conversion, sampling rate and number of steps that the paper used; no guarantee of \
             ours, and rounded to the nearest."
                .to_owned(),
            "The reference without privacy, and every figure computed from it, is not protected by these ε.".to_owned(),
        ],
    };
    table.notes.extend(stopping_note(&private));
    table.notes.extend(scope_notes(&private));
    let mut blocks = vec![Block::Table(table)];
    blocks.extend(by_group(experiment, mark).map(Block::Table));
    blocks.extend(search::table(experiment, mark).map(Block::Table));
    blocks
}

fn search_note(private: &[(&MethodResults, &PrivacyRecord)]) -> &'static str {
    if private.iter().all(|(_, privacy)| privacy.search.is_some()) {
        "Hyper-parameter search: accounted. ε is that of the whole search, all trials and the choice of the best (Papernot & Steinke \
         2022, Theorem 2). Whatever was spent on choosing the grid is not in it."
    } else {
        "Hyper-parameter search: not accounted. Whatever was spent on finding the settings, by a paper's authors or here, is not in ε."
    }
}

/// For runs that may stop early: what their ε covers.
fn stopping_note(private: &[(&MethodResults, &PrivacyRecord)]) -> Option<String> {
    let stops = |(method, _): &(&MethodResults, &PrivacyRecord)| !method.config["early_stopping"].is_null();
    private.iter().any(stops).then(|| {
        "Runs may stop early, by validation records: these are not covered. For the training records, ε is that of all epochs, trained or not."
            .to_owned()
    })
}

/// What ε covers and what it does not, once for all methods for which it is the same.
fn scope_notes(private: &[(&MethodResults, &PrivacyRecord)]) -> Vec<String> {
    let mut scopes: Vec<(&Scope, Vec<String>)> = Vec::new();
    for (method, privacy) in private {
        let Some(scope) = &privacy.scope else { continue };
        match scopes.iter_mut().find(|(known, _)| *known == scope) {
            Some((_, methods)) => methods.push(label(&method.method)),
            None => scopes.push((scope, vec![label(&method.method)])),
        }
    }
    let note = |(scope, methods): (&Scope, Vec<String>)| {
        let Scope { unit_of_privacy, covered, not_covered, conditions: given, n_records: _ } = scope;
        let given =
            if given.is_empty() { String::new() } else { format!(" It is conditional: given {}.", given.join("; ")) };
        format!(
            "{}: ε is for {unit_of_privacy} and covers {}. It does not cover {}.{given}",
            methods.join(", "),
            covered.join("; "),
            given_and(not_covered)
        )
    };
    scopes.into_iter().map(note).collect()
}

fn given_and(items: &[String]) -> String {
    if items.is_empty() { "anything else".to_owned() } else { items.join("; ") }
}

/// ε of each group, for the methods with a proof that bound groups differently.
fn by_group(experiment: &ExperimentResults, mark: Option<Mark>) -> Option<Table> {
    let mut rows = Vec::new();
    let proven = |method: &&MethodResults| method.privacy.as_ref().is_some_and(|privacy| privacy.certified);
    for method in experiment.methods.iter().filter(proven) {
        if method.runs.iter().all(|run| run.group_epsilons.is_empty()) {
            continue;
        }
        let cells = (0..experiment.dataset.groups.len()).map(|group| {
            let mut epsilons: Vec<_> = method.runs.iter().filter_map(|run| run.group_epsilons.get(group)).collect();
            epsilons.sort_by(|a, b| a.epsilon().get().total_cmp(&b.epsilon().get()));
            match (epsilons.first(), epsilons.last()) {
                (Some(least), Some(most)) => Cell::plain(format!("{least} to {most}")),
                _ => Cell::plain("–"),
            }
        });
        rows.push(Row { header: label(&method.method), cells: cells.collect() });
    }
    let groups = experiment.dataset.groups.iter().map(|group| format!("ε, {}", group.name));
    (!rows.is_empty()).then(|| Table {
        caption: marked(mark, &format!("Privacy of each group, ex post: {}", experiment.title)),
        columns: std::iter::once("Method".to_owned()).chain(groups).collect(),
        rows,
        notes: vec![
            "Least and largest over seeds. Ex post: against changes of one record of the group, by the thresholds that the run \
             released, and known only after it. A record of a group with a smaller bound C_k hides behind noise made for the largest (RDP; \
             replaces the heuristic (C_k/max C)·ε of Xu 2021). No guarantee: the record itself moves the counts that its step's bounds \
             follow from, which no theorem covers. The guarantee is the ε of the run."
                .to_owned(),
        ],
    })
}

fn row(method: &MethodResults, privacy: &PrivacyRecord, seeded: bool, mark: Option<Mark>) -> Row {
    let worth = privacy.epsilons.first().map_or(dp_accounting::Mark::Nominal, |record| record.epsilon.mark());
    let guarantee = match (worth, seeded) {
        (dp_accounting::Mark::Nominal, _) => {
            Cell { prose: true, ..Cell::toned("NOT CERTIFIED: ε is nominal, not a guarantee", Tone::Bad) }
        }
        (worth, true) => Cell::prose(format!("mechanism {worth}; these runs are not private: their seed is public")),
        (worth, false) => Cell::plain(worth.to_string()),
    };
    let lines = privacy.epsilons.iter().map(|record| format!("{}, {}", record.epsilon, record.accountant)).collect();
    let ours = Cell { prose: true, ..Cell::lines(lines, Tone::Plain) };
    let runs = n_runs(method);
    let all = composed(std::iter::once((privacy, runs))).map_or_else(
        || Cell::plain("–"),
        |epsilon| {
            let epsilon = mark_epsilon(epsilon, privacy.certified, privacy.scope.as_ref());
            Cell::prose(format!("{epsilon}, {} runs", number::count(runs)))
        },
    );
    let as_published =
        privacy.as_published.as_ref().map_or_else(|| Cell::plain("–"), |record| Cell::prose(record.to_string()));
    Row {
        header: label(&method.method),
        cells: vec![
            guarantee,
            ours,
            all,
            as_published,
            published_cell(privacy, mark),
            Cell::plain(format!("{:e}", privacy.delta)),
            Cell { prose: true, ..Cell::lines(mechanism(method, privacy), Tone::Plain) },
        ],
    }
}

/// The published ε, and whether ours rounds to it.
fn published_cell(privacy: &PrivacyRecord, mark: Option<Mark>) -> Cell {
    let Some(published) = privacy.published else { return Cell::plain("–") };
    let text = published.to_string();
    let decimals = text.split_once('.').map_or(0, |(_, digits)| digits.len());
    match (&privacy.as_published, mark) {
        (Some(ours), None) => {
            let rounded = decimal(ours.epsilon, decimals, Rounding::Nearest);
            if rounded == text {
                Cell::toned(format!("{text} ✓ same digits"), Tone::Good)
            } else {
                Cell::toned(format!("{text} ✗ ours rounds to {rounded}"), Tone::Bad)
            }
        }
        _ => Cell::plain(text),
    }
}

/// The ledger in a few words.
fn mechanism(method: &MethodResults, privacy: &PrivacyRecord) -> Vec<String> {
    let mut lines = Vec::new();
    let releases = shares::beside_the_gradients(&method.config);
    let shares = Shares::of(&releases, privacy);
    lines.extend(releases.iter().map(|release| {
        format!("{}: noise multiplier {}{}", release.name, release.noise_multiplier, shares.of_release(release))
    }));
    if let (Some(steps), Some(rate)) = (privacy.steps, privacy.sampling_rate) {
        lines.push(format!("{} steps, Poisson rate {rate:.5}", number::count(steps)));
    }
    if let Some(multiplier) = privacy.noise_multiplier {
        lines.push(format!("gradient: noise multiplier {multiplier}{}", shares.of_gradients()));
    }
    if let Some(search) = &privacy.search {
        lines.push(format!(
            "best of {:.4} trials on average, each within ε = {}, at random points of {}",
            search.mean_trials,
            mark_epsilon(search.epsilon_of_a_trial, privacy.certified, privacy.scope.as_ref()),
            number::count(search.n_points as u64)
        ));
        lines.push(format!("counts of answers: noise multiplier {:.4}", search.score_noise_multiplier));
    }
    if !privacy.count_noise_multipliers.is_empty() {
        let multipliers: Vec<String> = privacy.count_noise_multipliers.iter().map(ToString::to_string).collect();
        lines.push(format!("counts on the same batch: noise multiplier {}", multipliers.join(", ")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    /// Ten seeds cost more than one, and every figure says what it is worth.
    #[test]
    fn all_runs_are_composed_and_every_epsilon_is_marked() {
        let experiment = fixture::study().experiments.remove(0);
        let method = &experiment.methods[1];
        let privacy = method.privacy.as_ref().unwrap();
        let (one, five) =
            (composed(std::iter::once((privacy, 1))).unwrap(), composed(std::iter::once((privacy, 5))).unwrap());
        assert!(five > 2.0 * one && five < 5.0 * one, "{one} {five}");
        let text = |seeded| row(method, privacy, seeded, None).cells[0].lines.join(" ");
        assert_eq!(text(true), "mechanism certified; these runs are not private: their seed is public");
        assert_eq!(text(false), "certified");
    }

    /// A method without a proof shows no ε of groups, and no unmarked one at all.
    #[test]
    fn what_has_no_proof_is_nominal_everywhere() {
        let mut experiment = fixture::study().experiments.remove(0);
        let method = &mut experiment.methods[1];
        let privacy = method.privacy.as_mut().unwrap();
        privacy.certified = false;
        for record in &mut privacy.epsilons {
            record.epsilon = mark_epsilon(record.epsilon.epsilon().get(), false, None);
        }
        method.runs[0].group_epsilons = vec![run_records::group_epsilon(1.0); 2];
        assert_eq!(by_group(&experiment, None), None);
        let method = &experiment.methods[1];
        let cells = row(method, method.privacy.as_ref().unwrap(), true, None).cells;
        assert!(cells[0].lines[0].starts_with("NOT CERTIFIED"));
        for cell in &cells[1..3] {
            assert!(cell.lines.iter().all(|line| line.contains("(nominal, not a guarantee)")), "{cell:?}");
        }
        assert!(cells[3].lines[0].contains("recomputed, nominal"), "{:?}", cells[3]);
    }

    #[test]
    fn methods_of_one_scope_share_a_note() {
        let scope = |released: &str| Scope {
            unit_of_privacy: "one record".to_owned(),
            covered: vec!["the parameters".to_owned(), released.to_owned()],
            not_covered: vec!["time".to_owned()],
            conditions: if released == "the counts" { vec!["the bins".to_owned()] } else { Vec::new() },
            n_records: None,
        };
        let mut experiment = fixture::study().experiments.remove(0);
        let private = experiment.methods.iter_mut().filter_map(|method| method.privacy.as_mut());
        for (i, privacy) in private.enumerate() {
            privacy.scope = match i {
                0 | 2 => Some(scope("the thresholds")),
                1 => Some(scope("the counts")),
                _ => None,
            };
        }
        let private: Vec<_> =
            experiment.methods.iter().filter_map(|method| Some((method, method.privacy.as_ref()?))).collect();
        assert_eq!(
            scope_notes(&private),
            [
                "DPSGD, DPSGD-Global: ε is for one record and covers the parameters; the thresholds. It does not cover time.",
                "DPSGD-F: ε is for one record and covers the parameters; the counts. It does not cover time. It is conditional: given the bins.",
            ]
        );
    }
}
