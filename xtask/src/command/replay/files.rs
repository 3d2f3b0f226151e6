//! From the bytes of a file to the sum: a line of a census file becomes extreme, and nobody else's
//! contribution moves.

use std::io::Write as _;
use std::num::NonZeroUsize;

use anyhow::Context;
use dp_accounting::{Delta, NoiseMultiplier};
use dp_audit::FixedStep;
use dp_audit::replay::{LayerKind, Neighbours, Report};
use dp_clipping::{MethodEntry, PresetParams, registry};
use dp_data::adult::{self, Adult, AdultOptions, AdultTable, Encoding, Number};
use dp_data::{Dataset, PublishedSet, ScalingFit};
use dp_train::{
    Activation, BatchPlan, DType, Device, Execution, LearningRate, Loss, Model, ModelConfig, Plan, PrivacyConfig,
    PublicFacts, Records, TrainConfig,
};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

/// Lines of a file.
const LINES: usize = 90;

/// Adds cases with each of these methods in turn.
///
/// # Errors
/// If a file cannot be written or read.
pub(super) fn replay(cases: u64, seed: u64, methods: &[&'static str], report: &mut Report) -> anyhow::Result<()> {
    let text = adult::synthetic_text(seed);
    let lines: Vec<&str> = text.lines().filter(|line| line.split(',').count() > 1).take(LINES).collect();
    for case in 0..cases {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        rng.set_stream(case);
        let method = methods[(case % methods.len() as u64) as usize];
        attack(&lines, registry::find(method)?, case, &mut rng, report)?;
    }
    Ok(())
}

/// One case: the file as it is and with a line made extreme; in both, the line's record is blanked
/// and not drawn.
fn attack(
    lines: &[&str],
    method: &'static MethodEntry,
    case: u64,
    rng: &mut ChaCha20Rng,
    report: &mut Report,
) -> anyhow::Result<()> {
    let line = rng.random_range(0..lines.len());
    let mut changed: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
    changed[line] = extreme(lines[line], rng)?;
    let changed: Vec<&str> = changed.iter().map(String::as_str).collect();
    let options = AdultOptions { scaling_fit: ScalingFit::Public, ..AdultOptions::new(Encoding::Zhao) };
    let (data, changed) = (read(lines, &options, case)?, read(&changed, &options, case)?);
    let differ = |i: &usize| {
        let of = |data: &Dataset| (data.features.row(*i).to_vec(), data.labels[*i], data.groups[*i]);
        of(&data) != of(&changed)
    };
    let differing: Vec<usize> = (0..data.len()).filter(differ).collect();
    anyhow::ensure!(data.len() == changed.len(), "a changed line changes how many records there are");
    anyhow::ensure!(differing.len() <= 1, "line {line} changes the inputs of {} records", differing.len());
    // In the test part, or without effect on the inputs: any record then.
    let record = differing.first().copied().unwrap_or(line % data.len());
    compare(&changed, record, method, case, rng, report)
}

fn compare(
    data: &Dataset,
    record: usize,
    method: &'static MethodEntry,
    case: u64,
    rng: &mut ChaCha20Rng,
    report: &mut Report,
) -> anyhow::Result<()> {
    let facts = PublicFacts {
        n_records: data.len(),
        n_inputs: data.n_inputs(),
        n_classes: data.class_names.len(),
        n_groups: data.group_names.len(),
    };
    let features = data.features.as_slice().context("features in the order of rows")?;
    let records = Records::new(features, &data.labels, &data.groups, facts, DType::F32, &Device::Cpu)?;
    let model = match case % 3 {
        0 => ModelConfig::LogisticRegression,
        1 => ModelConfig::Mlp { hidden: vec![8], activation: Activation::Relu },
        _ => ModelConfig::Mlp { hidden: vec![6, 4], activation: Activation::Tanh },
    };
    let params = PresetParams { clip_norm: 10_f64.powf(rng.random_range(-3.0..0.5)), ..PresetParams::default() };
    let privacy = PrivacyConfig::new(method.config(&params)?, NoiseMultiplier::new(1.0)?, Delta::new(1e-9)?);
    let batches = BatchPlan::exact(facts, data.len() / 2, 1)?;
    let config = TrainConfig::new(model.clone(), Loss::BceWithLogits, batches, LearningRate::Constant(0.1));
    let plan = Plan::new(TrainConfig { privacy: Some(privacy), ..config }, facts)?;
    let initial = Model::new(&model, facts.n_inputs, 1, DType::F32, &Device::Cpu)?;
    initial.initialise(rng)?;
    let fixed = FixedStep::first(&plan, case, || rng.random_range(0.0..data.len() as f64))?;
    let mut batch: Vec<usize> = (0..data.len()).collect();
    batch.retain(|&row| row == record || rng.random());
    let neighbours = Neighbours {
        plan: &plan,
        records: &records,
        blanked: &records.blanked(&[record])?,
        parameters: &initial.parameters().to_vec()?,
        fixed: &fixed,
        batch: &batch,
        record,
        execution: Execution::default(),
        ranks: NonZeroUsize::MIN,
        otherwise: case.is_multiple_of(10).then(|| Execution { micro_batch: Some(7), ..Execution::default() }),
    };
    let names = (LayerKind::Linear.name(), method.name, "file");
    report.note(names, (0, case), &neighbours.compare()?, || format!("Adult file, {} of {LINES} lines", batch.len()));
    Ok(())
}

/// The line with some of its numbers at an end of their ranges.
fn extreme(line: &str, rng: &mut ChaCha20Rng) -> anyhow::Result<String> {
    /// Where the numeric columns are in a line of the published file.
    const COLUMNS: [(Number, usize); 6] = [
        (Number::Age, 0),
        (Number::FinalWeight, 2),
        (Number::EducationNum, 4),
        (Number::CapitalGain, 10),
        (Number::CapitalLoss, 11),
        (Number::HoursPerWeek, 12),
    ];
    let mut fields: Vec<String> = line.split(',').map(|field| field.trim().to_owned()).collect();
    let picked: Vec<(Number, usize)> = COLUMNS.choose_multiple(rng, 3).copied().collect();
    for (number, column) in picked {
        let (least, most) = number.range();
        let field = fields.get_mut(column).context("a line of fifteen fields")?;
        *field = if rng.random() { least } else { most }.to_string();
    }
    Ok(fields.join(", "))
}

/// The training part of a file of these lines.
fn read(lines: &[&str], options: &AdultOptions, seed: u64) -> anyhow::Result<Dataset> {
    let mut file = tempfile::Builder::new().suffix(".data").tempfile()?;
    file.write_all(lines.join("\n").as_bytes())?;
    file.flush()?;
    let table = AdultTable::from_files(&[file.path()])?;
    Ok(Adult.split(&table.records, options, seed)?.train)
}
