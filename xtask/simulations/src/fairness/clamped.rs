//! The planted fault: what fairdp 0.1.0 printed of balanced accuracy.

use fair_metrics::noisy::{NoisyCounts, NoisyFigures, NoisyRate};

/// Half-widths of clamped recalls, added in quadrature, and the lowest estimate by name.
pub(super) fn replace(counts: &NoisyCounts, figures: &mut NoisyFigures) {
    let recalls = |groups: &[usize]| -> Vec<NoisyRate> {
        (0..counts.n_classes())
            .map(|class| {
                let share = counts.share(groups, |c, _| c == class, |_, answer| answer == class);
                let noise = share.noise_of_hits + share.noise_of_others;
                wilson(share.hits, share.n(), noise / 2.0)
            })
            .collect()
    };
    for (group, found) in figures.groups.iter_mut().enumerate() {
        found.balanced_accuracy = mean(&recalls(&[group]));
    }
    let balanced: Vec<NoisyRate> = figures.groups.iter().map(|group| group.balanced_accuracy).collect();
    let known = || (0..balanced.len()).filter(|&group| balanced[group].value.is_some());
    let value = |group: usize| balanced[group].value.unwrap_or(1.0);
    let lowest = known().min_by(|&a, &b| value(a).total_cmp(&value(b)));
    let is_below = |group: usize, other: usize| {
        let less = (value(other) - balanced[other].low).hypot(balanced[group].high - value(group));
        value(other) - value(group) > less
    };
    figures.lowest = match lowest {
        Some(group) if known().any(|other| is_below(group, other)) => vec![group],
        _ => (0..balanced.len()).collect(),
    };
}

/// Wilson's interval with the variance of the noise in either count.
fn wilson(hits: f64, n: f64, noise: f64) -> NoisyRate {
    const Z: f64 = 1.959_964;
    if n <= Z * (2.0 * noise).sqrt() || n < 1.0 {
        return NoisyRate::UNKNOWN;
    }
    let value = (hits / n).clamp(0.0, 1.0);
    let (z, noise) = (Z * Z, noise / (n * n));
    let a = 1.0 + z / n - 2.0 * z * noise;
    let (b, c) = (value + 0.5 * z / n - z * noise, value * value - z * noise);
    let root = (b * b - a * c).max(0.0).sqrt();
    if a <= 0.0 {
        return NoisyRate { value: Some(value), ..NoisyRate::UNKNOWN };
    }
    NoisyRate { value: Some(value), low: ((b - root) / a).clamp(0.0, value), high: ((b + root) / a).clamp(value, 1.0) }
}

fn mean(rates: &[NoisyRate]) -> NoisyRate {
    let n = rates.len() as f64;
    let Some(values) = rates.iter().map(|rate| rate.value).collect::<Option<Vec<f64>>>() else {
        return NoisyRate::UNKNOWN;
    };
    let value = values.iter().sum::<f64>() / n;
    let half = |end: fn(&NoisyRate) -> f64| {
        rates.iter().zip(&values).map(|(rate, value)| (end(rate) - value).powi(2)).sum::<f64>().sqrt() / n
    };
    NoisyRate {
        value: Some(value),
        low: (value - half(|rate| rate.low)).max(0.0),
        high: (value + half(|rate| rate.high)).min(1.0),
    }
}
