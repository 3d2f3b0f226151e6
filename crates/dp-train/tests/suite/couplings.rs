//! Methods whose records act on each other, one step at a time, against the definition.

use dp_accounting::DpEvent;
use dp_train::{Activation, DType, Device, Engine, Execution, ModelConfig, Plan, Records, Trainer, Unobserved};

use crate::support::{Data, batches, config, mlp, norm, parameters, privacy, relative_error, streams};

/// One step at rate 0.1 on every record: the plan, and minus ten times the step, which is the
/// gradient that was used.
fn one_step(model: ModelConfig, method: &str, records: &Records) -> (Plan, Vec<f64>, Vec<f64>) {
    let plan = Plan::new(config(model, batches(1.0, 1), Some(privacy(method))), records.facts()).unwrap();
    let execution = Execution { micro_batch: Some(7), ..Execution::default() };
    let mut trainer = Trainer::new(&plan, records, streams(2), execution).unwrap();
    let start = parameters(&mut trainer);
    trainer.step(&mut Unobserved).unwrap();
    let used = start.iter().zip(parameters(&mut trainer)).map(|(a, b)| (a - b) / 0.1).collect();
    (plan, start, used)
}

/// Plain and clipped mean gradient, `C = 0.5`.
fn plain_and_clipped(plan: &Plan, records: &Records, at: &[f64]) -> [Vec<f64>; 2] {
    let mut engine = Engine::new(&plan.config().model, plan.config().loss.clone(), records, &Device::Cpu).unwrap();
    engine.model().parameters().set(at).unwrap();
    let rows: Vec<usize> = (0..records.len()).collect();
    engine.differentiate(records, &rows, &[]).unwrap();
    let norms = engine.gradient_norms().unwrap();
    let sum = engine.zero_gradient().unwrap();
    [|_| 1.0, |norm: f64| (0.5 / norm).min(1.0)].map(|scale: fn(f64) -> f64| {
        let weights: Vec<f64> = norms.iter().map(|&norm| scale(norm) / records.len() as f64).collect();
        engine.weighted_sum(&weights, &sum, false).unwrap();
        sum.to_vec().unwrap()
    })
}

#[test]
fn one_error_of_clipping_at_a_time_and_no_noise() {
    let records = Data::random(30, 4, 3, 2, 31).records(DType::F64);
    let model = || mlp(&[6], Activation::Tanh);
    for (method, length_of, direction_of) in [("magnitude-only", 1, 0), ("direction-only", 0, 1)] {
        let (plan, start, used) = one_step(model(), method, &records);
        let gradients = plain_and_clipped(&plan, &records, &start);
        let factor = norm(&gradients[length_of]) / norm(&gradients[direction_of]);
        let expected: Vec<f64> = gradients[direction_of].iter().map(|g| factor * g).collect();
        // The clipped sum keeps a headroom of a few parts in a million under its bound.
        assert!(relative_error(&used, &expected) < 1e-5, "{method}: {}", relative_error(&used, &expected));
        assert!(norm(&gradients[0]) > 1.05 * norm(&gradients[1]));
        assert_eq!(plan.step_event(), &DpEvent::NonPrivate);
        assert!(!plan.certified());
    }
}

/// With both regularisers at weight 0, FairLens is DPSGD bit for bit; with weights it is not, and
/// it stays within the bound of the noise.
#[test]
fn fairlens_without_regularisers_is_dpsgd() {
    let records = Data::random(40, 3, 2, 3, 32).records(DType::F64);
    let model = || mlp(&[5], Activation::Tanh);
    let run = |name: &str, weights: Option<[f64; 2]>| {
        let mut privacy = privacy(name);
        if let Some([gamma_1, gamma_2]) = weights {
            privacy.clipping.coupling =
                dp_clipping::Coupling::Fairlens { gamma_1, gamma_2, form: dp_clipping::FairlensForm::Paper };
        }
        let plan = Plan::new(config(model(), batches(0.5, 4), Some(privacy)), records.facts()).unwrap();
        let mut trainer = Trainer::new(&plan, &records, streams(4), Execution::default()).unwrap();
        trainer.run(&mut Unobserved).unwrap();
        (parameters(&mut trainer), plan.step_event().clone(), plan.certified())
    };
    let (dpsgd, event, certified) = run("dpsgd", None);
    let (zero, nominal, fairlens_certified) = run("fairlens", Some([0.0, 0.0]));
    assert!(relative_error(&zero, &dpsgd) < 1e-12);
    assert_eq!((event, certified), (nominal, true));
    assert!(!fairlens_certified);
    let (regularised, ..) = run("fairlens", Some([1.0, 1.0]));
    assert!(relative_error(&regularised, &dpsgd) > 1e-4);
}

/// Empty batches, a group that is absent, and records that are not finite: a step is still a step.
#[test]
fn fairlens_at_the_edges() {
    let mut data = Data::random(12, 2, 2, 3, 33);
    data.features_of(3)[0] = f32::NAN;
    data.groups.iter_mut().for_each(|group| *group = (*group).min(1));
    let records = data.records(DType::F32);
    for rate in [1e-9, 0.2, 1.0] {
        let plan = Plan::new(
            config(ModelConfig::LogisticRegression, batches(rate, 5), Some(privacy("fairlens"))),
            records.facts(),
        )
        .unwrap();
        let mut trainer = Trainer::new(&plan, &records, streams(6), Execution::default()).unwrap();
        trainer.run(&mut Unobserved).unwrap();
        assert!(parameters(&mut trainer).iter().all(|p| p.is_finite()), "{rate}");
    }
}
