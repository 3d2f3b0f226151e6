//! The model and the method of training that a configuration names, with the reason for each.

use std::fmt::Display;

use dp_accounting::{Delta, DpEvent, NoiseMultiplier, PldAccountant, SamplingRate};
use dp_clipping::{ClipConfig, ClipError, Controller, PresetParams, PublicContext, Weights, registry};
use dp_linear::{Goal, Objective};
use dp_table::declaration::{EntryError, question};
use dp_train::{GroupSampling, ImageShape, RatesByLoss, TrainError};

use crate::config::{Decision, LEAST_DELTA, MethodChoice, ModelEntry, ModelKind, NetworkName, SamplingEntry};
use crate::error::{FairdpError, Result};

/// Width of a network's hidden layer unless one is given.
const HIDDEN: usize = 32;
/// Steps of a method by name unless they are given.
const STEPS: u64 = 100;
/// More than anyone needs; the ledger and the noise stay in their ranges.
const MOST_STEPS: u64 = 1_000_000;
const MOST_HIDDEN: usize = 4_096;
/// Of a network on pixels, unless they are given: two passes over the records, about as in
/// `cargo xtask reproduce beyond`, which chose these by no search.
const NETWORK_SAMPLING_RATE: f64 = 0.01;
const NETWORK_STEPS: u64 = 200;
/// A group that is drawn more seldom would hardly ever be seen.
const LEAST_GROUP_RATE: f64 = 1e-6;

/// A model and a method of training.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Recipe {
    pub(crate) architecture: Architecture,
    pub(crate) method: Method,
}

/// The decision that training towards a goal has of itself, if it has one.
fn decision_of(goal: Goal) -> Option<Decision> {
    match goal {
        Goal::Accuracy => None,
        Goal::WorstClass | Goal::EqualRecall => Some(Decision::Balanced),
    }
}

/// The same of a method by its name.
pub(crate) fn decision_of_method(name: &str) -> Option<Decision> {
    CONDITIONED.iter().find(|(known, ..)| *known == name).and_then(|(_, goal, _)| decision_of(*goal))
}

/// The model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Architecture {
    /// One curve per number, one value per category.
    Additive,
    /// A network with these hidden layers.
    Mlp { hidden: Vec<usize> },
    /// A convolutional network on the pixels of images of this shape.
    Network { network: NetworkName, image: ImageShape },
}

impl Architecture {
    /// The first threshold unless one is given: about the length of the gradient of a record that
    /// the model is wrong about. A smaller one would shorten the gradients of the rare class, about
    /// which a model is wrong more often, and with them its probability.
    fn clip_norm(&self) -> f64 {
        match self {
            Self::Additive | Self::Network { .. } => 1.0,
            // Half of the square of tanh, and the bias.
            Self::Mlp { hidden } => (1.0 + hidden.iter().sum::<usize>() as f64 / 2.0).sqrt(),
        }
    }

    /// The probability with which a record enters a batch, and the number of steps, unless they are given.
    fn pace(&self, records_per_unit: u64) -> (f64, u64) {
        match self {
            Self::Network { .. } if records_per_unit == 1 => (NETWORK_SAMPLING_RATE, NETWORK_STEPS),
            Self::Additive | Self::Mlp { .. } | Self::Network { .. } => (1.0, STEPS),
        }
    }

    /// The network on pixels, if it is one.
    pub(crate) fn network(&self) -> Option<NetworkName> {
        match self {
            Self::Network { network, .. } => Some(*network),
            Self::Additive | Self::Mlp { .. } => None,
        }
    }
}

/// The method.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Method {
    /// [`crate::solver`]: steps over all records, whose rows are bounded in advance.
    FullDescent(Objective),
    /// Steps over all records, on blocks of columns that are centred and whitened first.
    Conditioned {
        /// Whose answers are to be right.
        goal: Goal,
        /// Whether a person named it.
        is_asked_for: bool,
    },
    /// A method of the registry.
    Sgd(Box<SgdMethod>),
}

/// The names of conditioned training, each with its goal and a description.
pub(crate) const CONDITIONED: [(&str, Goal, &str); 3] = [
    (
        "conditioned",
        Goal::Accuracy,
        "inputs centred and whitened by released means and covariances, then steps over all records; the default for a \
         table with vectors",
    ),
    ("conditioned-adjusted", Goal::WorstClass, "the same; classes count equally in its decisions, by released shares"),
    (
        "conditioned-fair",
        Goal::EqualRecall,
        "the same, and biases towards equal recall of the classes from released counts of right answers",
    ),
];

/// A method of the registry with its settings.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SgdMethod {
    pub(crate) name: &'static str,
    pub(crate) clipping: ClipConfig,
    /// The largest, where groups have rates of their own.
    pub(crate) sampling_rate: SamplingRate,
    pub(crate) group_sampling: Option<GroupSampling>,
    pub(crate) rates_by_loss: Option<RatesByLoss>,
    pub(crate) steps: u64,
    pub(crate) learning_rate: Option<f64>,
    /// Whether a person named it.
    is_asked_for: bool,
}

/// What a recipe depends on besides its entries: all of it is declared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableFacts {
    /// 0 where none are declared.
    pub(crate) n_groups: usize,
    /// Whether the label is a number.
    pub(crate) is_number: bool,
    /// Whether a column is a vector.
    pub(crate) has_vectors: bool,
    /// The shape of the images, if they are the only input.
    pub(crate) image: Option<ImageShape>,
    pub(crate) records_per_unit: u64,
}

/// Refuses what has classes: a number has the additive model, with `auto` or `conditioned`.
fn refuse_for_number(model: &ModelEntry, architecture: &Architecture, name: &str) -> Result<(), EntryError> {
    if *architecture != Architecture::Additive {
        let kind = if architecture.network().is_some() { "network" } else { "mlp" };
        let message = format!("model.kind = \"{kind}\": expected \"additive\" where the label is a number");
        return Err(EntryError::new("model.kind", message));
    }
    if model.objective != Objective::Population {
        let message = "model.objective = \"equal-classes\": expected \"population\" where the label is a number";
        return Err(EntryError::new("model.objective", message));
    }
    if !NUMBER_METHODS.contains(&name) && is_known(name) {
        let expected = "expected \"auto\" or \"conditioned\" where the label is a number";
        return Err(EntryError::new("method.name", format!("method.name = \"{name}\": {expected}")));
    }
    Ok(())
}

/// A network on pixels, where these are the only input.
fn on_pixels(network: NetworkName, image: Option<ImageShape>) -> Result<Architecture, EntryError> {
    let Some(image) = image else {
        let message = "model.kind = \"network\": expected outside of [tuning], with one column of images without \
                       missing = true and no other input: pixels beside other columns are not supported";
        return Err(EntryError::new("model.kind", message));
    };
    network.check(image).map_err(|message| EntryError::new("model.network", message))?;
    Ok(Architecture::Network { network, image })
}

/// The methods that train a model of a number.
const NUMBER_METHODS: [&str; 2] = ["auto", "conditioned"];

/// All that `method.name` may be.
pub(crate) fn method_names() -> impl Iterator<Item = &'static str> {
    let conditioned = CONDITIONED.iter().map(|(name, ..)| *name);
    std::iter::once("auto").chain(conditioned).chain(registry::all().into_iter().map(|entry| entry.name))
}

/// Whether the thresholds of groups follow from their rates, so that it cannot be without these.
fn is_by_rate(clipping: &ClipConfig) -> bool {
    matches!(clipping.controller, Controller::ByRate { .. })
}

/// The same of a method by its name.
pub(crate) fn takes_group_rates(name: &str) -> bool {
    registry::find(name).is_ok_and(|entry| is_by_rate(&entry.default_config()))
}

/// Whether the rates of groups follow their losses.
fn is_by_loss(clipping: &ClipConfig) -> bool {
    matches!(clipping.weights, Weights::RatesByLoss { .. })
}

/// The same of a method by its name.
pub(crate) fn takes_limits_of_rates(name: &str) -> bool {
    registry::find(name).is_ok_and(|entry| is_by_loss(&entry.default_config()))
}

/// Whether a method has this name; another one is refused with its nearest.
fn is_known(name: &str) -> bool {
    CONDITIONED.iter().any(|(known, ..)| *known == name) || registry::find(name).is_ok()
}

fn wrong_objective() -> EntryError {
    let message = "model.objective = \"equal-classes\": expected with the additive model and `method.name = \"auto\"`";
    EntryError::new("model.objective", message)
}

impl Recipe {
    pub(crate) fn new(model: &ModelEntry, method: &MethodChoice, facts: TableFacts) -> Result<Self, EntryError> {
        let TableFacts { n_groups, is_number, has_vectors, image, records_per_unit } = facts;
        if model.network.is_some() && model.kind != ModelKind::Network {
            return Err(EntryError::new("model.network", "model.network: expected with kind = \"network\" alone"));
        }
        let architecture = match (model.kind, &model.hidden) {
            (ModelKind::Auto | ModelKind::Additive, None) => Architecture::Additive,
            (ModelKind::Auto | ModelKind::Additive | ModelKind::Network, Some(_)) => {
                return Err(EntryError::new("model.hidden", "model.hidden: expected with kind = \"mlp\" alone"));
            }
            (ModelKind::Network, None) => on_pixels(model.network.unwrap_or_default(), image)?,
            (ModelKind::Mlp, None) => Architecture::Mlp { hidden: vec![HIDDEN] },
            (ModelKind::Mlp, Some(hidden)) => {
                if hidden.is_empty() || hidden.iter().any(|width| !(1..=MOST_HIDDEN).contains(width)) {
                    let expected = format!("one width or more, each from 1 to {MOST_HIDDEN}");
                    return Err(EntryError::value("model.hidden", format!("{hidden:?}"), expected));
                }
                Architecture::Mlp { hidden: hidden.clone() }
            }
        };
        let name = method.name.as_deref().unwrap_or("auto");
        if is_number {
            refuse_for_number(model, &architecture, name)?;
        }
        let conditioned = CONDITIONED.iter().find(|(known, ..)| *known == name);
        if conditioned.is_some() && architecture != Architecture::Additive {
            let message = format!("method.name = \"{name}\": expected with the additive model, whose layer it trains");
            return Err(EntryError::new("method.name", message));
        }
        if conditioned.is_some() || name == "auto" && architecture == Architecture::Additive {
            let keys = [
                ("sampling_rate", method.sampling_rate.is_some()),
                ("sampling", method.sampling.is_some()),
                ("steps", method.steps.is_some()),
                ("learning_rate", method.learning_rate.is_some()),
                ("settings", method.settings.is_some()),
            ];
            if let Some((key, _)) = keys.iter().find(|(_, is_given)| *is_given) {
                let place = format!("method.{key}");
                let message = format!("{place}: expected with a method by name alone (`fairdp methods`)");
                return Err(EntryError::new(place, message));
            }
            let own = decision_of_method(name);
            if own.is_some() && model.decision.is_some_and(|decision| Some(decision) != own) {
                let message = format!(
                    "model.decision: expected \"balanced\" or none with method.name = \"{name}\", in whose decisions classes \
                     count equally"
                );
                return Err(EntryError::new("model.decision", message));
            }
            let is_plain = model.objective == Objective::Population;
            let method = match conditioned {
                Some((_, goal, _)) if is_plain => Method::Conditioned { goal: *goal, is_asked_for: true },
                None if is_plain && has_vectors => Method::Conditioned { goal: Goal::Accuracy, is_asked_for: false },
                None => Method::FullDescent(model.objective),
                Some(_) => return Err(wrong_objective()),
            };
            return Ok(Self { architecture, method });
        }
        if model.objective != Objective::Population {
            return Err(wrong_objective());
        }
        let named = SgdMethod::new(name, method, &architecture, n_groups, records_per_unit)?;
        Ok(Self { architecture, method: Method::Sgd(Box::new(named)) })
    }

    /// The decision that the method has of itself, if it has one.
    pub(crate) fn decision(&self) -> Option<Decision> {
        match self.method {
            Method::Conditioned { goal, .. } => decision_of(goal),
            Method::FullDescent(_) | Method::Sgd(_) => None,
        }
    }

    /// What a method with parts of the user's own is conditional on.
    pub(crate) fn conditions(&self) -> Vec<String> {
        match &self.method {
            Method::FullDescent(_) | Method::Conditioned { .. } => Vec::new(),
            Method::Sgd(named) => dp_train::conditions_of_own_method(&named.clipping),
        }
    }

    /// The limits of the rates of groups, where these follow losses.
    pub(crate) fn limits_of_rates(&self) -> Option<&RatesByLoss> {
        match &self.method {
            Method::FullDescent(_) | Method::Conditioned { .. } => None,
            Method::Sgd(named) => named.rates_by_loss.as_ref(),
        }
    }

    /// Whether the thresholds of groups follow from their rates.
    pub(crate) fn has_thresholds_by_rate(&self) -> bool {
        match &self.method {
            Method::FullDescent(_) | Method::Conditioned { .. } => false,
            Method::Sgd(named) => is_by_rate(&named.clipping),
        }
    }

    /// Probability with which a record enters a step's batch.
    pub(crate) fn sampling_rate(&self) -> f64 {
        match &self.method {
            Method::FullDescent(_) | Method::Conditioned { .. } => 1.0,
            Method::Sgd(named) => named.sampling_rate.get(),
        }
    }

    /// The model, for people, and why this one.
    pub(crate) fn model_text(&self, kind: ModelKind) -> String {
        match (&self.architecture, kind) {
            (Architecture::Additive, ModelKind::Auto) => {
                "additive, the default: the same for every table, so that the choice tells nothing of the records; with few \
                 weights, so that there is little noise; its curves can be read"
                    .into()
            }
            (Architecture::Additive, _) => "additive, as asked for".into(),
            (Architecture::Mlp { hidden }, _) => format!("a network with hidden layers of {hidden:?}, as asked for"),
            (Architecture::Network { network, image: ImageShape { height, width, channels } }, _) => {
                let name = network.name();
                format!("the network {name} on pixels, {height} × {width} × {channels}, as asked for")
            }
        }
    }

    /// The method, for people, and why this one.
    pub(crate) fn method_text(&self) -> String {
        match &self.method {
            Method::FullDescent(objective) => {
                let text = "steps over all records, the default: rows are bounded before the first step, so that there is no \
                            threshold to choose, and at equal ε the noise of a run is least when every step uses every record";
                match objective {
                    Objective::Population => text.into(),
                    Objective::EqualClasses => format!("{text}; classes count equally in the loss, as asked for"),
                }
            }
            Method::Conditioned { goal, is_asked_for } => {
                let why = if *is_asked_for { "as asked for" } else { "the default for a table with vectors" };
                let adjusted = match goal {
                    Goal::Accuracy => "",
                    Goal::WorstClass => "; classes count equally in decisions",
                    Goal::EqualRecall => "; classes count equally in decisions, with biases towards equal recall",
                };
                format!(
                    "conditioned, {why}: the columns of the table, and of each vector, are centred and whitened by a released \
                     mean and covariance, and all steps use all records{adjusted}"
                )
            }
            Method::Sgd(named) if named.is_asked_for => {
                format!("{}, as asked for{}", named.name, named.rates_in_words())
            }
            Method::Sgd(named) => format!(
                "{}, the default for a network: one constant threshold, so that the whole share goes to the gradients and none \
                 to counts",
                named.name
            ),
        }
    }
}

impl SgdMethod {
    fn new(
        name: &str,
        method: &MethodChoice,
        architecture: &Architecture,
        n_groups: usize,
        records_per_unit: u64,
    ) -> Result<Self, EntryError> {
        let is_asked_for = name != "auto";
        let Ok(entry) = registry::find(if is_asked_for { name } else { "dpsgd" }) else {
            let mut meant = question(name, method_names());
            if let Some(entry) = registry::meant(name).filter(|_| meant.is_empty()) {
                meant = format!("; did you mean `{}` ({})?", entry.name, entry.label);
            }
            let message = format!("method.name = \"{name}\": unknown; `fairdp methods` lists the names{meant}");
            return Err(EntryError::new("method.name", message));
        };
        let settings =
            method.settings.unwrap_or(PresetParams { clip_norm: architecture.clip_norm(), ..Default::default() });
        let clipping = entry.config(&settings).map_err(|error| match (&error, &method.settings) {
            (ClipError::InvalidParameter { parameter, .. }, Some(_)) => {
                EntryError::new(format!("method.settings.{parameter}"), format!("method.settings.{error}"))
            }
            _ => EntryError::new("method.settings", format!("method.settings: {error}")),
        })?;
        let unfit = |error: &dyn Display| EntryError::new("method.settings", format!("method.settings: {error}"));
        if !clipping.certified() {
            let message = format!(
                "method.name = \"{name}\": records influence each other's gradients in it, so that no ε would hold; expected a \
                 method with a guarantee (`fairdp methods`)"
            );
            return Err(EntryError::new("method.name", message));
        }
        if clipping.needs_groups() && n_groups == 0 {
            let message = format!("method.name = \"{name}\": it treats groups differently, and there is no [[group]]");
            return Err(EntryError::new("method.name", message));
        }
        if let Some(sampling) = &method.sampling {
            check_sampling(sampling, method.sampling_rate, n_groups, records_per_unit)?;
        }
        let follow_losses = is_by_loss(&clipping);
        let (group_sampling, rates_by_loss) = match &method.sampling {
            Some(SamplingEntry::Group { rates }) if !follow_losses => (Some(group_sampling(rates, n_groups)?), None),
            Some(SamplingEntry::Loss { least, largest }) if follow_losses => {
                (None, Some(rates_by_loss(*least, *largest)?))
            }
            None if !is_by_rate(&clipping) => (None, None),
            // Missing, or of the other kind.
            _ => {
                let expected = match (follow_losses, is_by_rate(&clipping)) {
                    (true, _) => {
                        "whose groups have rates that follow their losses: sampling = { by = \"loss\", least = 0.1, largest = \
                         0.4 }"
                            .to_owned()
                    }
                    (_, true) => format!(
                        "whose groups have rates of their own: sampling = {{ by = \"group\", rates = [0.2, 0.5] }}, a public \
                         rate for each of {n_groups} groups"
                    ),
                    _ => "whose rates follow no loss: sampling = { by = \"group\", … }, or name = \"asc-by-loss\"".to_owned(),
                };
                let message = format!("method.sampling: expected with method.name = \"{name}\", {expected}");
                return Err(EntryError::new("method.sampling", message));
            }
        };
        let (default_rate, default_steps) = architecture.pace(records_per_unit);
        let largest = group_sampling.as_ref().map(GroupSampling::largest_rate);
        let largest = largest.or(rates_by_loss.as_ref().map(|limits| limits.largest.get()));
        let rate = largest.or(method.sampling_rate).unwrap_or(default_rate);
        let Some(sampling_rate) = SamplingRate::new(rate).ok().filter(|_| rate > 0.0) else {
            return Err(EntryError::value("method.sampling_rate", rate, "above 0, at most 1"));
        };
        if rate < 1.0 && records_per_unit > 1 {
            // Records of one unit would be in different batches: a mixture of Gaussians
            // (`DpEvent::for_user`), which joint events with counts have no analysis of yet.
            let expected = "1 where a unit has several records: they would be drawn one by one";
            return Err(EntryError::value("method.sampling_rate", rate, expected));
        }
        let steps = method.steps.unwrap_or(default_steps);
        if !(1..=MOST_STEPS).contains(&steps) {
            return Err(EntryError::value("method.steps", steps, format!("1 to {MOST_STEPS}")));
        }
        if let Some(rate) = method.learning_rate
            && !(rate.is_finite() && rate > 0.0)
        {
            return Err(EntryError::value("method.learning_rate", rate, "a finite number above 0"));
        }
        let named = Self {
            name: entry.name,
            clipping,
            sampling_rate,
            group_sampling,
            rates_by_loss,
            steps,
            learning_rate: method.learning_rate,
            is_asked_for,
        };
        let noise_multiplier = NoiseMultiplier::new(1.0).map_err(|error| unfit(&error))?;
        let delta = Delta::new(LEAST_DELTA).map_err(|error| unfit(&error))?;
        named.calibrated_event(noise_multiplier, n_groups.max(1), 1, delta).map_err(|error| unfit(&error))?;
        Ok(named)
    }

    /// The limits of rates that follow losses, and what they mean for thresholds.
    fn rates_in_words(&self) -> String {
        let Some(limits) = &self.rates_by_loss else { return String::new() };
        let share = limits.levels.as_ref().and_then(|found| found.levels.last()).map(|level| level.share);
        let share = share.map_or(String::new(), |share| format!(" (there with its threshold × {share:.4})"));
        format!(
            "; each group is drawn at a rate from {} to {}{share} that follows its noisy loss, and has the same ε as any other",
            limits.least, limits.largest
        )
    }

    /// What the steps release about a unit: an event, and how often it is met. `noise_multiplier` is
    /// the noise of the gradients over the largest change by a unit.
    ///
    /// With several records per unit every step uses all records, and all noise is larger by their
    /// number. Where groups have rates of their own, a record meets the steps of its group.
    pub(crate) fn releases(
        &self,
        noise_multiplier: NoiseMultiplier,
        n_groups: usize,
        records_per_unit: u64,
    ) -> Result<(DpEvent, u64)> {
        let context = context(noise_multiplier, n_groups);
        if let Some(sampling) = &self.group_sampling {
            return Ok((sampling.event(&self.clipping, &context, self.steps)?, 1));
        }
        if let Some(limits) = &self.rates_by_loss {
            return Ok((limits.event(&self.clipping, &context)?, self.steps));
        }
        let query = dp_train::step_query(&self.clipping, noise_multiplier, &context, records_per_unit)?;
        let is_sampled = self.sampling_rate.get() < 1.0;
        Ok((if is_sampled { query.poisson_sampled(self.sampling_rate) } else { query }, self.steps))
    }

    /// The event of all steps that noise is found for: where the thresholds of groups follow from it,
    /// that of the group drawn least often, which the others do not exceed. Where rates follow losses,
    /// `delta` chooses the order of the divergence.
    pub(crate) fn calibrated_event(
        &self,
        noise_multiplier: NoiseMultiplier,
        n_groups: usize,
        records_per_unit: u64,
        delta: Delta,
    ) -> Result<DpEvent> {
        let context = context(noise_multiplier, n_groups);
        match (&self.group_sampling, &self.rates_by_loss) {
            (Some(sampling), _) if sampling.wants_shares(&self.clipping) => {
                Ok(sampling.least_drawn(&self.clipping, &context, self.steps)?)
            }
            (_, Some(limits)) => {
                let (order, divergence) = limits.budget(&self.clipping, &context, self.steps, delta)?;
                Ok(DpEvent::RenyiAtOrder { order, divergence }.repeated(self.steps))
            }
            _ => {
                let (event, count) = self.releases(noise_multiplier, n_groups, records_per_unit)?;
                Ok(event.repeated(count))
            }
        }
    }

    /// The same method with the threshold of each group, or of each rate that losses may choose, at this
    /// noise and after what was spent.
    pub(crate) fn with_shares(
        self,
        noise_multiplier: NoiseMultiplier,
        n_groups: usize,
        spent: &PldAccountant,
        delta: Delta,
    ) -> Result<Self> {
        let context = context(noise_multiplier, n_groups);
        let found = match self.group_sampling {
            Some(sampling) if sampling.wants_shares(&self.clipping) => {
                let found = sampling.with_equal_epsilon(&self.clipping, &context, self.steps, spent, delta);
                Some(found.map_err(of_sampling)?)
            }
            sampling => sampling,
        };
        let limits = self.rates_by_loss.map(|limits| limits.with_levels(&self.clipping, &context, self.steps, delta));
        Ok(Self { group_sampling: found, rates_by_loss: limits.transpose().map_err(of_sampling)?, ..self })
    }
}

/// A refusal of rates by the key that a person wrote.
fn of_sampling(error: TrainError) -> FairdpError {
    match error {
        TrainError::InvalidParameter { parameter, value, expected } if parameter.starts_with("batches.sampling") => {
            let of_limits = parameter.ends_with("largest");
            let parameter = if of_limits { "method.sampling.largest" } else { "method.sampling.rates" };
            FairdpError::NotForThisTable { parameter, value, expected }
        }
        other => other.into(),
    }
}

fn context(noise_multiplier: NoiseMultiplier, n_groups: usize) -> PublicContext {
    PublicContext { n_groups, expected_batch_size: 1.0, noise_multiplier: noise_multiplier.get() }
}

/// Refuses rates of groups where there can be none.
fn check_sampling(
    sampling: &SamplingEntry,
    sampling_rate: Option<f64>,
    n_groups: usize,
    records_per_unit: u64,
) -> Result<(), EntryError> {
    let by = match sampling {
        SamplingEntry::Group { .. } => "by group",
        SamplingEntry::Loss { .. } => "by loss",
    };
    let message = if records_per_unit > 1 {
        format!(
            "method.sampling = {by}: expected none where [unit] has several records: they would be drawn one by one"
        )
    } else if sampling_rate.is_some() {
        "method.sampling and method.sampling_rate: expected one of the two".to_owned()
    } else if n_groups == 0 {
        format!("method.sampling = {by}: there is no [[group]]")
    } else {
        return Ok(());
    };
    Err(EntryError::new("method.sampling", message))
}

/// The rate of a group under this key, checked.
fn group_rate(key: &str, rate: f64) -> Result<SamplingRate, EntryError> {
    let valid = SamplingRate::new(rate).ok().filter(|_| rate >= LEAST_GROUP_RATE);
    let message = || format!("method.sampling.{key} = {rate:?}: expected {LEAST_GROUP_RATE:?} to 1");
    valid.ok_or_else(|| EntryError::new("method.sampling", message()))
}

/// Limits of rates that follow losses, checked.
fn rates_by_loss(least: f64, largest: f64) -> Result<RatesByLoss, EntryError> {
    let limits = RatesByLoss::new(group_rate("least", least)?, group_rate("largest", largest)?);
    if least >= largest {
        let message = format!("method.sampling.least = {least:?}: expected below largest = {largest:?}");
        return Err(EntryError::new("method.sampling", message));
    }
    Ok(limits)
}

/// Rates of the groups, checked.
fn group_sampling(rates: &[f64], n_groups: usize) -> Result<GroupSampling, EntryError> {
    if rates.is_empty() {
        let message = format!("method.sampling.rates has 0 values: expected one for each of {n_groups} groups");
        return Err(EntryError::new("method.sampling", message));
    }
    let rates = rates.iter().map(|&rate| group_rate("rates", rate));
    Ok(GroupSampling::new(rates.collect::<Result<_, _>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: TableFacts =
        TableFacts { n_groups: 0, is_number: false, has_vectors: false, image: None, records_per_unit: 1 };

    fn named(settings: &str) -> SgdMethod {
        let method = format!("name = \"dpsgd-global-adapt\"\n{settings}");
        let method: MethodChoice = toml::from_str(&method).unwrap();
        match Recipe::new(&ModelEntry::default(), &method, FACTS).unwrap().method {
            Method::Sgd(named) => *named,
            _ => unreachable!("a method was named"),
        }
    }

    /// With units of two records a run has twice the noise: 6 for the gradients. Counts with ten
    /// times that have 60, which is 30 over what the unit can change; counts with 20 whatever the
    /// gradients have are 10 over it.
    #[test]
    fn noise_over_what_a_unit_changes() {
        let sigma = NoiseMultiplier::new(3.0).unwrap();
        let event = |settings| named(settings).releases(sigma, 2, 2).unwrap().0.to_string();
        assert_eq!(event(""), "joint Gaussian (noise multipliers 3, 30)");
        assert_eq!(
            event("settings = { count_noise = { multiplier = 20 } }"),
            "joint Gaussian (noise multipliers 3, 10)"
        );
    }

    #[test]
    fn batches_are_in_the_event() {
        let sigma = NoiseMultiplier::new(1.0).unwrap();
        let (event, count) = named("sampling_rate = 0.25").releases(sigma, 2, 1).unwrap();
        assert_eq!(count, 100);
        assert_eq!(event.to_string(), "Poisson-sampled (rate 0.25) joint Gaussian (noise multipliers 1, 10)");
    }

    #[test]
    fn a_refused_setting_is_named_as_it_was_given() {
        let refusal = |settings: &str| {
            let method: MethodChoice = toml::from_str(&format!("name = \"dpsgd\"\nsettings = {settings}")).unwrap();
            Recipe::new(&ModelEntry::default(), &method, FACTS).unwrap_err().message
        };
        let message = refusal("{ clip_norm = -1 }");
        assert!(message.starts_with("method.settings.clip_norm = -1: expected"), "{message}");
    }
}
