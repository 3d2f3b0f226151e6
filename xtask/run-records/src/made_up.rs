//! Made-up records in the shape of Esipova's Table 4, for tests: arithmetic, no training.

#![expect(clippy::unwrap_used, reason = "for tests alone, which may panic")]

use dp_accounting::Mark;

use crate::{
    DatasetRecord, EpochRecord, EpsilonRecord, ExperimentResults, GroupMetrics, GroupSize, MethodResults,
    MetricsRecord, ModelRecord, PrivacyRecord, RecomputedEpsilon, RunRecord, SessionRecord, StudyResults,
    ThresholdRecord, mark_epsilon,
};

/// What a made-up method ends with: accuracy and loss of male and female.
struct Ending {
    method: &'static str,
    accuracy: [f64; 2],
    loss: [f64; 2],
}

const ENDINGS: [Ending; 5] = [
    Ending { method: "non-private", accuracy: [0.805, 0.922], loss: [0.40, 0.19] },
    Ending { method: "dpsgd", accuracy: [0.699, 0.885], loss: [0.78, 0.40] },
    Ending { method: "dpsgd-f", accuracy: [0.760, 0.894], loss: [0.52, 0.31] },
    Ending { method: "dpsgd-global", accuracy: [0.720, 0.899], loss: [0.43, 0.25] },
    Ending { method: "dpsgd-global-adapt", accuracy: [0.807, 0.923], loss: [0.39, 0.18] },
];

const N_SEEDS: usize = 5;
const N_EPOCHS: usize = 20;
const STEPS_PER_EPOCH: usize = 92;

/// One experiment named `esipova-adult` on real data, complete.
pub fn study() -> StudyResults {
    StudyResults {
        study: "adult".to_owned(),
        sessions: vec![SessionRecord {
            command: ["cargo", "xtask", "reproduce", "adult"].map(str::to_owned).into(),
            code_revision: "0123456789ab".to_owned(),
            host: "a machine with 2 cores".to_owned(),
            threads: 2,
            n_runs: 25,
            wall_seconds: 41.5,
        }],
        private: false,
        seed: Some(7),
        split_seed: 7,
        quick: false,
        synthetic: false,
        experiments: vec![experiment()],
    }
}

fn experiment() -> ExperimentResults {
    ExperimentResults {
        id: "esipova-adult".to_owned(),
        title: "Adult as in Esipova 2023, MLP 2×256 tanh".to_owned(),
        departures: vec!["Poisson batches are divided by the expected batch size.".to_owned()],
        dataset: DatasetRecord {
            name: "adult".to_owned(),
            synthetic: false,
            source: "adult.data and adult.test in a given directory".to_owned(),
            digest: "5b00".repeat(16),
            encoding: "esipova".to_owned(),
            n_inputs: 98,
            group_attribute: "sex".to_owned(),
            groups: vec![
                GroupSize { name: "male".to_owned(), n_train: 11_200, n_test: 2_800 },
                GroupSize { name: "female".to_owned(), n_train: 11_200, n_test: 2_800 },
            ],
            classes: vec!["<=50K".to_owned(), ">50K".to_owned()],
            notes: vec!["14,000 records of each sex, drawn once per seed.".to_owned()],
            one_partition: false,
        },
        model: ModelRecord { name: "mlp-2x256-tanh".to_owned(), n_params: 91_650 },
        methods: ENDINGS.iter().map(method).collect(),
    }
}

fn method(ending: &Ending) -> MethodResults {
    let private = ending.method != "non-private";
    let epsilon = |accountant: &str, epsilon| EpsilonRecord {
        accountant: accountant.to_owned(),
        epsilon: mark_epsilon(epsilon, true, None),
    };
    let privacy = private.then(|| PrivacyRecord {
        certified: true,
        scope: None,
        delta: 1e-6,
        sampling_rate: Some(1.0 / 92.0),
        noise_multiplier: Some(1.0),
        count_noise_multipliers: if ending.method == "dpsgd-f" { vec![10.0] } else { Vec::new() },
        steps: Some((N_EPOCHS * STEPS_PER_EPOCH) as u64),
        search: None,
        epsilons: vec![epsilon("RDP, improved conversion", 3.412), epsilon("RDP, classic conversion", 3.871)],
        as_published: Some(RecomputedEpsilon {
            accountant: "RDP, improved conversion".to_owned(),
            epsilon: 3.408,
            mark: Mark::Nominal,
        }),
        published: Some(3.41),
        ledger: ledger(ending.method == "dpsgd-f"),
    });
    MethodResults {
        method: ending.method.to_owned(),
        base: ending.method.to_owned(),
        coordinates: Vec::new(),
        config: serde_json::json!({ "learning_rate": 0.01 }),
        privacy,
        runs: (0..N_SEEDS).map(|index| run(ending, index)).collect(),
        failures: Vec::new(),
    }
}

/// The ledger of a run, as a plan of these steps would leave it.
fn ledger(with_counts: bool) -> serde_json::Value {
    let sigma = |value| dp_accounting::NoiseMultiplier::new(value).unwrap();
    let query = if with_counts {
        dp_accounting::DpEvent::joint_gaussian([sigma(1.0), sigma(10.0)])
    } else {
        dp_accounting::DpEvent::gaussian(sigma(1.0))
    };
    let rate = dp_accounting::SamplingRate::new(1.0 / 92.0).unwrap();
    let mut ledger = dp_accounting::Ledger::new(dp_train::Plan::RELATION);
    ledger.record(&query.poisson_sampled(rate), (N_EPOCHS * STEPS_PER_EPOCH) as u64).unwrap();
    serde_json::to_value(ledger).unwrap()
}

fn run(ending: &Ending, index: usize) -> RunRecord {
    // Spreads the seeds evenly: −1, −½, 0, ½, 1.
    let seed = index as f64 / 2.0 - 1.0;
    let metrics = |group: usize, n: usize| GroupMetrics {
        n,
        accuracy: Some(ending.accuracy[group] + 0.004 * seed + 0.001 * seed * (group as f64 - ending.loss[0])),
        loss: Some(ending.loss[group] + 0.004 * seed * (1.0 + ending.loss[group])),
    };
    let record = |n: usize| {
        let (male, female) = (metrics(0, n), metrics(1, n));
        let half = |a: Option<f64>, b: Option<f64>| Some(f64::midpoint(a?, b?));
        MetricsRecord {
            overall: GroupMetrics {
                n: 2 * n,
                accuracy: half(male.accuracy, female.accuracy),
                loss: half(male.loss, female.loss),
            },
            groups: vec![male, female],
            class_recall: vec![Some(0.93), Some(0.52)],
            class_sizes: vec![n, n],
            group_recalls: Vec::new(),
        }
    };
    RunRecord {
        index,
        seconds: 1.6,
        n_non_finite: 0,
        n_empty_batches: 0,
        group_epsilons: Vec::new(),
        epochs: (1..=N_EPOCHS).map(|epoch| epoch_record(ending, seed, epoch)).collect(),
        thresholds: thresholds(ending.method, seed),
        test: record(2_800),
        validation: None,
        train: record(11_200),
        analysis: None,
        search: None,
        provenance: None,
    }
}

fn epoch_record(ending: &Ending, seed: f64, epoch: usize) -> EpochRecord {
    let decay = (-(epoch as f64) / 5.0).exp();
    let by_group = |scale: f64, offset: [f64; 2]| {
        offset.iter().map(|end| Some((end + (scale - end) * decay) * (1.0 + 0.03 * seed))).collect()
    };
    EpochRecord {
        epoch,
        step: (epoch * STEPS_PER_EPOCH) as u64,
        loss: by_group(0.69, ending.loss),
        gradient_norm: by_group(2.0, [4.0 * ending.loss[0], 4.0 * ending.loss[1]]),
        clipped_gradient_norm: by_group(0.5, [ending.loss[0], ending.loss[1]]),
        mean_gradient_norm: vec![None, None],
    }
}

fn thresholds(method: &str, seed: f64) -> Vec<ThresholdRecord> {
    let every = |values: &dyn Fn(f64) -> Vec<f64>| {
        (0..N_EPOCHS * STEPS_PER_EPOCH)
            .step_by(4)
            .map(|step| ThresholdRecord { step: step as u64, values: values(step as f64) })
            .collect()
    };
    match method {
        "dpsgd-f" => every(&|step| {
            let wave = (step / 60.0 + seed).sin();
            vec![0.9 + 0.02 * wave, 0.7 - 0.03 * wave * (1.0 + seed)]
        }),
        "dpsgd-global-adapt" => every(&|step| vec![0.6 + 50.0 * (-0.01 * step).exp() * (1.0 + 0.1 * seed)]),
        "non-private" => Vec::new(),
        _ => every(&|_| vec![0.5]),
    }
}
