//! What the experiments of Zhao et al. 2025 have in common (settings: 4.1, A.3, A.4).

use anyhow::Context;
use dp_accounting::{Delta, Epsilon};
use dp_clipping::{CountNoise, PresetParams};
use dp_data::mnist::{Collection, RareClass};
use dp_data::{ScalingFit, adult, dutch};
use dp_train::{LearningRate, Loss, ModelConfig, Normalisation, ResNetStem, ZhaoCnnLayout};
use run_records::ExperimentResults;
use run_records::coordinate::{BOUND, RATE, coordinate};
use study_report::landscape::{Part, best_points, leading_points};
use study_report::{Claim, Judged, Searched};

use super::study::{FollowUp, Protocol, SearchBy, StudyArgs};
use crate::run::data_setting::{DataSetting, EvaluationPart, Source, Splits};
use crate::run::experiment::{BatchCounting, BatchSize, Begins, Experiment, MethodSetting, NON_PRIVATE, Noise};
use crate::run::features::Features;
use crate::run::images::{self, few_eights};
use crate::run::strategy::strategy;

/// The grid of A.4: ten rates from 1 to 10 and twenty bounds from 0.001 to 50, evenly spaced in the
/// logarithm, as printed.
pub(crate) const RATES: [f64; 10] = [1.0, 1.2915, 1.6681, 2.1544, 2.7826, 3.5938, 4.6416, 5.9948, 7.7426, 10.0];
pub(crate) const BOUNDS: [f64; 20] = [
    0.001, 0.0018, 0.0031, 0.0055, 0.0098, 0.0172, 0.0305, 0.0539, 0.0952, 0.1682, 0.2973, 0.5254, 0.9285, 1.6409, 2.9,
    5.1252, 9.0579, 16.0082, 28.2915, 50.0,
];

/// The share of the training part that is held out where something is searched for.
const HELD_OUT: f64 = 0.2;
pub(crate) const VALIDATION: EvaluationPart = EvaluationPart::TestAndValidation { share: HELD_OUT };

/// Runs at every point of the grid, and in the published scripts.
const GRID_SEEDS: u32 = 1;
const CODE_GRID_SEEDS: u32 = 3;
/// Runs of the best points, as in the paper.
const SEEDS: u32 = 10;

/// What the paper selects by (4.1). Its tables then print other figures.
const SELECTS_BY: Judged = Judged::MacroAccuracy;

/// Epochs after which points are given up where a search halves.
const RUNGS: [u64; 2] = [3, 12];

/// How many of the points of a strategy at one rate go on then. Every rate does: after few steps
/// small ones are ahead, at the end large ones are.
fn go_on(points: usize) -> usize {
    points.div_ceil(4)
}

/// What that is.
const HALVING: &str = "Successive halving in place of the whole grid: every point is trained for 3 epochs, of each strategy the \
                       best quarter of the points at each rate go on to 12, and of these the best quarter to the end. \
                       Its noise is that of a run of all epochs.";

/// Training records under [`Protocol::Code`]: 70 % of 14,000 of each sex.
const CODE_RECORDS: usize = 19_600;

/// What the settings under [`Protocol::Code`] are.
const CODE: &str = "As in the published trainer (established, by its source): the same 14,000 records of each sex for every seed, drawn by numpy's \
                    generator with the seed 1, and all others to test on. The order of Adult is that of the single file of 48,842 lines that \
                    is widespread (likely). 70 % of the records, other ones for each seed, are trained on, and points are chosen by the rest; \
                    numbers on Adult are scaled by all records; a count's noise multiplier is a tenth of the batch. The groups are the last \
                    input column, which is sex on Adult and marital status 4 on Dutch.";

/// The same on images.
const CODE_ON_IMAGES: &str = "As in the published trainer (established, by its source): pixels from 0 to 255, hidden layers of 512 units, a \
                              tenth of the training part that is chosen by and never trained on, and a count's noise multiplier of a tenth \
                              of the batch.";

/// The three strategies that the paper compares, by their registry names.
pub(crate) const STRATEGIES: [&str; 3] = ["bounded-adaptive", "dpsgd-normalised", "unbounded-adaptive"];

/// What images are compared by, for [`Search::claims`].
pub(crate) const WORST_CLASS: [(&str, &str, &str); 1] = [("worst-class accuracy", "worst_class_accuracy", "total")];

/// A data set on which the strategies are compared: the grid first, then its best points.
#[derive(Debug, Clone)]
pub(crate) struct Search {
    /// Part of the experiments' names.
    pub(crate) name: &'static str,
    /// For people, without the paper.
    pub(crate) title: String,
    pub(crate) source: Source,
    /// What the records become.
    pub(crate) features: Features,
    pub(crate) model: ModelConfig,
    pub(crate) loss: Loss,
    pub(crate) batch_size: BatchSize,
    pub(crate) epochs: u64,
    /// Of the reference without privacy.
    pub(crate) reference_rate: f64,
    /// ε of the paper's table.
    pub(crate) epsilons: [f64; 3],
    /// Epochs after which three quarters of the points are given up, of each strategy; none for the
    /// whole grid.
    pub(crate) rungs: &'static [u64],
    /// Every how many rates and bounds of the grid are tried.
    pub(crate) strides: (usize, usize),
    /// Select on the test part, as published.
    pub(crate) select_on_test: bool,
    /// The share of the training part that points are chosen by.
    pub(crate) held_out: f64,
    /// Which partitions the seeds have; the test part is the same for all.
    pub(crate) splits: Splits,
    /// Whose partition, groups and counts.
    pub(crate) protocol: Protocol,
    /// What those are under [`Protocol::Code`].
    pub(crate) code: &'static str,
}

impl Search {
    /// The experiment with the best points.
    pub(crate) fn final_id(&self) -> String {
        format!("zhao-{}", self.name)
    }

    /// What is searched for.
    pub(crate) fn searched(&self) -> Searched {
        Searched { experiment: self.final_id(), judged: SELECTS_BY, published: Some("Zhao 2025, 4.1") }
    }

    fn grid_id(&self, epsilon: f64) -> String {
        format!("zhao-{}-grid-{epsilon}", self.name)
    }

    /// The points of the grid that are trained for so many epochs.
    fn rung_id(&self, epsilon: f64, rung: Option<u64>) -> String {
        let grid = self.grid_id(epsilon);
        rung.map_or_else(|| grid.clone(), |epochs| format!("{grid}-after-{epochs}"))
    }

    /// Epochs of each rung, the last of which goes to the end.
    fn rungs(&self) -> Vec<Option<u64>> {
        let before = self.rungs.iter().copied().filter(|epochs| *epochs < self.epochs);
        before.map(Some).chain(std::iter::once(None)).collect()
    }

    /// One experiment for each ε: every point of the grid, to the end or to the first rung.
    pub(crate) fn grids(&self) -> anyhow::Result<Vec<Experiment>> {
        let points = |&epsilon: &f64| self.rung(epsilon, self.rungs()[0], grid(epsilon, self.strides)?);
        self.epsilons.iter().map(points).collect()
    }

    /// The next rung of every ε whose last one is there; once all are through, the best points.
    fn next(&self, results: &[ExperimentResults]) -> anyhow::Result<Vec<Experiment>> {
        let mut next = Vec::new();
        for epsilon in self.epsilons {
            let of = |rung| results.iter().find(|experiment| experiment.id == self.rung_id(epsilon, rung));
            let rungs = self.rungs();
            for pair in rungs.windows(2) {
                if let (Some(trained), None) = (of(pair[0]), of(pair[1])) {
                    let leading = leading_points(trained, self.part(), SELECTS_BY, go_on)?;
                    let goes_on = |method: &MethodSetting| leading.iter().any(|point| point.method == method.id);
                    let methods = grid(epsilon, self.strides)?.into_iter().filter(goes_on).collect();
                    next.push(self.rung(epsilon, pair[1], methods)?);
                }
            }
        }
        if next.is_empty() { Ok(self.best(results)?.into_iter().collect()) } else { Ok(next) }
    }

    /// Some points of the grid, trained up to a rung.
    fn rung(&self, epsilon: f64, rung: Option<u64>, methods: Vec<MethodSetting>) -> anyhow::Result<Experiment> {
        let part = if self.select_on_test {
            "Heat maps and best points are computed on the TEST PART, as published.".to_owned()
        } else {
            format!(
                "{:.0} % of the training part is held out for validation; heat maps and best points are \
                 computed on it. The paper searches on the test part; `--select-on-test` does.",
                100.0 * self.held_out
            )
        };
        let (seeds, runs) = match self.protocol {
            Protocol::Text => (GRID_SEEDS, "One run"),
            Protocol::Code => (CODE_GRID_SEEDS, "Three runs"),
        };
        let mut departures = vec![part, format!("{runs} a point; the best points are then trained with more seeds.")];
        if self.strides != (1, 1) {
            let (rate, bound) = self.strides;
            departures.push(format!("Of the paper's grid every {rate}th rate and every {bound}th bound."));
        }
        let after = rung.map_or_else(String::new, |epochs| format!(", after {epochs} epochs"));
        let title = format!("Zhao 2025: {}, the grid at ε = {epsilon}{after}", self.title);
        if self.rungs().len() > 1 {
            departures.push(HALVING.to_owned());
        }
        let id = self.rung_id(epsilon, rung);
        let experiment = self.experiment(id, title, self.evaluation(), seeds, methods, departures)?;
        let begins = rung.map(|epochs| Begins { experiment: self.grid_id(epsilon), epochs });
        Ok(Experiment { begins, is_search: true, ..experiment })
    }

    /// The best point of every strategy at every ε, trained on the whole training part.
    fn best(&self, results: &[ExperimentResults]) -> anyhow::Result<Option<Experiment>> {
        let mut methods: Vec<MethodSetting> = vec![reference(self.reference_rate)];
        let mut chosen = Vec::new();
        for epsilon in self.epsilons {
            let Some(grid) = results.iter().find(|experiment| experiment.id == self.grid_id(epsilon)) else { continue };
            for best in best_points(grid, self.part(), SELECTS_BY)? {
                let name = STRATEGIES
                    .into_iter()
                    .find(|name| *name == best.base)
                    .with_context(|| format!("{} is no strategy of the grid", best.base))?;
                let rate = coordinate(best, RATE).context("a point of the grid has a rate")?;
                let bound = coordinate(best, BOUND);
                methods.push(strategy(name, rate, bound).within(epsilon)?);
                let with_bound = bound.map_or_else(String::new, |bound| format!(", bound {bound}"));
                chosen.push(format!("{name} at ε = {epsilon}: rate {rate}{with_bound}"));
            }
        }
        if chosen.is_empty() {
            return Ok(None);
        }
        let how = if self.select_on_test {
            "SELECTED ON THE TEST PART, as published: the accuracies below are too high. "
        } else if self.protocol == Protocol::Code {
            "Selected on the validation records of three seeds, which they do not train on afterwards \
             either; one test part for all seeds. "
        } else {
            "Selected on validation records; the test part was held out of the search and is the same for every seed, so that \
             seeds differ in initial parameters, batches and noise. "
        };
        let departures = vec![
            format!("{how}{}.", chosen.join("; ")),
            format!(
                "The reference without privacy, which the paper does not have, takes plain steps with rate {}.",
                self.reference_rate
            ),
        ];
        let title = format!("Zhao 2025: {}, best points of the grid", self.title);
        let evaluation = match self.protocol {
            Protocol::Text => EvaluationPart::Test,
            Protocol::Code => self.evaluation(),
        };
        self.experiment(self.final_id(), title, evaluation, SEEDS, methods, departures).map(Some)
    }

    /// What the points of the grid are compared on.
    fn part(&self) -> Part {
        if self.select_on_test { Part::Test } else { Part::Validation }
    }

    /// What the points of the grid are evaluated on.
    fn evaluation(&self) -> EvaluationPart {
        if self.select_on_test {
            EvaluationPart::Test
        } else {
            EvaluationPart::TestAndValidation { share: self.held_out }
        }
    }

    fn experiment(
        &self,
        id: String,
        title: String,
        evaluation: EvaluationPart,
        seeds: u32,
        mut methods: Vec<MethodSetting>,
        mut departures: Vec<String>,
    ) -> anyhow::Result<Experiment> {
        if self.protocol == Protocol::Code {
            let records = match self.batch_size {
                BatchSize::Records(records) => records,
                BatchSize::Full => CODE_RECORDS,
            };
            for method in &mut methods {
                method.params.count_noise = CountNoise::Multiplier(records as f64 / 10.0);
            }
            departures.push(self.code.to_owned());
        }
        let setting = Setting {
            id,
            title,
            data: DataSetting { evaluation, splits: self.splits, features: self.features, ..self.source.into() },
            model: self.model.clone(),
            loss: self.loss.clone(),
            batch_size: self.batch_size,
            epochs: self.epochs,
            seeds,
        };
        experiment(setting, methods, departures)
    }

    /// What the paper says about bounded against unbounded clipping, for these metrics and groups.
    pub(crate) fn claims(&self, columns: &[(&str, &str, &str)]) -> anyhow::Result<Vec<Claim>> {
        let mut claims = Vec::new();
        for epsilon in self.epsilons {
            for (words, metric, group) in columns {
                claims.push(Claim::greatest(
                    &format!("Bounded beats unbounded adaptive clipping: {words}, {}, ε = {epsilon}", self.title),
                    "Zhao 2025, 4.2",
                    &self.final_id(),
                    (*metric, *group),
                    &format!("bounded-adaptive ε={epsilon}"),
                    &[&format!("unbounded-adaptive ε={epsilon}")],
                )?);
            }
        }
        Ok(claims)
    }
}

/// The two censuses of Table 6.
pub(crate) fn censuses(args: &StudyArgs) -> [Search; 2] {
    let search = |name, title: &str, source, batch_size| Search {
        name,
        title: format!("{title}, logistic regression"),
        source,
        features: Features::AsEncoded,
        model: ModelConfig::LogisticRegression,
        loss: Loss::BceWithLogits,
        batch_size,
        epochs: args.options.epochs(40),
        reference_rate: 1.0,
        epsilons: [0.1, 0.2, 0.5],
        rungs: if args.search == Some(SearchBy::Halving) { &RUNGS } else { &[] },
        strides: if args.options.quick { (3, 5) } else { (1, 1) },
        select_on_test: args.select_on_test,
        held_out: if args.protocol == Protocol::Text { HELD_OUT } else { 0.3 },
        splits: if args.protocol == Protocol::Text { Splits::First } else { Splits::BySeed },
        protocol: args.protocol,
        code: CODE,
    };
    let dutch = match args.protocol {
        Protocol::Text => Source::Dutch {
            encoding: dutch::Encoding::Zhao,
            sampling: dutch::Sampling::Original,
            group_by: dutch::GroupBy::Sex,
        },
        Protocol::Code => Source::Dutch {
            encoding: dutch::Encoding::Zhao,
            sampling: dutch::Sampling::BalancedTrainingAsPublished { per_group: 14_000 },
            group_by: dutch::GroupBy::MaritalStatus,
        },
    };
    let (sampling, scaling) = match args.protocol {
        Protocol::Text => (adult::Sampling::BalancedTraining { per_group: 14_000 }, ScalingFit::TrainOnly),
        Protocol::Code => (adult::Sampling::BalancedTrainingAsPublished { per_group: 14_000 }, ScalingFit::AllRecords),
    };
    [
        search(
            "adult",
            "Adult, full batches",
            Source::Adult { encoding: adult::Encoding::Zhao, sampling, scaling, group_by: adult::GroupBy::default() },
            BatchSize::Full,
        ),
        search("dutch", "Dutch, batches of 10,000", dutch, BatchSize::Records(10_000)),
    ]
}

/// Class 8 of MNIST is rare, and the size of a batch.
fn published(collection: Collection) -> (Option<RareClass>, usize) {
    match collection {
        Collection::Mnist => (Some(few_eights(585)), 12_000),
        Collection::FashionMnist => (None, 6_000),
    }
}

/// The two-layer network on images.
///
/// A quick run takes a fifth of the records and of a batch, and a coarse grid.
pub(crate) fn images(args: &StudyArgs, collection: Collection) -> Search {
    let quick = args.options.quick;
    let (rare, batch_size) = published(collection);
    let share = images::quick_share(quick);
    let (features, layout, reference_rate, held_out) = match args.protocol {
        Protocol::Text => (Features::AsEncoded, ZhaoCnnLayout::Text, 0.2, HELD_OUT),
        Protocol::Code => (Features::BytePixels, ZhaoCnnLayout::Code, 1e-3, 0.1),
    };
    Search {
        name: collection.name(),
        title: format!("{}, two-layer CNN", images::title(collection)),
        source: Source::Images { collection, rare, share },
        features,
        model: ModelConfig::ZhaoCnn { image: images::SHAPE, layout },
        loss: Loss::SoftmaxCrossEntropy,
        batch_size: BatchSize::Records(if quick { batch_size / 5 } else { batch_size }),
        epochs: images::epochs(quick, 50),
        reference_rate,
        epsilons: [1.0, 2.0, 4.0],
        rungs: if args.search == Some(SearchBy::Grid) { &[] } else { &RUNGS },
        strides: if quick { (5, 13) } else { (1, 1) },
        select_on_test: args.select_on_test,
        held_out,
        splits: Splits::First,
        protocol: args.protocol,
        code: CODE_ON_IMAGES,
    }
}

/// ResNet-18 on the same images, as the text has it.
///
/// A quick run takes a fiftieth of the records and of a batch.
pub(crate) fn residual(args: &StudyArgs, collection: Collection) -> Search {
    let quick = args.options.quick;
    let (rare, batch_size) = published(collection);
    Search {
        name: match collection {
            Collection::Mnist => "resnet-18-mnist",
            Collection::FashionMnist => "resnet-18-fashion-mnist",
        },
        title: format!("{}, ResNet-18", images::title(collection)),
        source: Source::Images { collection, rare, share: quick.then_some(0.02) },
        model: ModelConfig::Resnet18 {
            image: images::SHAPE,
            stem: ResNetStem::Imagenet,
            normalisation: Normalisation::GroupNorm { groups: 32 },
        },
        batch_size: BatchSize::Records(if quick { batch_size / 50 } else { batch_size }),
        features: Features::AsEncoded,
        held_out: HELD_OUT,
        protocol: Protocol::Text,
        ..images(args, collection)
    }
}

/// What a study trains next: the rungs of all searches, and then their best points.
pub(crate) fn follow_up(searches: Vec<Search>) -> FollowUp {
    Box::new(move |results| {
        let next = searches.iter().map(|search| search.next(results)).collect::<anyhow::Result<Vec<_>>>()?;
        Ok(next.into_iter().flatten().collect())
    })
}

/// What differs between the data sets.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) data: DataSetting,
    pub(crate) model: ModelConfig,
    pub(crate) loss: Loss,
    pub(crate) batch_size: BatchSize,
    pub(crate) epochs: u64,
    pub(crate) seeds: u32,
}

/// An experiment with these methods.
pub(crate) fn experiment(
    setting: Setting,
    methods: Vec<MethodSetting>,
    departures: Vec<String>,
) -> anyhow::Result<Experiment> {
    let mut all_departures = vec![
        "Noise multipliers are calibrated by our RDP accountant (improved conversion, every order), which needs a little less noise \
         than Opacus."
            .to_owned(),
        "Sums and counts are divided by the expected batch size, never by the realised one, which is private.".to_owned(),
        "The paper calls the normalised rule with a constant bound constant clipping; its name here is dpsgd-normalised.".to_owned(),
    ];
    all_departures.extend(departures);
    Ok(Experiment {
        id: setting.id,
        title: setting.title,
        departures: all_departures,
        data: setting.data,
        seeds: setting.seeds,
        is_search: false,
        model: setting.model,
        loss: setting.loss.clone(),
        batch_size: setting.batch_size,
        epochs: setting.epochs,
        begins: None,
        counting: BatchCounting::LoaderLength,
        early_stopping: None,
        l2: 0.0,
        // Every method states its own ε.
        noise: Noise::Within(Epsilon::new(1.0)?),
        delta: Delta::new(1e-5)?,
        matches_dpsgd_budget: false,
        methods,
        published: None,
    })
}

/// The reference without privacy, at this rate. The paper has none.
pub(crate) fn reference(rate: f64) -> MethodSetting {
    MethodSetting::new(NON_PRIVATE, LearningRate::Constant(rate), PresetParams::default())
}

/// Every strategy at every `stride`-th point of the grid, within this ε. Unbounded adaptive
/// clipping has no bound to vary.
pub(crate) fn grid(epsilon: f64, (rate_stride, bound_stride): (usize, usize)) -> anyhow::Result<Vec<MethodSetting>> {
    let mut methods = Vec::new();
    for name in STRATEGIES {
        for &rate in RATES.iter().step_by(rate_stride) {
            let bounds: Vec<Option<f64>> = if name == "unbounded-adaptive" {
                vec![None]
            } else {
                BOUNDS.iter().step_by(bound_stride).copied().map(Some).collect()
            };
            for bound in bounds {
                let point = strategy(name, rate, bound).within(epsilon)?.at(RATE, rate);
                methods.push(match bound {
                    Some(bound) => point.at(BOUND, bound),
                    None => point,
                });
            }
        }
    }
    Ok(methods)
}

#[cfg(test)]
mod tests {
    use run_records::MethodResults;

    use super::*;

    /// An experiment whose points are the better the nearer they are to rate 2.1544 and bound 0.5254.
    fn trained(experiment: &Experiment) -> ExperimentResults {
        let mut results = run_records::made_up::study().experiments.remove(0);
        let template = results.methods.remove(1);
        results.id.clone_from(&experiment.id);
        results.methods = experiment
            .methods
            .iter()
            .map(|setting| {
                let coordinates = setting.coordinates.clone();
                let mut method = MethodResults {
                    method: setting.id.clone(),
                    base: setting.name.to_owned(),
                    coordinates,
                    ..template.clone()
                };
                let far = |name, best: f64| coordinate(&method, name).map_or(0.0, |value| (value / best).ln().abs());
                let recall = 0.9 - 0.01 * (far(RATE, 2.1544) + far(BOUND, 0.5254));
                method.runs.truncate(1);
                for run in &mut method.runs {
                    run.test.class_recall = vec![Some(recall); 2];
                    run.validation = Some(run.test.clone());
                }
                method
            })
            .collect();
        results
    }

    #[test]
    fn a_search_that_halves_ends_in_the_best_points() {
        let search = Search {
            name: "test",
            title: "a test".to_owned(),
            source: Source::Images { collection: Collection::Mnist, rare: None, share: None },
            features: Features::AsEncoded,
            model: ModelConfig::LogisticRegression,
            loss: Loss::SoftmaxCrossEntropy,
            batch_size: BatchSize::Records(100),
            epochs: 50,
            reference_rate: 1.0,
            epsilons: [1.0, 2.0, 4.0],
            rungs: &RUNGS,
            strides: (1, 1),
            select_on_test: false,
            held_out: HELD_OUT,
            splits: Splits::First,
            protocol: Protocol::Text,
            code: CODE,
        };
        let mut results: Vec<ExperimentResults> = search.grids().unwrap().iter().map(trained).collect();
        let mut rungs = Vec::new();
        let best = loop {
            let next = search.next(&results).unwrap();
            if next[0].id == search.final_id() {
                break next;
            }
            let begins = next[0].begins.as_ref().map(|begins| (begins.experiment.clone(), begins.epochs));
            rungs.push((next[0].id.clone(), begins, next[0].methods.len()));
            results.extend(next.iter().map(trained));
        };
        let expected = [
            ("zhao-test-grid-1-after-12".to_owned(), Some(("zhao-test-grid-1".to_owned(), 12)), 50 + 50 + 10),
            ("zhao-test-grid-1".to_owned(), None, 20 + 20 + 10),
        ];
        assert_eq!(rungs, expected);
        let points: Vec<&str> = best[0].methods.iter().map(|method| method.id.as_str()).collect();
        assert_eq!(points.len(), 1 + 3 * STRATEGIES.len());
        let rate = LearningRate::Constant(2.1544);
        assert!(best[0].methods[1..].iter().all(|method| method.learning_rate == rate), "{points:?}");
        assert_eq!(best[0].methods[1].params.lower_bound, Some(0.5254));
        // Whoever searches the whole grid is asked once.
        let whole = Search { rungs: &[], ..search };
        let results: Vec<ExperimentResults> = whole.grids().unwrap().iter().map(trained).collect();
        assert_eq!(whole.next(&results).unwrap()[0].id, "zhao-test");
    }

    #[test]
    fn the_grid_is_that_of_the_paper() {
        let methods = grid(0.5, (1, 1)).unwrap();
        assert_eq!(methods.len(), 200 + 200 + 10);
        assert_eq!(methods[0].id, "bounded-adaptive ε=0.5, rate=1, bound=0.001");
        assert_eq!(methods[0].params.lower_bound, Some(0.001));
        assert_eq!(methods[200].params.clip_norm, 0.001);
        assert_eq!(methods[409].id, "unbounded-adaptive ε=0.5, rate=10");
        // Evenly spaced in the logarithm, to the digits printed.
        for (points, first, last) in [(&RATES[..], 1.0_f64, 10.0_f64), (&BOUNDS[..], 1e-3, 50.0)] {
            let n = points.len() - 1;
            for (index, point) in points.iter().enumerate() {
                let exact = first * (last / first).powf(index as f64 / n as f64);
                assert!((point - exact).abs() <= 6e-5, "{point} {exact}");
            }
        }
    }
}
