//! An entry of the registry of deployments of differential privacy, tier 3.

use std::path::Path;

use super::yaml::Yaml;
use super::{Exported, Source, or_missing};
use crate::error::Result;
use crate::statement::ReleaseStatement;

/// The revision of the registry's data whose schema the entry follows:
/// github.com/opendp/deployments-registry-data, July 2026.
const REVISION: &str = "3e9c812a924cf01d228f26f6c462c59c391c3f2a";
/// Fields that no release speaks of, and that an entry may lack.
const ONLY_A_PERSON_KNOWS: [(&str, &str); 5] = [
    ("data_product_sector", "Technology, Healthcare, Education, Government, Energy or Finance"),
    ("actors", "who may see the model and the records, and why they are trusted"),
    ("release_type_details", "whether more will be released about these records"),
    ("data_source_type_details", "whether more records will come, and when"),
    ("sources", "papers or pages about the deployment"),
];

/// An entry for the registry of deployments that OpenDP keeps, as YAML, from a run or its release.
/// `missing` has what the registry asks for and neither the release nor its `[card]` says.
///
/// # Errors
/// As [`verify`](crate::verify): a release that does not hold is not exported.
pub fn registry_entry(folder: &Path) -> Result<Exported> {
    let source = Source::read(folder)?;
    let statement = &source.statement;
    let mut missing = Vec::new();
    let mut ask = |text, field: &str, asks_for: &str| or_missing(text, field, asks_for, &mut missing);
    let name = source.card(|card| card.name.as_ref());
    let slug = name.as_deref().map(slug).filter(|slug| !slug.is_empty());
    let slug = ask(slug, "url_slug", "a short name for the address");
    let name = ask(name, "name", "the name of the model (card.name)");
    let curator = ask(source.card(|card| card.owner.as_ref()), "data_curators", "who publishes the model (card.owner)");
    let purpose = ask(source.card(|card| card.purpose.as_ref()), "intended_use", "what it is for (card.purpose)");
    let region = ask(None, "data_product_region", "the region that the data describe, or whose law applies");
    let date = ask(source.card(|card| card.date.as_ref()), "publication_date", "YYYY-MM-DD (card.date)");
    let author = ask(None, "registry_authors", "who fills out this entry");
    missing.extend(ONLY_A_PERSON_KNOWS.iter().map(|(field, asks_for)| format!("{field}: {asks_for}")));
    let (product, description) = product(statement);
    let basic = Yaml::Map(vec![
        ("name", Yaml::text(name)),
        ("data_curators", Yaml::Texts(vec![curator])),
        ("intended_use", Yaml::text(purpose)),
        ("data_product_type", Yaml::text(product)),
        ("data_product_region", Yaml::text(region)),
        ("description", Yaml::text(description)),
        ("publication_date", Yaml::text(date)),
    ]);
    let variant = Yaml::Map(vec![
        ("variant_name", Yaml::text("Approximate DP")),
        (
            "data_domain",
            Yaml::text("Tables whose rows fit the declared configuration; the number of records is public."),
        ),
        ("unprotected_quantities", Yaml::text(joined(&statement.not_covered))),
    ]);
    let loss = Yaml::Map(vec![
        ("privacy_unit", Yaml::text(statement.unit.what.clone())),
        (
            "privacy_unit_details",
            Yaml::text(format!(
                "Tables in one of which a unit's records are blank ({} neighbours); at most {} of its records were used.",
                statement.relation, statement.unit.max_records
            )),
        ),
        (
            "privacy_parameters",
            Yaml::Map(vec![("epsilon", Yaml::Number(statement.epsilon)), ("delta", Yaml::Number(statement.delta))]),
        ),
        ("privacy_parameters_details", Yaml::text(parameters(&source))),
    ]);
    let deployment = Yaml::Map(vec![
        ("model_name", Yaml::text("Central")),
        ("model_name_details", Yaml::text(statement.trust.clone())),
        ("release_type", Yaml::text("One release")),
        ("data_source_type", Yaml::text("Static")),
        ("access_type", Yaml::text("Non-interactive")),
        ("access_type_details", Yaml::text("Nobody asks the records: what is released is in the files of one folder.")),
    ]);
    let accounting = Yaml::Map(vec![
        (
            "post_processing",
            Yaml::text("All that is released follows from the noisy releases and public inputs alone."),
        ),
        ("composition", Yaml::text(format!("{} releases, by {}.", statement.events.len(), statement.accountant))),
    ]);
    let implementation = Yaml::Map(vec![
        ("preprocessing_and_hyperparameter_tuning", Yaml::text(statement.tuning.clone())),
        ("mechanisms", Yaml::text(format!("Noise: {} Sampling: {}.", statement.noise, statement.sampling))),
        ("justification", Yaml::text(format!("Method: {}. {}", statement.method, statement.delta_reason))),
    ]);
    let mut notes = vec![format!("Out of scope: {}", joined(&statement.out_of_scope))];
    notes.extend(source.card(|card| card.limits.as_ref()).map(|limits| format!("Limits: {limits}")));
    let administrative =
        Yaml::Map(vec![("notes", Yaml::text(notes.join("\n"))), ("registry_authors", Yaml::Texts(vec![author]))]);
    let entry = Yaml::Map(vec![
        ("url_slug", Yaml::text(slug)),
        ("status", Yaml::text("Draft")),
        ("tier", Yaml::Number(3.0)),
        (
            "deployment",
            Yaml::Map(vec![
                ("basic", basic),
                ("dp_variant", variant),
                ("privacy_loss", loss),
                ("deployment_model", deployment),
                ("accounting", accounting),
                ("implementation", implementation),
                ("administrative", administrative),
            ]),
        ),
    ]);
    let mut text = String::new();
    if let Some(line) = source.warning() {
        text += &format!("# {line}\n");
    }
    text += &format!("# By the schema of github.com/opendp/deployments-registry-data, revision {REVISION}.\n");
    for line in &missing {
        text += &format!("# missing: {line}\n");
    }
    entry.write(0, &mut text);
    Ok(Exported { text, missing })
}

/// The kind of product, and what it is.
fn product(statement: &ReleaseStatement) -> (&'static str, String) {
    let version = &statement.program.version;
    match &statement.about {
        None => ("Machine learning model", format!("Model: {}. Trained by fairdp {version}.", statement.model)),
        Some(release) => {
            let what = joined(&statement.covers);
            let figures = format!("By fairdp {version}: {what}, of the release whose statement has sha256 {release}.");
            ("Summary statistics", figures)
        }
    }
}

fn joined(texts: &[String]) -> String {
    if texts.is_empty() { "none".to_owned() } else { texts.join("; ") }
}

/// ε with its mark, and what an attacker can do.
fn parameters(source: &Source) -> String {
    let statement = &source.statement;
    let mut text = source.warning().map_or_else(String::new, |warning| format!("{warning} "));
    text += &format!("ε is an upper bound, {}", statement.mark);
    if !statement.given.is_empty() {
        text += &format!(", given {}", statement.given.join("; "));
    }
    if let Some(mu) = statement.attacks.gaussian_mu {
        text += &format!("; as private as a Gaussian with μ = {mu}");
    }
    text + "."
}

/// A name as a part of an address.
fn slug(name: &str) -> String {
    let letters =
        name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' });
    let parts: String = letters.collect();
    parts.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::slug;

    #[test]
    fn a_name_becomes_a_part_of_an_address() {
        assert_eq!(slug("Income over 50,000 (Adult)"), "income-over-50-000-adult");
        assert_eq!(slug("—"), "");
    }
}
