//! The decomposition of a step against its definition, worked out over every batch there is.

use dp_clipping::{ClipBatch, PresetParams, PublicContext};
use dp_train::analysis::{
    Analyser, AnalysisSettings, Curvature, DecompositionObserver, EigenvalueSearch, StepDecomposition,
};
use dp_train::{
    Activation, DType, Device, Engine, Execution, ModelConfig, Observer, OptimiserConfig, Plan, Purpose, Randomness,
    Records, Result, StepState, TrainConfig, Trainer,
};

use crate::support::{Data, batches, config, mlp, norm, parameters, privacy, privacy_with, streams};

/// Every record, several hundred batches: what is left is the sampling of batches alone.
const THOROUGH: AnalysisSettings = AnalysisSettings {
    batches: 600,
    curvature_records: usize::MAX,
    probes: 200,
    probe_records: usize::MAX,
    eigenvalues: Some(EigenvalueSearch { iterations: 300, records: usize::MAX }),
    micro_batch: 3,
    threads: 2,
};

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Gradient of every record.
fn gradients(plan: &Plan, records: &Records, at: &[f64]) -> Vec<Vec<f64>> {
    let mut engine = Engine::new(&plan.config().model, plan.config().loss.clone(), records, &Device::Cpu).unwrap();
    engine.model().parameters().set(at).unwrap();
    let sum = engine.zero_gradient().unwrap();
    (0..records.len())
        .map(|row| {
            engine.differentiate(records, &[row], &[]).unwrap();
            engine.weighted_sum(&[1.0], &sum, false).unwrap();
            sum.to_vec().unwrap()
        })
        .collect()
}

/// `R^clip`, `R^mag`, `R^dir`, `R^mag*`, `R^dir*` of each group as printed in Propositions 1, 2 and
/// 2*, with the expectation over all `2ⁿ` batches, for a method whose scales depend on nothing but
/// the record. All second derivatives by products with `H_a`.
fn by_definition(plan: &Plan, records: &Records, at: &[f64], rate: f64) -> Vec<[f64; 5]> {
    let gradients = gradients(plan, records, at);
    let norms: Vec<f64> = gradients.iter().map(|g| norm(g)).collect();
    let context: &PublicContext = plan.context();
    let mut method = plan.config().privacy.as_ref().unwrap().clipping.build(context).unwrap();
    let clip_batch = ClipBatch::new(&norms, records.groups());
    let mut rng = Randomness::from_seed(0).stream(Purpose::Counts, 0, 0).unwrap();
    let scales = method.clip(&clip_batch, &mut rng).unwrap().scales;
    let mut curvature = Curvature::new(&plan.config().model, plan.config().loss.clone(), records).unwrap();
    curvature.set_parameters(at).unwrap();

    let (n, q) = (records.len(), plan.config().batches.sampling_rate.get());
    let sum = |weights: &dyn Fn(usize) -> f64, over: f64| {
        let mut sum = vec![0.0; at.len()];
        for (row, gradient) in gradients.iter().enumerate() {
            sum.iter_mut().zip(gradient).for_each(|(s, g)| *s += weights(row) * g / over);
        }
        sum
    };
    let whole = sum(&|_| 1.0, n as f64);
    let whole_clipped = sum(&|row| scales[row], n as f64);
    (0..records.facts().n_groups)
        .map(|group| {
            let rows: Vec<usize> = (0..n).filter(|&row| records.groups()[row] == group).collect();
            let of_group = sum(&|row| f64::from(u8::from(rows.contains(&row))), rows.len() as f64);
            let mut bend = |v: &[f64]| dot(v, &curvature.product(records, &rows, v).unwrap());
            // E[r p], E[(r² − 1) pᵀHp], E[cᵀHc − r² pᵀHp] and so on, as sums over batches.
            let mut e = [0.0; 7];
            for batch in 0..1_u32 << n {
                let size = batch.count_ones().cast_signed();
                let chance = q.powi(size) * (1.0 - q).powf(n as f64 - f64::from(size));
                let drawn = |row: usize| f64::from(batch >> row & 1);
                let p = sum(&drawn, q * n as f64);
                let c = sum(&|row| drawn(row) * scales[row], q * n as f64);
                if size == 0 {
                    continue;
                }
                let r = norm(&c) / norm(&p);
                let (php, chc) = (bend(&p), bend(&c));
                let values = [
                    r * dot(&of_group, &p),
                    dot(&of_group, &c) / r,
                    (r * r - 1.0) * php,
                    chc - r * r * php,
                    (1.0 - 1.0 / (r * r)) * chc,
                    chc / (r * r) - php,
                    chc - php,
                ];
                e.iter_mut().zip(values).for_each(|(total, value)| *total += chance * value);
            }
            let (exact, clipped) = (dot(&of_group, &whole), dot(&of_group, &whole_clipped));
            let half = rate * rate / 2.0;
            [
                rate * (exact - clipped) + half * e[6],
                rate * (exact - e[0]) + half * e[2],
                rate * (e[0] - clipped) + half * e[3],
                rate * (e[1] - clipped) + half * e[4],
                rate * (exact - e[1]) + half * e[5],
            ]
        })
        .collect()
}

fn private(model: ModelConfig, steps: u64, method: &str) -> TrainConfig {
    config(model, batches(0.5, steps), Some(privacy(method)))
}

/// Keeps the state of the first step.
fn analyse(plan: &Plan, records: &Records, settings: AnalysisSettings, seed: u64) -> (StepDecomposition, Vec<f64>) {
    let mut trainer = Trainer::new(plan, records, streams(3), Execution::default()).unwrap();
    let at = parameters(&mut trainer);
    let mut rng = Randomness::from_seed(seed).stream(Purpose::Analysis, 0, 0).unwrap();
    let analyser = Analyser::new(plan, records, settings, &mut rng).unwrap();
    let mut observer = DecompositionObserver::new(analyser, 1);
    trainer.step(&mut observer).unwrap();
    (observer.into_steps().remove(0), at)
}

/// Ten terms of two groups for two methods, each within 4 standard errors of its exact value: by
/// chance beyond, 1e-3; seeds are fixed.
#[test]
fn terms_are_those_of_the_propositions() {
    for method in ["dpsgd", "dpsgd-global"] {
        let data = Data::random(8, 3, 2, 2, 21);
        let records = data.records(DType::F64);
        let plan = Plan::new(private(mlp(&[3], Activation::Tanh), 1, method), records.facts()).unwrap();
        let (found, at) = analyse(&plan, &records, THOROUGH, 4);
        let exact = by_definition(&plan, &records, &at, 0.1);
        for (group, exact) in found.groups.iter().zip(exact) {
            let group = group.as_ref().unwrap();
            let terms = [group.clip, group.magnitude, group.direction, group.magnitude_star, group.direction_star];
            for (term, exact) in terms.iter().zip(exact) {
                let error = term.standard_error.unwrap();
                assert!((term.mean - exact).abs() < 4.0 * error + 1e-9, "{method}: {term:?} {exact}");
                assert!(error < 0.05 * exact.abs().max(0.01), "{method}: {term:?} {exact}");
            }
            let size = group.clip.mean.abs().max(1e-3);
            assert!((group.magnitude.mean + group.direction.mean - group.clip.mean).abs() < 1e-12 * size);
            assert!((group.magnitude_star.mean + group.direction_star.mean - group.clip.mean).abs() < 1e-12 * size);
        }
    }
}

/// A global bound that nothing exceeds scales all alike: no error of direction. `Z = 50`, `C0 =
/// 0.5`.
#[test]
fn scaling_all_alike_has_no_error_of_direction() {
    let records = Data::random(40, 4, 2, 2, 22).records(DType::F32);
    let plan = Plan::new(private(mlp(&[5], Activation::Tanh), 1, "dpsgd-global"), records.facts()).unwrap();
    let (found, _) = analyse(&plan, &records, AnalysisSettings::default(), 5);
    for group in found.groups.iter().flatten() {
        assert!(group.direction.mean.abs() < 1e-6 * group.magnitude.mean.abs(), "{group:?}");
        assert!((group.plain_cosine.mean - group.clipped_cosine.mean).abs() < 1e-6);
        let (before, after) = (group.sample_norm.unwrap(), group.clipped_sample_norm.unwrap());
        assert!((after / before - 0.01).abs() < 1e-6);
    }
}

/// `R^noise` and its bounds of the trace, and the condition on the learning rate, from figures that
/// are reported beside them.
#[test]
fn noise_and_bounds_by_hand() {
    let records = Data::random(60, 4, 2, 2, 23).records(DType::F64);
    let plan = Plan::new(private(ModelConfig::LogisticRegression, 1, "dpsgd"), records.facts()).unwrap();
    let (found, _) = analyse(&plan, &records, THOROUGH, 6);
    let groups: Vec<_> = found.groups.iter().flatten().collect();
    for group in &groups {
        // η = 0.1, σ = 1, S = 0.5, B = 30.
        let printed = 0.1 * 0.1 / 2.0 * group.trace.mean * 0.25;
        // σS√d over the expected records of the group, with 10 parameters.
        let error = group.error.unwrap();
        assert!((error.noise.mean / (0.5 * 10.0_f64.sqrt() / (30.0 * group.share)) - 1.0).abs() < 1e-12);
        assert!(error.bias.mean > 0.0 && error.best.mean > 0.0, "{error:?}");
        assert!((group.noise_as_printed.mean / printed - 1.0).abs() < 1e-6);
        assert!((group.noise.mean / (printed / 900.0) - 1.0).abs() < 1e-6);
        // A convex loss: the trace is the sum of eigenvalues that are not negative.
        let largest = group.largest_eigenvalue.unwrap();
        assert!(largest.value > 0.0 && largest.value <= group.trace.mean + 3.0 * group.trace.standard_error.unwrap());
        assert_eq!(largest.n_records as f64, group.share * 60.0);
    }
    assert_eq!(found.rate_condition(), Some(true));
    for (a, b) in [(0, 1), (1, 0)] {
        let bounds = found.risk_gap_bounds(a, b).unwrap();
        let slopes = groups[a].direction_slope.mean - groups[b].direction_slope.mean;
        assert!((bounds.proposition_3 - 0.1 * (slopes - found.clipped_sq_norm.mean)).abs() < 1e-15);
        // Convex, and the condition holds: these are bounds, the one with eigenvalues the closer.
        let with_eigenvalues = bounds.with_eigenvalues.unwrap();
        assert!(bounds.proposition_3 <= with_eigenvalues && with_eigenvalues <= bounds.direction_gap);
        assert!(bounds.proposition_3_star <= bounds.direction_star_gap);
        assert!(bounds.tran.unwrap() <= bounds.clip_gap);
        assert_eq!(bounds.direction_gap, groups[a].direction.mean - groups[b].direction.mean);
    }
    assert_eq!(found.risk_gap_bounds(0, 2), None);
}

/// With every record in every batch, the clipped gradient of a FairLens step is what the run moves
/// by, up to its noise: 1e-6 of the bound.
#[test]
fn fairlens_is_clipped_as_the_run_clips() {
    let records = Data::random(30, 3, 2, 2, 28).records(DType::F64);
    let params = PresetParams { clip_norm: 0.5, ..PresetParams::default() };
    let privacy = |method: &str| privacy_with(method, 1e-6, &params);
    let step = |method: &str| {
        let config = config(mlp(&[4], Activation::Tanh), batches(1.0, 1), Some(privacy(method)));
        let plan = Plan::new(config, records.facts()).unwrap();
        let mut trainer = Trainer::new(&plan, &records, streams(3), Execution::default()).unwrap();
        let start = parameters(&mut trainer);
        let mut rng = Randomness::from_seed(9).stream(Purpose::Analysis, 0, 0).unwrap();
        let analyser = Analyser::new(&plan, &records, AnalysisSettings::default(), &mut rng).unwrap();
        let mut observer = DecompositionObserver::new(analyser, 1);
        trainer.step(&mut observer).unwrap();
        let used: Vec<f64> = start.iter().zip(parameters(&mut trainer)).map(|(a, b)| (a - b) / 0.1).collect();
        (observer.into_steps().remove(0), norm(&used))
    };
    let (dpsgd, _) = step("dpsgd");
    let (fairlens, used) = step("fairlens");
    assert!((fairlens.clipped_sq_norm.mean.sqrt() / used - 1.0).abs() < 1e-5, "{:?} {used}", fairlens.clipped_sq_norm);
    assert!((fairlens.clipped_sq_norm.mean / dpsgd.clipped_sq_norm.mean - 1.0).abs() > 1e-3);
    assert!((fairlens.plain_sq_norm.mean / dpsgd.plain_sq_norm.mean - 1.0).abs() < 1e-9);
}

/// A subsample of records gives the same on average: the trace over few records per probe is within
/// 4 standard errors of the one over all.
#[test]
fn subsampled_curvature_is_unbiased() {
    let records = Data::random(200, 4, 3, 2, 24).records(DType::F64);
    let plan = Plan::new(private(mlp(&[6], Activation::Tanh), 1, "dpsgd"), records.facts()).unwrap();
    let all = AnalysisSettings { probes: 400, batches: 4, eigenvalues: None, ..THOROUGH };
    let (all, _) = analyse(&plan, &records, all, 7);
    let few = AnalysisSettings { probes: 400, probe_records: 3, ..AnalysisSettings::default() };
    let (few, _) = analyse(&plan, &records, few, 8);
    for (all, few) in all.groups.iter().flatten().zip(few.groups.iter().flatten()) {
        let error = few.trace.standard_error.unwrap().hypot(all.trace.standard_error.unwrap());
        assert!((all.trace.mean - few.trace.mean).abs() < 4.0 * error, "{:?} {:?}", all.trace, few.trace);
        assert!(few.trace.standard_error > all.trace.standard_error);
    }
}

/// Number of threads and micro-batch change nothing but rounding; a group without a record has no
/// terms.
#[test]
fn threads_change_nothing_and_an_absent_group_has_no_terms() {
    let mut data = Data::random(50, 4, 2, 2, 25);
    data.facts.n_groups = 3;
    let records = data.records(DType::F64);
    let plan = Plan::new(private(mlp(&[5], Activation::Tanh), 1, "dpsgd-f"), records.facts()).unwrap();
    let one = analyse(&plan, &records, AnalysisSettings::default(), 9).0;
    let three = analyse(&plan, &records, AnalysisSettings { threads: 3, ..AnalysisSettings::default() }, 9).0;
    assert_eq!(one, three);
    assert!(one.groups[2].is_none());
    assert_eq!(one.thresholds.len(), 3);
}

/// A run that is taken apart at every second step is, bit for bit, the run that nobody looks at.
#[test]
fn an_observed_run_is_the_same_run() {
    struct Keep(Vec<Vec<f64>>);
    impl Observer for Keep {
        fn wants_state(&self, _: u64) -> bool {
            true
        }
        fn before_step(&mut self, state: &StepState<'_>) -> Result<()> {
            self.0.push(state.parameters.to_vec());
            Ok(())
        }
    }
    let records = Data::random(80, 4, 2, 2, 26).records(DType::F32);
    for method in ["dpsgd", "dpsgd-f", "dpsgd-global-adapt"] {
        let plan = Plan::new(private(mlp(&[5], Activation::Tanh), 9, method), records.facts()).unwrap();
        let mut unobserved = Trainer::new(&plan, &records, streams(5), Execution::default()).unwrap();
        let mut plain = Keep(Vec::new());
        unobserved.run(&mut plain).unwrap();

        let mut rng = Randomness::from_seed(1).stream(Purpose::Analysis, 0, 0).unwrap();
        let analyser = Analyser::new(&plan, &records, AnalysisSettings::default(), &mut rng).unwrap();
        let mut both = (Keep(Vec::new()), DecompositionObserver::new(analyser, 2));
        let mut observed = Trainer::new(&plan, &records, streams(5), Execution::default()).unwrap();
        observed.run(&mut both).unwrap();
        assert_eq!(both.0.0, plain.0);
        assert_eq!(parameters(&mut observed), parameters(&mut unobserved));
        let steps: Vec<u64> = both.1.into_steps().iter().map(|step| step.step).collect();
        assert_eq!(steps, [0, 2, 4, 6, 8]);
    }
}

#[test]
fn what_cannot_be_analysed_is_refused() {
    let records = Data::random(20, 2, 2, 2, 27).records(DType::F64);
    let refuse = |config: TrainConfig, settings: AnalysisSettings| {
        let plan = Plan::new(config, records.facts()).unwrap();
        let mut rng = Randomness::from_seed(1).stream(Purpose::Analysis, 0, 0).unwrap();
        Analyser::new(&plan, &records, settings, &mut rng).err().unwrap().to_string()
    };
    let settings = AnalysisSettings::default();
    let lr = ModelConfig::LogisticRegression;
    insta::assert_snapshot!(
        refuse(config(lr.clone(), batches(0.5, 1), None), settings),
        @"privacy = none: expected a private plan: without clipping there is no error of it"
    );
    insta::assert_snapshot!(
        refuse(private(lr.clone(), 1, "direction-only"), settings),
        @"privacy.clipping.coupling = DirectionOnly: expected None or the paper's Fairlens, whose steps have both errors of clipping and noise"
    );
    insta::assert_snapshot!(
        refuse(private(lr.clone(), 1, "dpsgd"), AnalysisSettings { batches: 1, ..settings }),
        @"analysis.batches = 1: expected at least 2"
    );
    let momentum = OptimiserConfig::Momentum { momentum: 0.9, nesterov: false };
    insta::assert_snapshot!(
        refuse(TrainConfig { optimiser: momentum, ..private(lr, 1, "dpsgd") }, settings),
        @"optimiser = Momentum { momentum: 0.9, nesterov: false }: expected Sgd, whose step is the gradient's"
    );
}
