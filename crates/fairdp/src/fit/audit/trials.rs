//! What one unit changes in the score of a trial, and whether a fault shows.

use std::path::Path;

use dp_audit::one_run::{ReleaseBound, TwoSamples};
use dp_table::Encoding;
use rand::SeedableRng as _;
use rand_chacha::ChaCha20Rng;

use super::rows::{MadeRows, Shape};
use crate::config::{Config, Decision};
use crate::fit::trial_score::ScoreGoal;
use crate::hook;
use crate::model::{FittedModel, Layer, Pipeline};

const CONFIG: &str = "version = 1\n[table]\nfiles = [\"t.csv\"]\n[label]\ncolumn = \"y\"\nclasses = [\"0\", \"1\", \"2\"]\n\
    [privacy]\nepsilon = 1\ndelta = 1e-5\n[[group]]\ncolumn = \"g\"\nvalues = [\"a\", \"b\"]\n\
    [[column]]\nname = \"x\"\nkind = \"number\"\nlow = 0\nhigh = 1\nbins = 3\n\
    [[column]]\nname = \"z\"\nkind = \"category\"\nvalues = [\"u\", \"v\", \"w\"]\n";
/// Records of a unit.
const PER_UNIT: usize = 2;
const GOALS: [ScoreGoal; 2] = [ScoreGoal::Probabilities, ScoreGoal::WorstGroup { min_accuracy: 0.8 }];

/// A model that is nearly sure of what it answers.
fn model() -> FittedModel {
    let schema = Config::from_toml(CONFIG, Path::new("c.toml")).unwrap().schema(&|_| None).unwrap();
    let width = Encoding::new(&schema).unwrap().width();
    let weights = (0..3 * width).map(|place| [9.0, -7.0, 4.0, -11.0, 2.0][place % 5]).collect();
    let pipeline = Pipeline::new(schema, vec![0.5, 0.3, 0.2], Decision::Balanced);
    FittedModel::new(pipeline, vec![Layer { weights, biases: vec![0.0; 3] }]).unwrap()
}

/// Records without the unit of this kind, and with it.
fn worlds(shape: Shape<'_>, kind: usize, number: usize) -> [MadeRows; 2] {
    [None, Some(number)].map(|canary| {
        let mut rows = MadeRows::of_all_kinds(shape, 40);
        (0..PER_UNIT).for_each(|_| rows.push(shape, shape.kinds()[kind], canary));
        rows
    })
}

/// How far a unit moves the sums of a goal, at most, with what it is about.
fn replayed(goal: ScoreGoal, model: &FittedModel) -> (f64, usize, usize) {
    let shape = Shape { encoding: model.encoding() };
    let moved = |kind: usize, number: usize| {
        let [without, with] = worlds(shape, kind, number).map(|rows| goal.sums(model, &rows).unwrap());
        let squares = with.1.iter().zip(&without.1).map(|(a, b)| ((a - b) * with.0.step()).powi(2));
        squares.sum::<f64>().sqrt()
    };
    let all = (0..shape.kinds().len()).flat_map(|kind| (0..6).map(move |number| (kind, number)));
    all.map(|(kind, number)| (moved(kind, number), kind, number)).max_by(|a, b| a.0.total_cmp(&b.0)).unwrap()
}

/// Releases of the sums, with noise for units of two and without: seeds are fixed.
fn attacked(goal: ScoreGoal, model: &FittedModel, (kind, number): (usize, usize)) -> ReleaseBound {
    let shape = Shape { encoding: model.encoding() };
    let worlds = worlds(shape, kind, number);
    let [without, with] = worlds.each_ref().map(|rows| goal.sums(model, rows).unwrap().1);
    let along: Vec<f64> = with.iter().zip(&without).map(|(with, without)| with - without).collect();
    let sigma = 0.5;
    let mut rng = ChaCha20Rng::seed_from_u64(7);
    let test = TwoSamples { claimed_mu: 1.0 / sigma, repeats: 400, failure: 1e-3 };
    let bound = test.attack(|present| {
        let std = sigma * PER_UNIT as f64;
        let released = goal.released(model, &worlds[usize::from(present)], std, &mut rng).unwrap();
        Ok(released.iter().zip(&along).map(|(value, along)| value * along).sum())
    });
    bound.unwrap()
}

/// A unit moves the sums by as many records as it has, and no attack finds more. Half of the noise is found, and an
/// answer that is counted for two groups.
#[test]
fn scores_of_trials_stand_and_faults_are_found() {
    let (model, units) = (&model(), PER_UNIT as f64);
    for goal in GOALS {
        let (moved, kind, number) = replayed(goal, model);
        assert!(moved <= units * (1.0 + 1e-9) && moved > 0.9 * units, "{goal:?}: {moved}");
        let honest = attacked(goal, model, (kind, number));
        assert!(!honest.refuted() && honest.mu > 0.7 * honest.claimed_mu, "{goal:?}: {honest:?}");
        hook::HALF_THE_NOISE.set(true);
        let faulty = attacked(goal, model, (kind, number));
        hook::HALF_THE_NOISE.set(false);
        assert!(faulty.refuted(), "{goal:?}: {faulty:?}");
    }
    hook::ANSWERS_TWICE.set(true);
    let (moved, kind, number) = replayed(GOALS[1], model);
    let faulty = attacked(GOALS[1], model, (kind, number));
    hook::ANSWERS_TWICE.set(false);
    assert!(moved > 1.3 * units && faulty.refuted(), "{moved} {faulty:?}");
}
