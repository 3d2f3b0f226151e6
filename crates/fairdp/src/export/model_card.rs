//! A model card as model hubs show it: a header in YAML, then Markdown.

use std::path::Path;

use serde_json::Value;

use super::{Exported, Source, or_missing};
use crate::error::{FairdpError, Result};
use crate::printable::rounded_up;

/// Figures by group, with the words for them.
const FIGURES: [(&str, &str); 9] = [
    ("accuracy", "accuracy"),
    ("balanced_accuracy", "balanced accuracy"),
    ("true_positive_rate", "true-positive rate"),
    ("false_positive_rate", "false-positive rate"),
    ("auc", "AUC"),
    ("r2", "R²"),
    ("mean_absolute_error", "mean absolute error"),
    ("root_mean_squared_error", "root mean squared error"),
    ("mean_error", "mean error"),
];

/// A model card with the header that Hugging Face reads, from a run or its release. `missing` has
/// what the header or the page asks for and nobody has said.
///
/// # Errors
/// As [`verify`](crate::verify): a release that does not hold is not exported; [`FairdpError::File`] for a
/// release of figures, which has no model.
pub fn model_card(folder: &Path) -> Result<Exported> {
    let source = Source::read(folder)?;
    let statement = &source.statement;
    if statement.about.is_some() {
        return Err(FairdpError::file(folder, "has figures about new records, and no model"));
    }
    let mut missing = vec!["license: of the model, in the header".to_owned()];
    let mut ask = |text, field: &str, asks_for: &str| or_missing(text, field, asks_for, &mut missing);
    let name = ask(source.card(|card| card.name.as_ref()), "name", "the name of the model (card.name)");
    let purpose = ask(source.card(|card| card.purpose.as_ref()), "purpose", "what the model is for (card.purpose)");
    let limits = ask(source.card(|card| card.limits.as_ref()), "limits", "what it is not for (card.limits)");
    let owner = ask(source.card(|card| card.owner.as_ref()), "owner", "who answers for it (card.owner)");

    // Of a number that is predicted the figures have a place of their own.
    let (task, tag, figures) = match source.fairness.get("numbers") {
        Some(numbers) => ("tabular-regression", "tabular", numbers),
        None if source.is_of_images => ("image-classification", "image", &source.fairness),
        None => ("tabular-classification", "tabular", &source.fairness),
    };
    let mut text = format!(
        "---\nlibrary_name: fairdp\npipeline_tag: {task}\ntags:\n- differential-privacy\n- fairness\n- {tag}\n---\n\n# {name}\n\n"
    );
    if let Some(warning) = source.warning() {
        text += &format!("**{warning}**\n\n");
    }
    let epsilon = rounded_up(statement.epsilon);
    text += &format!(
        "({epsilon}, {:e})-differentially private, {}. Unit of privacy: {}.\n\n## Intended use\n\n{purpose}\n\n\
         ## Out of scope\n\n{limits}\n\n## Who answers for it\n\n{owner}\n\n## Quality by group\n\n",
        statement.delta, statement.mark, statement.unit.what
    );
    text += &groups(figures);
    text += &format!(
        "\n{}\n\n## Training\n\n{}\n\n{}\n\n## Privacy\n\nNot covered by ε: {}.\n\nOut of scope: {}.\n\n\
         `statement.json` has every release of private data; `fairdp verify` checks it.\n",
        statement.test_figures,
        statement.model,
        statement.method,
        list(&statement.not_covered),
        list(&statement.out_of_scope)
    );
    Ok(Exported { text, missing })
}

fn list(texts: &[String]) -> String {
    if texts.is_empty() { "nothing".to_owned() } else { texts.join("; ") }
}

/// A table of the groups' figures with their intervals.
fn groups(fairness: &Value) -> String {
    let overall = &fairness["overall"];
    let named = FIGURES.iter().filter(|(key, _)| overall.get(*key).is_some()).collect::<Vec<_>>();
    let mut text = "| group |".to_owned();
    for (_, words) in &named {
        text += &format!(" {words} |");
    }
    text += &format!("\n|---|{}\n", "---|".repeat(named.len()));
    // Where no column makes groups, the one group has everybody.
    let groups = fairness["groups"].as_array().into_iter().flatten().filter(|row| row["group"] != overall["group"]);
    let rows = std::iter::once(overall).chain(groups);
    for row in rows {
        text += &format!("| {} |", row["group"].as_str().unwrap_or_default().replace('|', "\\|"));
        for (key, _) in &named {
            text += &format!(" {} |", figure(&row[*key]));
        }
        text.push('\n');
    }
    text + "\n95 % intervals of sampling and of the noise in brackets.\n"
}

fn figure(figure: &Value) -> String {
    match (figure["value"].as_f64(), figure["low"].as_f64(), figure["high"].as_f64()) {
        (Some(value), Some(low), Some(high)) => format!("{value:.3} [{low:.3}, {high:.3}]"),
        _ => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_known_is_called_so() {
        let known = json!({ "value": 0.5, "low": 0.25, "high": 0.75 });
        let fairness = json!({
            "overall": { "group": "(all)", "accuracy": known },
            "groups": [{ "group": "a|b", "accuracy": { "value": null, "low": 0.0, "high": 1.0 } }],
        });
        let table = groups(&fairness);
        assert!(table.contains("| (all) | 0.500 [0.250, 0.750] |\n"), "{table}");
        assert!(table.contains("| a\\|b | unknown |\n"), "{table}");
    }
}
