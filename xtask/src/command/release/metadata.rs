//! One version everywhere, complete manifests, and workflows that are right.

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use serde::Deserialize;

use super::summary::Summary;
use super::tools::{Tools, output};
use super::{REPOSITORY, VERSION, workflows};

/// What Cargo says of the workspace.
#[derive(Deserialize)]
struct Workspace {
    packages: Vec<Package>,
}

/// A crate of the workspace. Absent means that nothing is said in its manifest.
#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    /// Registries to publish to: any if nothing is said.
    publish: Option<Vec<String>>,
    description: Option<String>,
    license: Option<String>,
    repository: Option<String>,
    readme: Option<String>,
    rust_version: Option<String>,
    keywords: Vec<String>,
    categories: Vec<String>,
}

impl Package {
    fn is_published(&self) -> bool {
        self.publish.as_ref().is_none_or(|registries| !registries.is_empty())
    }

    /// Fields of a manifest that a published crate must have, and has not.
    fn missing(&self) -> Vec<&'static str> {
        let fields = [
            ("description", self.description.is_some()),
            ("license", self.license.is_some()),
            ("repository", self.repository.is_some()),
            ("readme", self.readme.is_some()),
            ("rust-version", self.rust_version.is_some()),
            ("keywords", !self.keywords.is_empty()),
            ("categories", !self.categories.is_empty()),
        ];
        fields.into_iter().filter(|(_, is_there)| !is_there).map(|(field, _)| field).collect()
    }
}

/// Checks what is said of the project. A place holder for its address is an error unless this is a
/// dry run.
///
/// # Errors
/// If something is missing, differs, or is not right.
pub(super) fn check(root: &Path, tools: &Tools, is_dry_run: bool, summary: &mut Summary) -> anyhow::Result<()> {
    let version = VERSION;
    let told = output(tools.cargo().args(["metadata", "--no-deps", "--format-version=1"]))?;
    let workspace: Workspace = serde_json::from_str(&told).context("what cargo metadata printed")?;
    let published: Vec<_> = workspace.packages.iter().filter(|package| package.is_published()).collect();
    for package in &published {
        let missing = package.missing();
        ensure!(missing.is_empty(), "{}: its manifest lacks {}", package.name, missing.join(", "));
        ensure!(package.version == version, "{}: version {}, expected {version}", package.name, package.version);
    }
    summary.done(format_args!("metadata: {} crates of version {version} are complete", published.len()))?;

    let text = |name: &str| fs::read_to_string(root.join(name)).with_context(|| format!("reading {name}"));
    let changes = text("CHANGELOG.md")?;
    let heading = version.strip_suffix(".0").unwrap_or(version);
    ensure!(
        changes.lines().any(|line| line.starts_with(&format!("## {heading}"))),
        "CHANGELOG.md: no heading `## {heading}`"
    );
    let citation = text("CITATION.cff")?;
    for line in [format!("version: {version}"), format!("repository-code: \"{REPOSITORY}\"")] {
        ensure!(citation.lines().any(|found| found == line), "CITATION.cff: no line `{line}`");
    }
    if is_place_holder(REPOSITORY) {
        let advice = format!("repository = {REPOSITORY:?} in Cargo.toml is a place holder (RFC 2606)");
        ensure!(is_dry_run, "{advice}: expected the address at which this project is published");
        summary.skipped("the address of the project", format_args!("{advice}; its owner sets it before publishing"))?;
    }
    workflows::check(root, tools, summary)
}

/// Whether an address is of the name that is reserved for addresses that lead nowhere.
fn is_place_holder(address: &str) -> bool {
    let host = address.split("://").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
    host == "invalid" || host.ends_with(".invalid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_leads_nowhere_is_known() {
        assert!(is_place_holder("https://fairdp.invalid/fairdp"));
        assert!(!is_place_holder("https://example.org/invalid"));
        assert!(!is_place_holder(""));
    }
}
