//! `fairness`: what is done for groups, a mode alone or a table.

use std::borrow::Cow;
use std::fmt;

use fair_decisions::{Aim, Mode};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use dp_table::declaration::{EntryError, Names};

/// `fairness = "mode"`, or `[fairness]`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FairnessEntry {
    /// Whether, and how, the model is made to treat groups alike.
    pub mode: Mode,
    /// Whether the released mean error of each group is taken off its predictions, of a number.
    pub takes_off_mean_error: bool,
    /// The most that accuracy, accuracy as `decision` weighs classes, and balanced accuracy may each fall by.
    pub max_loss: f64,
    /// A gap that is small enough.
    pub max_gap: f64,
    /// Records of each class of the smallest group that thresholds and figures are meant for: the share of the
    /// budget follows from it.
    pub smallest: u64,
    /// Whether all groups have one threshold, since a decision may not depend on the group.
    pub one_threshold: bool,
    /// Whether a coin may decide between thresholds of a group.
    pub coins: bool,
    /// The positive class: the one whose answers are compared. Of two classes it is the last.
    pub class: Option<String>,
}

impl Default for FairnessEntry {
    fn default() -> Self {
        Self::of(Mode::None)
    }
}

/// The keys of `[fairness]`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FairnessTable {
    #[schemars(with = "Names<ModeName>")]
    mode: ModeName,
    max_loss: Option<f64>,
    max_gap: Option<f64>,
    smallest: Option<u64>,
    one_threshold: Option<bool>,
    coins: Option<bool>,
    class: Option<String>,
}

/// The mode of predicted numbers.
pub(super) const MEAN_ERROR: &str = "mean-error";

/// The modes of decisions between classes, and that of numbers.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ModeName {
    None,
    WorstGroup,
    EqualizedOdds,
    EqualOpportunity,
    DemographicParity,
    MeanError,
}

impl From<ModeName> for FairnessEntry {
    fn from(name: ModeName) -> Self {
        match name {
            ModeName::None => Self::of(Mode::None),
            ModeName::WorstGroup => Self::of(Mode::WorstGroup),
            ModeName::EqualizedOdds => Self::of(Mode::EqualizedOdds),
            ModeName::EqualOpportunity => Self::of(Mode::EqualOpportunity),
            ModeName::DemographicParity => Self::of(Mode::DemographicParity),
            ModeName::MeanError => Self { takes_off_mean_error: true, ..Self::default() },
        }
    }
}

impl FairnessEntry {
    const fn of(mode: Mode) -> Self {
        let Aim { max_loss, max_gap, .. } = Aim::of(mode);
        Self {
            mode,
            takes_off_mean_error: false,
            max_loss,
            max_gap,
            smallest: 1_000,
            one_threshold: false,
            coins: false,
            class: None,
        }
    }

    /// What is asked of thresholds.
    pub(crate) fn aim(&self) -> Result<Aim, fair_decisions::DecisionError> {
        let aim = Aim::with_limits(self.mode, self.max_loss, self.max_gap)?;
        Ok(aim.with_one_threshold(self.one_threshold).with_coins(self.coins))
    }

    /// The same with another mode.
    pub(crate) fn aim_of(&self, mode: Mode) -> Result<Aim, fair_decisions::DecisionError> {
        Self { mode, ..self.clone() }.aim()
    }

    /// The position of the positive class, if there is one.
    pub(crate) fn positive(&self, classes: &[String]) -> Option<usize> {
        match &self.class {
            Some(class) => classes.iter().position(|one| one == class),
            None => (classes.len() == 2).then_some(1),
        }
    }

    pub(super) fn check(&self, classes: &[String]) -> Result<(), EntryError> {
        if let Err(error) = self.aim() {
            return Err(EntryError::new("fairness", format!("fairness.{error}")));
        }
        if self.smallest == 0 {
            return Err(EntryError::value("fairness.smallest", 0, "at least 1"));
        }
        if self.coins && self.one_threshold {
            let message = "fairness.coins: expected with thresholds by group, not with one_threshold";
            return Err(EntryError::new("fairness.coins", message));
        }
        match (&self.class, self.positive(classes)) {
            (Some(class), None) => {
                let expected = format!("one of label.classes ({})", classes.join(", "));
                Err(EntryError::value("fairness.class", class, expected))
            }
            (Some(class), Some(0)) if classes.len() == 2 => {
                let expected = format!("`{}`, the last of two classes: put the positive class last", classes[1]);
                Err(EntryError::value("fairness.class", class, expected))
            }
            (None, None) if self.mode != Mode::None && classes.len() > 2 => {
                let message = format!(
                    "fairness.class: expected the class whose answers are compared between groups, one of {}: rates of \
                     positive answers need a positive class, and {} classes have none",
                    classes.join(", "),
                    classes.len()
                );
                Err(EntryError::new("fairness.class", message))
            }
            _ => Ok(()),
        }
    }
}

impl JsonSchema for FairnessEntry {
    fn schema_name() -> Cow<'static, str> {
        "Fairness".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (mode, table) = (generator.subschema_for::<Names<ModeName>>(), generator.subschema_for::<FairnessTable>());
        json_schema!({ "anyOf": [mode, table] })
    }
}

impl<'de> Deserialize<'de> for FairnessEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ModeOrTable)
    }
}

struct ModeOrTable;

impl<'de> Visitor<'de> for ModeOrTable {
    type Value = FairnessEntry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mode, or a table with `mode`")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<FairnessEntry, E> {
        ModeName::deserialize(StrDeserializer::new(text)).map(FairnessEntry::from)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<FairnessEntry, A::Error> {
        let table = FairnessTable::deserialize(MapAccessDeserializer::new(map))?;
        let usual = FairnessEntry::from(table.mode);
        Ok(FairnessEntry {
            max_loss: table.max_loss.unwrap_or(usual.max_loss),
            max_gap: table.max_gap.unwrap_or(usual.max_gap),
            smallest: table.smallest.unwrap_or(usual.smallest),
            one_threshold: table.one_threshold.unwrap_or(usual.one_threshold),
            coins: table.coins.unwrap_or(usual.coins),
            class: table.class,
            ..usual
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::Config;

    const CONFIG: &str = "version = 1\nFAIRNESS[table]\nfiles = [\"t.csv\"]\n\
        [label]\ncolumn = \"y\"\nclasses = [\"0\", \"1\"]\n[privacy]\nepsilon = 1\ndelta = 1e-5\n\
        [[group]]\ncolumn = \"g\"\nvalues = [\"a\", \"b\"]\n\
        [[column]]\nname = \"x\"\nkind = \"number\"\nlow = 0\nhigh = 1\n";

    fn read(fairness: &str) -> Result<super::FairnessEntry, String> {
        let text = CONFIG.replace("FAIRNESS", fairness);
        Config::from_toml(&text, Path::new("c.toml")).map(|config| config.fairness).map_err(|error| error.to_string())
    }

    #[test]
    fn a_mode_alone_and_a_table_are_read() {
        let entry = read("fairness = \"equal-opportunity\"\n").unwrap();
        assert_eq!((entry.mode.name(), entry.max_loss, entry.max_gap), ("equal-opportunity", 0.02, 0.0));
        let entry =
            read("fairness = { mode = \"equalized-odds\", max_gap = 0.05, smallest = 500, one_threshold = true }\n")
                .unwrap();
        assert_eq!((entry.max_loss, entry.max_gap, entry.smallest, entry.one_threshold), (0.02, 0.05, 500, true));
        assert_eq!(read("").unwrap(), super::FairnessEntry::default());
        let text = CONFIG.replace("FAIRNESS", "fairness = \"mean-error\"\n[test]\nfraction = 0.5\n");
        let text = text.replace("classes = [\"0\", \"1\"]", "kind = \"number\"\nlow = 0\nhigh = 1\npublic = true");
        assert!(Config::from_toml(&text, Path::new("c.toml")).unwrap().fairness.takes_off_mean_error);
    }

    #[test]
    fn refusals_name_what_is_wrong() {
        for (text, named) in [
            ("fairness = \"fair\"\n", "c.toml:2:12: fairness: unknown name `fair`"),
            ("fairness = \"mean-error\"\n", "fairness = \"mean-error\": expected with a label that is a number"),
            ("fairness = { mode = \"none\", max_los = 1 }\n", "max_loss"),
            ("fairness = { mode = \"worst-group\", max_loss = 2 }\n", "fairness.max_loss = 2: expected 0 to 1"),
            (
                "fairness = { mode = \"worst-group\", coins = true, one_threshold = true }\n",
                "fairness.coins: expected with thresholds by group",
            ),
            ("fairness = { mode = \"worst-group\", smallest = 0 }\n", "fairness.smallest = 0: expected at least 1"),
        ] {
            let message = read(text).unwrap_err();
            assert!(message.contains(named), "{message}");
        }
    }
}
