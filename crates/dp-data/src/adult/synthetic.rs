//! A generated census with Adult's schema, so that every command runs without the published files.

use std::fmt::Write as _;

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::schema::{Attribute, INCOME};
use super::synthetic_margins as margins;
use crate::weighted::pick;

/// Records with this sex, income and completeness; the counts of the published files.
struct Stratum {
    female: bool,
    over_50k: bool,
    complete: bool,
    n: usize,
}

const STRATA: [Stratum; 8] = [
    Stratum { female: false, over_50k: false, complete: true, n: 20_988 },
    Stratum { female: false, over_50k: true, complete: true, n: 9_539 },
    Stratum { female: true, over_50k: false, complete: true, n: 13_026 },
    Stratum { female: true, over_50k: true, complete: true, n: 1_669 },
    Stratum { female: false, over_50k: false, complete: false, n: 1_744 },
    Stratum { female: false, over_50k: true, complete: false, n: 379 },
    Stratum { female: true, over_50k: false, complete: false, n: 1_397 },
    Stratum { female: true, over_50k: true, complete: false, n: 100 },
];

/// Thousandths of the records whose profile is the one of the other income, by sex (male, female)
/// and income (low, high).
///
/// Attributes are drawn independently of each other given the profile, which makes incomes a little
/// easier to tell than they are. These shares bring the accuracy of a logistic regression to that
/// on the published files, 0.79 for men and 0.92 for women.
const ATYPICAL: [[u32; 2]; 2] = [[20, 80], [5, 40]];

/// The text of a census in the format of `adult.data`.
///
/// **Guarantee.** Sizes, and the counts of sex by income by completeness, are exactly those of the
/// published files. Only integer arithmetic is used: the same seed gives the same text on every
/// machine.
pub(super) fn census(seed: u64) -> String {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut strata: Vec<&Stratum> = STRATA.iter().flat_map(|stratum| std::iter::repeat_n(stratum, stratum.n)).collect();
    strata.shuffle(&mut rng);
    let mut text = String::with_capacity(strata.len() * 120);
    for stratum in strata {
        person(stratum, &mut rng, &mut text);
    }
    text
}

fn person(stratum: &Stratum, rng: &mut ChaCha20Rng, text: &mut String) {
    let sex = usize::from(stratum.female);
    let income = usize::from(stratum.over_50k);
    let atypical = rng.random_range(0..1000_u32) < ATYPICAL[sex][income];
    let profile = income ^ usize::from(atypical);

    let education = pick(&margins::EDUCATION[sex][profile], rng);
    let marital_status = pick(&margins::MARITAL_STATUS[sex][profile], rng);
    let household = household_of(marital_status);
    let age = between_deciles(&margins::AGE[profile][household], rng);
    let workclass = pick(&margins::WORKCLASS[sex][profile], rng);
    let degree = match EDUCATION_NUM[education] {
        ..=8 => 0,
        9..=12 => 1,
        _ => 2,
    };
    let occupation = pick(&margins::OCCUPATION[sex][profile][degree], rng);
    let relationship = pick(&margins::RELATIONSHIP[sex][household], rng);
    let race = pick(&margins::RACE[sex], rng);
    let native_country = pick(&margins::NATIVE_COUNTRY[race], rng);
    let (low, high) = margins::HOURS_RANGES[pick(&margins::HOURS[sex][profile], rng)];
    let hours = rng.random_range(low..=high);
    let capital_gain = amount(&margins::CAPITAL_GAIN[profile], rng);
    let capital_loss = amount(&margins::CAPITAL_LOSS[profile], rng);
    let final_weight = between_deciles(&margins::FINAL_WEIGHT, rng);

    let unknown = if stratum.complete { UnknownFields::Nothing } else { UnknownFields::draw(rng) };
    let categories = [
        unknown.hides(Attribute::Workclass, workclass),
        Attribute::Education.categories()[education],
        Attribute::MaritalStatus.categories()[marital_status],
        unknown.hides(Attribute::Occupation, occupation),
        Attribute::Relationship.categories()[relationship],
        Attribute::Race.categories()[race],
        if stratum.female { "Female" } else { "Male" },
        unknown.hides(Attribute::NativeCountry, native_country),
    ];
    let [workclass, education_name, marital_status, occupation, relationship, race, sex, native_country] = categories;
    let education_num = EDUCATION_NUM[education];
    let income = INCOME[income];
    // Writing to a `String` cannot fail.
    let _ = writeln!(
        text,
        "{age}, {workclass}, {final_weight}, {education_name}, {education_num}, {marital_status}, {occupation}, \
         {relationship}, {race}, {sex}, {capital_gain}, {capital_loss}, {hours}, {native_country}, {income}"
    );
}

/// Answers that an incomplete record lacks.
#[derive(Clone, Copy)]
enum UnknownFields {
    Nothing,
    Work,
    Country,
    Both,
}

impl UnknownFields {
    /// Drawn with the shares of the published files.
    fn draw(rng: &mut ChaCha20Rng) -> Self {
        [Self::Work, Self::Country, Self::Both][pick(&[2_763, 811, 46], rng)]
    }

    fn hides(self, attribute: Attribute, category: usize) -> &'static str {
        match (self, attribute) {
            (Self::Work | Self::Both, Attribute::Workclass | Attribute::Occupation)
            | (Self::Country | Self::Both, Attribute::NativeCountry) => "?",
            _ => attribute.categories()[category],
        }
    }
}

/// The rank of each education, in the order of its categories.
const EDUCATION_NUM: [u32; 16] = [13, 10, 7, 9, 15, 12, 11, 5, 4, 8, 14, 2, 6, 16, 3, 1];

/// Married, never married or once married: what age and household depend on.
fn household_of(marital_status: usize) -> usize {
    match Attribute::MaritalStatus.categories()[marital_status] {
        "Married-civ-spouse" | "Married-AF-spouse" => 0,
        "Never-married" => 1,
        _ => 2,
    }
}

fn amount(table: &[(u32, u16); 10], rng: &mut ChaCha20Rng) -> u32 {
    table[pick(&table.map(|(_, weight)| weight), rng)].0
}

/// Uniform between two neighbouring deciles, the pair being drawn uniformly.
fn between_deciles(deciles: &[u32; 11], rng: &mut ChaCha20Rng) -> u32 {
    let tenth = rng.random_range(0..10_u32) as usize;
    rng.random_range(deciles[tenth]..=deciles[tenth + 1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adult::{Adult, Number};
    use crate::published_set::PublishedSet;

    #[test]
    fn is_the_same_everywhere() {
        let table = Adult.stand_in(super::super::SYNTHETIC_SEED).unwrap();
        insta::assert_snapshot!(table.provenance.digest, @"1601fdbdc28e659314a6e343846f1a478be5c71ee193ddc8746d199bc513681f");
        insta::assert_snapshot!(table.provenance.source, @"SYNTHETIC census with Adult's schema and margins, seed 1994");
        assert!(table.provenance.synthetic);
        assert_ne!(census(1), census(2));
    }

    #[test]
    fn has_the_published_margins() {
        let table = Adult.stand_in(7).unwrap();
        assert_eq!(table.records.len(), 48_842);
        let count = |female: usize, over_50k: bool| {
            let complete = table.records.iter().filter(|record| record.is_complete());
            complete.filter(|r| r.category(Attribute::Sex) == Some(1 - female) && r.over_50k == over_50k).count()
        };
        assert_eq!(count(0, false) + count(0, true), 30_527);
        assert_eq!(count(1, false) + count(1, true), 14_695);
        assert_eq!([count(0, true), count(1, true)], [9_539, 1_669]);
    }

    /// Education and its rank say the same, as in the published files.
    #[test]
    fn education_agrees_with_its_rank() {
        let table = Adult.stand_in(7).unwrap();
        for record in &table.records {
            let education = record.category(Attribute::Education).unwrap();
            assert_eq!(record.number(Number::EducationNum), f64::from(EDUCATION_NUM[education]));
        }
    }
}
