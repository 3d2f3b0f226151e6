//! The replay: many cases, over all methods, kinds of layer and attacks.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};

use dp_clipping::{MethodEntry, registry};
use dp_engine::{Device, LayerConfig};
use dp_train::{Result, TrainError};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use serde::Serialize;

use super::attack::Attack;
use super::case::Case;
use super::layer_kind::{Attacked, LayerKind};
use super::measure::{Breach, Comparison};
use crate::plant::Fault;

/// Settings of a replay.
///
/// **Example**
/// ```
/// use std::num::NonZeroUsize;
/// use dp_audit::replay::Replay;
/// use dp_train::Device;
/// let (one, device, method) = (NonZeroUsize::MIN, Device::Cpu, Some("dpsgd".into()));
/// let honest = Replay { cases: 20, seed: 1, method, layer: None, plant: None, threads: one, ranks: one, device };
/// assert_eq!(honest.run(&|_| {})?.violations, 0);
/// # Ok::<(), dp_train::TrainError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Replay {
    /// Number of cases.
    pub cases: u64,
    /// Decides all cases.
    pub seed: u64,
    /// This method alone, of `dp-clipping` or registered; otherwise every certified one of `dp-clipping`.
    pub method: Option<String>,
    /// This kind of layer alone; otherwise every one.
    pub layer: Option<LayerKind>,
    /// A fault to be found.
    pub plant: Option<Fault>,
    /// Threads that share the cases. The cases do not depend on their number.
    pub threads: NonZeroUsize,
    /// Ranks, threads of this process, that share every step ([`ranks`](dp_train::ranks)).
    pub ranks: NonZeroUsize,
    /// Where the arithmetic of the steps is done.
    pub device: Device,
}

/// The findings of a replay. Its JSON is one object with the first five entries.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Cases that were tried.
    pub cases: u64,
    /// Cases in which a step broke its promise.
    pub violations: u64,
    /// Largest change of a sum over its bound, or of a count over its declared sensitivity.
    pub largest_ratio: f64,
    /// Cases of each kind of layer.
    pub by_layer: BTreeMap<&'static str, u64>,
    /// Cases of each method.
    pub by_method: BTreeMap<&'static str, u64>,
    /// Cases of each attack.
    #[serde(skip)]
    pub by_attack: BTreeMap<&'static str, u64>,
    /// Largest change of a sum over its bound.
    #[serde(skip)]
    pub largest_sum_ratio: f64,
    /// Largest change of a count over its declared sensitivity.
    #[serde(skip)]
    pub largest_count_ratio: f64,
    /// The worst cases in which a step broke its promise, at most [`Self::SHOWN`].
    #[serde(skip)]
    pub worst: Vec<Violation>,
}

/// A case in which a step broke its promise.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Violation {
    /// Kind of layer.
    pub layer: &'static str,
    /// Method.
    pub method: &'static str,
    /// Attack.
    pub attack: &'static str,
    /// Which climb of the replay, and which case of it: with the seed, what brings it back.
    pub climb: u64,
    /// See [`Self::climb`].
    pub step: u64,
    /// The step: model, records, execution.
    pub setting: String,
    /// The broken promise.
    pub breach: Breach,
    /// How bad it is: a ratio, or ∞.
    pub severity: f64,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { layer, method, attack, climb, step, setting, breach, .. } = self;
        write!(f, "{layer}, {method}, {attack} (climb {climb}, case {step}): {breach}; {setting}")
    }
}

impl Report {
    /// Number of violations that are kept.
    pub const SHOWN: usize = 10;

    /// Counts a case: layer, method and attack by name, climb and place in it, and what came of it.
    pub fn note(
        &mut self,
        (layer, method, attack): (&'static str, &'static str, &'static str),
        (climb, step): (u64, u64),
        comparison: &Comparison,
        setting: impl FnOnce() -> String,
    ) {
        self.cases += 1;
        *self.by_layer.entry(layer).or_default() += 1;
        *self.by_method.entry(method).or_default() += 1;
        *self.by_attack.entry(attack).or_default() += 1;
        self.largest_sum_ratio = self.largest_sum_ratio.max(comparison.sum_ratio);
        self.largest_count_ratio = self.largest_count_ratio.max(comparison.count_ratio);
        self.largest_ratio = self.largest_sum_ratio.max(self.largest_count_ratio);
        if let Some(breach) = &comparison.breach {
            self.violations += 1;
            let (breach, severity, setting) = (breach.clone(), comparison.severity(), setting());
            self.worst.push(Violation { layer, method, attack, climb, step, setting, breach, severity });
            self.keep_the_worst();
        }
    }

    fn keep_the_worst(&mut self) {
        self.worst.sort_by(|a, b| b.severity.total_cmp(&a.severity).then((a.climb, a.step).cmp(&(b.climb, b.step))));
        self.worst.truncate(Self::SHOWN);
    }

    /// Both reports in one.
    #[must_use]
    pub fn join(mut self, other: Self) -> Self {
        self.cases += other.cases;
        self.violations += other.violations;
        self.largest_ratio = self.largest_ratio.max(other.largest_ratio);
        self.largest_sum_ratio = self.largest_sum_ratio.max(other.largest_sum_ratio);
        self.largest_count_ratio = self.largest_count_ratio.max(other.largest_count_ratio);
        for (mine, theirs) in [
            (&mut self.by_layer, other.by_layer),
            (&mut self.by_method, other.by_method),
            (&mut self.by_attack, other.by_attack),
        ] {
            for (name, n) in theirs {
                *mine.entry(name).or_default() += n;
            }
        }
        self.worst.extend(other.worst);
        self.keep_the_worst();
        self
    }
}

impl Replay {
    /// Tries all cases. They are drawn from the seed, a climb at a time: an attack, then steps that
    /// each change one thing and are kept if they are no better for privacy. The same cases are
    /// tried on any number of threads.
    ///
    /// # Errors
    /// [`TrainError::Clipping`] for a method that is unknown, [`TrainError::InvalidParameter`] for
    /// one that is not certified; the errors of [`Trainer::new`](dp_train::Trainer::new), which
    /// would be errors of the replay itself. `progress` receives the number of cases tried.
    pub fn run(&self, progress: &(dyn Fn(u64) + Sync)) -> Result<Report> {
        let kinds = self.layer.map_or_else(|| LayerKind::ALL.to_vec(), |layer| vec![layer]);
        self.search(&kinds.into_iter().map(Attacked::Kind).collect::<Vec<_>>(), progress)
    }

    fn search(&self, layers: &[Attacked<'_>], progress: &(dyn Fn(u64) + Sync)) -> Result<Report> {
        /// Cases of a climb, where there are enough of them.
        const LENGTH: u64 = 12;
        if let Some(fault) = self.plant.filter(|fault| fault.needs_ranks() && self.ranks == NonZeroUsize::MIN) {
            return Err(TrainError::invalid(
                "plant",
                fault.name(),
                "2 ranks or more: one alone cannot have this fault",
            ));
        }
        let methods = self.methods()?;
        let cells = (methods.len() * layers.len()) as u64;
        let length = (self.cases / cells).clamp(1, LENGTH);
        let climbs = self.cases.div_ceil(length);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads.get()).build();
        let pool = pool.map_err(|error| TrainError::invalid("threads", self.threads, format!("fewer: {error}")))?;
        let tried = AtomicU64::new(0);
        let climb = |climb: u64| -> Result<Report> {
            // Neighbouring climbs differ in all three.
            let turn = climb / layers.len() as u64;
            let layer = layers[(climb % layers.len() as u64) as usize];
            let place = climb % layers.len() as u64;
            let method = methods[((turn + place) % methods.len() as u64) as usize];
            let attack = Attack::ALL[((turn + turn / methods.len() as u64) % Attack::ALL.len() as u64) as usize];
            let steps = length.min(self.cases - climb * length);
            let report = self.climb((layer, method, attack), climb, steps)?;
            progress(tried.fetch_add(steps, Ordering::Relaxed) + steps);
            Ok(report)
        };
        let mut report =
            pool.install(|| (0..climbs).into_par_iter().map(climb).try_reduce(Report::default, |a, b| Ok(a.join(b))))?;
        // Layers that were asked for and not tried show as 0.
        for layer in layers {
            report.by_layer.entry(layer.name()).or_default();
        }
        for method in methods {
            report.by_method.entry(method.name).or_default();
        }
        Ok(report)
    }

    fn methods(&self) -> Result<Vec<&'static MethodEntry>> {
        let certified = |entry: &MethodEntry| entry.default_config().certified();
        let Some(name) = &self.method else {
            return Ok(registry::methods().iter().filter(|entry| certified(entry)).collect());
        };
        let entry = registry::find(name)?;
        if certified(entry) {
            Ok(vec![entry])
        } else {
            Err(TrainError::invalid("method", name, "a certified one: others declare no sensitivity"))
        }
    }

    fn climb(
        &self,
        (layer, method, attack): (Attacked<'_>, &'static MethodEntry, Attack),
        climb: u64,
        steps: u64,
    ) -> Result<Report> {
        let mut rng = ChaCha20Rng::seed_from_u64(self.seed);
        rng.set_stream(climb);
        let mut report = Report::default();
        let mut best: Option<(Case, Comparison)> = None;
        for step in 0..steps {
            let mut case = match &best {
                None => attack.begin(layer, method, &mut rng)?,
                Some((case, comparison)) => attack.mutate(case, comparison, &mut rng)?,
            };
            case.in_blocks_for(self.ranks);
            let comparison = case.compare(&self.device, self.ranks, rng.random_bool(0.1), self.plant)?;
            report.note((layer.name(), method.name, attack.name()), (climb, step), &comparison, || case.describe());
            if best.as_ref().is_none_or(|(_, known)| comparison.severity() >= known.severity()) {
                best = Some((case, comparison));
            }
        }
        Ok(report)
    }
}

/// Runs the replay's attacks on a layer of one's own, a
/// [`LayerConfig::Own`](dp_engine::LayerConfig) for `n_inputs` values: in models on the inputs and
/// behind other layers, under every certified method, alone and in batches. It says whether a record
/// changes the norm of another one, and whether the norm bounds what is added.
///
/// What it finds refutes a layer. What it does not find is no proof: the guarantee of a model with
/// such a layer stays conditional.
///
/// # Errors
/// [`TrainError::Engine`] for a layer that does not fit; otherwise as [`Replay::run`].
///
/// ```
/// use dp_audit::replay_layer;
/// use dp_train::{LayerConfig, TrainError};
/// let report = replay_layer(&LayerConfig::LayerNorm, 5, 20, 1)?;
/// assert_eq!((report.cases, report.violations), (20, 0));
/// assert!(replay_layer(&LayerConfig::Own { layer: "unknown".into(), settings: vec![] }, 5, 20, 1).is_err());
/// # Ok::<(), TrainError>(())
/// ```
pub fn replay_layer(layer: &LayerConfig, n_inputs: usize, cases: u64, seed: u64) -> Result<Report> {
    let one = NonZeroUsize::MIN;
    let replay =
        Replay { cases, seed, method: None, layer: None, plant: None, threads: one, ranks: one, device: Device::Cpu };
    replay.search(&[Attacked::Own { layer, n_inputs }], &|_| {})
}

#[cfg(test)]
mod tests {
    use dp_engine::{Initial, OwnLayer, OwnShape, ParameterSpec, register_layer};

    use super::*;

    fn replay(cases: u64) -> Replay {
        let one = NonZeroUsize::MIN;
        let device = Device::Cpu;
        Replay { cases, seed: 1, method: None, layer: None, plant: None, threads: one, ranks: one, device }
    }

    fn ranks(n: usize) -> NonZeroUsize {
        NonZeroUsize::new(n).unwrap()
    }

    #[test]
    fn a_few_cases_try_every_method_and_layer() {
        let report = replay(190).run(&|_| {}).unwrap();
        assert_eq!((report.cases, report.by_method.len(), report.by_layer.len()), (190, 20, LayerKind::ALL.len()));
        assert!(report.by_method.values().chain(report.by_layer.values()).all(|&n| n > 0));
        assert_eq!(report.by_attack.len(), Attack::ALL.len());
        assert!(report.largest_sum_ratio > 0.99, "{}", report.largest_sum_ratio);
    }

    /// A dense layer of one's own; with a memory, each record also meets the last value of another.
    #[derive(Debug)]
    struct Dense {
        name: &'static str,
        last: Option<&'static AtomicU64>,
    }

    impl OwnLayer for Dense {
        fn name(&self) -> &'static str {
            self.name
        }

        fn shape(&self, inputs: usize, settings: &[f64]) -> std::result::Result<OwnShape, String> {
            let &[outputs] = settings else { return Err("one setting, the outputs".into()) };
            let (outputs, initial) = (outputs as usize, Initial::Uniform { fan_in: inputs });
            let weight = ParameterSpec::new("weight", vec![outputs, inputs], initial, true);
            Ok(OwnShape { outputs, parameters: vec![weight] })
        }

        fn forward(&self, _: &[f64], parameters: &[&[f64]], input: &[f64], output: &mut [f64]) {
            let noticed =
                self.last.map_or(0.0, |last| f64::from_bits(last.swap(input[0].to_bits(), Ordering::Relaxed)));
            for (y, weights) in output.iter_mut().zip(parameters[0].chunks(input.len())) {
                *y = weights.iter().zip(input).map(|(w, x)| w * x).sum::<f64>() + noticed;
            }
        }

        fn backward(
            &self,
            _: &[f64],
            parameters: &[&[f64]],
            input: &[f64],
            by_output: &[f64],
            by_input: &mut [f64],
            by_parameters: &mut [&mut [f64]],
        ) {
            for (row, d) in by_output.iter().enumerate() {
                for (column, x) in input.iter().enumerate() {
                    by_parameters[0][row * input.len() + column] = d * x;
                    by_input[column] += d * parameters[0][row * input.len() + column];
                }
            }
        }
    }

    static LAST: AtomicU64 = AtomicU64::new(0);
    static LEAKING: Dense = Dense { name: "leaking", last: Some(&LAST) };

    /// A layer of one's own stands; one that remembers a record is found.
    #[test]
    fn a_layer_with_a_memory_is_found() {
        register_layer(&Dense { name: "dense", last: None }).unwrap();
        register_layer(&LEAKING).unwrap();
        let own = |name: &str| LayerConfig::Own { layer: name.into(), settings: vec![3.0] };
        let honest = replay_layer(&own("dense"), 4, 600, 1).unwrap();
        assert!(honest.violations == 0 && honest.largest_sum_ratio > 0.9, "{:#?}", honest.worst);
        assert_eq!(honest.by_layer.keys().copied().collect::<Vec<_>>(), ["own"]);
        let leaking = replay_layer(&own("leaking"), 4, 200, 1).unwrap();
        let coupled = leaking.worst.iter().any(|violation| matches!(violation.breach, Breach::Coupled(_)));
        assert!(leaking.violations > 0 && (coupled || leaking.largest_ratio > 1.0), "{:#?}", leaking.worst);
        let error = replay_layer(&own("unknown"), 4, 1, 1).unwrap_err().to_string();
        assert!(error.contains("own.layer = unknown: expected one that this program registers: dense"), "{error}");
        let error = register_layer(&Dense { name: "dense", last: None }).unwrap_err().to_string();
        insta::assert_snapshot!(error, @"layer = dense: expected a name that is not registered yet");
    }

    #[test]
    fn cases_do_not_depend_on_the_threads() {
        let on = |n| {
            let threads = NonZeroUsize::new(n).unwrap();
            serde_json::to_string(&Replay { threads, ..replay(60) }.run(&|_| {}).unwrap()).unwrap()
        };
        assert_eq!(on(1), on(3));
    }

    #[test]
    fn what_is_not_there_is_refused() {
        let refused = |method: &str| {
            let method = Some(method.to_owned());
            Replay { method, ..replay(1) }.run(&|_| {}).unwrap_err().to_string()
        };
        insta::assert_snapshot!(refused("fairlens"), @"method = fairlens: expected a certified one: others declare no sensitivity");
        assert!(refused("dpsdg").contains("method = dpsdg: expected one of"));
        insta::assert_snapshot!("dense".parse::<LayerKind>().unwrap_err(), @"layer = dense: expected one of linear, sequence, convolution, pooling, group-norm, layer-norm, embedding, dropout, residual");
    }

    #[test]
    fn no_case_breaks_the_guarantee() {
        let report = Replay { threads: NonZeroUsize::new(2).unwrap(), ..replay(20_000) }.run(&|_| {}).unwrap();
        assert!(report.violations == 0 && report.largest_ratio <= 1.0, "{:#?}", report.worst);
    }

    #[test]
    fn no_case_breaks_the_guarantee_on_two_or_three_ranks() {
        for n in [2, 3] {
            let report = Replay { ranks: ranks(n), ..replay(1_500) }.run(&|_| {}).unwrap();
            assert!(report.violations == 0 && report.largest_ratio <= 1.0, "{:#?}", report.worst);
            assert!(report.largest_sum_ratio > 0.99, "{}", report.largest_sum_ratio);
        }
    }

    #[test]
    fn every_planted_fault_is_found() {
        for &fault in Fault::ALL {
            let ranks = ranks(if fault.needs_ranks() { 2 } else { 1 });
            let report = Replay { plant: Some(fault), ranks, ..replay(1_500) }.run(&|_| {}).unwrap();
            assert!(report.violations > 0, "{}", fault.name());
        }
        let alone = Replay { plant: Some(Fault::SkippedPart), ..replay(1) }.run(&|_| {}).unwrap_err().to_string();
        insta::assert_snapshot!(alone, @"plant = skipped-part: expected 2 ranks or more: one alone cannot have this fault");
    }
}
