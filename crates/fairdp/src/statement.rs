//! The privacy statement of a release, for a recipient who has nothing else: releases, protection,
//! and how to check them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use dp_accounting::{Certainty, Delta, Mark, MarkedEpsilon, NeighbouringRelation, Rounding, Scope, decimal};
use fair_decisions::Mode;
use serde::{Deserialize, Serialize};

use crate::account::{Account, Attacks, RELATION, Release};
use crate::config::{CardEntry, UnitRows};
use crate::error::Result;
use crate::printable::{printable, rounded_up};
use crate::subset::Subset;

/// The version of statements that this program writes and reads.
pub(crate) const STATEMENT_VERSION: u32 = 1;

/// `statement.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ReleaseStatement {
    /// Whether the noise came from the operating system: a run with a seed is not private.
    pub private: bool,
    /// The seed, if there is one.
    pub seed: Option<u64>,
    /// The version of the format: 1.
    pub version: u32,
    /// ε of everything that was released.
    pub epsilon: f64,
    /// δ.
    pub delta: f64,
    /// The mark of ε: certified, or conditional on the entries of `given`.
    pub mark: Mark,
    /// No better bound than this is possible for these mechanisms.
    pub epsilon_lower: Option<f64>,
    /// ε by Rényi divergences, for comparison.
    pub epsilon_rdp: f64,
    /// The accountant and its method.
    pub accountant: String,
    /// ε of each part: a record meets one of them.
    pub epsilon_of_parts: BTreeMap<String, f64>,
    /// ε of a training record of each group, where groups were drawn at rates of their own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub epsilon_of_groups: BTreeMap<String, f64>,
    /// Bounds that hold against every attack.
    pub attacks: Attacks,
    /// Parts of the release that ε covers.
    pub covers: Vec<String>,
    /// Facts that depend on the records, or could, and that ε does not cover.
    pub not_covered: Vec<String>,
    /// Conditions of ε.
    pub given: Vec<String>,
    /// The unit of privacy.
    pub unit: Unit,
    /// The neighbouring relation.
    pub relation: NeighbouringRelation,
    /// Number of records of each part: public under this relation.
    pub records: BTreeMap<String, usize>,
    /// Every release with its native parameters, in order.
    pub events: Vec<Release>,
    /// Digests of the chained ledgers of training, test and validation.
    pub chain: [String; 3],
    /// The parties that must be trusted.
    pub trust: String,
    /// The reason for this δ.
    pub delta_reason: String,
    /// The model, with the reason for it.
    pub model: String,
    /// The method, with the reason for it.
    pub method: String,
    /// The sampling of records.
    pub sampling: String,
    /// The choice of settings.
    pub tuning: String,
    /// The source of the test figures.
    pub test_figures: String,
    /// What makes features of the records and was fixed before: filters of images, and the encoder that
    /// the configuration names. It costs nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fixed: Vec<String>,
    /// The noise and its generator.
    pub noise: String,
    /// Risks that no ε speaks of.
    pub out_of_scope: Vec<String>,
    /// ε of everything that the ledger file has so far, if one was kept.
    pub total_epsilon: Option<f64>,
    /// The people of the records, where the ledger's fits are of several scopes: that nobody is in two of
    /// them is the word of whoever ran the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The program.
    pub program: Program,
    /// What the card says of the model, as the configuration has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<CardEntry>,
    /// The release that this one follows from, where decisions were changed afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub derived_from: Option<Derivation>,
    /// sha256 of the statement of the release that these figures are about, where they are of new records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// The release whose model the training started from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_from: Option<StartedFrom>,
    /// What an attack found in one run of the same configuration on made-up records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attacked: Option<AttackOnRun>,
    /// sha256 of every other file of the release.
    pub files: BTreeMap<String, String>,
}

/// Where a release with other decisions comes from. It costs no privacy: it is a function of that release.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Derivation {
    /// sha256 of the statement of the release that was fitted.
    pub fitted: String,
    /// sha256 of the statement of the release that it was made from; of several in turn the last.
    pub from: String,
    /// The notion of fairness of its decisions.
    pub mode: Mode,
    /// The loss that was allowed.
    pub max_loss: f64,
    /// The gap that is small enough.
    pub max_gap: f64,
    /// Whether all groups have one threshold.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_threshold: bool,
    /// Whether a coin may decide between thresholds of a group.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub coins: bool,
}

/// The release whose model a training started from: that costs its people nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct StartedFrom {
    /// sha256 of its statement.
    pub statement: String,
    /// ε of its records.
    pub epsilon: f64,
    /// Its δ.
    pub delta: f64,
    /// Whether its noise came from the operating system.
    pub private: bool,
}

impl StartedFrom {
    /// What a reader must know of it.
    pub fn in_words(&self) -> String {
        let Self { statement, epsilon, delta, private } = self;
        let seeded = if *private { "" } else { "; it had a seed, and does not protect its people" };
        format!(
            "the model of the release whose statement has sha256 {statement}, at no further ε of its records. That release is ({}, \
             {delta:e})-differentially private{seeded}. ε here is of these records alone: for a person whose records are in both \
             tables both compose, which a ledger file of both fits counts",
            rounded_up(*epsilon)
        )
    }
}

/// An attack on one run of a release's configuration, on made-up records of its schema.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct AttackOnRun {
    /// Canaries that were in the run or not, each by a fair coin.
    pub canaries: usize,
    /// ε of the gradients, which were attacked.
    pub epsilon: f64,
    /// At least this much of it was found, with 95 % confidence, if scores of canaries are normal with one
    /// spread.
    pub found: f64,
    /// The same without an assumption.
    pub found_without_assumption: f64,
}

impl AttackOnRun {
    fn in_words(self) -> String {
        let down = |value: f64| decimal(value, 2, Rounding::Down);
        format!(
            "attacked with {} canaries in one run on made-up records: at least {} of {} found ({} without an assumption)",
            self.canaries,
            down(self.found),
            decimal(self.epsilon, 2, Rounding::Up),
            down(self.found_without_assumption)
        )
    }
}

impl Derivation {
    fn in_words(&self) -> String {
        let Self { fitted, from, mode, max_loss, max_gap, one_threshold, coins } = self;
        let one = match (one_threshold, coins) {
            (true, _) => ", one threshold for all groups",
            (_, true) => ", coins",
            _ => "",
        };
        let whence = if from == fitted { String::new() } else { format!(", by way of {from}") };
        format!(
            "changed afterwards to `{}` (max_loss {max_loss}, max_gap {max_gap}{one}), from the released scores alone and at no further \
             ε; the statement of the release that was fitted has sha256 {fitted}{whence}",
            mode.name()
        )
    }
}

/// The unit of privacy: records that are protected together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Unit {
    /// One record, or all records with one value of a column.
    pub what: String,
    /// Records of one unit that were used, at most; of a unit whose rows were averaged, the records
    /// that were made of them.
    pub max_records: u64,
    /// What its records were.
    #[serde(default, skip_serializing_if = "is_first")]
    pub rows: UnitRows,
}

impl Unit {
    fn in_words(&self) -> String {
        let Self { what, max_records, rows } = self;
        match (rows, max_records) {
            (UnitRows::First, most) => format!("{what}; at most {most} of its records were used"),
            (UnitRows::Mean, 1) => format!("{what}; the mean of its rows was one record"),
            (UnitRows::Mean, _) => {
                format!("{what}; the means of its rows of each class were records, which together counted as one")
            }
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_first(rows: &UnitRows) -> bool {
    *rows == UnitRows::First
}

/// The program that made a release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Program {
    /// Its version.
    pub version: String,
    /// sha256 of its file.
    pub sha256: String,
}

/// The facts of a statement.
pub(crate) struct Facts<'a> {
    pub(crate) account: &'a Account,
    pub(crate) delta: f64,
    pub(crate) seed: Option<u64>,
    pub(crate) uncovered: Vec<String>,
    /// The information in the existence of the release.
    pub(crate) existence: String,
    pub(crate) covers: Vec<String>,
    pub(crate) unit: Unit,
    /// By part, in the order of [`Subset::ALL`].
    pub(crate) records: [usize; 3],
    pub(crate) test_figures: String,
    pub(crate) model: String,
    pub(crate) method: String,
    pub(crate) tuning: String,
    pub(crate) sampling: String,
    pub(crate) total_epsilon: Option<f64>,
    pub(crate) scope: Option<String>,
    pub(crate) program: Program,
    pub(crate) card: Option<CardEntry>,
    pub(crate) started_from: Option<StartedFrom>,
    pub(crate) fixed: Vec<String>,
    pub(crate) epsilon_of_groups: BTreeMap<String, f64>,
}

impl ReleaseStatement {
    pub(crate) fn of(facts: Facts<'_>) -> Result<Self> {
        let account = facts.account;
        let delta = Delta::new(facts.delta)?;
        let bound = account.epsilon(delta)?;
        let scope = Scope {
            unit_of_privacy: facts.unit.what.clone(),
            covered: facts.covers,
            not_covered: vec![
                facts.existence,
                "the configuration, as far as it was written with knowledge of the records".into(),
                "what was computed from several records before this program read them, such as a scaling".into(),
                "how long the program took".into(),
            ],
            conditions: facts.uncovered,
            n_records: None,
        };
        let marked = MarkedEpsilon::new(&bound, &scope);
        let rdp = account.epsilon_by_rdp(delta)?;
        let records = facts.records;
        let accountant = match (&bound.certainty, bound.method) {
            (Certainty::FallBack { reason }, _) => reason.clone(),
            (_, Some(method)) => format!("privacy loss distributions ({method})"),
            (_, None) => "privacy loss distributions".into(),
        };
        let mut epsilon_of_parts = BTreeMap::new();
        for (part, n_records) in Subset::ALL.into_iter().zip(records) {
            if part != Subset::Validation || n_records > 0 {
                epsilon_of_parts.insert(part.name().to_owned(), account.epsilon_of(part, delta)?.epsilon.get());
            }
        }
        Ok(Self {
            private: facts.seed.is_none(),
            seed: facts.seed,
            version: STATEMENT_VERSION,
            epsilon: marked.epsilon().get(),
            delta: facts.delta,
            mark: marked.mark(),
            epsilon_lower: bound.lower.map(dp_accounting::Epsilon::get),
            epsilon_rdp: rdp.epsilon.get(),
            accountant,
            epsilon_of_parts,
            epsilon_of_groups: facts.epsilon_of_groups,
            attacks: account.attacks(delta)?,
            covers: marked.covers().to_vec(),
            not_covered: marked.not_covered().to_vec(),
            given: marked.conditions().to_vec(),
            unit: facts.unit,
            relation: RELATION,
            records: Subset::ALL.into_iter().zip(records).map(|(part, n)| (part.name().to_owned(), n)).collect(),
            events: account.releases().to_vec(),
            chain: account.digests(),
            trust:
                "Central: whoever ran the program had the records. A recipient of the release need trust nobody else's \
                    handling of them."
                    .into(),
            delta_reason: format!(
                "δ = {:e} is below one over the number of records of the largest part ({}): a mechanism that publishes one of \
                 them at random would not pass it.",
                facts.delta,
                records.iter().max().unwrap_or(&0)
            ),
            model: facts.model,
            method: facts.method,
            sampling: facts.sampling,
            tuning: facts.tuning,
            test_figures: facts.test_figures,
            fixed: facts.fixed,
            noise:
                "Gaussian, of the real-valued variate rounded once to a public grid; random bits by ChaCha20 under a \
                    256-bit key from the operating system, unless a seed is named above."
                    .into(),
            out_of_scope: vec![
                "the machine: its memory, its logs, other processes".into(),
                "other releases about the same records, unless they share a ledger file".into(),
                "what follows from the population and not from a record".into(),
            ],
            total_epsilon: facts.total_epsilon,
            scope: facts.scope,
            program: facts.program,
            card: facts.card,
            derived_from: None,
            about: None,
            started_from: facts.started_from,
            attacked: None,
            files: BTreeMap::new(),
        })
    }

    /// `statement.md`.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        if !self.private {
            text.push_str(&format!(
                "**Not private** (`\"private\": false`): run with the seed {}; whoever knows it can take the noise off. ",
                self.seed.unwrap_or_default()
            ));
        }
        if self.mark == Mark::Conditional {
            text.push_str(&format!(
                "**Not covered by ε**, since it was read from the records: {}. ε is conditional on it.",
                printable(&self.given.join("; "))
            ));
        }
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        let (epsilon, delta) = (rounded_up(self.epsilon), self.delta);
        let mark = self.mark;
        text.push_str(&format!(
            "# Privacy statement\n\n{} {} ({epsilon}, {delta:e})-differentially private ({mark}).\n\n",
            capitalised(&printable(&self.covers.join(", "))),
            if self.covers.len() > 1 { "are together" } else { "is" },
        ));
        let mut item = |name: &str, value: String| {
            let _ = writeln!(text, "- **{name}**: {}", printable(&value));
        };
        item("Unit of privacy", self.unit.in_words());
        item(
            "Neighbours",
            format!(
                "tables in one of which a unit's records are blank ({}); the number of records is public",
                self.relation
            ),
        );
        let n = |part: Subset| self.records.get(part.name()).copied().unwrap_or_default();
        let validation = match n(Subset::Validation) {
            0 => String::new(),
            n => format!(", {n} to compare trials on"),
        };
        let (training, test) = (n(Subset::Training), n(Subset::Test));
        item("Records", format!("{training} for training, {test} for the test{validation}"));
        item("Trust", self.trust.clone());
        item(
            "Found by",
            format!(
                "{}; a second accountant, by Rényi divergences, whose bounds are looser, finds at most {}",
                self.accountant,
                rounded_up(self.epsilon_rdp)
            ),
        );
        item("δ", self.delta_reason.clone());
        let gaussian = self.attacks.gaussian_mu;
        item(
            "Attacks",
            format!(
                "no test for one unit misses fewer than {:.1} % with one false alarm in a hundred, {:.1} % with one in ten{}",
                100.0 * self.attacks.false_negative_rate_at_1_percent,
                100.0 * self.attacks.false_negative_rate_at_10_percent,
                gaussian.map_or(String::new(), |mu| format!("; as private as a Gaussian with μ = {mu:.4}")),
            ),
        );
        item("Model", self.model.clone());
        item("Method", self.method.clone());
        item("Sampling", self.sampling.clone());
        item("Settings", self.tuning.clone());
        if !self.fixed.is_empty() {
            item("Fixed beforehand", self.fixed.join("; "));
        }
        item("Test figures", self.test_figures.clone());
        item("Noise", self.noise.clone());
        if let Some(attacked) = self.attacked {
            item("Attack", attacked.in_words());
        }
        for (name, value) in self.of_origin() {
            item(name, value);
        }
        item("Not covered", self.not_covered.join("; "));
        item("Out of scope", self.out_of_scope.join("; "));
        for (name, value) in self.of_ledger() {
            item(name, value);
        }
        item("Program", format!("fairdp {}, sha256 {}", self.program.version, self.program.sha256));
        item(
            "To check",
            "`fairdp verify` on this folder: it computes ε again from the releases below, and every digest".into(),
        );
        text.push_str("\n| records | release | what was done | times |\n|---|---|---|---|\n");
        for release in &self.events {
            let part = release.part.name();
            let purpose = printable(&release.purpose);
            let _ = writeln!(text, "| {part} | {purpose} | {} | {} |", release.event, release.count);
        }
        let parts: Vec<String> = self
            .epsilon_of_parts
            .iter()
            .map(|(part, epsilon)| format!("{} {}", printable(part), rounded_up(*epsilon)))
            .collect();
        let _ = writeln!(text, "\nε of the parts ({mark}), of which a record meets one: {}.", parts.join(", "));
        text.push_str(&self.by_group());
        text
    }
}

impl ReleaseStatement {
    /// The line of the ε of groups, where they were drawn at rates of their own.
    fn by_group(&self) -> String {
        if self.epsilon_of_groups.is_empty() {
            return String::new();
        }
        format!("\nε of a training record by group ({}): {}.\n", self.mark, self.groups_in_words())
    }

    /// ε of each group, where groups were drawn at rates of their own.
    pub(crate) fn groups_in_words(&self) -> String {
        let of_group = |(group, epsilon): (&String, &f64)| format!("{} {}", printable(group), rounded_up(*epsilon));
        self.epsilon_of_groups.iter().map(of_group).collect::<Vec<_>>().join(", ")
    }

    /// The release that this one follows from, or whose model it is about.
    fn of_origin(&self) -> Vec<(&'static str, String)> {
        let decisions = self.derived_from.iter().map(|derivation| ("Decisions", derivation.in_words()));
        let about = self.about.iter().map(|about| {
            let of = "the model of the release whose statement has sha256";
            ("About", format!("{of} {about}; ε is of these records alone"))
        });
        let start = self.started_from.iter().map(|start| ("Started from", start.in_words()));
        decisions.chain(about).chain(start).collect()
    }

    /// What the ledger file says, if one was kept.
    fn of_ledger(&self) -> Vec<(&'static str, String)> {
        let Some(total) = self.total_epsilon else { return Vec::new() };
        let worth =
            "if each of its fits has a statement that is certified, and none had a seed; else as the weakest of them";
        let of_one = if self.scope.is_some() { " for a person who is in one scope alone" } else { "" };
        let total = format!("ε = {}{of_one}, certified {worth}", rounded_up(total));
        let scope = self.scope.iter().map(|scope| {
            let words = format!(
                "`{scope}`. Fits of other scopes are not counted with this one: that nobody is in two scopes is the word of \
                 whoever ran the program, which nothing here checks; fits without a scope are counted with every one"
            );
            ("Scope", words)
        });
        std::iter::once(("Everything in the ledger file so far", total)).chain(scope).collect()
    }
}

/// With its first letter large.
pub(crate) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
