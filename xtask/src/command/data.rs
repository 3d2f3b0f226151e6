//! `cargo xtask data`: what is known of the data sets, what is at hand, and how to get it.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use dp_data::Manifest;
use dp_data::catalogue::{DatasetName, Summary};

use crate::run::data_source::DataSource;

/// Arguments of `cargo xtask data`.
#[derive(Debug, Args)]
pub(crate) struct DataArgs {
    #[command(subcommand)]
    command: DataCommand,
}

#[derive(Debug, Subcommand)]
enum DataCommand {
    /// What is known of a data set: source, licence, files, columns, how to get it
    Info {
        /// Data sets (all if none is named)
        names: Vec<DatasetName>,
    },
    /// What is at hand, with counts by group; downloads nothing
    Check {
        /// Data sets (all if none is named)
        names: Vec<DatasetName>,
        /// As JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        source: DataSource,
    },
    /// Download into the cache what may be downloaded freely
    Fetch {
        /// Data sets (all if none is named)
        names: Vec<DatasetName>,
        #[command(flatten)]
        source: DataSource,
    },
    /// Write adult or dutch to standard output as CSV with a header, a table like one's own
    /// (`fairdp --help`)
    Export {
        /// The data set
        name: DatasetName,
        #[command(flatten)]
        source: DataSource,
    },
    /// Write the generated stand-in in the published format
    Synth {
        /// The data set
        name: DatasetName,
        /// Folder to write to
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// Another seed gives other records
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
}

/// Runs the command.
pub(crate) fn run(args: &DataArgs) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match &args.command {
        DataCommand::Info { names } => {
            for name in or_all(names) {
                write!(out, "{}", info(&name.manifest()?))?;
            }
        }
        DataCommand::Check { names, json, source } => {
            let mut locator = source.locator();
            locator.offline = true;
            let summaries: Vec<Summary> = or_all(names)
                .iter()
                .map(|name| name.summary(&locator).unwrap_or_else(|error| name.unusable(&error)))
                .collect();
            if *json {
                writeln!(out, "{}", check_json(&summaries)?)?;
            } else {
                write!(out, "{}", check_table(&summaries))?;
            }
            let broken: Vec<_> = summaries.iter().filter(|summary| summary.sha256_ok == Some(false)).collect();
            if let Some(first) = broken.first() {
                anyhow::bail!(
                    "{} of {} data sets are broken, the first: {}",
                    broken.len(),
                    summaries.len(),
                    first.name
                );
            }
        }
        DataCommand::Fetch { names, source } => fetch(names, source, &mut out)?,
        DataCommand::Export { name, source } => {
            let (n, provenance) = name.export(&source.locator(), &mut std::io::BufWriter::new(&mut out))?;
            let mark = if provenance.synthetic { " (SYNTHETIC)" } else { "" };
            eprintln!("{n} records of {name}{mark}: {}", provenance.source);
        }
        DataCommand::Synth { name, out: folder, seed } => {
            for path in name.write_synthetic(folder, *seed)? {
                writeln!(out, "{} (SYNTHETIC)", path.display())?;
            }
        }
    }
    Ok(())
}

fn or_all(names: &[DatasetName]) -> Vec<DatasetName> {
    if names.is_empty() { DatasetName::all().collect() } else { names.to_vec() }
}

/// Fetches these data sets, or all that may be fetched if none is named.
fn fetch(names: &[DatasetName], source: &DataSource, out: &mut impl std::io::Write) -> anyhow::Result<()> {
    let mut locator = source.locator();
    locator.require_real = true;
    let mut failed = Vec::new();
    for name in &or_all(names) {
        let manifest = name.manifest()?;
        if !manifest.is_downloadable() {
            writeln!(out, "{name}: cannot be downloaded freely. {}", manifest.obtain)?;
            if !names.is_empty() {
                failed.push(name.name());
            }
            continue;
        }
        match locator.locate(&manifest) {
            Ok(_) => writeln!(out, "{name}: present, checksums verified")?,
            Err(error) => {
                writeln!(out, "{error}")?;
                failed.push(name.name());
            }
        }
    }
    anyhow::ensure!(failed.is_empty(), "not fetched: {}", failed.join(", "));
    Ok(())
}

fn info(manifest: &Manifest) -> String {
    let Manifest { name, title, source, licence, redistributable, records, obtain, files, tables, columns } = manifest;
    let mut text = format!(
        "{name}: {title}\n  source    {source}\n  licence   {licence}\n  pass on   {}\n  records   {records}\n  obtain    \
         {obtain}\n",
        if *redistributable { "permitted" } else { "not permitted" }
    );
    // Writing to a `String` cannot fail.
    for file in files {
        let _ = writeln!(text, "  file      {}, {} bytes, sha256 {}", file.name, file.bytes, file.sha256);
    }
    for table in tables {
        let _ = writeln!(text, "  table     {}: {} records", table.name, table.records);
    }
    for column in columns {
        let kind = column.values.as_ref().map_or("number".to_owned(), |values| format!("{} categories", values.len()));
        let _ = writeln!(text, "  column    {}: {kind}", column.name);
    }
    text.push('\n');
    text
}

fn check_table(summaries: &[Summary]) -> String {
    let mut text = format!("{:<14} {:<9} {:>8} {:>7}  groups\n", "data set", "data", "rows", "inputs");
    for summary in summaries {
        let data = match (summary.sha256_ok, summary.synthetic) {
            (Some(false), _) => "BROKEN",
            (_, true) => "SYNTHETIC",
            _ => "real",
        };
        let groups: Vec<_> = summary.groups.iter().map(|(group, n)| format!("{group} {n}")).collect();
        // Writing to a `String` cannot fail.
        let _ = writeln!(
            text,
            "{:<14} {data:<9} {:>8} {:>7}  {}",
            summary.name,
            summary.rows,
            summary.inputs,
            groups.join(", ")
        );
    }
    // Why something else is used than the published files.
    for summary in summaries.iter().filter(|summary| summary.synthetic || summary.sha256_ok == Some(false)) {
        for note in &summary.notes {
            let _ = writeln!(text, "{}: {note}", summary.name);
        }
    }
    text
}

/// One object per data set; groups as an object in group order.
fn check_json(summaries: &[Summary]) -> anyhow::Result<String> {
    let objects: Vec<serde_json::Value> = summaries
        .iter()
        .map(|summary| {
            let groups: serde_json::Map<String, serde_json::Value> =
                summary.groups.iter().map(|(group, n)| (group.clone(), (*n).into())).collect();
            serde_json::json!({
                "name": summary.name,
                "present": summary.present,
                "synthetic": summary.synthetic,
                "rows": summary.rows,
                "groups": groups,
                "inputs": summary.inputs,
                "sha256_ok": summary.sha256_ok,
                "source": summary.source,
                "notes": summary.notes,
            })
        })
        .collect();
    serde_json::to_string_pretty(&objects).context("summaries as JSON")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    #[command(name = "data")]
    struct Command {
        #[command(flatten)]
        args: DataArgs,
    }

    fn summaries() -> Vec<Summary> {
        let summary = |name: &str, synthetic: bool, sha256_ok: Option<bool>| Summary {
            name: name.into(),
            present: sha256_ok.is_some(),
            synthetic,
            rows: 5,
            groups: vec![("male".into(), 3), ("female".into(), 2)],
            inputs: 98,
            sha256_ok,
            source: "s".into(),
            notes: if synthetic { vec!["Tried cache: damaged.".into()] } else { Vec::new() },
        };
        vec![summary("a", false, Some(true)), summary("b", true, None), summary("c", false, Some(false))]
    }

    #[test]
    fn table_and_json() {
        insta::assert_snapshot!(check_table(&summaries()), @r"
        data set       data          rows  inputs  groups
        a              real             5      98  male 3, female 2
        b              SYNTHETIC        5      98  male 3, female 2
        c              BROKEN           5      98  male 3, female 2
        b: Tried cache: damaged.
        ");
        let json: serde_json::Value = serde_json::from_str(&check_json(&summaries()).unwrap()).unwrap();
        assert_eq!(json[1]["groups"]["female"], 2);
        assert_eq!(json[1]["sha256_ok"], serde_json::Value::Null);
        assert_eq!(json[0]["present"], true);
    }

    #[test]
    fn info_says_whether_files_may_be_passed_on() {
        let text = info(&"dutch".parse::<DatasetName>().unwrap().manifest().unwrap());
        assert!(text.contains("pass on   not permitted") && text.contains("licence   none stated"), "{text}");
    }

    #[test]
    fn names_are_checked() {
        let error = Command::try_parse_from(["data", "info", "iris"]).err().unwrap().to_string();
        assert!(error.contains("data set `iris` is not one of adult, dutch"), "{error}");
        assert!(Command::try_parse_from(["data", "check", "--json", "adult", "mnist"]).is_ok());
    }
}
