//! Populations that are simulated.

use rand::Rng;
use rand::seq::IndexedRandom;

/// Confidence of what is printed.
pub(super) const LEVEL: f64 = 0.95;

/// A group of a population.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrueGroup {
    /// Records in the test part.
    pub records: usize,
    /// Share of the positive class.
    pub base_rate: f64,
    /// Share of the positive that is answered so.
    pub true_positive_rate: f64,
    /// Share of the negative that is answered the positive class.
    pub false_positive_rate: f64,
}

/// A population and the noise of the counts of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// What it is, in words.
    pub name: String,
    /// Groups.
    pub groups: Vec<TrueGroup>,
    /// Standard deviation of the noise in every count.
    pub noise_std: f64,
    /// Whether one group is so far below that it must be named alone.
    pub names_one: bool,
}

impl Setting {
    fn new(name: &str, epsilon: f64, noise_std: f64, groups: Vec<TrueGroup>) -> Self {
        let with = if noise_std > 0.0 { format!("ε = {epsilon}") } else { "no noise".to_owned() };
        Self { name: format!("{name}, {with}"), groups, noise_std, names_one: false }
    }
}

const SIZES: [usize; 10] = [30, 60, 100, 200, 300, 500, 1_000, 2_000, 5_000, 20_000];
const BASE_RATES: [f64; 7] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5];
const RATES: [f64; 17] =
    [0.0, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1.0];
const EXTREME_RATES: [f64; 4] = [0.0, 0.01, 0.99, 1.0];
const NUMBERS_OF_GROUPS: [usize; 7] = [2, 2, 3, 4, 5, 7, 10];

fn group(records: usize, base_rate: f64, true_positive_rate: f64, false_positive_rate: f64) -> TrueGroup {
    TrueGroup { records, base_rate, true_positive_rate, false_positive_rate }
}

/// Settings in which something was once wrong, and `n_drawn` random ones, at every noise: pairs of
/// an ε, for the name, and its standard deviation.
pub fn settings(noise: &[(f64, f64)], n_drawn: usize, rng: &mut impl Rng) -> Vec<Setting> {
    let mut settings = Vec::new();
    for &(epsilon, std) in noise {
        let symmetric = |n: usize, right: f64| group(n, 0.5, right, 1.0 - right);
        let mut add = |name: &str, groups: Vec<TrueGroup>| settings.push(Setting::new(name, epsilon, std, groups));
        for (right, false_positive) in [(1.0, 0.0), (0.99, 0.0)] {
            let mut groups = vec![group(1_000, 0.5, right, false_positive); 5];
            groups.push(group(20_000, 0.5, right, false_positive));
            add(&format!("20,000 and five of 1,000, all {right} / {false_positive}"), groups);
        }
        add("two of 1,000 at .9", vec![symmetric(1_000, 0.9); 2]);
        add(".90 / .80 / .795", [0.9, 0.8, 0.795].map(|right| symmetric(2_000, right)).to_vec());
        add("1,000 of base rate .01", vec![group(1_000, 0.01, 0.8, 0.1), group(20_000, 0.01, 0.8, 0.1)]);
        add(".90 / .80 / .60", [0.9, 0.8, 0.6].map(|right| symmetric(2_000, right)).to_vec());
        if let Some(last) = settings.last_mut() {
            last.names_one = true;
        }
        for drawn in 0..n_drawn {
            let groups = draw(rng);
            settings.push(Setting::new(&format!("drawn {drawn}: {}", described(&groups)), epsilon, std, groups));
        }
    }
    settings
}

/// Groups that share none, some or all of size, base rate and rates.
fn draw(rng: &mut impl Rng) -> Vec<TrueGroup> {
    let (same_size, same_rates, extreme) = (rng.random_bool(0.4), rng.random_bool(0.4), rng.random_bool(0.3));
    let pick = |values: &[f64], rng: &mut _| values.choose(rng).copied().unwrap_or(0.5);
    let one = |rng: &mut _| {
        let rates: &[f64] = if extreme { &EXTREME_RATES } else { &RATES };
        let records = SIZES.choose(rng).copied().unwrap_or(1_000);
        group(records, pick(&BASE_RATES, rng), pick(rates, rng), pick(rates, rng))
    };
    let first = one(rng);
    let n_groups = NUMBERS_OF_GROUPS.choose(rng).copied().unwrap_or(2);
    let mut groups = Vec::with_capacity(n_groups);
    for _ in 0..n_groups {
        let mut own = one(rng);
        if same_size {
            (own.records, own.base_rate) = (first.records, first.base_rate);
        }
        if same_rates {
            own.true_positive_rate = first.true_positive_rate;
            own.false_positive_rate = first.false_positive_rate;
        }
        groups.push(own);
    }
    groups
}

/// The first groups as size / base rate / rates.
fn described(groups: &[TrueGroup]) -> String {
    let group = |group: &TrueGroup| {
        let TrueGroup { records, base_rate, true_positive_rate, false_positive_rate } = group;
        format!("{records}/{base_rate}/{true_positive_rate}/{false_positive_rate}")
    };
    let first: Vec<String> = groups.iter().take(3).map(group).collect();
    format!("{} groups, {}{}", groups.len(), first.join(" "), if groups.len() > 3 { " …" } else { "" })
}
