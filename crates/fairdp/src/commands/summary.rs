//! Summaries that commands print at their end.

use std::io::{self, Write};
use std::path::Path;

use dp_accounting::audit::Opinion;
use dp_accounting::{DpEvent, Rounding, decimal};
use fairdp::fair_decisions::Mode;
use fairdp::{
    FairnessReport, FitPlan, Fitted, GroupRates, NumberFigures, NumberReport, Predicted, Rate, ReleaseStatement,
    Signature, Thresholds, Verified, figure_in_words, printable,
};

use super::answer;
use super::shown::quoted;

/// Groups that are printed; the others are in the file.
const GROUPS: usize = 8;
/// Lines of features that are printed.
const COLUMNS: usize = 60;

/// Beyond this, what ε promises of one record is next to nothing.
const LARGE: f64 = 20.0;

fn large(out: &mut impl Write, epsilon: f64) -> io::Result<()> {
    if epsilon <= LARGE {
        return Ok(());
    }
    writeln!(
        out,
        "epsilon is above {LARGE}: one record may change the odds of what is released by a factor of more than e^{LARGE}, which \
         promises its owner next to nothing"
    )
}

/// Every release with its share, before anything runs.
pub(super) fn plan(out: &mut impl Write, plan: &FitPlan, json: bool) -> io::Result<()> {
    if json {
        return answer::document(out, plan_for_programs(plan));
    }
    writeln!(out, "epsilon {} at delta {:e}, to be {}", plan.epsilon, plan.delta, plan.mark())?;
    large(out, plan.epsilon)?;
    match &plan.table {
        Some(table) => writeln!(out, "{table}; about {} of them to train on", plan.n_training)?,
        None => writeln!(
            out,
            "the table was not read: how many steps there will be, whether δ is small enough and the records are enough, and \
             whether rows fit is not known; steps and noise are those of a table of less than 2,000,000 training records"
        )?,
    }
    if let Some(totals) = &plan.ledger {
        writeln!(
            out,
            "ledger: {} fits have spent epsilon {}, with this one {} of {}",
            totals.n_fits,
            decimal(totals.before, 4, Rounding::Up),
            decimal(totals.total, 4, Rounding::Up),
            totals.cap
        )?;
    }
    if let Some(start) = &plan.started_from {
        writeln!(out, "starts from: {}", start.in_words())?;
    }
    for (model, method) in plan.candidates() {
        writeln!(out, "model: {}\nmethod: {}", printable(model), printable(method))?;
    }
    for entry in &plan.uncovered {
        writeln!(out, "not covered: {}", printable(entry))?;
    }
    groups(out, plan)?;
    features(out, plan)?;
    writeln!(out, "{:<10} {:<32} {:>7} {:>6} {:>16}", "records", "release", "share", "times", "noise multiplier")?;
    for release in &plan.releases {
        let part = release.part.name();
        writeln!(
            out,
            "{part:<10} {:<32} {:>5.1} % {:>6} {:>16.4}",
            printable(&release.purpose),
            100.0 * release.share,
            release.count,
            release.noise_multiplier.get()
        )?;
    }
    for release in plan.releases.iter().filter(|release| !matches!(release.event, DpEvent::Gaussian { .. })) {
        writeln!(out, "{}: each is {}", printable(&release.purpose), release.event)?;
    }
    widths(out, plan)?;
    writeln!(
        out,
        "A record is in one part alone, by its table, its number or a keyed hash of its unit: each part may spend the whole \
         budget."
    )
}

fn plan_for_programs(plan: &FitPlan) -> serde_json::Value {
    let table = plan.table.as_ref().map(|table| {
        serde_json::json!({
            "records": table.records, "test_records": table.test_records, "features": table.features,
        })
    });
    let ledger = plan.ledger.as_ref().map(|totals| {
        serde_json::json!({ "fits": totals.n_fits, "before": totals.before, "total": totals.total, "cap": totals.cap })
    });
    let features = plan
        .features
        .iter()
        .map(|column| serde_json::json!({ "column": column.column, "features": column.n, "kind": column.kind }));
    let widths = plan.widths.iter().map(|width| {
        serde_json::json!({
            "epsilon": width.epsilon, "records": width.records, "rate": width.rate, "auc": width.auc, "gap": width.gap,
        })
    });
    let candidates = plan.candidates().map(|(model, method)| serde_json::json!({ "model": model, "method": method }));
    serde_json::json!({
        "epsilon": plan.epsilon, "delta": plan.delta, "mark": plan.mark().to_string(), "table": table,
        "training_records": plan.n_training, "ledger": ledger, "candidates": candidates.collect::<Vec<_>>(),
        "not_covered": plan.uncovered, "features": features.collect::<Vec<_>>(), "releases": plan.releases,
        "groups": plan.groups, "started_from": plan.started_from, "half_widths": widths.collect::<Vec<_>>(),
    })
}

/// Rates and thresholds of the groups, where each has its own.
fn groups(out: &mut impl Write, plan: &FitPlan) -> io::Result<()> {
    if plan.groups.is_empty() {
        return Ok(());
    }
    writeln!(out, "{:<32} {:>8} {:>11} {:>8}", "group", "drawn at", "threshold ×", "epsilon")?;
    for group in &plan.groups {
        let epsilon = decimal(group.epsilon, 4, Rounding::Up);
        let (name, rate, share) = (printable(&group.group), group.sampling_rate, group.threshold_share);
        writeln!(out, "{name:<32} {rate:>8} {share:>11.4} {epsilon:>8}")?;
    }
    Ok(())
}

/// How wide what is printed of groups will be: for this ε and number of records, and for half and twice of both.
fn widths(out: &mut impl Write, plan: &FitPlan) -> io::Result<()> {
    let Some(first) = plan.widths.first() else { return Ok(()) };
    writeln!(
        out,
        "half-widths of 95 % intervals in points, of a group with {:.0} test records of each class:",
        first.records
    )?;
    writeln!(out, "{:>10} {:>9} {:>16} {:>10} {:>12}", "epsilon", "records", "true-positives", "AUC", "gap of two")?;
    for width in &plan.widths {
        writeln!(
            out,
            "{:>10} {:>9.0} {:>16.1} {:>10.1} {:>12.1}",
            width.epsilon,
            width.records,
            100.0 * width.rate,
            100.0 * width.auc,
            100.0 * width.gap
        )?;
    }
    // Two groups of two classes, the least that a gap is between.
    match plan.n_test {
        Some(n) if (n as f64) < 4.0 * first.records => writeln!(
            out,
            "this table has no two such groups: about {n} test records in all; figures of smaller groups are wider, and \
             unknown where a class has too few"
        ),
        _ => Ok(()),
    }
}

/// The features, column by column; neighbours of one kind in one line.
fn features(out: &mut impl Write, plan: &FitPlan) -> io::Result<()> {
    writeln!(out, "features, a constant one besides where the model is linear:")?;
    let alike = plan.features.chunk_by(|one, next| (one.n, &one.kind) == (next.n, &next.kind));
    for columns in alike.clone().take(COLUMNS) {
        let [first, .., last] = columns else {
            let [one] = columns else { continue };
            writeln!(out, "{:>6}  {}: {}", one.n, printable(&one.column), one.kind)?;
            continue;
        };
        let (n, names) = (columns.len() * first.n, [&first.column, &last.column].map(|name| printable(name)));
        writeln!(
            out,
            "{n:>6}  {} to {} ({} columns): {} each, {}",
            names[0],
            names[1],
            columns.len(),
            first.n,
            first.kind
        )?;
    }
    let left: usize = alike.skip(COLUMNS).flatten().map(|column| column.n).sum();
    if left > 0 {
        writeln!(out, "{left:>6}  of other columns")?;
    }
    Ok(())
}

/// One line per method, of all or of those that are like a text.
pub(super) fn methods(out: &mut impl Write, like: Option<&str>, json: bool) -> io::Result<()> {
    let methods = like.map_or_else(fairdp::methods, fairdp::methods_like);
    if json {
        return answer::document(out, serde_json::json!({ "methods": methods }));
    }
    if methods.is_empty() {
        let like = printable(like.unwrap_or_default());
        return writeln!(
            out,
            "no method has `{like}` in its name, description or source; without --like all are listed"
        );
    }
    for method in methods {
        let mut notes = Vec::new();
        if method.needs_groups {
            notes.push("needs groups".to_owned());
        }
        if !method.counts.is_empty() {
            notes.push(format!("pays for counts: {}", method.counts.join(", ")));
        }
        if !method.certified {
            notes.push("no guarantee: refused by fit".to_owned());
        }
        let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
        let label = if method.label == method.name { "" } else { method.label };
        writeln!(out, "{:<26} {label:<26} {}{notes}", method.name, method.summary)?;
    }
    Ok(())
}

/// Prints the number of rows, and on standard error the values that the model did not know.
pub(super) fn predicted(out: &mut impl Write, predicted: &Predicted, file: &Path, json: bool) -> io::Result<()> {
    for remark in &predicted.remarks {
        writeln!(io::stderr(), "{}", printable(remark))?;
    }
    for column in &predicted.too_rare {
        writeln!(io::stderr(), "too rare to learn, adding 0: {}", printable(column))?;
    }
    if json {
        return answer::document(out, predicted);
    }
    writeln!(out, "{} rows: {}", predicted.rows, printable(&file.to_string_lossy()))
}

/// At most 25 lines.
pub(super) fn fitted(out: &mut impl Write, fitted: &Fitted, folder: &Path, json: bool) -> io::Result<()> {
    let statement = &fitted.statement;
    if json {
        return answer::document(out, statement);
    }
    privacy(out, statement)?;
    rates(out, &fitted.fairness)?;
    writeln!(out, "release: {} (may be published)", folder.join("release").display())?;
    writeln!(out, "private: {} (stays with the table)", folder.join("private").display())?;
    writeln!(out, "check:   fairdp verify {}", quoted(&folder.to_string_lossy()))
}

/// A run that had ended before it was to go on.
pub(super) fn finished(out: &mut impl Write, verified: &Verified, folder: &Path, json: bool) -> io::Result<()> {
    if json {
        return answer::document(out, &verified.statement);
    }
    writeln!(out, "the run had ended with this configuration and seed: nothing was left to do")?;
    privacy(out, &verified.statement)?;
    writeln!(out, "release: {} (may be published)", folder.join("release").display())
}

fn privacy(out: &mut impl Write, statement: &ReleaseStatement) -> io::Result<()> {
    if !statement.private {
        writeln!(out, "NOT PRIVATE: run with a seed")?;
    }
    writeln!(
        out,
        "({}, {:e})-differentially private, {}: {}",
        decimal(statement.epsilon, 3, Rounding::Up),
        statement.delta,
        statement.mark,
        printable(&statement.covers.join(", "))
    )?;
    large(out, statement.epsilon)?;
    if !statement.epsilon_of_groups.is_empty() {
        writeln!(out, "epsilon by group: {}", statement.groups_in_words())?;
    }
    if !statement.given.is_empty() {
        writeln!(out, "not covered: {} constants that were read from the records", statement.given.len())?;
    }
    let (training, test) = (statement.records["training"], statement.records["test"]);
    writeln!(out, "model: {}\nmethod: {}", printable(&statement.model), printable(&statement.method))?;
    writeln!(out, "unit: {}; {training} records for training, {test} for the test", printable(&statement.unit.what))
}

/// Prints the quality of the model by group.
pub(super) fn rates(out: &mut impl Write, fairness: &FairnessReport) -> io::Result<()> {
    if let Some(numbers) = &fairness.numbers {
        return errors(out, numbers);
    }
    let Some(overall) = &fairness.overall else {
        return writeln!(out, "not tested: all records were trained on");
    };
    writeln!(out, "{:<20} {:>8} {:>22} {:>22}", "group", "records", "accuracy", "balanced accuracy")?;
    let mut row = |rates: &GroupRates| {
        let small = rates.shortage().map_or(String::new(), |shortage| format!("  {}", printable(&shortage)));
        let cells = (cell(rates.accuracy), cell(rates.balanced_accuracy));
        let (group, records) = (rates.group.to_string(), rates.records.max(0.0));
        let group = printable(&group);
        writeln!(out, "{group:<20} {records:>8.0} {:>22} {:>22}{small}", cells.0, cells.1)
    };
    row(overall)?;
    // One group is all records.
    if fairness.groups.len() > 1 {
        fairness.groups.iter().take(GROUPS).try_for_each(&mut row)?;
    }
    if fairness.groups.len() > GROUPS {
        writeln!(out, "… {} more groups in fairness.json", fairness.groups.len() - GROUPS)?;
    }
    if let Some(class) = &fairness.class {
        writeln!(out, "rates and gaps are those of answering {}, against all other classes", printable(class))?;
    }
    for remark in fairness.thresholds.iter().flat_map(Thresholds::remarks) {
        writeln!(out, "{}", printable(&remark))?;
    }
    if let Some(lowest) = fairness.lowest() {
        writeln!(out, "{}", printable(&lowest))?;
    }
    prices(out, fairness)?;
    if let Some(odds) = &fairness.equalized_odds_difference {
        writeln!(out, "equalised odds: difference {}", printable(&odds.in_words(cell)))?;
    }
    if let Some(class) = &fairness.answers_one_class {
        writeln!(out, "WARNING: the model answers `{}` for nearly everyone", printable(class))?;
    }
    Ok(())
}

/// Prints the errors of predicted numbers by group.
fn errors(out: &mut impl Write, numbers: &NumberReport) -> io::Result<()> {
    let [low, high] = numbers.range;
    writeln!(out, "numbers within [{low}, {high}]; predictions beyond are set to the nearer end")?;
    let heads = ["R²", "mean absolute error", "root mean squared error", "mean error"];
    writeln!(
        out,
        "{:<16} {:>8} {:>24} {:>24} {:>24} {:>24}",
        "group", "records", heads[0], heads[1], heads[2], heads[3]
    )?;
    let mut row = |figures: &NumberFigures| {
        let cells = [figures.r2, figures.mean_absolute_error, figures.root_mean_squared_error, figures.mean_error];
        let [r2, absolute, square, mean] = cells.map(figure_in_words);
        let (group, records) = (figures.group.to_string(), figures.records.max(0.0));
        let small = if figures.is_unknown() { "  too few records" } else { "" };
        let group = printable(&group);
        writeln!(out, "{group:<16} {records:>8.0} {r2:>24} {absolute:>24} {square:>24} {mean:>24}{small}")
    };
    row(&numbers.overall)?;
    // One group is all records.
    if numbers.groups.len() > 1 {
        numbers.groups.iter().take(GROUPS).try_for_each(&mut row)?;
    }
    if numbers.groups.len() > GROUPS {
        writeln!(out, "… {} more groups in fairness.json", numbers.groups.len() - GROUPS)?;
    }
    for remark in numbers.remarks().iter().take(GROUPS + 1) {
        writeln!(out, "{}", printable(remark))?;
    }
    if let Some(largest) = numbers.largest_error() {
        writeln!(out, "{}", printable(&largest))?;
    }
    if let Some(difference) = numbers.difference(figure_in_words) {
        writeln!(out, "mean error: largest difference {}", printable(&difference))?;
    }
    Ok(())
}

/// What three notions of fairness would change; the others are in the file.
fn prices(out: &mut impl Write, fairness: &FairnessReport) -> io::Result<()> {
    let of = |mode: Mode| {
        let price = fairness.prices().iter().find(|price| price.mode == mode)?;
        Some((price, price.figures.as_ref()?))
    };
    let Some((_, before)) = of(Mode::None) else { return Ok(()) };
    let number = |rate: Rate| rate.value.map_or("unknown".into(), |value| format!("{value:.3}"));
    for mode in [Mode::EqualizedOdds, Mode::DemographicParity, Mode::WorstGroup] {
        let Some((price, after)) = of(mode) else { continue };
        let (what, of_before, of_after) = match mode {
            Mode::WorstGroup => {
                ("least balanced accuracy", before.least_balanced_accuracy, after.least_balanced_accuracy)
            }
            _ => ("gap", before.gap(mode).known(), after.gap(mode).known()),
        };
        let name = mode.name();
        if price.thresholds.kept.is_some() {
            writeln!(out, "price of {name}: nothing moves, {what} {}", cell(of_before))?;
        } else {
            let (accuracy, now) = (number(before.accuracy), number(after.accuracy));
            let not = if price.is_borne_out(before) { "" } else { "; test records do not bear it out" };
            writeln!(
                out,
                "price of {name}: {what} {} to {}, accuracy {accuracy} to {now}{not}",
                number(of_before),
                cell(of_after)
            )?;
        }
    }
    if fairness.has_one_threshold() {
        writeln!(
            out,
            "one threshold for all groups: a smaller gap takes another fit, with weights or another method, which is charged \
             like the first"
        )?;
    }
    Ok(())
}

fn cell(rate: Rate) -> String {
    rate.value.map_or("unknown".into(), |value| format!("{value:.3} [{:.3}, {:.3}]", rate.low, rate.high))
}

/// The statement and the figures by group, for a program.
pub(super) fn report(out: &mut impl Write, verified: &Verified) -> io::Result<()> {
    answer::document(out, serde_json::json!({ "statement": verified.statement, "fairness": verified.fairness }))
}

pub(super) fn verified(out: &mut impl Write, verified: &Verified, json: bool) -> io::Result<()> {
    let is_confirmed = matches!(verified.opinion, Opinion::Confirmed(_));
    if json {
        let answer = serde_json::json!({
            "verified": true, "epsilon": verified.epsilon, "epsilon_rdp": verified.epsilon_rdp,
            "confirmed_in_200_bits": is_confirmed,
            "delta": verified.statement.delta, "mark": verified.statement.mark, "private": verified.statement.private,
            "files": verified.files, "with_ledger": verified.with_ledger,
            "signed": verified.signature != Signature::None,
            "signed_by": match &verified.signature { Signature::By(key) => Some(key), _ => None },
        });
        return answer::line(out, answer);
    }
    let statement = &verified.statement;
    writeln!(out, "{} files have their digests; the chain holds", verified.files)?;
    writeln!(
        out,
        "epsilon {} at delta {:e} from the events, {}",
        decimal(verified.epsilon, 3, Rounding::Up),
        statement.delta,
        statement.mark
    )?;
    writeln!(
        out,
        "a second accountant, whose bounds are looser, does not contradict it: {} by Rényi divergences",
        decimal(verified.epsilon_rdp, 3, Rounding::Up),
    )?;
    let opinion = if is_confirmed { "confirmed" } else { "neither confirmed nor refuted" };
    writeln!(out, "epsilon is {opinion} by other formulas in arithmetic of 200 bits")?;
    if !statement.private {
        writeln!(out, "not private: it was run with a seed")?;
    }
    match &verified.signature {
        Signature::By(key) => writeln!(out, "signed by the owner of the key {key}")?,
        Signature::NotCompared => {
            writeln!(out, "signed; without --public-key nothing says by whom: digests detect changes, not authors")?;
        }
        _ => writeln!(out, "not signed: digests detect changes, not authors")?,
    }
    if !verified.with_ledger {
        writeln!(out, "the private ledger was not there to compare")?;
    }
    Ok(())
}
