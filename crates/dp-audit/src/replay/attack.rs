//! Attacks on a step, and mutations that make an attack worse.

use std::num::NonZeroUsize;

use dp_clipping::{MethodEntry, PresetParams, ScaleRule};
use dp_engine::{DType, ModelConfig};
use dp_train::Result;
use rand::Rng;
use rand_chacha::ChaCha20Rng;
use strum::{IntoStaticStr, VariantArray};

use super::case::Case;
use super::layer_kind::{Architecture, Attacked, LayerKind, Task};
use super::measure::Comparison;

/// A way to make one record move more than itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
#[non_exhaustive]
pub enum Attack {
    /// Nothing special: records as they come.
    Ordinary,
    /// Values that are not numbers, infinite, or next to it.
    #[strum(serialize = "not finite")]
    NotFinite,
    /// Values so small that products of them are subnormal or 0.
    Subnormal,
    /// Copies of one record, which react alike.
    Duplicates,
    /// Positions, or inputs, that cancel.
    Cancelling,
    /// Copies of a record whose hidden units are at the kink of their activation.
    Kink,
    /// Copies of a record whose norm is at the threshold.
    Threshold,
    /// Groups that are absent, or of one record.
    Groups,
    /// Counts far from any that a batch has.
    Counts,
    /// A sum at the edge between two exponents, then records too small for it.
    Stagnation,
    /// Large parameters: saturated activations, losses and gradients of any size.
    Parameters,
}

impl Attack {
    /// Every attack.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Name in reports.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// A case of this attack.
    pub(super) fn begin(
        self,
        layer: Attacked<'_>,
        method: &'static MethodEntry,
        rng: &mut ChaCha20Rng,
    ) -> Result<Case> {
        if self == Self::Stagnation && matches!(layer, Attacked::Kind(LayerKind::Linear)) {
            return stagnation(method, rng);
        }
        let mut case = Case::ordinary(layer, method, rng)?;
        match self {
            Self::Ordinary => {}
            Self::NotFinite => not_finite(&mut case, rng),
            Self::Subnormal => subnormal(&mut case, rng),
            // A threshold is set later: the norm is known once the case was measured.
            Self::Duplicates | Self::Stagnation | Self::Threshold => duplicate(&mut case, rng),
            Self::Cancelling => cancel(&mut case, rng),
            Self::Kink => {
                duplicate(&mut case, rng);
                to_kink(&mut case, rng);
            }
            Self::Groups => groups(&mut case, rng),
            Self::Counts => {
                let extremes = [f64::MAX, -f64::MAX, 1e300, 5e-324, 0.0, -0.0, 1.0, 1e17];
                case.set_released(|| extremes[rng.random_range(0..extremes.len())])?;
            }
            Self::Parameters => {
                let gain = 10_f64.powf(rng.random_range(-30.0..30.0));
                case.parameters.iter_mut().for_each(|p| *p *= gain);
            }
        }
        Ok(case)
    }

    /// The next case of a climb: one thing is different, more often one that this attack lives by.
    pub(super) fn mutate(self, case: &Case, comparison: &Comparison, rng: &mut ChaCha20Rng) -> Result<Case> {
        let mut next = case.clone();
        if self == Self::Threshold || rng.random_bool(0.15) {
            to_threshold(&mut next, comparison, rng);
        }
        match self {
            Self::NotFinite if rng.random() => not_finite(&mut next, rng),
            Self::Subnormal if rng.random() => subnormal(&mut next, rng),
            Self::Cancelling if rng.random() => cancel(&mut next, rng),
            Self::Kink if rng.random() => to_kink(&mut next, rng),
            Self::Groups if rng.random() => groups(&mut next, rng),
            Self::Stagnation if rng.random() => next_to_stagnation(&mut next, rng),
            _ => {}
        }
        match rng.random_range(0..11) {
            0 | 1 => stretch(next.data.row_mut(case.record), case.vocabulary, rng),
            2 => nudge(&mut next, rng),
            3 => duplicate(&mut next, rng),
            4 => {
                let i = rng.random_range(0..next.parameters.len());
                next.parameters[i] *= 2_f64.powi(rng.random_range(-4..=4));
            }
            5 => {
                let record = next.record;
                next.data.labels[record] = rng.random_range(0..next.task.n_classes as u32);
            }
            6 => next.micro_batch = [1_024, 256, 64, 32, 16, 7, 2, 1][rng.random_range(0..8)],
            7 => next.draw_released(rng)?,
            8 => cancel(&mut next, rng),
            9 => next.record = next.batch[rng.random_range(0..next.batch.len())],
            _ => next.dropout = rng.random(),
        }
        Ok(next)
    }
}

/// Values that are no numbers, or nearly none, in some places of the record, and now and then of
/// another.
fn not_finite(case: &mut Case, rng: &mut ChaCha20Rng) {
    const VALUES: [f32; 10] =
        [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, 3e38, -3e38, 1e38, 1e30, 1e20];
    // Ids that are numbers are checked before the step: only NaN and infinities pass.
    let n_values = if case.vocabulary.is_some() { 3 } else { VALUES.len() };
    let mut spoil = |case: &mut Case, record: usize| {
        let share = if rng.random() { 1.0 } else { 0.3 };
        let one = rng.random_range(0..case.data.n_inputs);
        for (i, x) in case.data.row_mut(record).iter_mut().enumerate() {
            if i == one || rng.random_bool(share) {
                *x = VALUES[rng.random_range(0..n_values)];
            }
        }
    };
    spoil(case, case.record);
    if case.data.len() > 1 && case.dropout.is_multiple_of(3) {
        let other = (case.record + 1) % case.data.len();
        spoil(case, other);
    }
    if rng.random_bool(0.3) {
        silence(case);
    }
}

/// Turns the first layer's weights so that an infinite value leaves its units at −∞, where most
/// activations are flat: the record has a finite loss, and a gradient of `0 · ∞`.
pub(super) fn silence(case: &mut Case) {
    let Some((inputs, outputs)) = case.first_linear else { return };
    let row = case.data.row(case.record).to_vec();
    for (i, x) in row.iter().enumerate().filter(|(_, x)| x.abs() > 1e18) {
        for unit in 0..outputs {
            let weight = &mut case.parameters[unit * inputs + i % inputs];
            *weight = -weight.abs() * f64::from(x.signum());
        }
    }
}

fn subnormal(case: &mut Case, rng: &mut ChaCha20Rng) {
    if case.vocabulary.is_some() {
        let gain = 10_f64.powf(rng.random_range(-44.0..-20.0));
        case.parameters.iter_mut().for_each(|p| *p *= gain);
        return;
    }
    let factor = 10_f32.powf(rng.random_range(-44.0..-15.0));
    let whole = rng.random();
    for (i, x) in case.data.row_mut(case.record).iter_mut().enumerate() {
        if whole || i % 2 == 0 {
            *x *= factor;
        }
    }
}

/// Makes others copies of the record, at a number of rows where products may take another path.
fn duplicate(case: &mut Case, rng: &mut ChaCha20Rng) {
    const ROWS: [usize; 14] = [2, 3, 5, 9, 17, 26, 33, 52, 65, 66, 97, 129, 130, 257];
    let most = if case.data.n_inputs > 200 { 66 } else { 257 };
    let n = ROWS[rng.random_range(0..ROWS.len())].min(most);
    if case.data.len() < n && rng.random() {
        let (record, data) = (case.record, &mut case.data);
        let row = data.row(record).to_vec();
        while data.len() < n {
            data.features.extend(&row);
            data.labels.push(data.labels[record]);
            data.groups.push(data.groups[record]);
        }
        case.batch = (0..n).collect();
    }
    let all = rng.random_bool(0.7);
    for to in 0..case.data.len() {
        if to != case.record && (all || rng.random()) {
            case.data.copy(case.record, to);
        }
    }
}

/// Opposite values at pairs of positions, of any size; with one position, at pairs of inputs.
fn cancel(case: &mut Case, rng: &mut ChaCha20Rng) {
    if case.vocabulary.is_some() {
        // The same id everywhere: the gradients of its places add up, or cancel.
        let id = case.data.row(case.record)[0];
        case.data.row_mut(case.record).fill(id);
        return;
    }
    let size = 10_f32.powf(rng.random_range(0.0..36.0));
    let exact = rng.random();
    let step = if case.channels < case.data.n_inputs { case.channels } else { 1 };
    let row = case.data.row_mut(case.record);
    for pair in row.chunks_exact_mut(2 * step) {
        let (a, b) = pair.split_at_mut(step);
        for (a, b) in a.iter_mut().zip(b) {
            *a = size * if exact { a.signum() } else { rng.random_range(-1.0..1.0) };
            *b = if rng.random_bool(0.1) { -a.next_up() } else { -*a };
        }
    }
}

/// Shifts the first layer's biases so that its units are at 0 for the record, up to rounding.
pub(super) fn to_kink(case: &mut Case, rng: &mut ChaCha20Rng) {
    let Some((inputs, outputs)) = case.first_linear else { return nudge(case, rng) };
    let position = rng.random_range(0..case.data.n_inputs / inputs);
    let row = case.data.row(case.record).to_vec();
    let x = &row[position * inputs..(position + 1) * inputs];
    let all = rng.random();
    let one = rng.random_range(0..outputs);
    for unit in (0..outputs).filter(|&unit| all || unit == one) {
        let weights = &case.parameters[unit * inputs..(unit + 1) * inputs];
        // In the order of a plain loop, or exact.
        let plain = weights.iter().zip(x).fold(0.0_f32, |sum, (&w, &x)| sum + w as f32 * x);
        let exact: f64 = weights.iter().zip(x).map(|(&w, &x)| f64::from(w as f32) * f64::from(x)).sum();
        let at = if rng.random() { plain } else { exact as f32 };
        case.parameters[inputs * outputs + unit] = -f64::from(match rng.random_range(0..4) {
            0 => at.next_up(),
            1 => at.next_down(),
            _ => at,
        });
    }
}

/// Moves the threshold to the norm of one of the records, or next to it.
fn to_threshold(case: &mut Case, comparison: &Comparison, rng: &mut ChaCha20Rng) {
    if comparison.norms.is_empty() {
        return;
    }
    let norm = comparison.norms[rng.random_range(0..comparison.norms.len())];
    if !norm.is_finite() || norm <= 0.0 {
        return;
    }
    let at = if rng.random() { norm / case.tolerance() } else { norm };
    case.set_threshold(match rng.random_range(0..6) {
        0 => at.next_up(),
        1 => at.next_down(),
        2 => at * (1.0 + 1e-7),
        3 => at * (1.0 - 1e-7),
        _ => at,
    });
}

/// The record alone in its group, or all in one.
fn groups(case: &mut Case, rng: &mut ChaCha20Rng) {
    let (record, n_groups) = (case.record, case.data.n_groups);
    let own = rng.random_range(0..n_groups);
    let other = (own + usize::from(rng.random::<bool>())) % n_groups;
    case.data.groups.fill(other);
    case.data.groups[record] = own;
}

/// Multiplies values by a power of two, which keeps what they have in common.
fn stretch(values: &mut [f32], vocabulary: Option<usize>, rng: &mut ChaCha20Rng) {
    if let Some(vocabulary) = vocabulary {
        values.fill_with(|| rng.random_range(0..vocabulary) as f32);
        return;
    }
    let factor = 2_f32.powi(rng.random_range(-12..=12));
    for x in values {
        *x *= factor;
    }
}

/// Moves one value of the record to its neighbour among numbers.
fn nudge(case: &mut Case, rng: &mut ChaCha20Rng) {
    if case.vocabulary.is_some() {
        return;
    }
    let row = case.data.row_mut(case.record);
    let i = rng.random_range(0..row.len());
    row[i] = if rng.random() { row[i].next_up() } else { row[i].next_down() };
}

/// A sum in `f32` that one record lifts over a power of two, and then records that are just above
/// half a unit in the last place there: each is rounded up to a whole one, and without the one
/// record to what it is.
fn stagnation(method: &'static MethodEntry, rng: &mut ChaCha20Rng) -> Result<Case> {
    stagnation_of(method, 1 << rng.random_range(12..=14), rng)
}

/// A case of stagnation with `n` records.
pub(super) fn stagnation_of(method: &'static MethodEntry, n: usize, rng: &mut ChaCha20Rng) -> Result<Case> {
    const CLIP_NORM: f64 = 1.0 / 1_024.0;
    let architecture = Architecture {
        config: ModelConfig::LogisticRegression,
        task: Task::binary(),
        n_inputs: 1,
        channels: 1,
        vocabulary: None,
        first_linear: Some((1, 1)),
    };
    let mut case = Case::on(architecture, method, n, rng)?;
    let params = PresetParams { clip_norm: CLIP_NORM, upper_bound: Some(CLIP_NORM), ..PresetParams::default() };
    case.clipping = (method.preset)(&params);
    case.threshold = case.threshold.map(|_| CLIP_NORM);
    // The bias alone decides, and has nearly all of the gradient.
    case.parameters = vec![1e6, 0.0];
    case.data.labels.fill(0);
    case.data.groups.fill(0);
    case.batch = (0..n).collect();
    (case.sampling_rate, case.dtype, case.micro_batch, case.threads) = (1.0, DType::F32, 1_024, NonZeroUsize::MIN);
    case.set_released(|| 0.0)?;
    next_to_stagnation(&mut case, rng);
    Ok(case)
}

/// Sets how many records are large, and how small the others are.
fn next_to_stagnation(case: &mut Case, rng: &mut ChaCha20Rng) {
    let n = case.data.len();
    if case.model != ModelConfig::LogisticRegression || n < 4_096 {
        return;
    }
    let rule = case.clipping.rule;
    let threshold = 1.0 / 1_024.0;
    // One more than a power of two: each is a little less than the bound.
    let n_large = (1 << (n / 2).ilog2()) + 1;
    let large = if matches!(rule, ScaleRule::GlobalDrop { .. }) { threshold * (1.0 - 1e-4) } else { 0.5 };
    let unit = rule.bound(threshold) * (n_large - 1) as f64 * 2_f64.powi(-24);
    // 128 is a piece of a full batch; other pieces are smaller.
    let shares = if rng.random() { 128.0 } else { 2_f64.powi(rng.random_range(0..=7)) };
    let small = unit * (1.0 + rng.random_range(0.0..0.1)) / shares / rule.scale(1e-8, threshold);
    for (i, x) in case.data.features.iter_mut().enumerate() {
        let slope = if i < n_large { large } else { small };
        *x = ((slope / (1.0 - slope)).ln() / 1e6) as f32;
    }
    case.record = rng.random_range(0..n_large);
}
