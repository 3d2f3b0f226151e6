//! A page about a model: its decision, its groups, their gaps and what a smaller one costs, then the curves.
//! Drawn from what is released alone.

mod curves;
mod plots;

use std::fmt::Write as _;

use self::curves::curves;
use crate::coins::IN_WORDS;
use crate::config::{CardEntry, Decision};
use crate::curves::Curves;
use crate::fairness::{FairnessReport, GroupRates, Rate};
use crate::model::FittedModel;
use crate::numbers::{NumberFigures, NumberReport, figure_in_words};
use crate::price::{Price, PriceFigures};
use crate::printable::{printable, rounded_up};
use crate::statement::{ReleaseStatement, capitalised};
use crate::thresholds::Thresholds;

const STYLE: &str = include_str!("style.css");

/// The page.
pub(crate) fn html(
    model: &FittedModel,
    drawn: &Curves,
    statement: &ReleaseStatement,
    fairness: &FairnessReport,
) -> String {
    let card = statement.card.clone().unwrap_or_default();
    let name = card.name.as_deref().map_or_else(|| "Model card".to_owned(), escaped);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width,initial-scale=1\"><title>{name}</title><style>{STYLE}</style></head><body>\n<h1>{name}</h1>\n"
    );
    about(&mut page, &card, model);
    fixed(&mut page, statement);
    person(&mut page, statement);
    if let Some(numbers) = &fairness.numbers {
        errors(&mut page, numbers);
    } else {
        answer(&mut page, fairness);
        groups(&mut page, fairness);
    }
    prices(&mut page, fairness);
    roc_and_calibration(&mut page, fairness);
    curves(&mut page, model, drawn);
    terms(&mut page, model, statement, fairness);
    page.push_str("</body></html>\n");
    page
}

/// What was there before any record was seen.
fn fixed(page: &mut String, statement: &ReleaseStatement) {
    if let Some(start) = &statement.started_from {
        let _ = writeln!(page, "<p>Training started from {}.</p>", escaped(&start.in_words()));
    }
    if !statement.fixed.is_empty() {
        let _ = writeln!(page, "<p>Fixed beforehand, at no ε: {}.</p>", escaped(&statement.fixed.join("; ")));
    }
}

/// Who made it, and what for.
fn about(page: &mut String, card: &CardEntry, model: &FittedModel) {
    let schema = model.encoding().schema();
    let n_columns = model.encoding().blocks().len() - 1;
    let column = escaped(&schema.label.column);
    let predicts = match model.number() {
        Some(range) => format!(
            "Predicts <b>{column}</b>, a number from {} to {}, from {n_columns} columns. Predictions beyond are set to the nearer \
             end",
            range.low, range.high
        ),
        None => format!(
            "Predicts <b>{column}</b> ({}) from {n_columns} columns. It answers {}",
            escaped(&schema.label.classes.join(", ")),
            decision_in_words(model)
        ),
    };
    let _ = writeln!(page, "<p>{predicts}.</p>");
    let entries = [("purpose", &card.purpose), ("limits", &card.limits), ("owner", &card.owner), ("date", &card.date)];
    if entries.iter().any(|(_, text)| text.is_some()) {
        page.push_str("<dl>");
        for (name, text) in entries {
            if let Some(text) = text {
                let _ = write!(page, "<dt>{name}</dt><dd>{}</dd>", escaped(text));
            }
        }
        page.push_str("</dl>\n");
    }
}

/// How probabilities become an answer.
fn decision_in_words(model: &FittedModel) -> String {
    let decision = match model.pipeline().decision {
        Decision::Accuracy => "the most probable class",
        Decision::Compromise => "the class with the largest probability over the root of its share",
        Decision::Balanced => "the class whose probability exceeds its share most",
    };
    let by_group = if model.pipeline().coins.is_some() {
        return format!("{decision}; {IN_WORDS}. <code>model.onnx</code> cannot toss it, and has probabilities alone");
    } else if model.needs_groups() {
        ", with a threshold of each group"
    } else {
        ", the same for every group"
    };
    format!("{decision}{by_group}")
}

/// How large the errors of predicted numbers are, and for whom.
fn errors(page: &mut String, numbers: &NumberReport) {
    let overall = &numbers.overall;
    let _ = writeln!(
        page,
        "<p>R² {}, mean absolute error {} on records that were not trained on.</p>\n<h2>Groups</h2>",
        figure_in_words(overall.r2),
        figure_in_words(overall.mean_absolute_error)
    );
    for remark in numbers.remarks() {
        let _ = writeln!(page, "<p>{}.</p>", escaped(&capitalised(&remark)));
    }
    if let Some(largest) = numbers.largest_error() {
        let _ = writeln!(page, "<p>{}.</p>", escaped(&capitalised(&largest)));
    }
    page.push_str(
        "<div class=\"scroll\"><table><tr><th>group</th><th>records</th><th>R²</th><th>mean absolute error</th><th>root mean \
         squared error</th><th>mean error</th></tr>\n",
    );
    let row = |figures: &NumberFigures| {
        let cells = [figures.r2, figures.mean_absolute_error, figures.root_mean_squared_error, figures.mean_error];
        let cells = cells.map(|figure| small(&figure_in_words(figure))).join("</td><td>");
        let note = if figures.is_unknown() { " (too few records)" } else { "" };
        let name = escaped(&figures.group.to_string());
        format!("<tr><td>{name}{note}</td><td>{:.0}</td><td>{cells}</td></tr>\n", figures.records.max(0.0))
    };
    page.push_str(&row(overall));
    if numbers.groups.len() > 1 {
        numbers.groups.iter().for_each(|group| page.push_str(&row(group)));
    }
    page.push_str("</table></div>\n");
    if let Some(difference) = numbers.difference(figure_in_words) {
        let _ = writeln!(
            page,
            "<table class=\"gaps\"><tr><th>between groups</th><th></th></tr>\n<tr><td>mean error: largest difference</td><td>{}</td>\
             </tr>\n</table>",
            escaped(&difference)
        );
    }
    page.push_str(
        "<p class=\"soft\">95 % intervals of sampling and of the noise in brackets. A mean error above 0 means predictions that \
         are too high.</p>\n",
    );
}

/// What the guarantee means for a person.
fn person(page: &mut String, statement: &ReleaseStatement) {
    if !statement.private {
        page.push_str("<p class=\"warn\"><b>Not private: run with a seed.</b></p>\n");
    }
    if !statement.given.is_empty() {
        let _ = writeln!(page, "<p class=\"warn\"><b>Not covered:</b> {}.</p>", escaped(&statement.given.join("; ")));
    }
    let unit = if statement.unit.max_records == 1 { "record" } else { "unit's records" };
    let guess = statement.attacks.gaussian_mu.map_or_else(String::new, |mu| {
        let right = 0.5 * libm::erfc(-0.5 * mu / std::f64::consts::SQRT_2);
        format!(
            " Whoever guesses from this page and the model whether somebody's {unit} was used, knowing everything else, is right \
             at most {:.0} times in 100; a coin is right 50 times.",
            (100.0 * right).ceil()
        )
    });
    let _ = writeln!(
        page,
        "<p>Trained on {} records with <a href=\"#terms\">differential privacy</a>, ε = {}.{guess}</p>",
        statement.records.get("training").copied().unwrap_or_default(),
        rounded_up(statement.epsilon),
    );
    if !statement.epsilon_of_groups.is_empty() {
        let _ = writeln!(
            page,
            "<p>Groups were drawn at different rates. ε of a record by group: {}.</p>",
            escaped(&statement.groups_in_words())
        );
    }
}

/// How good the model is, for whom it is worst, and what to beware of.
fn answer(page: &mut String, fairness: &FairnessReport) {
    let Some(overall) = &fairness.overall else {
        page.push_str("<p>Not tested: all records were trained on.</p>\n");
        return;
    };
    let auc = overall.auc.map_or(String::new(), |auc| format!(", area under the ROC curve {}", cell(auc)));
    let _ = writeln!(
        page,
        "<p>Accuracy {}, balanced accuracy {}{auc} on records that were not trained on.</p>",
        cell(overall.accuracy),
        cell(overall.balanced_accuracy)
    );
    if let Some(class) = &fairness.answers_one_class {
        let _ = writeln!(
            page,
            "<p class=\"warn\"><b>Warning: the model answers {} for nearly everyone.</b></p>",
            escaped(class)
        );
    }
}

fn groups(page: &mut String, fairness: &FairnessReport) {
    let Some(overall) = &fairness.overall else { return };
    let has_groups = fairness.groups.len() > 1;
    page.push_str("<h2>Groups</h2>\n");
    let mut say = |text: &str| {
        let _ = writeln!(page, "<p>{}.</p>", escaped(&capitalised(text)));
    };
    if let Some(class) = &fairness.class {
        say(&format!("rates and gaps are those of answering {class}, against all other classes"));
    }
    if let Some(lowest) = fairness.lowest() {
        say(&lowest);
    }
    fairness.thresholds.iter().flat_map(Thresholds::remarks).for_each(|remark| say(&remark));
    if has_groups {
        let _ = writeln!(
            page,
            "<figure class=\"wide\"><figcaption>Balanced accuracy with 95 % intervals; groups that may be served worst are \
             marked.</figcaption>{}</figure>",
            plots::dots(fairness)
        );
    }
    table_of_groups(page, overall, if has_groups { &fairness.groups } else { &[] });
    for column in &fairness.columns {
        let _ = writeln!(page, "<h3>{}</h3>", escaped(&column.column));
        table_of_groups(page, overall, &column.groups);
    }
    let _ = writeln!(
        page,
        "<p class=\"soft\">95 % intervals of sampling and of the noise (standard deviation {:.1} of a number of records) in \
         brackets.</p>",
        fairness.noise_std
    );
    gaps(page, fairness);
}

fn table_of_groups(page: &mut String, overall: &GroupRates, groups: &[GroupRates]) {
    let is_binary = overall.true_positive_rate.is_some();
    page.push_str(
        "<div class=\"scroll\"><table><tr><th>group</th><th>records</th><th>accuracy</th><th>balanced accuracy</th>",
    );
    page.push_str(if is_binary {
        "<th>true-positive rate</th><th>false-positive rate</th><th>answers of the positive class</th></tr>\n"
    } else {
        "</tr>\n"
    });
    let row = |rates: &GroupRates| {
        let cells = [
            Some(rates.accuracy),
            Some(rates.balanced_accuracy),
            rates.true_positive_rate,
            rates.false_positive_rate,
            rates.selection_rate,
        ];
        let cells: Vec<String> = cells.iter().flatten().map(|rate| small(&cell(*rate))).collect();
        let cells = cells.join("</td><td>");
        let name = escaped(&rates.group.to_string());
        let small = rates.shortage().map_or(String::new(), |shortage| format!(" ({})", escaped(&shortage)));
        format!("<tr><td>{name}{small}</td><td>{:.0}</td><td>{cells}</td></tr>\n", rates.records.max(0.0))
    };
    page.push_str(&row(overall));
    for group in groups {
        page.push_str(&row(group));
    }
    page.push_str("</table></div>\n");
}

/// The largest differences, and the least ratio.
fn gaps(page: &mut String, fairness: &FairnessReport) {
    let gaps = [
        ("accuracy: largest difference", &fairness.accuracy_difference, true),
        ("answers of the positive class: largest difference", &fairness.demographic_parity_difference, true),
        ("answers of the positive class: least ratio (four fifths: 80 %)", &fairness.demographic_parity_ratio, false),
        ("true-positive rate: largest difference", &fairness.equal_opportunity_difference, true),
        ("equalised odds: largest difference", &fairness.equalized_odds_difference, true),
    ];
    if gaps.iter().all(|(_, gap, _)| gap.is_none()) {
        return;
    }
    page.push_str("<table class=\"gaps\"><tr><th>between groups</th><th></th></tr>\n");
    for (name, gap, is_difference) in gaps {
        if let Some(gap) = gap {
            let text = gap.in_words(if is_difference { points } else { cell });
            let _ = writeln!(page, "<tr><td>{name}</td><td>{}</td></tr>", escaped(&text));
        }
    }
    page.push_str("</table>\n");
}

/// What every notion of fairness would change.
fn prices(page: &mut String, fairness: &FairnessReport) {
    if fairness.price_list.iter().all(|price| price.figures.is_none()) {
        return;
    }
    page.push_str(
        "<h2>What fairness costs</h2>\n<p>Each line is another set of thresholds for the same model; <code>fairdp fairness</code> \
         makes a release of it at no further ε.</p>\n<div class=\"scroll\"><table><tr><th>mode</th><th>accuracy</th><th>balanced \
         accuracy</th><th>least of a group</th><th>gap of equalised odds</th><th>ratio of positive answers</th></tr>\n",
    );
    let before = fairness.price_list.iter().find_map(|price| price.figures.as_ref());
    for price in &fairness.price_list {
        let Price { mode, thresholds, figures: Some(figures) } = price else { continue };
        let PriceFigures { accuracy, balanced_accuracy, least_balanced_accuracy, .. } = figures;
        let note = if *mode == fair_decisions::Mode::None {
            ""
        } else if !thresholds.has_moved() {
            ": nothing moves"
        } else if before.is_some_and(|before| !price.is_borne_out(before)) {
            ": test records do not bear it out"
        } else {
            ""
        };
        let _ = writeln!(
            page,
            "<tr><td>{}{note}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            mode.name(),
            small(&cell(*accuracy)),
            small(&cell(*balanced_accuracy)),
            small(&cell(*least_balanced_accuracy)),
            small(&points(figures.equalized_odds_difference.known())),
            small(&cell(figures.demographic_parity_ratio.known())),
        );
    }
    page.push_str("</table></div>\n");
    let kept = fairness.price_list.iter().filter_map(|price| Some((price.mode.name(), price.thresholds.reason()?)));
    for (mode, reason) in kept {
        let _ = writeln!(page, "<p class=\"soft\">{mode} moves nothing: {}.</p>", escaped(&reason));
    }
    one_threshold(page, fairness);
    if fairness.groups.iter().any(|group| !group.too_few.is_empty()) {
        page.push_str("<p class=\"soft\">Gaps and ratios are those of groups whose rates are known.</p>\n");
    }
}

/// What a threshold that is the same for all groups would change.
fn one_threshold(page: &mut String, fairness: &FairnessReport) {
    let list = &fairness.price_list_of_one_threshold;
    let Some(before) = list.iter().find_map(|price| price.figures.as_ref()) else { return };
    let moved = list.iter().filter(|price| price.thresholds.has_moved() && price.is_borne_out(before));
    let lines: Vec<String> = moved
        .filter_map(|price| {
            let figures = price.figures.as_ref()?;
            let (what, of_before, of_after) = match price.mode {
                fair_decisions::Mode::WorstGroup => (
                    "least balanced accuracy",
                    cell(before.least_balanced_accuracy),
                    cell(figures.least_balanced_accuracy),
                ),
                mode => ("gap", points(before.gap(mode).known()), points(figures.gap(mode).known())),
            };
            let (name, accuracy) = (price.mode.name(), cell(figures.accuracy));
            Some(format!("{name}: {what} {of_before} to {of_after}, accuracy {accuracy}"))
        })
        .collect();
    let reached = if lines.is_empty() { "no mode gains".to_owned() } else { lines.join("; ") };
    let _ = writeln!(
        page,
        "<p>Where a decision may not depend on the group, one other threshold for all is left: {reached}. A smaller gap then \
         takes another fit, with weights or another method, which is charged like the first.</p>"
    );
}

fn roc_and_calibration(page: &mut String, fairness: &FairnessReport) {
    let plots = [
        ("Accuracy over the gap of equalised odds, by max_loss", plots::price(&fairness.price_curve)),
        ("ROC curves, with 95 % intervals of their areas", plots::roc(fairness)),
        ("How often a probability comes true", plots::calibration(fairness)),
    ];
    if plots.iter().all(|(_, plot)| plot.is_none()) {
        return;
    }
    page.push_str("<h2>Trade-off, ROC curves, calibration</h2>\n<div class=\"plots\">");
    for (caption, plot) in plots {
        if let Some(plot) = plot {
            let _ = writeln!(page, "<figure><figcaption>{caption}</figcaption>{plot}</figure>");
        }
    }
    page.push_str("</div>\n");
}

/// The guarantee in its terms, and the reasons for defaults.
fn terms(page: &mut String, model: &FittedModel, statement: &ReleaseStatement, fairness: &FairnessReport) {
    let _ = writeln!(
        page,
        "<h2 id=\"terms\">Terms</h2>\n<dl><dt>guarantee</dt><dd>({}, {:e})-differentially private ({}): no record changes the \
         probability of any outcome by more than a factor of e^ε, but for a probability of δ. Releases, accountants and \
         conditions are in <a href=\"statement.md\">statement.md</a>.</dd><dt>unit</dt><dd>{}</dd>",
        rounded_up(statement.epsilon),
        statement.delta,
        statement.mark,
        escaped(&statement.unit.what),
    );
    let positive = match model.classes() {
        [_, positive] => Some(positive),
        _ => fairness.class.as_ref(),
    };
    if let Some(positive) = positive.map(|class| escaped(class)) {
        let _ = writeln!(
            page,
            "<dt>true-positive rate</dt><dd>of those who are {positive}, the share that is answered so</dd>\
             <dt>false-positive rate</dt><dd>of all others, the share that is answered {positive}</dd>\
             <dt>equalised odds</dt><dd>both rates are the same in all groups; its gap is the larger of their differences</dd>\
             <dt>balanced accuracy</dt><dd>the mean of the shares of each class that are answered right</dd>"
        );
    }
    let _ = writeln!(
        page,
        "<dt>model</dt><dd>{}</dd><dt>method</dt><dd>{}</dd></dl>",
        escaped(&statement.model),
        escaped(&statement.method)
    );
}

fn cell(rate: Rate) -> String {
    match rate.value {
        Some(value) => format!("{:.1} % [{:.1}, {:.1}]", 100.0 * value, 100.0 * rate.low, 100.0 * rate.high),
        None => "unknown".into(),
    }
}

/// A figure of a table, its interval in small letters.
fn small(figure: &str) -> String {
    match figure.split_once(" [") {
        Some((value, interval)) => format!("{value} <small>[{interval}</small>"),
        None => figure.to_owned(),
    }
}

fn points(difference: Rate) -> String {
    match difference.value {
        Some(value) => {
            format!("{:.1} points [{:.1}, {:.1}]", 100.0 * value, 100.0 * difference.low, 100.0 * difference.high)
        }
        None => "unknown".into(),
    }
}

fn escaped(text: &str) -> String {
    printable(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
