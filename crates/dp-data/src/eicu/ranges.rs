//! Declared ranges of measurements in intensive care, wider than what a patient survives: public,
//! whatever the records say.

/// A part of a column's name, and the range of such columns. The first that fits counts.
const RANGES: [(&str, f64, f64); 36] = [
    ("heartrate", 0.0, 300.0),
    ("heart_rate", 0.0, 300.0),
    ("sysbp", 0.0, 300.0),
    ("diasbp", 0.0, 200.0),
    ("mbp", 0.0, 250.0),
    ("resprate", 0.0, 100.0),
    ("spo2", 0.0, 100.0),
    ("temp", 20.0, 45.0),
    ("pao2fio2ratio", 0.0, 1_000.0),
    ("pao2", 0.0, 700.0),
    ("arterial_po2", 0.0, 700.0),
    ("pco2", 0.0, 200.0),
    ("paco2", 0.0, 200.0),
    ("fio2", 0.0, 1.0),
    ("_ph", 6.5, 8.0),
    ("albumin", 0.0, 10.0),
    ("bilirubin", 0.0, 60.0),
    ("bun", 0.0, 300.0),
    ("calcium", 0.0, 20.0),
    ("creatinine", 0.0, 30.0),
    ("glucose", 0.0, 1_500.0),
    ("hco3", 0.0, 60.0),
    ("hemaglobin", 0.0, 30.0),
    ("hematocrit", 0.0, 80.0),
    ("inr", 0.0, 30.0),
    ("lactate", 0.0, 40.0),
    ("platelets", 0.0, 2_000.0),
    ("potassium", 0.0, 15.0),
    ("sodium", 90.0, 200.0),
    ("wbc", 0.0, 500.0),
    ("urineoutput", 0.0, 15_000.0),
    ("gcs", 0.0, 15.0),
    ("bmi", 5.0, 120.0),
    ("height", 50.0, 250.0),
    ("weight", 10.0, 400.0),
    ("los", -30.0, 365.0),
];

/// Columns that are 0 or 1.
const FLAGS: [&str; 13] = [
    "elective_surgery",
    "apache_post_operative",
    "arf_apache",
    "intubated_apache",
    "ventilated_apache",
    "aids",
    "cirrhosis",
    "diabetes_mellitus",
    "hepatic_failure",
    "immunosuppression",
    "leukemia",
    "lymphoma",
    "solid_tumor_with_metastasis",
];

/// The declared range of a column; `None` if there is none.
pub(super) fn of(column: &str) -> Option<(f64, f64)> {
    let column = column.to_ascii_lowercase();
    if FLAGS.contains(&column.as_str()) {
        return Some((0.0, 1.0));
    }
    RANGES.iter().find(|(part, ..)| column.contains(part)).map(|&(_, low, high)| (low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_find_their_range() {
        assert_eq!(of("d1_heartrate_avg"), Some((0.0, 300.0)));
        assert_eq!(of("d1_arterial_ph_max"), Some((6.5, 8.0)));
        assert_eq!(of("pao2fio2ratio_max"), Some((0.0, 1_000.0)));
        assert_eq!(of("elective_surgery"), Some((0.0, 1.0)));
        assert_eq!(of("something_new"), None);
        assert!(RANGES.iter().all(|(_, low, high)| low < high));
    }
}
