//! From a CSV file to a private model, its statement, its accuracy by group, and predictions.
//!
//! ```sh
//! cargo run --release -p dp-train --example csv            # on a generated table
//! cargo run --release -p dp-train --example csv -- people.csv
//! ```
//!
//! The table has the columns `age`, `hours`, `job`, `sex` and `income`. Ranges and categories are
//! declared here and not read from the records: what the records say of them no ε would cover.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::{Read, Write};

use dp_train::{
    DType, Device, Execution, Model, Plan, PublicFacts, Randomness, Records, TrainConfig, Trainer, Unobserved,
};
use fair_metrics::{Groups, Labels, Predictions, accuracy_by_group};

type Outcome<T> = Result<T, Box<dyn Error>>;

const JOBS: [&str; 3] = ["clerk", "nurse", "farmer"];
const SEXES: [&str; 2] = ["female", "male"];
const INCOMES: [&str; 2] = ["low", "high"];
/// Age, hours, a column for each job.
const N_INPUTS: usize = 2 + JOBS.len();

const CONFIG: &str = r#"
    loss = "bce-with-logits"
    learning_rate = { constant = 1.0 }
    model = { name = "logistic-regression" }
    batches = { expected_size = 200, epochs = 20 }

    [privacy]
    method = "dpsgd-f"
    settings = { clip_norm = 0.5 }
    target_epsilon = 1.0
    delta = 1e-6
"#;

/// Records as numbers, row by row.
#[derive(Default)]
struct Encoded {
    features: Vec<f32>,
    labels: Vec<u32>,
    groups: Vec<usize>,
}

impl Encoded {
    fn push(&mut self, row: &BTreeMap<String, String>) -> Outcome<()> {
        let field = |name: &str| row.get(name).map(String::as_str).ok_or(format!("no column `{name}`"));
        let number = |name: &str| Ok::<f32, Box<dyn Error>>(field(name)?.parse()?);
        let one_of = |name: &str, declared: &[&str]| {
            let value = field(name)?;
            let place = declared.iter().position(|known| *known == value);
            place.ok_or(format!("{name}: `{value}` is not one of {}", declared.join(", ")))
        };
        // Declared ranges; a value outside is clamped.
        self.features.push(((number("age")? - 17.0) / 73.0).clamp(0.0, 1.0));
        self.features.push((number("hours")? / 80.0).clamp(0.0, 1.0));
        let job = one_of("job", &JOBS)?;
        self.features.extend((0..JOBS.len()).map(|column| f32::from(u8::from(column == job))));
        self.labels.push(one_of("income", &INCOMES)? as u32);
        self.groups.push(one_of("sex", &SEXES)?);
        Ok(())
    }

    fn records(&self) -> Outcome<Records> {
        let n_records = self.labels.len();
        let facts = PublicFacts { n_records, n_inputs: N_INPUTS, n_classes: INCOMES.len(), n_groups: SEXES.len() };
        Ok(Records::new(&self.features, &self.labels, &self.groups, facts, DType::F32, &Device::Cpu)?)
    }
}

/// Every fifth row is for tests. Its number decides, not what it holds.
fn read(csv: impl Read) -> Outcome<[Encoded; 2]> {
    let [mut train, mut test] = [Encoded::default(), Encoded::default()];
    for (number, row) in csv::Reader::from_reader(csv).deserialize().enumerate() {
        let part = if number % 5 == 4 { &mut test } else { &mut train };
        part.push(&row?).map_err(|error| format!("line {}: {error}", number + 2))?;
    }
    Ok([train, test])
}

/// Older people who work longer earn more, and farmers less.
pub(crate) fn generated() -> Vec<u8> {
    let mut csv = b"age,hours,job,sex,income\n".to_vec();
    for i in 0..10_000_usize {
        let (age, hours, job) = (17 + i * 7 % 73, i * 13 % 80, i * 11 % 3);
        let income = usize::from(age + hours > if job == 2 { 110 } else { 90 });
        let _ = writeln!(csv, "{age},{hours},{},{},{}", JOBS[job], SEXES[i / 3 % 2], INCOMES[income]);
    }
    csv
}

fn main() -> Outcome<()> {
    match std::env::args().nth(1) {
        Some(path) => on(File::open(path)?),
        None => on(generated().as_slice()),
    }
}

/// Everything, on this table.
pub(crate) fn on(csv: impl Read) -> Outcome<()> {
    let [train, test] = read(csv)?;
    let train = train.records()?;

    // The noise that keeps ε is found when the configuration is read.
    let plan = Plan::new(TrainConfig::from_toml(CONFIG, train.facts())?, train.facts())?;
    let mut trainer = Trainer::new(&plan, &train, Randomness::from_os()?.streams(0, 0)?, Execution::default())?;
    trainer.run(&mut Unobserved)?;

    // What it cost, for whom, under which conditions.
    let privacy = plan.config().privacy.as_ref().ok_or("no [privacy]")?;
    let statement = trainer.statement("one person's record", privacy.delta)?;
    println!("{statement}\n");
    assert!(statement.epsilon.epsilon().get() <= 1.0);

    // Weights, architecture and loss, in one file.
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("model.safetensors");
    trainer.model().save(&path, &plan.config().loss, &BTreeMap::new())?;

    // Elsewhere: the model of the file, and predictions of rows without labels.
    let predictions = Model::load(&path, &Device::Cpu)?.model.predict(&test.features)?;

    // The test records are not covered by this ε: their accuracy is for whoever may see them.
    let groups = Groups::new(&test.groups, SEXES.len())?;
    for (sex, accuracy) in
        SEXES.iter().zip(accuracy_by_group(Labels(&test.labels), Predictions(&predictions), &groups)?)
    {
        println!("{sex}: accuracy {accuracy}");
        assert!(accuracy.value.is_none_or(|value| value > 0.5));
    }
    Ok(())
}
