//! The published ways to turn a record into inputs, each as a list of features.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::parse::AdultRecord;
use super::schema::{Attribute, Number};
use crate::error::DataError;
use crate::scaling::{Affine, Scale};

/// A published encoding of Adult, by the first author of its paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// 98 inputs: five numbers (z-scores), race as white or not, sex, and six columns one-hot. Sex
    /// stays an input.
    ///
    /// **Source.** Esipova et al. 2023, B.1. The numbers of categories are those that occur in
    /// complete records, which makes 98 inputs and, with their network, the 91,650 parameters they
    /// state.
    #[default]
    Esipova,
    /// 40 inputs: five numbers scaled to `[0, 1]`, race as white or not, and workclass, marital
    /// status, occupation and relationship one-hot. Sex is not an input.
    ///
    /// **Source.** Xu et al. 2021, 6.1.1, states 40 unprotected inputs without listing them;
    /// leaving out education (its rank is kept) and country of birth is the reading that gives 40.
    Xu,
    /// 39 inputs: education in five levels, marital status in three, employer in four, race as
    /// white or not, hours in three bins, birth in the United States or not, capital gain and loss
    /// (z-scores), occupation and relationship one-hot.
    ///
    /// **Source.** Soleymani et al. 2025, A.3, in words only. Our reading where the text is open:
    /// which categories are merged; that "extreme capital-gain values" are the top code 99,999,
    /// whose records are dropped; that the bins of hours are below 40, 40 to 60, above 60; that sex
    /// and age, the protected attributes, are not inputs (as A.2 says for eICU); that the rank of
    /// education gives way to the merged levels. They write that duplicates were removed, yet their
    /// 45,222 records still contain them; they stay.
    Soleymani,
    /// 96 inputs: five numbers (z-scores), race as white or not, sex, and six columns one-hot
    /// without their first category. Sex stays an input; `?` counts as a category, the first of its
    /// column.
    ///
    /// **Source.** Zhao et al. 2025, published code.
    Zhao,
    /// 167 inputs, none of which looks at the records: five numbers scaled to `[0, 1]` by their
    /// declared ranges and each in 16 bins of equal width (capital gain and loss: of equal width in
    /// the logarithm), the other columns one-hot. Sex is an input.
    Binned,
}

impl Encoding {
    /// Every encoding.
    pub const ALL: [Self; 5] = [Self::Esipova, Self::Xu, Self::Soleymani, Self::Zhao, Self::Binned];

    /// Name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Esipova => "esipova",
            Self::Xu => "xu",
            Self::Soleymani => "soleymani",
            Self::Zhao => "zhao",
            Self::Binned => "binned",
        }
    }

    /// Number of inputs.
    pub fn n_inputs(self) -> usize {
        self.features().len()
    }

    /// Whether a `?` is a category rather than a reason to drop the record.
    pub(super) fn keeps_incomplete(self) -> bool {
        self == Self::Zhao
    }

    /// Whether a record belongs to the data set as the paper describes it.
    pub(super) fn keeps(self, record: &AdultRecord) -> bool {
        match self {
            Self::Esipova | Self::Xu | Self::Binned => record.is_complete(),
            Self::Soleymani => record.is_complete() && record.number(Number::CapitalGain) < CAPITAL_GAIN_TOP_CODE,
            Self::Zhao => true,
        }
    }

    /// One sentence for the report.
    pub(super) fn note(self) -> &'static str {
        match self {
            Self::Esipova => "Encoding esipova: 98 inputs, numbers as z-scores, sex among the inputs.",
            Self::Xu => {
                "Encoding xu: 40 inputs without sex, numbers scaled to [0, 1]; education and country of birth are left out, \
                 our reading of the paper's count."
            }
            Self::Soleymani => {
                "Encoding soleymani: 39 inputs without sex and age; merged categories and the capital-gain cut are our reading \
                 of the paper's text."
            }
            Self::Zhao => "Encoding zhao: 96 inputs, numbers as z-scores, sex among the inputs, `?` as a category.",
            Self::Binned => "Encoding binned: 167 inputs, numbers on declared bins, sex among the inputs.",
        }
    }

    pub(super) fn features(self) -> Vec<Feature> {
        match self {
            Self::Esipova => esipova(),
            Self::Xu => xu(),
            Self::Soleymani => soleymani(),
            Self::Zhao => zhao(),
            Self::Binned => binned(),
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Encoding {
    type Err = DataError;

    fn from_str(name: &str) -> Result<Self, DataError> {
        Self::ALL.into_iter().find(|encoding| encoding.name() == name).ok_or_else(|| DataError::UnknownName {
            what: "encoding",
            value: name.into(),
            accepted: Self::ALL.map(Self::name).join(", "),
        })
    }
}

/// Binary columns are 1 for the smaller group, as in Esipova's published code.
const NON_WHITE: [&str; 4] = ["Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"];

const CAPITAL_GAIN_TOP_CODE: f64 = 99_999.0;

/// The numbers that papers use; the final weight is a sampling weight, not a property of the
/// person.
const NUMBERS: [Number; 5] =
    [Number::Age, Number::EducationNum, Number::CapitalGain, Number::CapitalLoss, Number::HoursPerWeek];

/// One input of the model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Feature {
    pub(super) name: String,
    value: Value,
}

#[derive(Debug, Clone, PartialEq)]
enum Value {
    Number(Number, Scale),
    /// 1 if the category is one of these, else 0.
    OneOf(Attribute, Vec<usize>),
    /// 1 if the number is within these bounds, both included, else 0.
    Within(Number, f64, f64),
}

impl Feature {
    fn number(number: Number, scale: Scale) -> Self {
        Self { name: number.name().into(), value: Value::Number(number, scale) }
    }

    /// `members` are categories by name; a name outside the list matches nothing, which the count
    /// tests would show.
    fn one_of(attribute: Attribute, label: &str, members: &[&str]) -> Self {
        let list = attribute.categories();
        let members = (0..list.len()).filter(|&index| members.contains(&list[index])).collect();
        Self { name: format!("{}={label}", attribute.name()), value: Value::OneOf(attribute, members) }
    }

    fn within(number: Number, label: &str, low: f64, high: f64) -> Self {
        Self { name: format!("{}={label}", number.name()), value: Value::Within(number, low, high) }
    }

    fn raw(&self, record: &AdultRecord) -> f64 {
        match &self.value {
            Value::Number(number, _) => record.number(*number),
            Value::OneOf(attribute, members) => {
                f64::from(record.category(*attribute).is_some_and(|category| members.contains(&category)))
            }
            Value::Within(number, low, high) => f64::from((*low..=*high).contains(&record.number(*number))),
        }
    }

    /// The scaling of this input, fitted on `records`; indicators are left as they are.
    pub(super) fn fit(&self, records: &[&AdultRecord]) -> Affine {
        match self.value {
            Value::Number(number, scale) => {
                let values: Vec<f64> = records.iter().map(|record| record.number(number)).collect();
                Affine::fit(scale, &values)
            }
            Value::OneOf(..) | Value::Within(..) => Affine::IDENTITY,
        }
    }

    /// The scaling of this input by the declared range of its number; indicators are left as they
    /// are.
    pub(super) fn declared(&self) -> Affine {
        match self.value {
            Value::Number(number, scale) => Affine::declared(scale, number.range()),
            Value::OneOf(..) | Value::Within(..) => Affine::IDENTITY,
        }
    }

    pub(super) fn encode(&self, scaling: Affine, record: &AdultRecord) -> f32 {
        scaling.apply(self.raw(record))
    }
}

/// One feature per category. `Never-worked` has none: it occurs only in incomplete records.
fn one_hot(attribute: Attribute) -> impl Iterator<Item = Feature> {
    attribute
        .categories()
        .iter()
        .filter(|&&category| category != "Never-worked")
        .map(move |category| Feature::one_of(attribute, category, &[category]))
}

fn esipova() -> Vec<Feature> {
    let mut features: Vec<_> = NUMBERS.iter().map(|&number| Feature::number(number, Scale::ZScore)).collect();
    features.push(Feature::one_of(Attribute::Race, "non-white", &NON_WHITE));
    features.push(Feature::one_of(Attribute::Sex, "Female", &["Female"]));
    for attribute in [
        Attribute::Workclass,
        Attribute::Education,
        Attribute::MaritalStatus,
        Attribute::Occupation,
        Attribute::Relationship,
        Attribute::NativeCountry,
    ] {
        features.extend(one_hot(attribute));
    }
    features
}

fn xu() -> Vec<Feature> {
    let mut features: Vec<_> = NUMBERS.iter().map(|&number| Feature::number(number, Scale::UnitRange)).collect();
    features.push(Feature::one_of(Attribute::Race, "non-white", &NON_WHITE));
    for attribute in [Attribute::Workclass, Attribute::MaritalStatus, Attribute::Occupation, Attribute::Relationship] {
        features.extend(one_hot(attribute));
    }
    features
}

fn soleymani() -> Vec<Feature> {
    let merged = |attribute: Attribute, groups: &[(&str, &[&str])]| -> Vec<Feature> {
        groups.iter().map(|(label, members)| Feature::one_of(attribute, label, members)).collect()
    };
    let mut features = vec![
        Feature::number(Number::CapitalGain, Scale::ZScore),
        Feature::number(Number::CapitalLoss, Scale::ZScore),
        Feature::within(Number::HoursPerWeek, "below-40", 0.0, 39.0),
        Feature::within(Number::HoursPerWeek, "40-to-60", 40.0, 60.0),
        Feature::within(Number::HoursPerWeek, "above-60", 61.0, f64::MAX),
        Feature::one_of(Attribute::Race, "non-white", &NON_WHITE),
        Feature::one_of(Attribute::NativeCountry, "United-States", &["United-States"]),
    ];
    features.extend(merged(
        Attribute::Education,
        &[
            ("no-diploma", &["Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th"]),
            ("high-school", &["HS-grad"]),
            ("some-college", &["Some-college", "Assoc-acdm", "Assoc-voc"]),
            ("bachelors", &["Bachelors"]),
            ("advanced", &["Masters", "Doctorate", "Prof-school"]),
        ],
    ));
    features.extend(merged(
        Attribute::MaritalStatus,
        &[
            ("married", &["Married-civ-spouse", "Married-AF-spouse"]),
            ("once-married", &["Divorced", "Separated", "Widowed", "Married-spouse-absent"]),
            ("never-married", &["Never-married"]),
        ],
    ));
    features.extend(merged(
        Attribute::Workclass,
        &[
            ("private", &["Private"]),
            ("government", &["Federal-gov", "Local-gov", "State-gov"]),
            ("self-employed", &["Self-emp-inc", "Self-emp-not-inc"]),
            ("unpaid", &["Without-pay", "Never-worked"]),
        ],
    ));
    features.extend(one_hot(Attribute::Occupation));
    features.extend(one_hot(Attribute::Relationship));
    features
}

/// The first category in alphabetical order has no input: `?` where a column has it, which comes
/// before every letter.
fn zhao() -> Vec<Feature> {
    let mut features: Vec<_> = NUMBERS.iter().map(|&number| Feature::number(number, Scale::ZScore)).collect();
    features.push(Feature::one_of(Attribute::Race, "white", &["White"]));
    features.push(Feature::one_of(Attribute::Sex, "Male", &["Male"]));
    for (attribute, first) in [
        (Attribute::Workclass, "?"),
        (Attribute::Education, "10th"),
        (Attribute::MaritalStatus, "Divorced"),
        (Attribute::Occupation, "?"),
        (Attribute::Relationship, "Husband"),
        (Attribute::NativeCountry, "?"),
    ] {
        let categories = attribute.categories().iter().filter(|&&category| category != first);
        features.extend(categories.map(|category| Feature::one_of(attribute, category, &[category])));
    }
    features
}

/// Bins of a number.
const BINS: usize = 16;

fn binned() -> Vec<Feature> {
    let mut features = Vec::new();
    for number in NUMBERS {
        features.push(Feature::number(number, Scale::UnitRange));
        features.extend(bins(number));
    }
    for attribute in [
        Attribute::Race,
        Attribute::Sex,
        Attribute::Workclass,
        Attribute::MaritalStatus,
        Attribute::Occupation,
        Attribute::Relationship,
        Attribute::NativeCountry,
    ] {
        features.extend(one_hot(attribute));
    }
    features
}

/// Bins over the declared range; the outer ones are open. Of an amount of money the logarithm is
/// cut.
fn bins(number: Number) -> impl Iterator<Item = Feature> {
    let (low, high) = number.range();
    let is_money = matches!(number, Number::CapitalGain | Number::CapitalLoss);
    let edge = move |index: usize| {
        let share = index as f64 / BINS as f64;
        if is_money { low + (share * (high - low + 1.0).ln()).exp_m1() } else { low + share * (high - low) }
    };
    (0..BINS).map(move |bin| {
        let from = if bin == 0 { f64::NEG_INFINITY } else { edge(bin) };
        let below = if bin + 1 == BINS { f64::INFINITY } else { edge(bin + 1).next_down() };
        Feature::within(number, &format!("bin-{bin}"), from, below)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn sizes_by_hand() {
        // 5 numbers + race + sex + 7 workclass + 16 education + 7 marital + 14 occupation + 6
        // relationship + 41 country.
        assert_eq!(Encoding::Esipova.n_inputs(), 5 + 1 + 1 + 7 + 16 + 7 + 14 + 6 + 41);
        assert_eq!(Encoding::Esipova.n_inputs(), 98);
        // 5 numbers + race + 7 workclass + 7 marital + 14 occupation + 6 relationship.
        assert_eq!(Encoding::Xu.n_inputs(), 5 + 1 + 7 + 7 + 14 + 6);
        assert_eq!(Encoding::Xu.n_inputs(), 40);
        // 2 numbers + 3 hours + race + birth + 5 education + 3 marital + 4 workclass + 14
        // occupation + 6 relationship.
        assert_eq!(Encoding::Soleymani.n_inputs(), 2 + 3 + 1 + 1 + 5 + 3 + 4 + 14 + 6);
        assert_eq!(Encoding::Soleymani.n_inputs(), 39);
        // 5 numbers + race + sex; workclass 9, education 16, marital 7, occupation 15, relationship
        // 6, country 42, less one each.
        assert_eq!(Encoding::Zhao.n_inputs(), 5 + 1 + 1 + 8 + 15 + 6 + 14 + 5 + 41);
        assert_eq!(Encoding::Zhao.n_inputs(), 96);
        // 5 numbers of 1 + 16; 5 race + 2 sex + 7 workclass + 7 marital + 14 occupation + 6
        // relationship + 41 country.
        assert_eq!(Encoding::Binned.n_inputs(), 5 * 17 + 5 + 2 + 7 + 7 + 14 + 6 + 41);
        assert_eq!(Encoding::Binned.n_inputs(), 167);
    }

    #[test]
    fn names_are_unique_and_notes_state_the_size() {
        for encoding in Encoding::ALL {
            let features = encoding.features();
            let names: HashSet<_> = features.iter().map(|feature| &feature.name).collect();
            assert_eq!(names.len(), features.len());
            assert!(encoding.note().contains(&format!("{encoding}: {} inputs", features.len())));
            assert_eq!(encoding.name().parse::<Encoding>().unwrap(), encoding);
        }
    }

    /// Merged lists name every category exactly once, so that no spelling slips through.
    #[test]
    fn merged_categories_are_a_partition() {
        let features = Encoding::Soleymani.features();
        for attribute in [Attribute::Education, Attribute::MaritalStatus, Attribute::Workclass] {
            let mut members: Vec<usize> = features
                .iter()
                .filter_map(|feature| match &feature.value {
                    Value::OneOf(of, members) if *of == attribute => Some(members.clone()),
                    _ => None,
                })
                .flatten()
                .collect();
            members.sort_unstable();
            assert_eq!(members, (0..attribute.categories().len()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn unknown_name() {
        insta::assert_snapshot!(
            "tran".parse::<Encoding>().unwrap_err(),
            @"encoding `tran` is not one of esipova, xu, soleymani, zhao, binned"
        );
    }
}
