//! The fifteen columns of Adult and their fixed category lists.

/// A numeric column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// Years.
    Age,
    /// Census weight of the record; no encoding uses it.
    FinalWeight,
    /// Education as a rank from 1 (preschool) to 16 (doctorate).
    EducationNum,
    /// US dollars; 99,999 is a top code.
    CapitalGain,
    /// US dollars.
    CapitalLoss,
    /// Hours of work.
    HoursPerWeek,
}

impl Number {
    /// Every numeric column, in file order.
    pub const ALL: [Self; 6] =
        [Self::Age, Self::FinalWeight, Self::EducationNum, Self::CapitalGain, Self::CapitalLoss, Self::HoursPerWeek];

    /// Name as published.
    pub fn name(self) -> &'static str {
        match self {
            Self::Age => "age",
            Self::FinalWeight => "fnlwgt",
            Self::EducationNum => "education-num",
            Self::CapitalGain => "capital-gain",
            Self::CapitalLoss => "capital-loss",
            Self::HoursPerWeek => "hours-per-week",
        }
    }

    /// The documented range, both ends included: what the parser accepts, and what public scaling
    /// maps to its interval. The extract has persons above 16 years, top-coded at 90; gains are
    /// top-coded at 99,999; ranks and hours are bounded by their codes. The census documents no
    /// range of losses and weights; these are declared here, above every published value.
    pub fn range(self) -> (f64, f64) {
        match self {
            Self::Age => (17.0, 90.0),
            Self::FinalWeight => (0.0, 2_000_000.0),
            Self::EducationNum => (1.0, 16.0),
            Self::CapitalGain => (0.0, 99_999.0),
            Self::CapitalLoss => (0.0, 5_000.0),
            Self::HoursPerWeek => (1.0, 99.0),
        }
    }

    /// The range in words, for errors.
    pub(super) fn accepted(self) -> &'static str {
        match self {
            Self::Age => "a number from 17 to 90",
            Self::FinalWeight => "a number from 0 to 2,000,000",
            Self::EducationNum => "a number from 1 to 16",
            Self::CapitalGain => "a number from 0 to 99,999",
            Self::CapitalLoss => "a number from 0 to 5,000",
            Self::HoursPerWeek => "a number from 1 to 99",
        }
    }
}

/// A categorical column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attribute {
    /// Kind of employer.
    Workclass,
    /// Highest education.
    Education,
    /// Marital status.
    MaritalStatus,
    /// Occupation.
    Occupation,
    /// Role in the household.
    Relationship,
    /// Race.
    Race,
    /// Sex.
    Sex,
    /// Country of birth.
    NativeCountry,
}

impl Attribute {
    /// Every categorical column, in file order.
    pub const ALL: [Self; 8] = [
        Self::Workclass,
        Self::Education,
        Self::MaritalStatus,
        Self::Occupation,
        Self::Relationship,
        Self::Race,
        Self::Sex,
        Self::NativeCountry,
    ];

    /// Name as published.
    pub fn name(self) -> &'static str {
        match self {
            Self::Workclass => "workclass",
            Self::Education => "education",
            Self::MaritalStatus => "marital-status",
            Self::Occupation => "occupation",
            Self::Relationship => "relationship",
            Self::Race => "race",
            Self::Sex => "sex",
            Self::NativeCountry => "native-country",
        }
    }

    /// The categories, in the order of `adult.names`. Fixed: one country has a single record, so a
    /// list taken from a split would change the number of inputs.
    pub fn categories(self) -> &'static [&'static str] {
        match self {
            Self::Workclass => &WORKCLASS,
            Self::Education => &EDUCATION,
            Self::MaritalStatus => &MARITAL_STATUS,
            Self::Occupation => &OCCUPATION,
            Self::Relationship => &RELATIONSHIP,
            Self::Race => &RACE,
            Self::Sex => &SEX,
            Self::NativeCountry => &NATIVE_COUNTRY,
        }
    }
}

/// A column of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    Number(Number),
    Category(Attribute),
    Income,
}

impl Column {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Number(number) => number.name(),
            Self::Category(attribute) => attribute.name(),
            Self::Income => "income",
        }
    }
}

/// The columns in file order.
pub(super) const COLUMNS: [Column; 15] = [
    Column::Number(Number::Age),
    Column::Category(Attribute::Workclass),
    Column::Number(Number::FinalWeight),
    Column::Category(Attribute::Education),
    Column::Number(Number::EducationNum),
    Column::Category(Attribute::MaritalStatus),
    Column::Category(Attribute::Occupation),
    Column::Category(Attribute::Relationship),
    Column::Category(Attribute::Race),
    Column::Category(Attribute::Sex),
    Column::Number(Number::CapitalGain),
    Column::Number(Number::CapitalLoss),
    Column::Number(Number::HoursPerWeek),
    Column::Category(Attribute::NativeCountry),
    Column::Income,
];

/// The label's categories; class 1 earns more than 50,000 dollars.
pub(super) const INCOME: [&str; 2] = ["<=50K", ">50K"];

const WORKCLASS: [&str; 8] = [
    "Private",
    "Self-emp-not-inc",
    "Self-emp-inc",
    "Federal-gov",
    "Local-gov",
    "State-gov",
    "Without-pay",
    "Never-worked",
];
const EDUCATION: [&str; 16] = [
    "Bachelors",
    "Some-college",
    "11th",
    "HS-grad",
    "Prof-school",
    "Assoc-acdm",
    "Assoc-voc",
    "9th",
    "7th-8th",
    "12th",
    "Masters",
    "1st-4th",
    "10th",
    "Doctorate",
    "5th-6th",
    "Preschool",
];
const MARITAL_STATUS: [&str; 7] = [
    "Married-civ-spouse",
    "Divorced",
    "Never-married",
    "Separated",
    "Widowed",
    "Married-spouse-absent",
    "Married-AF-spouse",
];
const OCCUPATION: [&str; 14] = [
    "Tech-support",
    "Craft-repair",
    "Other-service",
    "Sales",
    "Exec-managerial",
    "Prof-specialty",
    "Handlers-cleaners",
    "Machine-op-inspct",
    "Adm-clerical",
    "Farming-fishing",
    "Transport-moving",
    "Priv-house-serv",
    "Protective-serv",
    "Armed-Forces",
];
const RELATIONSHIP: [&str; 6] = ["Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried"];
const RACE: [&str; 5] = ["White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"];
const SEX: [&str; 2] = ["Female", "Male"];
const NATIVE_COUNTRY: [&str; 41] = [
    "United-States",
    "Cambodia",
    "England",
    "Puerto-Rico",
    "Canada",
    "Germany",
    "Outlying-US(Guam-USVI-etc)",
    "India",
    "Japan",
    "Greece",
    "South",
    "China",
    "Cuba",
    "Iran",
    "Honduras",
    "Philippines",
    "Italy",
    "Poland",
    "Jamaica",
    "Vietnam",
    "Mexico",
    "Portugal",
    "Ireland",
    "France",
    "Dominican-Republic",
    "Laos",
    "Ecuador",
    "Taiwan",
    "Haiti",
    "Columbia",
    "Hungary",
    "Guatemala",
    "Nicaragua",
    "Scotland",
    "Thailand",
    "Yugoslavia",
    "El-Salvador",
    "Trinadad&Tobago",
    "Peru",
    "Hong",
    "Holand-Netherlands",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published_set::PublishedSet;

    #[test]
    fn agrees_with_the_manifest() {
        let manifest = super::super::Adult.manifest().unwrap();
        let columns: Vec<_> = manifest.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(columns, COLUMNS.map(Column::name));
        for (published, column) in manifest.columns.iter().zip(COLUMNS) {
            let values: Option<&[&str]> = match column {
                Column::Number(_) => None,
                Column::Category(attribute) => Some(attribute.categories()),
                Column::Income => Some(&INCOME),
            };
            let published = published.values.as_ref().map(|list| list.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(published.as_deref(), values, "{}", column.name());
        }
        assert_eq!(manifest.records, manifest.files.iter().map(|file| file.records).sum::<usize>());
    }

    #[test]
    fn ranges_are_what_errors_say() {
        for number in Number::ALL {
            let words = number.accepted().replace(',', "");
            let (low, high) = number.range();
            assert_eq!(words, format!("a number from {low} to {high}"), "{}", number.name());
        }
    }

    #[test]
    fn all_lists_follow_the_discriminants() {
        assert!(Number::ALL.iter().enumerate().all(|(i, &number)| number as usize == i));
        assert!(Attribute::ALL.iter().enumerate().all(|(i, &attribute)| attribute as usize == i));
    }
}
